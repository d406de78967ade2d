/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Questions of clients to the history: they write a time, a PV or a user, and the table HISTORY has the answer. This
 * has a thread of its own, because to read the file may take seconds.
 */
#ifndef EBPFMON_HISTORYFOUND_H
#define EBPFMON_HISTORYFOUND_H

#include "ebpfMonModule.h"

#define EBPFMON_HISTORY_FOUND 100

typedef struct {
    char time[24], pv[69], old[48], value[48], who[192], result[48], ioc[61];
} ebpfMonHistoryFoundRow;

typedef struct {
    char     message[240];
    char     text[16000];  /* the same rows as the program ebpfMonHistory writes them, the newest first */
    unsigned rows;
    ebpfMonHistoryFoundRow row[EBPFMON_HISTORY_FOUND]; /* the newest last */
} ebpfMonHistoryFound;

/* What a client may write, in the order of the PVs HISTORY_FROM, _TO, _PV, _USER. */
typedef enum {
    ebpfMonAskFrom, ebpfMonAskTo, ebpfMonAskPv, ebpfMonAskUser, ebpfMonAskParts
} ebpfMonAskPart;

typedef struct ebpfMonHistoryFinder ebpfMonHistoryFinder;

/* "module" stays the caller's. Never freed. NULL without memory. */
ebpfMonHistoryFinder *ebpfMonHistoryFinderNew(const ebpfMonModule *module);

/* 0; or -1: no thread. "file" stays the caller's. */
int ebpfMonHistoryFinderStart(ebpfMonHistoryFinder *finder, const char *file);
int ebpfMonHistoryFinderStop(ebpfMonHistoryFinder *finder, double seconds);

/* Asks again, with this part of the question changed. Any thread. */
void ebpfMonHistoryFinderAsk(ebpfMonHistoryFinder *finder, ebpfMonAskPart part, const char *text);

/* Under the lock of ebpfMonModuleLock. */
const ebpfMonHistoryFound *ebpfMonHistoryFinderGet(const ebpfMonHistoryFinder *finder);

#endif
