/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What records and the shell may ask of the monitor: a table of functions. The monitor registers it, so that the
 * record room need not know the monitor, and can be tested without. One per process, because a process has one
 * monitor.
 */
#ifndef EBPFMON_MONITOROPS_H
#define EBPFMON_MONITOROPS_H

#include <stddef.h>
#include "model/filter.h"
#include "model/settings.h"

/* What became of a filter that was accepted. */
typedef struct {
    unsigned matching;   /* records of the watched IOCs that match */
    unsigned generation; /* counts the filters that were put in force since the start */
    unsigned number;     /* for isFilterApplied; 0: the filter waits for the start of the monitor */
} ebpfMonFilterAnswer;

typedef struct {
    /* Before start only. 0, or -1 with a message printed. */
    long (*configure)(const ebpfMonSettings *settings);
    /* Starts the monitor, or tries again after a failure; while it runs it does nothing. Called at the end of
     * iocInit as well. 0 it runs, or -1: STATE_MSG says why. */
    long (*start)(void);
    /* Accepts a filter, or refuses it and leaves the old one: -1, and "why". Waits for nothing: the follower applies it
     * within milliseconds, unless it is just reading an IOC. While the monitor does not run the filter is kept for the
     * start. */
    long (*setFilter)(const ebpfMonFilter *filter, ebpfMonFilterAnswer *answer, char *why, size_t size);
    /* Nonzero: the filter with this number, or a later one, is in force. */
    int (*isFilterApplied)(unsigned number);
    void (*getFilter)(ebpfMonFilter *filter);
    /* Level of the IOCs that match, whatever the filter says; level -1: the filter's again. */
    long (*setLevel)(const char *iocPattern, int level);
    /* Counts processings of the IOCs that match by a trap on dbProcess as well, to compare. */
    long (*setReference)(const char *iocPattern, int on);
    /* Loss counters and the MINOR alarm. */
    void (*resetLost)(void);
    /* The rest print to stdout; 0 or -1. */
    long (*listIocs)(void);
    long (*listRecords)(const char *iocPattern, const char *recordPattern);
    long (*listChains)(const char *rootPattern);
    /* Prints the next "count" chains in which a matching record processes; 0: no more. */
    long (*trace)(const char *recordPattern, unsigned count);
    void (*report)(int level);
} ebpfMonMonitorOps;

/* Never NULL: before the monitor has registered, every operation says so and fails. Any thread. */
const ebpfMonMonitorOps *ebpfMonMonitorOpsGet(void);
void ebpfMonMonitorOpsRegister(const ebpfMonMonitorOps *ops);

#endif
