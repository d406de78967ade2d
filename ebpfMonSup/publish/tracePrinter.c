/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsMutex.h>
#include <epicsString.h>
#include <epicsThread.h>

#include "common/worker.h"
#include "model/filter.h"
#include "publish/tracePrinter.h"

#define STOP_SECONDS 1.0
#define IDLE_SECONDS 3600.0 /* s; a text that comes wakes the thread */

struct ebpfMonTracePrinter {
    ebpfMonTargets *targets; /* fixed, as the next; "worker" has a lock of its own */
    void (*print)(const char *text);
    ebpfMonSharedWorker worker;
    epicsMutexId lock;     /* protects the members below */
    char     wanted[EBPFMON_PATTERN_SIZE];
    unsigned left;         /* chains that are still to be printed */
    char    *waiting[EBPFMON_TRACES_WAITING]; /* a ring */
    unsigned oldest, waitingCount;
};

static char *takeOldest(ebpfMonTracePrinter *p)
{
    char *text = NULL;

    epicsMutexMustLock(p->lock);
    if (p->waitingCount) {
        text = p->waiting[p->oldest];
        p->oldest = (p->oldest + 1) % EBPFMON_TRACES_WAITING;
        p->waitingCount--;
    }
    epicsMutexUnlock(p->lock);
    return text;
}

static void runPrinter(ebpfMonWorker *worker, void *arg)
{
    ebpfMonTracePrinter *p = arg;
    char *text;

    ebpfMonWorkerWaitsForOthers(worker); /* waits for whoever reads the terminal */
    while (!ebpfMonWorkerIsStopping(worker)) {
        while (!ebpfMonWorkerIsStopping(worker) && (text = takeOldest(p))) {
            p->print(text);
            free(text);
        }
        ebpfMonWorkerWait(worker, IDLE_SECONDS);
    }
}

ebpfMonTracePrinter *ebpfMonTracePrinterNew(ebpfMonTargets *targets, void (*print)(const char *text))
{
    ebpfMonTracePrinter *p = calloc(1, sizeof(*p));

    if (!p)
        return NULL;
    p->targets = targets;
    p->print = print;
    p->lock = epicsMutexMustCreate();
    ebpfMonSharedWorkerInit(&p->worker);
    if (!ebpfMonSharedWorkerSet(&p->worker, ebpfMonWorkerStart("ebpfMonPrint", epicsThreadPriorityLow, runPrinter, p)))
        return p;
    ebpfMonTracePrinterFree(p);
    return NULL;
}

int ebpfMonTracePrinterStop(ebpfMonTracePrinter *p)
{
    return ebpfMonSharedWorkerStop(&p->worker, STOP_SECONDS);
}

void ebpfMonTracePrinterFree(ebpfMonTracePrinter *p)
{
    char *text;

    if (!p || ebpfMonTracePrinterStop(p))
        return;
    while ((text = takeOldest(p)))
        free(text);
    ebpfMonSharedWorkerDestroy(&p->worker);
    epicsMutexDestroy(p->lock);
    free(p);
}

/* Adds a line for each IOC that has matching records and does not keep all their chains. Nonzero: some IOC has such
 * records. */
static int reportMatching(ebpfMonTracePrinter *p, ebpfMonTextReport *report, const char *pattern)
{
    int found = 0;

    ebpfMonTargetsLock(p->targets);
    for (const ebpfMonTarget *t = ebpfMonTargetsGetFirst(p->targets); t; t = t->next) {
        uint32_t n = 0, hidden = 0;

        for (uint32_t i = 0; !t->gone && t->cat && t->level > ebpfMonLevelOff && i < t->cat->count; i++)
            if (epicsStrGlobMatch(ebpfMonCatalogueName(t->cat, i), pattern)) {
                n++;
                hidden += t->how && !(t->how[i] & EBPFMON_SHOWN);
            }
        if (hidden)
            ebpfMonTextReportAdd(report,
                                 "%s: FILTER_RECORD leaves out %u of its %u records that match. A chain with no "
                                 "other record is not printed\n",
                                 t->name, hidden, n);
        if (n && t->level < ebpfMonLevelTrace)
            ebpfMonTextReportAdd(report, "%s: %u record%s, watched at level %s, which keeps slow chains at most. All: "
                                 "ebpfMonLevel \"%s\" trace\n", t->name, n, n == 1 ? "" : "s",
                                 ebpfMonLevelName(t->level), t->name);
        found |= n > 0;
    }
    ebpfMonTargetsUnlock(p->targets);
    return found;
}

int ebpfMonTracePrinterSetPattern(ebpfMonTracePrinter *p, ebpfMonTextReport *report, const char *pattern,
                                  unsigned count, char *why, size_t size)
{
    char checked[EBPFMON_PATTERN_SIZE] = "";

    if (count) {
        if (ebpfMonPatternRead(checked, pattern, "record", why, size))
            return -1;
        if (!reportMatching(p, report, checked)) {
            snprintf(why, size, "no watched IOC has a record \"%s\": see ebpfMonRecords", checked);
            return -1;
        }
    }
    epicsMutexMustLock(p->lock);
    snprintf(p->wanted, sizeof(p->wanted), "%s", checked);
    p->left = count;
    epicsMutexUnlock(p->lock);
    return 0;
}

int ebpfMonTracePrinterIsOn(ebpfMonTracePrinter *p)
{
    int on;

    epicsMutexMustLock(p->lock);
    on = p->left > 0;
    epicsMutexUnlock(p->lock);
    return on;
}

int ebpfMonTracePrinterMatches(ebpfMonTracePrinter *p, const char *record)
{
    int matches;

    epicsMutexMustLock(p->lock);
    matches = p->left && epicsStrGlobMatch(record, p->wanted);
    epicsMutexUnlock(p->lock);
    return matches;
}

void ebpfMonTracePrinterAdd(ebpfMonTracePrinter *p, const char *text)
{
    static const char end[] = "ebpfMonTrace: done\n";
    size_t size = strlen(text) + sizeof(end);
    char *copy = malloc(size);

    epicsMutexMustLock(p->lock);
    if (copy && p->left && p->waitingCount < EBPFMON_TRACES_WAITING) {
        snprintf(copy, size, "%s%s", text, p->left == 1 ? end : "");
        p->waiting[(p->oldest + p->waitingCount++) % EBPFMON_TRACES_WAITING] = copy;
        copy = NULL;
        p->left--;
        ebpfMonSharedWorkerWake(&p->worker);
    }
    epicsMutexUnlock(p->lock);
    free(copy);
}
