/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keeps puts, events of IOCs, kept traces, and the times at which nobody watched. The threads of the core only copy a
 * row into a queue; one thread writes the file. If the file cannot be written, the rows of that time are lost and
 * counted, and a row "lost" says how many, as soon as it can be written again.
 */
#ifndef EBPFMON_HISTORY_H
#define EBPFMON_HISTORY_H

#include "ebpfMonModule.h"

#define EBPFMON_HISTORY_MEGABYTES 1024
#define EBPFMON_HISTORY_DAYS      30

typedef struct {
    char     file[256];
    unsigned megabytes, days;
    int      leavesOutValues, leavesOutNames; /* nonzero: values, or users and hosts, are not kept */
} ebpfMonHistoryConf;

typedef struct {
    int      state;   /* 0 off, 1 writes, 2 cannot write */
    uint64_t rows;    /* in the file */
    uint64_t lost;    /* since the start */
    int      losing;  /* alarm severity: MAJOR_ALARM if it has grown in the last minute */
    char     losingText[80];
    char     message[320];
} ebpfMonHistoryValues;

typedef struct ebpfMonHistory ebpfMonHistory;

/* "module" stays the caller's. Never freed. NULL without memory. */
ebpfMonHistory *ebpfMonHistoryNew(const ebpfMonModule *module);

/* Where to keep it, before iocInit. megabytes, days: 0 for the default. "leaveOut": "values", "names", both or "". 0;
 * or -1: "why" says what is wrong. */
int ebpfMonHistoryConfigure(ebpfMonHistory *history, const char *file, int megabytes, int days, const char *leaveOut,
                            char *why, size_t size);

/* Keeps the newest rows in memory, each put by itself, and packets; and writes them to files of this folder when
 * something happens (historyFreezer.h); before iocInit. megabytes: 0 for the default. packets: "none"; "payload": they
 * are kept whole; NULL or "": headers. 0; or -1: "why" says what is wrong. */
int ebpfMonHistoryKeepRing(ebpfMonHistory *history, const char *folder, int megabytes, const char *packets, char *why,
                           size_t size);

/* Where it is kept; "": nowhere. */
const char *ebpfMonHistoryGetFile(const ebpfMonHistory *history);

/* Nonzero after Start: packets are kept, and AddPacket is to be called. */
int ebpfMonHistoryKeepsPackets(const ebpfMonHistory *history);

/* Requests such a file. Any thread. -1: nothing is kept in memory. */
int ebpfMonHistoryFreeze(ebpfMonHistory *history, const char *note);

/* The functions of ebpfMonModule. Without a configuration they do nothing. */
int  ebpfMonHistoryStart(void *history, const ebpfMonModuleCore *core);
int  ebpfMonHistoryStop(void *history, double seconds);
void ebpfMonHistoryAddPut(void *history, const ebpfMonModulePut *put);
void ebpfMonHistoryAddTrace(void *history, const ebpfMonModuleTrace *trace);
void ebpfMonHistoryAddPacket(void *history, const ebpfMonModulePacket *packet);
void ebpfMonHistoryAddMessage(void *history, const struct ebpfMonWireEvent *message);
void ebpfMonHistoryAddEvent(void *history, const epicsTimeStamp *time, const char *text);
void ebpfMonHistoryLook(void *history);

/* Under the lock of ebpfMonModuleLock. */
const ebpfMonHistoryValues *ebpfMonHistoryGetValues(const ebpfMonHistory *history);

#endif
