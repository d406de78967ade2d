/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsEvent.h>
#include <epicsMutex.h>
#include <epicsString.h>
#include <epicsThread.h>
#include <errlog.h>

#include "model/filter.h"
#include "publish/tracePrinter.h"

#define WAITING 64 /* traces that wait for a terminal which takes its time: its user may have stopped it */

static epicsMutexId lock; /* of what follows */
static char wanted[EBPFMON_PATTERN_SIZE];
static unsigned left;
static char *waiting[WAITING];
static unsigned oldest, waitingCount;
static epicsEventId more;

static char *next(void)
{
    char *text = NULL;

    epicsMutexMustLock(lock);
    if (waitingCount) {
        text = waiting[oldest];
        oldest = (oldest + 1) % WAITING;
        waitingCount--;
    }
    epicsMutexUnlock(lock);
    return text;
}

/* A shell that is not read must hold up nobody but this thread. */
static void printThread(void *unused)
{
    char *text;

    (void)unused;
    for (;;) {
        epicsEventMustWait(more);
        while ((text = next())) {
            printf("%s", text);
            fflush(stdout);
            free(text);
        }
    }
}

static void init(void *unused)
{
    (void)unused;
    lock = epicsMutexMustCreate();
    more = epicsEventMustCreate(epicsEventEmpty);
    epicsThreadMustCreate("ebpfMonPrint", epicsThreadPriorityLow, epicsThreadGetStackSize(epicsThreadStackSmall),
                          printThread, NULL);
}

static void take(void)
{
    static epicsThreadOnceId once = EPICS_THREAD_ONCE_INIT;

    epicsThreadOnce(&once, init, NULL);
    epicsMutexMustLock(lock);
}

/* Which IOCs have such records; says where not every chain is kept. Nonzero: some. */
static int lookFor(const char *pattern)
{
    int found = 0;

    ebpfMonTargetsLock(ebpfMonTheTargets);
    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(ebpfMonTheTargets); t; t = t->next) {
        uint32_t n = 0, hidden = 0;

        for (uint32_t i = 0; !t->gone && t->cat && t->level > ebpfMonLevelOff && i < t->cat->count; i++)
            if (epicsStrGlobMatch(ebpfMonCatalogueName(t->cat, i), pattern)) {
                n++;
                hidden += t->how && !(t->how[i] & EBPFMON_SHOWN);
            }
        if (hidden)
            printf("%s: the filter's record pattern leaves out %u of them, and chains without any other record\n",
                   t->name, hidden);
        if (n && t->level < ebpfMonLevelTrace)
            printf("%s: %u record%s, watched at level %s, which keeps slow chains at most. All: ebpfMonLevel \"%s\" trace\n",
                   t->name, n, n == 1 ? "" : "s", ebpfMonLevelName(t->level), t->name);
        found |= n > 0;
    }
    ebpfMonTargetsUnlock(ebpfMonTheTargets);
    return found;
}

long ebpfMonTracePrinterStart(const char *pattern, unsigned count)
{
    char checked[EBPFMON_PATTERN_SIZE] = "", why[128];

    if (count) {
        if (epicsStrnLen(pattern, sizeof(checked)) >= sizeof(checked)) {
            errlogSevPrintf(errlogMajor, "ebpfMonTrace: a pattern has at most %d characters\n",
                            EBPFMON_PATTERN_SIZE - 1);
            return -1;
        }
        snprintf(checked, sizeof(checked), "%s", pattern);
        if (ebpfMonPatternCheck(checked, "record", why, sizeof(why))) {
            errlogSevPrintf(errlogMajor, "ebpfMonTrace: %s\n", why);
            return -1;
        }
        if (!lookFor(checked)) {
            errlogSevPrintf(errlogMajor, "ebpfMonTrace: no watched IOC has a record \"%s\": see ebpfMonRecords\n",
                            checked);
            return -1;
        }
    }
    take();
    snprintf(wanted, sizeof(wanted), "%s", checked);
    left = count;
    epicsMutexUnlock(lock);
    return 0;
}

int ebpfMonTracePrinterIsOn(void)
{
    int on;

    take();
    on = left > 0;
    epicsMutexUnlock(lock);
    return on;
}

int ebpfMonTracePrinterMatches(const char *record)
{
    int matches;

    take();
    matches = left && epicsStrGlobMatch(record, wanted);
    epicsMutexUnlock(lock);
    return matches;
}

void ebpfMonTracePrinterPrint(const char *text)
{
    static const char done[] = "ebpfMonTrace: done\n";
    size_t size = strlen(text) + sizeof(done);
    char *copy = malloc(size);

    take();
    if (copy && left && waitingCount < WAITING) {
        snprintf(copy, size, "%s%s", text, left == 1 ? done : "");
        waiting[(oldest + waitingCount++) % WAITING] = copy;
        copy = NULL;
        left--;
    }
    epicsMutexUnlock(lock);
    free(copy);
    epicsEventMustTrigger(more);
}
