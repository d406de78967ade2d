/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include <epicsThread.h>
#include <errlog.h>

#include "common/serviceManager.h"
#include "common/worker.h"
#include "model/published.h"
#include "publish/watchdog.h"

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
    int isWatched = ebpfMonServiceWatchdog() > 0;

    (void)arg;
    for (;;) {
        unsigned stuck = ebpfMonWorkersFindStuck(PATIENCE, text, sizeof(text));

        if (stuck || before[0])
            ebpfMonPublishedSetStuck(text);
        before[0] = text[0];
        tellStatus(status);
        if (isWatched && ebpfMonWorkersCountOursStuck(PATIENCE) == 0)
            ebpfMonServiceTell("WATCHDOG=1");
        epicsThreadSleep(PERIOD);
    }
}

int ebpfMonWatchdogStart(void)
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
