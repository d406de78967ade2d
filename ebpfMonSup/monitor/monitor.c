/* SPDX-License-Identifier: BSD-3-Clause */
/* The composition root: loads the kernel half, starts the threads, and answers what records and shell ask. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <epicsEvent.h>
#include <epicsExit.h>
#include <epicsExport.h>
#include <epicsMutex.h>
#include <epicsStdio.h>
#include <epicsString.h>
#include <epicsThread.h>
#include <errlog.h>

#include "export/export.h"
#include "model/published.h"
#include "model/monitorOps.h"
#include "monitor/monitor.h"
#include "watch/connectionOwners.h"
#include "publish/lists.h"
#include "publish/report.h"
#include "probe/loader.h"
#include "ioc/procNetns.h"

#define RECORDS_MIN 1000u
#define RECORDS_MAX 4000000u
#define CLOSURE_FACTOR 6u /* order, lists of their own, and the table before while it changes */
/* The target thread applies a filter within milliseconds unless it is just reading an IOC. Who set it may be a
 * server's thread, which others wait for. */
#define FILTER_WAIT 0.05 /* s */

static ebpfMonMonitor monitor = { .settings = { .maxRecords = 200000, .maxRoots = 8192, .ringKiB = 8192, .wireKiB = 8192 } };
static epicsMutexId lock;    /* guards what follows */
static int starting, failed; /* a start is under way; the last one failed */
static volatile int running; /* the kernel half is loaded and the threads are there */
static unsigned generation;  /* filters that came into force */
static ebpfMonFilter early;  /* the filter to begin with: a filter that is set before that is kept here */

static long configure(const ebpfMonSettings *s)
{
    ebpfMonSettings want = *s;

    if (running || starting) {
        errlogSevPrintf(errlogMajor, "ebpfMonConfigure: already started; call it before iocInit\n");
        return -1;
    }
    if (want.maxRecords == 0) want.maxRecords = monitor.settings.maxRecords;
    if (want.maxRoots == 0) want.maxRoots = monitor.settings.maxRoots;
    if (want.ringKiB == 0) want.ringKiB = monitor.settings.ringKiB;
    if (want.wireKiB == 0) want.wireKiB = monitor.settings.wireKiB;
    if (want.maxRecords < RECORDS_MIN || want.maxRecords > RECORDS_MAX || want.maxRoots < 16 ||
        want.maxRoots > want.maxRecords || want.ringKiB < 64 || want.ringKiB > 1u << 20 ||
        (want.ringKiB & (want.ringKiB - 1)) || want.wireKiB < -1 || want.wireKiB > 1 << 20) {
        errlogSevPrintf(errlogMajor, "ebpfMonConfigure: maxRecords %u to %u, maxRoots 16 to maxRecords, "
                        "ringKiB a power of two from 64 to 1048576, wireKiB -1 to 1048576\n", RECORDS_MIN, RECORDS_MAX);
        return -1;
    }
    monitor.settings = want;
    return 0;
}

static void getFilterInForce(void *arg, ebpfMonFilter *filter)
{
    (void)arg;
    ebpfMonRequestsGetFilter(monitor.watching.requests, filter);
}

static void logPut(void *arg, const ebpfMonPut *put)
{
    (void)arg;
    ebpfMonExportPut(put);
}

static void printText(const char *text)
{
    printf("%s", text);
    fflush(stdout);
}

/* What publishes; without its threads. 0, or -1 without memory. */
static int makePublishing(void)
{
    const ebpfMonPutPublisherCalls calls = { .getFilter = getFilterInForce, .log = logPut };

    if (!monitor.targets)
        monitor.targets = ebpfMonTheTargets = ebpfMonTargetsNew();
    if (!monitor.targets)
        return -1;
    monitor.publisher = ebpfMonThePublisher = ebpfMonPublisherNew(monitor.targets, &monitor.watching.costs);
    monitor.putPublisher = ebpfMonThePutPublisher = ebpfMonPutPublisherNew(&calls);
    monitor.tracePrinter = ebpfMonTracePrinterNew(monitor.targets, printText);
    monitor.slowChains = ebpfMonTheSlowChains = ebpfMonSlowChainsNew(monitor.tracePrinter);
    return monitor.publisher && monitor.putPublisher && monitor.tracePrinter && monitor.slowChains ? 0 : -1;
}

/* After a start that failed. At the end of the process nothing is freed: a record may be at a command still. */
static void freePublishing(void)
{
    ebpfMonSlowChainsFree(monitor.slowChains);
    ebpfMonTracePrinterFree(monitor.tracePrinter);
    ebpfMonPutPublisherFree(monitor.putPublisher);
    ebpfMonPublisherFree(monitor.publisher);
    monitor.slowChains = NULL;
    monitor.tracePrinter = NULL;
    monitor.putPublisher = NULL;
    monitor.publisher = NULL;
}

