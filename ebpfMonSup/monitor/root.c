/* SPDX-License-Identifier: BSD-3-Clause */
/* The composition root: loads the kernel part, makes the rooms, starts and stops the threads. */
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cantProceed.h>
#include <epicsExit.h>
#include <epicsExport.h>
#include <errlog.h>
#include <string.h>
#include <epicsThread.h>

#include "common/serviceManager.h"
#include "common/clock.h"
#include "common/worker.h"
#include "host/procNetns.h"
#include "model/published.h"
#include "module/modules.h"
#include "monitor/monitor.h"
#include "probe/closer.h"
#include "probe/kernelLoad.h"
#include "probe/kernelTables.h"
#include "watch/packetReader.h"

/* --- progress of the threads ---
 *
 * The watchdog notices threads of the monitor that make no progress, and names them in STATE_MSG. It waits for none of
 * them: it takes only the locks of the list of workers and of the published values, which every thread holds for a
 * short time only. It runs at real-time priority if EPICS may use that.
 *
 * It also feeds the watchdog of the service manager, if there is one (common/serviceManager.h), unless a thread is
 * stuck that a restart could help; and it tells the service manager the state in words. */

#define PERIOD   1.5 /* s */
#define PATIENCE 3.0 /* s without a sign of progress; so STATE changes within 5 s */
#define STATUS_SIZE 300

/* Sets the line that "systemctl status" shows to state and message, if they changed. */
static void tellStatus(char before[STATUS_SIZE])
{
    static const char *const names[] = { "Starting", "Running", "Degraded", "Failed" };
    const ebpfMonPublished *published = ebpfMonPublishedLock();
    char now[STATUS_SIZE];

    snprintf(now, sizeof(now), "%s: %s", names[published->state], published->stateMessage);
    ebpfMonPublishedUnlock();
    if (strcmp(now, before) == 0)
        return;
    strcpy(before, now);
    ebpfMonServiceTell("STATUS=%s", now);
}

static void runWatchdog(void *arg)
{
    char text[200], before[8] = "", status[STATUS_SIZE] = "";
    int isWatched = ebpfMonServiceWatchdog() > 0, wasLate = 0;
    uint64_t last = ebpfMonClockMonotonic();

    for (;;) {
        uint64_t now = ebpfMonClockMonotonic();
        int isLate = (double)(now - last) / 1e9 > PATIENCE;

        ebpfMonWorkersFindStuck(PATIENCE, text, sizeof(text));
        if (isLate && !wasLate) /* the process or the machine stood still: the next look tells */
            text[0] = 0;
        wasLate = isLate;
        last = now;
        if (text[0] || before[0])
            ebpfMonPublishedSetStuck(text);
        before[0] = text[0];
        tellStatus(status);
        if (isWatched && ebpfMonWorkersCountOursStuck(PATIENCE) == 0)
            ebpfMonServiceTell("WATCHDOG=1");
        epicsThreadSleep(PERIOD);
    }
}

/* Starts the watchdog, once per process; it ends with the process. 0; or -1, and a message says why: the thread could
 * not be started. */
static int startWatchdog(void)
{
    static int isStarted; /* one per process, as the list of workers. Only the thread that starts the monitor calls
                           * this */

    if (isStarted)
        return 0;
    isStarted = epicsThreadCreate("ebpfMonWatchdog", epicsThreadPriorityHigh,
                                  epicsThreadGetStackSize(epicsThreadStackMedium), runWatchdog, NULL) != NULL;
    if (!isStarted)
        errlogSevPrintf(errlogMajor,
                        "ebpfMon: thread ebpfMonWatchdog cannot be started. Raise the limits of this process "
                        "for threads (ulimit -u, TasksMax)\n");
    return isStarted ? 0 : -1;
}

/* --- start and end --- */

#define EXPORT_STOP_SECONDS 3.0
#define STOP_SECONDS 5.0 /* s, for modules, as for each thread that uses the kernel part */
#define NO_MEMORY "out of memory or threads: raise the limits of this process (ulimit -u, TasksMax), or ask for less " \
                  "by ebpfMonConfigure; then call ebpfMonStart"
#define FILES_LEAST 128 /* that a monitor opens without an IOC: some 110 */

/* What is missing cannot be told by errno: libraries of others were in between. */
static void failForLack(void)
{
    struct rlimit files;
    char text[160];

    if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur >= FILES_LEAST) {
        ebpfMonPublishedSetState(ebpfMonFailed, NO_MEMORY);
        return;
    }
    snprintf(text, sizeof(text), "too few files: it may open %u, and needs %d. Raise the limit (ulimit -n, "
             "LimitNOFILE), and start it again", (unsigned)files.rlim_cur, FILES_LEAST);
    ebpfMonPublishedSetState(ebpfMonFailed, text);
}

static ebpfMonOpStatus configureMonitor(void *arg, const ebpfMonSettings *s, char *why, size_t size)
{
    ebpfMonMonitor *m = arg;
    ebpfMonSettings want = *s;

    if (ebpfMonStartStateRefuses(&m->state, why, size) || ebpfMonSettingsCheck(&want, why, size))
        return ebpfMonOpRefused;
    m->settings = want;
    return ebpfMonOpDone;
}

/* This function and the next one stop the threads. Nonzero: a thread did not end in time, and still uses its room and
 * the tables of the kernel part. */
