/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include <epicsMutex.h>
#include <epicsString.h>
#include <epicsThread.h>
#include <errlog.h>

#include "model/filter.h"
#include "monitor/traceShell.h"

static epicsMutexId lock; /* of what follows */
static char wanted[EBPFMON_PATTERN_SIZE];
static unsigned left;

static void init(void *unused)
{
    (void)unused;
    lock = epicsMutexMustCreate();
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

    ebpfMonTargetsLock();
    for (ebpfMonTarget *t = ebpfMonTargetsFirst(); t; t = t->next) {
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
    ebpfMonTargetsUnlock();
    return found;
}

long ebpfMonTraceStart(const char *pattern, unsigned count)
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

int ebpfMonTraceOn(void)
{
    int on;

    take();
    on = left > 0;
    epicsMutexUnlock(lock);
    return on;
}

int ebpfMonTraceMatches(const char *record)
{
    int matches;

    take();
    matches = left && epicsStrGlobMatch(record, wanted);
    epicsMutexUnlock(lock);
    return matches;
}

void ebpfMonTracePrint(const char *text)
{
    unsigned rest;

    take();
    rest = left ? --left : 0;
    epicsMutexUnlock(lock);
    printf("%s", text);
    if (!rest)
        printf("ebpfMonTrace: done\n");
    fflush(stdout);
}