/* The kernel's tables stay mapped, and its programs loaded, while a thread of ours may still use them. */
static void stop(void *arg)
{
    int left = 0;

    (void)arg;
    if (!running)
        return;
    running = 0;
    left |= ebpfMonPublisherStop(monitor.publisher);
    left |= ebpfMonEventThreadStop(monitor.eventThread);
    left |= ebpfMonPacketThreadStop(monitor.packetThread);
    ebpfMonExportStop(3.0);
    left |= ebpfMonFollowerStop(monitor.watching.follower);
    ebpfMonTracePrinterStop(monitor.tracePrinter);
    if (!left)
        ebpfMonKernelUnload();
}

/* The kernel half and the threads. 0, or -1 with the state Failed. */
static int begin(const ebpfMonFilter *first)
{
    ebpfMonLoadSizes sizes = {
        .maxRecords = monitor.settings.maxRecords, .maxClosure = monitor.settings.maxRecords * CLOSURE_FACTOR,
        .maxRoots = monitor.settings.maxRoots, .ringBytes = monitor.settings.ringKiB * 1024,
    };
    char why[256];

    ebpfMonPublishedSetState(ebpfMonStarting, "loading the eBPF programs");
    if (ebpfMonKernelLoad(&sizes, why, sizeof(why))) {
        ebpfMonPublishedSetState(ebpfMonFailed, why);
        return -1;
    }
    if (makePublishing() || ebpfMonWatchingMake(&monitor, first)) {
        ebpfMonPublishedSetState(ebpfMonFailed,
                            "out of memory: ask for less by ebpfMonConfigure, then call ebpfMonStart");
        freePublishing();
        ebpfMonKernelUnload();
        return -1;
    }
    ebpfMonConnectionOwnersRead(0, ebpfMonProcNetns(getpid()), ebpfMonKernelSetOwner);
    ebpfMonExportStart();
    ebpfMonFollowerStart(monitor.watching.follower);
    monitor.eventThread = ebpfMonEventThreadStart(&monitor);
    if (monitor.settings.wireKiB > 0)
        monitor.packetThread = ebpfMonPacketThreadStart(&monitor, (unsigned)monitor.settings.wireKiB * 1024);
    ebpfMonPublisherStart(monitor.publisher);
    epicsAtExit(stop, NULL);
    return 0;
}

/* A start that failed changed nothing that a second one would find in its way. */
static long start(void)
{
    ebpfMonFilter first;
    int busy, ok;

    epicsMutexMustLock(lock);
    busy = starting;
    if (busy || running) {
        epicsMutexUnlock(lock);
        return busy ? -1 : 0;
    }
    starting = 1;
    first = early;
    epicsMutexUnlock(lock);
    ok = begin(&first) == 0;
    epicsMutexMustLock(lock);
    if (ok && memcmp(&first, &early, sizeof(first)) != 0) /* set meanwhile */
        ebpfMonRequestsSetFilter(monitor.watching.requests, &early);
    starting = 0;
    failed = !ok;
    running = ok;
    epicsMutexUnlock(lock);
    return ok ? 0 : -1;
}

static unsigned matching(const char *pattern)
{
    unsigned n = 0;

    ebpfMonTargetsLock(monitor.targets);
    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(monitor.targets); t; t = t->next) {
        if (t->gone || !t->cat)
            continue;
        for (uint32_t i = 0; i < t->cat->count; i++)
            n += (unsigned)epicsStrGlobMatch(ebpfMonCatalogueName(t->cat, i), pattern);
    }
    ebpfMonTargetsUnlock(monitor.targets);
    return n;
}

static long setFilter(const ebpfMonFilter *filter, char *text, size_t size, unsigned *records, unsigned *gen)
{
    ebpfMonFilter f = *filter;
    const char *what;
    unsigned number = 0;
    int asked;

    *records = 0;
    *gen = generation;
    if (ebpfMonFilterCheck(&f, text, size))
        return -1;
    epicsMutexMustLock(lock);
    asked = running;
    if (asked) {
        number = ebpfMonRequestsSetFilter(monitor.watching.requests, &f);
        generation++;
    } else {
        early = f;
    }
    *gen = generation;
    epicsMutexUnlock(lock);
    if (asked)
        *records = matching(f.record);
    if (!asked)
        what = "accepted, in force as soon as ebpfMon runs";
    else if (ebpfMonRequestsWait(monitor.watching.requests, number, FILTER_WAIT))
        what = "accepted, being applied";
    else
        what = "in force";
    snprintf(text, size, "%s: level %s for IOCs \"%s\", records \"%s\"", what, ebpfMonLevelName(f.level),
             f.ioc, f.record);
    return 0;
}

