/* SPDX-License-Identifier: BSD-3-Clause */
/* Before the monitor registers, and in programs without a monitor (tests of records), every function fails and says so.
 * So no caller must test for NULL. */
#include <stdio.h>
#include <string.h>

#include <epicsAtomic.h>

#include "model/monitorOps.h"

static ebpfMonOpStatus configure(const ebpfMonSettings *settings, char *why, size_t size)
{
    (void)settings;
    (void)why;
    (void)size;
    return ebpfMonOpAbsent;
}

static long start(void)
{
    return -1;
}

static long setFilter(const ebpfMonFilter *filter, ebpfMonFilterAnswer *answer, char *why, size_t size)
{
    (void)filter;
    snprintf(why, size, "not in force: the monitor is not started (it is not linked in, or has not registered itself)");
    memset(answer, 0, sizeof(*answer));
    return -1;
}

static int isFilterApplied(unsigned number)
{
    (void)number;
    return 0;
}

static void getFilter(ebpfMonFilter *filter)
{
    *filter = ebpfMonFilterDefault;
}

/* stands for setLevel and setReference */
static ebpfMonOpStatus setRule(const char *iocPattern, int value, char *why, size_t size)
{
    (void)iocPattern;
    (void)value;
    (void)why;
    (void)size;
    return ebpfMonOpAbsent;
}

static void resetLost(void)
{
}

static void publishClients(void)
{
}

static ebpfMonOpStatus addIocs(ebpfMonTextReport *report)
{
    (void)report;
    return ebpfMonOpAbsent;
}

static ebpfMonOpStatus addRecords(ebpfMonTextReport *report, const char *iocPattern, const char *recordPattern)
{
    (void)report;
    (void)iocPattern;
    (void)recordPattern;
    return ebpfMonOpAbsent;
}

static ebpfMonOpStatus addMatching(ebpfMonTextReport *report, const char *pattern)
{
    (void)report;
    (void)pattern;
    return ebpfMonOpAbsent;
}

static ebpfMonOpStatus setUsage(const char *file, int megabytes, char *why, size_t size)
{
    (void)file;
    (void)megabytes;
    (void)why;
    (void)size;
    return ebpfMonOpAbsent;
}

static ebpfMonOpStatus addUnused(ebpfMonTextReport *report, double days, const char *pattern, char *why, size_t size)
{
    (void)report;
    (void)days;
    (void)pattern;
    (void)why;
    (void)size;
    return ebpfMonOpAbsent;
}

static ebpfMonOpStatus trace(ebpfMonTextReport *report, const char *recordPattern, unsigned count, char *why, size_t size)
{
    (void)report;
    (void)recordPattern;
    (void)count;
    (void)why;
    (void)size;
    return ebpfMonOpAbsent;
}

static ebpfMonOpStatus addReport(ebpfMonTextReport *report, int level)
{
    (void)report;
    (void)level;
    return ebpfMonOpAbsent;
}

static const ebpfMonMonitorOps absentOps = {
    configure, start, setFilter, isFilterApplied, getFilter, setRule, setRule, resetLost, addIocs, addRecords, addMatching,
    addMatching, addMatching, setUsage, addUnused, publishClients, trace, addReport
};

static EpicsAtomicPtrT registered; /* written once, when the functions are registered; any thread reads it */

const ebpfMonMonitorOps *ebpfMonMonitorOpsGet(void)
{
    const ebpfMonMonitorOps *ops = epicsAtomicGetPtrT(&registered);

    return ops ? ops : &absentOps;
}

void ebpfMonMonitorOpsRegister(const ebpfMonMonitorOps *ops)
{
    epicsAtomicSetPtrT(&registered, (EpicsAtomicPtrT)ops);
}
