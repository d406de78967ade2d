/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ebpfMon for your own code in the monitor IOC: what the PVs show and what the commands do, without either. For C and
 * C++. Any thread may call these functions, once the support is registered. Link with the library ebpfMon.
 *
 * Texts are UTF-8. A text that did not fit ends with "...".
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
    int    state;        /* as STATE: 0 Starting, 1 Running, 2 Degraded, 3 Failed. The other members count only in 1
                          * and 2 */
    char   message[256]; /* the reason, and what to do */
    unsigned iocs;       /* IOCs on this host */
    epicsUInt64 puts;    /* puts that passed the filter, since the start */
    epicsUInt64 denied;  /* of these, puts that were denied */
    epicsUInt64 processings;
    epicsUInt64 lost;    /* lost events, since the last reset */
    double cost;         /* percent of one core that is taken from all watched IOCs */
} ebpfMonHostStatus;

typedef struct {
    int    found;        /* nonzero: a watched IOC has this record; 0: the other members do not count */
    int    atLeast;      /* nonzero: the count of processings is a lower bound */
    epicsUInt64 processings;
    double processRate;  /* 1/s */
    epicsUInt64 chains;  /* chains with this root that were timed */
    double latencyMean, latencyP99, latencyMax; /* µs; NaN: there was no chain */
    epicsUInt64 puts;    /* puts to any of its fields that passed the filter */
    epicsTimeStamp putTime; /* time of the newest put; secPastEpoch 0: there was none */
    char   putLine[1400];   /* the newest put, as in PUT_LAST */
} ebpfMonRecordStatus;

/* Copies the state of the monitor. */
void ebpfMonHostGet(ebpfMonHostStatus *status);

/* Watches a record; "record" may be an alias. One call is enough. The record is found within a second after a watched
 * IOC has it. 0; or -1: the name is empty or has more than 60 characters, or 1024 records are watched. */
int ebpfMonRecordWatch(const char *record);

/* Copies what is known of a watched record. 0; or -1: the record is not watched. */
int ebpfMonRecordGet(const char *record, ebpfMonRecordStatus *status);

/* Writes the n-th newest put (from 0, of up to 200) as a line. 0; or -1: there are not so many. */
int ebpfMonPutGet(unsigned n, char *line, size_t size);

/* Sets one part of the filter, and the PV that shows it: "ioc", "record", "field", "host", "user" (patterns), "level"
 * (off, puts, counts, chains, trace), "slow" (us), "sample" (one in so many), "budget", "timed" (percent). Waits until
 * the filter applies, so do not call it from a callback thread, nor with a record locked. 0; or -1: it was refused, and
 * the old filter stays. "text" gets the result, for the operator. */
int ebpfMonFilterSet(const char *part, const char *value, char *text, size_t size);

/* The command ebpfMonLevel: sets a level, or "filter", for the matching IOCs. Only while the monitor runs. 0; or -1,
 * and a message was printed. */
int ebpfMonLevelSet(const char *iocPattern, const char *level);

/* The command ebpfMonRules: loads the rules that tell which puts are expected. NULL or empty: loads the last file
 * again. 0; or -1: it was refused, and the old rules stay. "text" gets the result, for the operator. */
int ebpfMonRulesLoad(const char *file, char *text, size_t size);

/* Writes the n-th newest open unexpected put (from 0, of up to 64) as a line. 0; or -1: there are not so many. */
int ebpfMonUnexpectedGet(unsigned n, char *line, size_t size);

/* Acknowledges the unexpected puts up to the newest one that ebpfMonUnexpectedGet or the PVs have shown, and none that
 * came later. Returns how many stay open. */
unsigned ebpfMonUnexpectedAck(void);

/* Returns the version of ebpfMon, such as "0.1.0". */
const char *ebpfMonVersionGet(void);

/* Tries what this kernel and this user allow, and prints it: one line for each subject, with what to do for more. 0:
 * everything that is needed is there; -1: it is not. Takes a second. Not while the monitor runs. */
int ebpfMonHostCheck(FILE *out);

/*
 * For the main() of a monitor IOC, before anything else: SIGTERM ends the process as "exit" does. Without this, puts
 * that wait for the logs would be lost; and if a thread is killed while it removes a probe, the trap stays in the IOC
 * (documentation/develop/probes.md, "Ends that are not orderly"). A second SIGTERM ends the process at once. SIGHUP
 * loads the rules again, unless stdin is a terminal; then it ends the process, as usual. 0; or -1: no thread or no file
 * descriptor for it, and signals work as before.
 */
int ebpfMonSignalsHandle(void);

/* Gives up the right to real-time priorities, so that no thread of this process goes before a thread of an IOC: EPICS
 * gives them to all its threads where it may, as root does (epicsThreadCreate). The threads that read
 * events keep nice -10. For the program of a monitor IOC, before the constructors of Base's libraries: in
 * .preinit_array (ebpfMonMain.cpp). */
void ebpfMonRealTimeGiveUp(void);

#ifdef __cplusplus
}
#endif

#endif
