/* SPDX-License-Identifier: BSD-3-Clause */
/* Until the monitor registers, and in programs without one (tests of records), every operation fails and says so: no
 * caller has to ask for NULL. */
#include <stdio.h>
#include <string.h>

#include <epicsAtomic.h>
#include <errlog.h>

#include "model/monitorOps.h"

#define ABSENT "the monitor is not started (it is not linked in, or has not registered itself)"

static long absent(const char *what)
{
    errlogSevPrintf(errlogMajor, "ebpfMon: cannot %s: " ABSENT ". Call "
                    "ebpfMon_registerRecordDeviceDriver first.\n", what);
    return -1;
}

static long configure(const ebpfMonSettings *settings)
{
    (void)settings;
    return absent("configure");
}

static long start(void)
{
    return absent("start");
}

static long setFilter(const ebpfMonFilter *filter, ebpfMonFilterAnswer *answer, char *why, size_t size)
{
    (void)filter;
    snprintf(why, size, "not in force: " ABSENT);
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

static long setLevel(const char *iocPattern, int level)
{
    (void)iocPattern;
    (void)level;
    return absent("set a level");
}

static long setReference(const char *iocPattern, int on)
{
    (void)iocPattern;
    (void)on;
    return absent("set the reference count");
}

static void resetLost(void)
{
    absent("reset the loss counters");
}

static long listIocs(void)
{
    return absent("list IOCs");
}

static long listRecords(const char *iocPattern, const char *recordPattern)
{
    (void)iocPattern;
    (void)recordPattern;
    return absent("list records");
}

static long listChains(const char *rootPattern)
{
    (void)rootPattern;
    return absent("list chains");
}

static long trace(const char *recordPattern, unsigned count)
{
    (void)recordPattern;
    (void)count;
    return absent("trace chains");
}

static void report(int level)
{
    (void)level;
    printf("  " ABSENT "\n");
}

static const ebpfMonMonitorOps absentOps = {
    configure, start, setFilter, isFilterApplied, getFilter, setLevel, setReference, resetLost, listIocs, listRecords,
    listChains, trace, report
};

static EpicsAtomicPtrT registered; /* written once at registration, read by any thread */

const ebpfMonMonitorOps *ebpfMonMonitorOpsGet(void)
{
    const ebpfMonMonitorOps *ops = epicsAtomicGetPtrT(&registered);

    return ops ? ops : &absentOps;
}

void ebpfMonMonitorOpsRegister(const ebpfMonMonitorOps *ops)
{
    epicsAtomicSetPtrT(&registered, (EpicsAtomicPtrT)ops);
}
