/* SPDX-License-Identifier: BSD-3-Clause */
/* The composition root: loads the kernel half, starts the threads, and answers what records and shell ask. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <epicsEvent.h>
#include <epicsExit.h>
#include <epicsExport.h>
#include <epicsMutex.h>
#include <epicsString.h>
#include <epicsThread.h>
#include <errlog.h>

#include "model/board.h"
#include "model/control.h"
#include "monitor/asked.h"
#include "monitor/events.h"
#include "monitor/install.h"
#include "monitor/publish.h"
#include "monitor/report.h"
#include "monitor/target.h"
#include "monitor/targets.h"
#include "probe/loader.h"

#define RECORDS_MIN 1000u
#define RECORDS_MAX 4000000u
#define CLOSURE_FACTOR 6u /* order, lists of their own, and the table before while it changes */

static ebpfMonSettings settings = { .maxRecords = 200000, .maxRoots = 8192, .ringKiB = 8192 };
static epicsMutexId lock; /* guards started, running, generation */
static int started;
static volatile int running; /* the kernel half is loaded and the threads are there */
static unsigned generation;

static long configure(const ebpfMonSettings *s)
{
    ebpfMonSettings want = *s;

    if (started) {
        errlogSevPrintf(errlogMajor, "ebpfMonConfigure: already started; call it before iocInit\n");
        return -1;
    }
    if (want.maxRecords == 0) want.maxRecords = settings.maxRecords;
    if (want.maxRoots == 0) want.maxRoots = settings.maxRoots;
    if (want.ringKiB == 0) want.ringKiB = settings.ringKiB;
    if (want.maxRecords < RECORDS_MIN || want.maxRecords > RECORDS_MAX || want.maxRoots < 16 ||
        want.maxRoots > want.maxRecords || want.ringKiB < 64 || want.ringKiB > 1u << 20 ||
        (want.ringKiB & (want.ringKiB - 1))) {
        errlogSevPrintf(errlogMajor, "ebpfMonConfigure: maxRecords %u to %u, maxRoots 16 to maxRecords, "
                        "ringKiB a power of two from 64 to 1048576\n", RECORDS_MIN, RECORDS_MAX);
        return -1;
    }
    settings = want;
    return 0;
}

/* Connections that were open before us: whose they are is read once from /proc. Later ones tell
 * themselves as they are made. */
static void seedOwners(void)
{
    ebpfMonProcConn *conns = NULL;
    int n = ebpfMonProcConns(&conns);

    for (int i = 0; i < n; i++) {
        struct ebpfMonPeer peer = {
            .addr = conns[i].addr, .saddr = conns[i].saddr, .port = conns[i].port, .sport = conns[i].sport,
        };
        struct ebpfMonOwner own = { .pid = (uint32_t)conns[i].pid, .uid = conns[i].uid };

        if (!conns[i].pid)
            continue;
        memcpy(own.comm, conns[i].comm, sizeof(own.comm));
        if ((ntohl(peer.addr) >> 24) == 127)
            peer.netns = ebpfMonReportNetns();
        ebpfMonOwnerSet(&peer, &own);
    }
    free(conns);
}

static void stop(void *arg)
{
    (void)arg;
    if (!running)
        return;
    running = 0;
    ebpfMonPublishStop();
    ebpfMonEventsStop();
    ebpfMonTargetsStop();
    ebpfMonUnload();
}

static long start(void)
{
    ebpfMonLoadSizes sizes = {
        .maxRecords = settings.maxRecords, .maxClosure = settings.maxRecords * CLOSURE_FACTOR,
        .maxRoots = settings.maxRoots, .ringBytes = settings.ringKiB * 1024,
    };
    char why[256];

    epicsMutexMustLock(lock);
    if (started) {
        epicsMutexUnlock(lock);
        return 0;
    }
    started = 1;
    epicsMutexUnlock(lock);
    ebpfMonPublishState(ebpfMonStarting, "loading the eBPF programs");
    if (ebpfMonLoad(&sizes, why, sizeof(why))) {
        ebpfMonPublishState(ebpfMonFailed, why);
        return -1;
    }
    if (ebpfMonInstallInit(sizes.maxRecords, sizes.maxClosure)) {
        ebpfMonPublishState(ebpfMonFailed, "out of memory");
        ebpfMonUnload();
        return -1;
    }
    ebpfMonCalibrate(&ebpfMonCost);
    seedOwners();
    ebpfMonTargetsStart(settings.watchSelf);
    ebpfMonEventsStart();
    ebpfMonPublishStart();
    running = 1;
    epicsAtExit(stop, NULL);
    return 0;
}