static void getFilter(ebpfMonFilter *filter)
{
    epicsMutexMustLock(lock);
    if (running)
        ebpfMonRequestsGetFilter(monitor.watching.requests, filter);
    else
        *filter = early;
    epicsMutexUnlock(lock);
}

static int needRunning(const char *command)
{
    if (running)
        return 0;
    errlogSevPrintf(errlogMajor, "%s: ebpfMon does not run (%s)\n", command,
                    failed ? "see the PV STATE_MSG; ebpfMonStart tries again" : "it starts with iocInit");
    return -1;
}

static long rule(const char *command, const char *given, int (*ask)(ebpfMonRequests *requests, const char *pattern, int value),
                 int value)
{
    char pattern[EBPFMON_PATTERN_SIZE], why[160];

    if (needRunning(command))
        return -1;
    /* one that is too long comes without its end, and is refused for that */
    memcpy(pattern, given, strnlen(given, sizeof(pattern) - 1) + 1);
    if (ebpfMonPatternCheck(pattern, "IOC", why, sizeof(why))) {
        errlogSevPrintf(errlogMajor, "%s: %s\n", command, why);
        return -1;
    }
    if (ask(monitor.watching.requests, pattern, value) == 0)
        return 0;
    errlogSevPrintf(errlogMajor, "%s: there are %d rules already. ebpfMonReport 1 lists them; cancel one by "
                    "ebpfMonLevel PATTERN filter or ebpfMonReference PATTERN 0, or take one pattern for "
                    "several IOCs\n", command, EBPFMON_LEVEL_RULES_MAX);
    return -1;
}

static long setLevel(const char *pattern, int level)
{
    return rule("ebpfMonLevel", pattern, ebpfMonRequestsSetLevel, level);
}

static long setReference(const char *pattern, int on)
{
    return rule("ebpfMonReference", pattern, ebpfMonRequestsSetReference, on);
}

static void resetLost(void)
{
    if (running)
        ebpfMonPublisherResetLost(monitor.publisher);
}

static long listIocs(void)
{
    ebpfMonTextReport *text;

    if (needRunning("ebpfMonIocs"))
        return -1;
    text = ebpfMonTextReportNew();
    ebpfMonListsAddIocs(text, monitor.targets);
    ebpfMonTextReportPrint(text);
    return 0;
}

static long listRecords(const char *ioc, const char *record)
{
    ebpfMonTextReport *text;

    if (needRunning("ebpfMonRecords"))
        return -1;
    text = ebpfMonTextReportNew();
    ebpfMonListsAddRecords(text, monitor.targets, ioc, record);
    ebpfMonTextReportPrint(text);
    return 0;
}

static long listChains(const char *root)
{
    ebpfMonTextReport *text;

    if (needRunning("ebpfMonChains"))
        return -1;
    text = ebpfMonTextReportNew();
    ebpfMonListsAddChains(text, root);
    ebpfMonTextReportPrint(text);
    return 0;
}

static long trace(const char *record, unsigned count)
{
    return needRunning("ebpfMonTrace") ? -1 : ebpfMonTracePrinterSetPattern(monitor.tracePrinter, record, count);
}

static void report(int level)
{
    ebpfMonTextReport *text = ebpfMonTextReportNew();

    ebpfMonTextReportAdd(text, "ebpfMon: %s\n", running ? "runs" : failed ? "failed to start" : "not started");
    ebpfMonTextReportAdd(text, "  records at most %u, chain roots %u, event ring %u KiB%s\n",
                         monitor.settings.maxRecords, monitor.settings.maxRoots, monitor.settings.ringKiB,
                         monitor.settings.watchSelf ? ", watches itself" : "");
    if (running) {
        const ebpfMonReportSources from = { monitor.targets, monitor.watching.requests, &monitor.watching.costs };

        ebpfMonReportAdd(text, &from, level);
    }
    ebpfMonTextReportPrint(text);
}

static const ebpfMonMonitorOps ops = {
    .configure = configure, .start = start, .setFilter = setFilter, .getFilter = getFilter,
    .setLevel = setLevel, .setReference = setReference, .resetLost = resetLost, .listIocs = listIocs,
    .listRecords = listRecords, .listChains = listChains, .trace = trace, .report = report,
};

static void ebpfMonMonitorRegistrar(void)
{
    lock = epicsMutexMustCreate();
    early = ebpfMonFilterDefault;
    ebpfMonMonitorOpsRegister(&ops);
    ebpfMonExportRegister();
}

epicsExportRegistrar(ebpfMonMonitorRegistrar);
