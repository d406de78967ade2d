/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions that records and the shell call for the monitor itself: one of the tables of ops.h. */
#ifndef EBPFMON_MONITOROPS_H
#define EBPFMON_MONITOROPS_H

#include <stddef.h>
#include "common/textReport.h"
#include "model/filter.h"
#include "model/opStatus.h"
#include "model/settings.h"

/* The answer to a filter that was accepted. */
typedef struct {
    unsigned matching;   /* records of the watched IOCs that match the filter */
    unsigned generation; /* number of filters that were applied since the start */
    unsigned number;     /* for isFilterApplied; 0: the filter waits for the start of the monitor */
} ebpfMonFilterAnswer;

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
    /* Also counts the processings of the matching IOCs by a probe at dbProcess(), to compare. */
    ebpfMonOpStatus (*setReference)(void *arg, const char *iocPattern, int on, char *why, size_t size);
    /* Resets the counts of lost events, which ends the MINOR alarm. */
    void (*resetLost)(void *arg);
    /* The IOCs that are gone do not count any more. */
    void (*acknowledgeGone)(void *arg);
    /* The following functions add to "report", while the monitor runs. */
    ebpfMonOpStatus (*addIocs)(void *arg, ebpfMonTextReport *report);
    ebpfMonOpStatus (*addRecords)(void *arg, ebpfMonTextReport *report, const char *iocPattern,
                                  const char *recordPattern);
    ebpfMonOpStatus (*addChains)(void *arg, ebpfMonTextReport *report, const char *rootPattern);
    /* Reads the clients of the IOCs now. Then addClients adds the clients, and addUsers those with channels to matching
     * PVs. */
    ebpfMonOpStatus (*addClients)(void *arg, ebpfMonTextReport *report, const char *iocPattern);
    ebpfMonOpStatus (*addUsers)(void *arg, ebpfMonTextReport *report, const char *pvPattern);
    /* Keeps the uses of PVs in this file from the start on. megabytes 0: the default. Only before the start. */
    ebpfMonOpStatus (*setUsage)(void *arg, const char *file, int megabytes, char *why, size_t size);
    /* Adds the matching records that nobody has used for so many days. */
    ebpfMonOpStatus (*addUnused)(void *arg, ebpfMonTextReport *report, double days, const char *recordPattern,
                                 char *why, size_t size);
    /* Publishes the clients again, because their patterns have changed. */
    void (*publishClients)(void *arg);
    /* Prints the next "count" chains in which a matching record processes; 0: prints no more. Adds the IOCs that do not
     * keep every chain. */
    ebpfMonOpStatus (*trace)(void *arg, ebpfMonTextReport *report, const char *recordPattern, unsigned count, char *why,
                             size_t size);
    /* Adds the report of the monitor about itself. At any time. */
    ebpfMonOpStatus (*addReport)(void *arg, ebpfMonTextReport *report, int level);
} ebpfMonMonitorOps;

/* Used while there is no monitor: every function fails, and says so if it has a text. */
extern const ebpfMonMonitorOps ebpfMonMonitorOpsAbsent;

#endif
