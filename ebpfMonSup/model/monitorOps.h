/* SPDX-License-Identifier: BSD-3-Clause */
/* What records and the shell may ask of the monitor itself: one of the tables of ops.h. */
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
    /* Before start only. */
    ebpfMonOpStatus (*configure)(void *arg, const ebpfMonSettings *settings, char *why, size_t size);
    /* Starts the monitor, or tries again after a failure; while it runs it does nothing. Called at the end of
     * iocInit as well. 0 it runs, or -1: STATE_MSG says why. */
    long (*start)(void *arg);
    /* Accepts a filter, or refuses it and leaves the old one: -1, and "why". Waits for nothing: the follower applies it
     * within milliseconds, unless it is just reading an IOC. While the monitor does not run the filter is kept for the
     * start. */
    long (*setFilter)(void *arg, const ebpfMonFilter *filter, ebpfMonFilterAnswer *answer, char *why, size_t size);
    /* Nonzero: the filter with this number, or a later one, is in force. */
    int (*isFilterApplied)(void *arg, unsigned number);
    void (*getFilter)(void *arg, ebpfMonFilter *filter);
    /* Level of the IOCs that match, whatever the filter says; level -1: the filter's again. */
    ebpfMonOpStatus (*setLevel)(void *arg, const char *iocPattern, int level, char *why, size_t size);
    /* Counts processings of the IOCs that match by a trap on dbProcess as well, to compare. */
    ebpfMonOpStatus (*setReference)(void *arg, const char *iocPattern, int on, char *why, size_t size);
    /* Loss counters and the MINOR alarm. */
    void (*resetLost)(void *arg);
    /* These add to "report", while the monitor runs. */
    ebpfMonOpStatus (*addIocs)(void *arg, ebpfMonTextReport *report);
    ebpfMonOpStatus (*addRecords)(void *arg, ebpfMonTextReport *report, const char *iocPattern, const char *recordPattern);
    ebpfMonOpStatus (*addChains)(void *arg, ebpfMonTextReport *report, const char *rootPattern);
    /* A look at the clients of the IOCs, now; then who they are, and who has channels to matching PVs. */
    ebpfMonOpStatus (*addClients)(void *arg, ebpfMonTextReport *report, const char *iocPattern);
    ebpfMonOpStatus (*addUsers)(void *arg, ebpfMonTextReport *report, const char *pvPattern);
    /* Keeps uses in this file, from the start on; megabytes 0: the default. Before start only. */
    ebpfMonOpStatus (*setUsage)(void *arg, const char *file, int megabytes, char *why, size_t size);
    /* Adds the records that match and that nobody has used for so many days. */
    ebpfMonOpStatus (*addUnused)(void *arg, ebpfMonTextReport *report, double days, const char *recordPattern, char *why, size_t size);
    /* The patterns of the published clients are others. */
    void (*publishClients)(void *arg);
    /* Has the next "count" chains printed in which a matching record processes; 0: no more. Adds of which IOCs not every
     * chain is kept. */
    ebpfMonOpStatus (*trace)(void *arg, ebpfMonTextReport *report, const char *recordPattern, unsigned count, char *why,
                             size_t size);
    /* The report of the monitor about itself; at any time. */
    ebpfMonOpStatus (*addReport)(void *arg, ebpfMonTextReport *report, int level);
} ebpfMonMonitorOps;

/* Where there is no monitor: every operation fails, and says so where it has a text. */
extern const ebpfMonMonitorOps ebpfMonMonitorOpsAbsent;

#endif
