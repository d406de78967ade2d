/* SPDX-License-Identifier: BSD-3-Clause */
/* Before the monitor registers, and in programs without a monitor (tests of records), every function fails and says so.
 * So no caller must test for NULL. */
#include <stdio.h>
#include <string.h>

#include "model/monitorOps.h"

static ebpfMonOpStatus refuseSettings(void *arg, const ebpfMonSettings *settings, char *why, size_t size)
{
    (void)arg;
    (void)settings;
    (void)why;
    (void)size;
    return ebpfMonOpAbsent;
}

static long refuseStart(void *arg)
{
    (void)arg;
    return -1;
}

static long setFilter(void *arg, const ebpfMonFilter *filter, ebpfMonFilterAnswer *answer, char *why, size_t size)
{
    (void)arg;
    (void)filter;
    snprintf(why, size, "not in force: this IOC is not linked with ebpfMon, or had no memory at its start");
    memset(answer, 0, sizeof(*answer));
    return -1;
}

static int isFilterApplied(void *arg, unsigned number)
{
    (void)arg;
    (void)number;
    return 0;
}

static void getFilter(void *arg, ebpfMonFilter *filter)
{
    (void)arg;
    *filter = ebpfMonFilterDefault;
}

/* Stands for setLevel and setReference. */
static ebpfMonOpStatus setRule(void *arg, const char *iocPattern, int value, char *why, size_t size)
{
    (void)arg;
    (void)iocPattern;
    (void)value;
    (void)why;
    (void)size;
    return ebpfMonOpAbsent;
}

static void resetLost(void *arg)
{
    (void)arg;
}

static void publishClients(void *arg)
{
    (void)arg;
}

static ebpfMonOpStatus addIocs(void *arg, ebpfMonTextReport *report)
{
    (void)arg;
    (void)report;
    return ebpfMonOpAbsent;
}

static ebpfMonOpStatus addRecords(void *arg, ebpfMonTextReport *report, const char *iocPattern,
                                  const char *recordPattern)
{
    (void)arg;
    (void)report;
    (void)iocPattern;
    (void)recordPattern;
    return ebpfMonOpAbsent;
}

static ebpfMonOpStatus addMatching(void *arg, ebpfMonTextReport *report, const char *pattern)
{
    (void)arg;
    (void)report;
    (void)pattern;
    return ebpfMonOpAbsent;
}

static ebpfMonOpStatus setUsage(void *arg, const char *file, int megabytes, char *why, size_t size)
{
    (void)arg;
    (void)file;
    (void)megabytes;
    (void)why;
    (void)size;
    return ebpfMonOpAbsent;
}

static ebpfMonOpStatus addUnused(void *arg, ebpfMonTextReport *report, double days, const char *pattern, char *why,
                                 size_t size)
{
    (void)arg;
    (void)report;
    (void)days;
    (void)pattern;
    (void)why;
    (void)size;
    return ebpfMonOpAbsent;
}

static ebpfMonOpStatus refuseTrace(void *arg, ebpfMonTextReport *report, const char *recordPattern, unsigned count,
                                   char *why, size_t size)
{
    (void)arg;
    (void)report;
    (void)recordPattern;
    (void)count;
    (void)why;
    (void)size;
    return ebpfMonOpAbsent;
}

static ebpfMonOpStatus addReport(void *arg, ebpfMonTextReport *report, int level)
{
    (void)arg;
    (void)report;
    (void)level;
    return ebpfMonOpAbsent;
}

const ebpfMonMonitorOps ebpfMonMonitorOpsAbsent = {
    NULL,        refuseSettings, refuseStart, setFilter,      isFilterApplied, getFilter,   setRule,
    setRule,     resetLost,      resetLost,   addIocs,        addRecords,      addMatching, addMatching,
    addMatching, setUsage,       addUnused,   publishClients, refuseTrace,     addReport};
