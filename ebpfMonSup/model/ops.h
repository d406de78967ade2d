/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tables of functions that records and the shell call, one table for each subject. The monitor registers them, so the
 * room record/ does not depend on the rooms that do the work, and can be tested without them.
 *
 * Base calls device support, aSub routines and commands of the shell without a context. They find the monitor by the
 * one pointer of this module, which leads to everything that the monitor has.
 */
#ifndef EBPFMON_OPS_H
#define EBPFMON_OPS_H

#include <stddef.h>
#include "common/textReport.h"
#include "model/filter.h"

/* The result of an operation. The room record/ has the words for it (record/shellCommand.h). */
typedef enum {
    ebpfMonOpDone = 0,
    ebpfMonOpRefused,     /* "why" tells what is wrong with the arguments */
    ebpfMonOpFull,        /* there is no room for another level rule */
    ebpfMonOpNotStarted,  /* the monitor does not run yet; it starts with iocInit */
    ebpfMonOpStartFailed, /* the monitor failed to start */
    ebpfMonOpAbsent       /* no monitor has registered its functions */
} ebpfMonOpStatus;

/* --- sizes ---
 *
 * The sizes of the monitor (command ebpfMonConfigure). They do not change while it runs.
 */

/* 0: the default, which is named after each. */
typedef struct {
    unsigned maxRecords; /* records of all watched IOCs together; the default depends on the kernel
                          * (probe/kernelLoad.c) */
    unsigned maxRoots;   /* roots with a histogram; the same */
    unsigned ringKiB;    /* KiB of the event ring, a power of two; default 8192 */
    int      wireKiB;    /* KiB of the packet ring of each network namespace; default 8192. -1: no packets are read */
    int      watchSelf;  /* nonzero: the monitor watches itself, too; default 0 */
} ebpfMonSettings;

/* Sets members that are 0 to their default, except the first two. 0; or -1: a size is not possible, and "why" tells
 * which are. */
int ebpfMonSettingsCheck(ebpfMonSettings *settings, char *why, size_t size);

/* --- the monitor --- */

/* The answer to a filter that was accepted. */
typedef struct {
    unsigned matching;   /* records of the watched IOCs that match the filter */
    unsigned generation; /* number of filters that were applied since the start */
    unsigned number;     /* for isFilterApplied; 0: the filter waits for the start of the monitor */
} ebpfMonFilterAnswer;

/* What a list is of, and what its pattern is a pattern of. */
typedef enum {
    ebpfMonListIocs,    /* all */
    ebpfMonListRecords, /* IOCs */
    ebpfMonListChains   /* roots */
} ebpfMonList;

typedef struct {
    void *arg; /* the first argument of each function */
    /* Only before the start. */
    ebpfMonOpStatus (*configure)(void *arg, const ebpfMonSettings *settings, char *why, size_t size);
    /* Starts the monitor, or tries again after a failure. If it runs already, does nothing. The end of iocInit calls
     * this, too. 0: it runs; or -1, and STATE_MSG tells why not. */
    long (*start)(void *arg);
    /* Accepts a filter. Or refuses it: returns -1, "why" gets the reason, and the old filter stays. Does not wait: the
     * follower applies the filter within milliseconds, unless it is reading an IOC. If the monitor does not run, the
     * filter is kept for the start. */
    long (*setFilter)(void *arg, const ebpfMonFilter *filter, ebpfMonFilterAnswer *answer, char *why, size_t size);
    /* Nonzero: the filter with this number, or a later one, applies now. */
    int (*isFilterApplied)(void *arg, unsigned number);
    void (*getFilter)(void *arg, ebpfMonFilter *filter);
    /* Sets the level of the matching IOCs, whatever the filter says. Level -1: the filter decides again. */
    ebpfMonOpStatus (*setLevel)(void *arg, const char *iocPattern, int level, char *why, size_t size);
    /* The i-th level that a command has set, the oldest first. -1: there are not so many. At any time. */
    int (*getLevel)(void *arg, unsigned i, char iocPattern[EBPFMON_PATTERN_SIZE]);
    /* Also counts the processings of the matching IOCs by a probe at dbProcess(), to compare. */
    ebpfMonOpStatus (*setReference)(void *arg, const char *iocPattern, int on, char *why, size_t size);
    /* Resets the counts of lost events, which ends the MINOR alarm. */
    void (*resetLost)(void *arg);
    /* The IOCs that are gone do not count any more. */
    void (*acknowledgeGone)(void *arg);
    /* Adds a list to "report", while the monitor runs. "pattern": of its elements; of records also "record". */
    ebpfMonOpStatus (*addList)(void *arg, ebpfMonList of, ebpfMonTextReport *report, const char *pattern,
                               const char *record);
    /* Prints the next "count" chains in which a matching record processes; 0: prints no more. Adds the IOCs that do not
     * keep every chain. */
    ebpfMonOpStatus (*trace)(void *arg, ebpfMonTextReport *report, const char *recordPattern, unsigned count, char *why,
                             size_t size);
    /* Adds the report of the monitor about itself. At any time. */
    ebpfMonOpStatus (*addReport)(void *arg, ebpfMonTextReport *report, int level);
} ebpfMonMonitorOps;

/* --- logs --- */

typedef enum {
    ebpfMonLogOff,
    ebpfMonLogChanges, /* puts that change the value, and puts that failed */
    ebpfMonLogAll,
    ebpfMonLogBurst,   /* all; but quick puts to one PV become one line at their end */
    ebpfMonLogPeople = 8 /* added to one of them: of these only what people write, not automatic puts
                          * (ebpfMonPutIsAutomatic) */
} ebpfMonLogMode;

/* The mode with this name, or with this number of caPutLog (-1 off, 0 changes, 1 burst, 2 all); behind it may stand
 * "people". -1: there is none. */
int ebpfMonLogModeParse(const char *name);
const char *ebpfMonLogModeName(ebpfMonLogMode mode);

/* --- all tables --- */

typedef struct {
    const ebpfMonMonitorOps   *monitor;
    struct ebpfMonPutLogs     *logs;    /* the logs of puts (export/log/putLogs.h) */
    struct ebpfMonRules       *rules;   /* the rules that apply now (rules/rules.h) */
} ebpfMonOps;

/* Returns the registered tables. Neither the result nor "monitor" is NULL: before the monitor has registered itself,
 * every function fails and says so, and the other two are NULL. Any thread. */
const ebpfMonOps *ebpfMonOpsGet(void);

/* Registers the tables. Call it once, before the IOC starts. "ops", and everything that it leads to, stays the caller's
 * and must never be freed. */
void ebpfMonOpsSet(const ebpfMonOps *ops);

#endif