static int stopReading(ebpfMonMonitor *m)
{
    int left = ebpfMonPublisherStop(m->publish.publisher);

    left |= ebpfMonRingReaderStop(m->eventThread);
    left |= ebpfMonRingReaderStop(m->packetThread);
    return left | ebpfMonModulesStop(STOP_SECONDS); /* after the last put */
}

static int stopWatching(ebpfMonMonitor *m)
{
    int left = ebpfMonFollowerStop(m->watch.follower);

    ebpfMonTracePrinterStop(m->publish.tracePrinter);
    return left;
}

/*
 * At the end of the process the threads end, and then the kernel part is unloaded. While a thread may still use them,
 * its tables stay mapped and its programs loaded. The rooms are not freed, because a record or a command may be in one.
 */
static void stopMonitor(void *arg)
{
    ebpfMonMonitor *m = arg;
    int left;

    if (!ebpfMonStartStateStop(&m->state))
        return;
    ebpfMonServiceTell("STOPPING=1");
    left = stopReading(m);
    ebpfMonPutLogsStop(m->logs, EXPORT_STOP_SECONDS);
    ebpfMonCloserLeave(); /* not after a start that failed: this process goes on */
    left |= stopWatching(m);
    if (left == 0)
        ebpfMonKernelUnload();
}

/* Starts the threads. 0; or -1: no memory for a thread, and the caller stops those that run. */
static int startThreads(ebpfMonMonitor *m)
{
    const ebpfMonModuleCore core = { .targets = m->targets, .costs = &m->watch.costs,
                                     .packetServers = m->packetServers, .search = m->search,
                                     .put = &m->put, .logs = m->logs };

    ebpfMonModulesStart(&core); /* before there is a put */
    if (ebpfMonFollowerStart(m->watch.follower))
        return -1;
    if (ebpfMonRingReaderStart(m->eventThread))
        return -1;
    if (m->settings.wireKiB > 0 && (!m->packetThread || ebpfMonRingReaderStart(m->packetThread)))
        errlogSevPrintf(errlogMajor, "ebpfMon: no memory to read packets. Free some memory, then start again\n");
    return ebpfMonPublisherStart(m->publish.publisher);
}

/* Starts the monitor. 0; or -1, and the state is Failed. After a failure everything is removed, so the caller may
 * try again; except if a thread did not end. Then each further start is refused, because that thread still uses its
 * room. */
static int startMonitor(ebpfMonMonitor *m)
{
    ebpfMonLoadSizes sizes = {
        .maxRecords = m->settings.maxRecords, .maxRoots = m->settings.maxRoots, .ringBytes = m->settings.ringKiB * 1024,
    };
    char why[256];

    if (m->watch.follower) {
        ebpfMonPublishedSetState(ebpfMonFailed, "a thread of an earlier start did not end: restart this IOC");
        return -1;
    }
    startWatchdog(); /* the monitor can run without it, and it also feeds the service manager's watchdog if
                             * this start fails */
    ebpfMonPublishedSetState(ebpfMonStarting, "loading the eBPF programs");
    if (ebpfMonKernelLoad(&sizes, why, sizeof(why))) {
        ebpfMonPublishedSetState(ebpfMonFailed, why);
        return -1;
    }
    if (ebpfMonWiringMake(m)) {
        failForLack();
        ebpfMonKernelUnload();
        return -1;
    }
    ebpfMonConnectionOwnersRead(0, ebpfMonProcNetns(getpid()), ebpfMonKernelSetOwner);
    if (startThreads(m)) {
        failForLack();
        if ((stopReading(m) | stopWatching(m)) == 0) {
            ebpfMonWiringFree(m);
            ebpfMonKernelUnload();
        }
        return -1;
    }
    epicsAtExit(stopMonitor, m);
    return 0;
}

static long startOnce(void *arg)
{
    ebpfMonMonitor *m = arg;
    ebpfMonStartResult result = ebpfMonStartStateBegin(&m->state);
    int ok;

    if (result != ebpfMonStartMine)
        return result == ebpfMonStartDone ? 0 : -1;
    ok = startMonitor(m) == 0;
    ebpfMonStartStateEnd(&m->state, ok);
    return ok ? 0 : -1;
}

static void setOps(ebpfMonMonitor *m)
{
    ebpfMonOperationsFill(m, &m->monitorOps);
    m->monitorOps.configure = configureMonitor;
    m->monitorOps.start = startOnce;
    m->ops = (ebpfMonOps){ &m->monitorOps, m->logs, m->rules };
    ebpfMonOpsSet(&m->ops);
}

/* Makes the monitor of this process. It is never freed, because a record or a command may use it until the process
 * ends. */
static void ebpfMonMonitorRegistrar(void)
{
    static const ebpfMonSettings defaults; /* all members 0 */
    ebpfMonMonitor *m = callocMustSucceed(1, sizeof(*m), "ebpfMon");
    char why[256];

    m->audits = ebpfMonAuditsNew();
    m->targets = ebpfMonTargetsNew();
    m->requests = ebpfMonRequestsNew(&ebpfMonFilterDefault);
    m->search = ebpfMonSearchNew();
    m->packetServers = ebpfMonPacketServersNew();
    m->rules = ebpfMonRulesNew();
    m->logs = ebpfMonPutLogsNew();
    if (!m->audits || !m->targets || !m->requests || !m->search || !m->packetServers || !m->rules || !m->logs)
        cantProceed("ebpfMon: no memory to begin");
    configureMonitor(m, &defaults, why, sizeof(why));
    setOps(m);
}

epicsExportRegistrar(ebpfMonMonitorRegistrar);
