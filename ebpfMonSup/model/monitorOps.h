/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What records and the shell can do with the monitor: a table of functions. The monitor registers it, so that the room
 * record/ does not depend on the monitor, and can be tested without it. One per process, because a process has one
 * monitor.
 */
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
    /* Only before the start. */
    ebpfMonOpStatus (*configure)(const ebpfMonSettings *settings, char *why, size_t size);
    /* Starts the monitor, or tries again after a failure. If it runs already, does nothing. The end of iocInit calls
     * this, too. 0: it runs; or -1, and STATE_MSG tells why not. */
    long (*start)(void);
    /* Accepts a filter. Or refuses it: returns -1, "why" gets the reason, and the old filter stays. Does not wait: the
     * follower applies the filter within milliseconds, unless it is reading an IOC. If the monitor does not run, the
     * filter is kept for the start. */
    long (*setFilter)(const ebpfMonFilter *filter, ebpfMonFilterAnswer *answer, char *why, size_t size);
    /* Nonzero: the filter with this number, or a later one, applies now. */
    int (*isFilterApplied)(unsigned number);
    void (*getFilter)(ebpfMonFilter *filter);
    /* Sets the level of the matching IOCs, whatever the filter says. Level -1: the filter decides again. */
    ebpfMonOpStatus (*setLevel)(const char *iocPattern, int level, char *why, size_t size);
    /* Also counts the processings of the matching IOCs by a probe at dbProcess(), to compare. */
    ebpfMonOpStatus (*setReference)(const char *iocPattern, int on, char *why, size_t size);
    /* Resets the counts of lost events, which ends the MINOR alarm. */
    void (*resetLost)(void);
    /* The following functions add to "report", while the monitor runs. */
    ebpfMonOpStatus (*addIocs)(ebpfMonTextReport *report);
    ebpfMonOpStatus (*addRecords)(ebpfMonTextReport *report, const char *iocPattern, const char *recordPattern);
    ebpfMonOpStatus (*addChains)(ebpfMonTextReport *report, const char *rootPattern);
    /* Reads the clients of the IOCs now. Then addClients adds the clients, and addUsers those with channels to matching
     * PVs. */
    ebpfMonOpStatus (*addClients)(ebpfMonTextReport *report, const char *iocPattern);
    ebpfMonOpStatus (*addUsers)(ebpfMonTextReport *report, const char *pvPattern);
    /* Keeps the uses of PVs in this file from the start on. megabytes 0: the default. Only before the start. */
    ebpfMonOpStatus (*setUsage)(const char *file, int megabytes, char *why, size_t size);
    /* Adds the matching records that nobody has used for so many days. */
    ebpfMonOpStatus (*addUnused)(ebpfMonTextReport *report, double days, const char *recordPattern, char *why, size_t size);
    /* Publishes the clients again, because their patterns have changed. */
    void (*publishClients)(void);
    /* Prints the next "count" chains in which a matching record processes; 0: prints no more. Adds the IOCs that do not
     * keep every chain. */
    ebpfMonOpStatus (*trace)(ebpfMonTextReport *report, const char *recordPattern, unsigned count, char *why,
                             size_t size);
    /* Adds the report of the monitor about itself. At any time. */
    ebpfMonOpStatus (*addReport)(ebpfMonTextReport *report, int level);
} ebpfMonMonitorOps;

/* Never NULL: before the monitor has registered its functions, every function fails and says so. Any thread. */
const ebpfMonMonitorOps *ebpfMonMonitorOpsGet(void);
void ebpfMonMonitorOpsRegister(const ebpfMonMonitorOps *ops);

#endif