static unsigned matching(const char *pattern)
{
    unsigned n = 0;

    ebpfMonTargetsLock();
    for (ebpfMonTarget *t = ebpfMonTargetsFirst(); t; t = t->next) {
        if (t->gone || !t->cat)
            continue;
        for (uint32_t i = 0; i < t->cat->count; i++)
            n += (unsigned)epicsStrGlobMatch(ebpfMonCatalogueName(t->cat, i), pattern);
    }
    ebpfMonTargetsUnlock();
    return n;
}

/* A filter that is set before the start, from st.cmd or by autosave, is kept until then. */
static ebpfMonFilter early;
static int isEarly;

static long setFilter(const ebpfMonFilter *filter, char *text, size_t size, unsigned *records, unsigned *gen)
{
    ebpfMonFilter f = *filter;

    *records = 0;
    *gen = generation;
    if (ebpfMonFilterCheck(&f, text, size))
        return -1;
    epicsMutexMustLock(lock);
    *gen = ++generation;
    if (!running) {
        early = f;
        isEarly = 1;
    }
    epicsMutexUnlock(lock);
    if (running) {
        ebpfMonAskedFilter(&f);
        *records = matching(f.record);
    }
    snprintf(text, size, "in force: level %s for IOCs \"%s\", records \"%s\"", ebpfMonLevelName(f.level), f.ioc,
             f.record);
    return 0;
}

static void getFilter(ebpfMonFilter *filter)
{
    if (running)
        ebpfMonAskedFilterGet(filter);
    else
        *filter = isEarly ? early : ebpfMonFilterDefault;
}

static long startAll(void)
{
    long status = start();

    if (status == 0 && running && isEarly) {
        isEarly = 0;
        ebpfMonAskedFilter(&early);
    }
    return status;
}

static int needRunning(const char *command)
{
    if (running)
        return 0;
    errlogSevPrintf(errlogMajor, "%s: ebpfMon does not run (%s)\n", command,
                    started ? "see the PV STATE_MSG" : "it starts with iocInit");
    return -1;
}

static long setLevel(const char *pattern, int level)
{
    if (needRunning("ebpfMonLevel"))
        return -1;
    return ebpfMonAskedLevel(pattern, level);
}

static long setReference(const char *pattern, int on)
{
    if (needRunning("ebpfMonReference"))
        return -1;
    return ebpfMonAskedReference(pattern, on);
}

static void resetLost(void)
{
    if (running)
        ebpfMonPublishResetLost();
}

static long listIocs(void)
{
    return needRunning("ebpfMonIocs") ? -1 : ebpfMonReportIocs();
}

static long listRecords(const char *ioc, const char *record)
{
    return needRunning("ebpfMonRecords") ? -1 : ebpfMonReportRecords(ioc, record);
}

static long listChains(const char *root)
{
    return needRunning("ebpfMonChains") ? -1 : ebpfMonReportChains(root);
}

static void report(int level)
{
    printf("ebpfMon: %s\n", running ? "runs" : started ? "failed to start" : "not started");
    printf("  records at most %u, chain roots %u, event ring %u KiB%s\n", settings.maxRecords, settings.maxRoots,
           settings.ringKiB, settings.watchSelf ? ", watches itself" : "");
    if (running)
        ebpfMonReport(level);
}

static const ebpfMonOps ops = {
    .configure = configure, .start = startAll, .setFilter = setFilter, .getFilter = getFilter,
    .setLevel = setLevel, .setReference = setReference, .resetLost = resetLost, .listIocs = listIocs,
    .listRecords = listRecords, .listChains = listChains, .report = report,
};

static void ebpfMonMonitorRegistrar(void)
{
    lock = epicsMutexMustCreate();
    ebpfMonControlRegister(&ops);
}

epicsExportRegistrar(ebpfMonMonitorRegistrar);
