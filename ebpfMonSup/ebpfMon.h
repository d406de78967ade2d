/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ebpfMon for code of your own in the monitor IOC: what the records show and what the commands do, without
 * either. C and C++. May be called from any thread, once the support is registered; link with ebpfMon.
 *
 * Texts are UTF-8 and end in "..." when they did not fit.
 */
#ifndef EBPFMON_H
#define EBPFMON_H

#include <stddef.h>
#include <stdio.h>
#include <epicsTime.h>
#include <epicsTypes.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int    state;        /* as STATE: 0 Starting, 1 Running, 2 Degraded, 3 Failed; what follows says
                          * something in 1 and 2 only */
    char   message[256]; /* why, and what to do */
    unsigned iocs;       /* seen on this host */
    epicsUInt64 puts;    /* that passed the filter, since the start */
    epicsUInt64 denied;  /* of those */
    epicsUInt64 processings;
    epicsUInt64 lost;    /* events, since the last reset */
    double cost;         /* taken from all watched IOCs, percent of one core */
} ebpfMonHostStatus;

typedef struct {
    int    found;        /* some watched IOC has this record; else the rest says nothing */
    int    atLeast;      /* the count of processings is a lower bound */
    epicsUInt64 processings;
    double processRate;  /* 1/s */
    epicsUInt64 chains;  /* that began here and were timed */
    double latencyMean, latencyP99, latencyMax; /* us; NaN while there was no chain */
    epicsUInt64 puts;    /* to any of its fields, that passed the filter */
    epicsTimeStamp putTime; /* of the newest; secPastEpoch 0: none yet */
    char   putLine[1400];   /* the newest, as PUT_LAST shows it */
} ebpfMonRecordStatus;

void ebpfMonHostGet(ebpfMonHostStatus *status);

/* Watches a record, an alias too; once is enough. It is found within a second, when some watched IOC has it.
 * 0, or -1: the name is empty or has more than 60 characters, or 1024 records are watched. */
int ebpfMonRecordWatch(const char *record);

/* What is known of a record that is watched. 0, or -1: it is not. */
int ebpfMonRecordGet(const char *record, ebpfMonRecordStatus *status);

/* The n-th newest put as a line, 0 the newest, of up to 200. 0, or -1: there were not so many. */
int ebpfMonPutGet(unsigned n, char *line, size_t size);

/* Sets one part of the filter, and the PV that goes with it: "ioc", "record", "field", "host", "user"
 * (patterns), "level" (off, puts, counts, chains, trace), "slow" (us), "sample" (one in so many), "budget",
 * "timed" (percent). Waits until it is in force, so not from a callback thread, nor with a record locked. 0, or -1: refused, the
 * old one stays. "text": what came of it, for the operator. */
int ebpfMonFilterSet(const char *part, const char *value, char *text, size_t size);

/* The command ebpfMonLevel: a level for the IOCs that match, or "filter". Only while the monitor runs. 0, or
 * -1 with a message printed. */
int ebpfMonLevelSet(const char *iocPattern, const char *level);

/* The command ebpfMonRules: which puts are expected. NULL or empty: the file that was named last, again. 0, or -1:
 * refused, the rules before stay in force. "text": what came of it, for the operator. */
int ebpfMonRulesLoad(const char *file, char *text, size_t size);

/* The n-th newest unexpected put that is open, as a line, 0 the newest; up to 64 are kept. 0, or -1: there are not so
 * many. */
int ebpfMonUnexpectedGet(unsigned n, char *line, size_t size);

/* Acknowledges the unexpected puts up to the newest one that ebpfMonUnexpectedGet or the PVs have shown, none that came
 * later. How many stay open. */
unsigned ebpfMonUnexpectedAck(void);

/* The version of ebpfMon, as "0.1.0". */
const char *ebpfMonVersionGet(void);

/* Finds out by trying what this kernel and this user allow, and prints it, one line a subject, with what to do for more.
 * 0: all that is needed is there; -1: it is not. Takes a second. Not while the monitor runs. */
int ebpfMonHostCheck(FILE *out);

/*
 * For the main() of a monitor IOC, before anything else: SIGTERM ends the process as "exit" does. Without this, puts that
 * wait for the logs would be lost, and if a thread is killed while it removes a probe, the trap stays in the IOC
 * (documentation/internals.md, "Ends that are not orderly"). A second SIGTERM ends it at once. SIGHUP reads the rules
 * again, unless stdin is a terminal: there it ends the process, as always. 0, or -1: no thread or no file for it; then
 * signals do what they did before.
 */
int ebpfMonSignalsHandle(void);

#ifdef __cplusplus
}
#endif

#endif
