/* SPDX-License-Identifier: BSD-3-Clause */
#include <epicsMutex.h>
#include <epicsString.h>
#include <epicsThread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/clock.h"
#include "common/worker.h"
#include "model/filter.h"
#include "model/published.h"
#include "publish/slowChains.h"
#include "trace/traceText.h"

/* --- printing --- */

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

/* --- slow chains --- */

#define HELD_MAX    128   /* a power of two. So many texts of one record each do not fit into the PV together */
#define RECORDS_MAX 16384 /* of all held traces, to bound their memory */
#define HOLD_NS     10000000ull
#define CUT         "  ... no room for the rest\n"

typedef struct {
    ebpfMonTrace *trace;
    uint64_t      unixOffset;
} heldTrace;

struct ebpfMonSlowChains {
    ebpfMonTargets      *targets;
    ebpfMonTracePrinter *printer;
    ebpfMonTraceWalk    *walk;
    heldTrace held[HELD_MAX]; /* the last ones; number n is at n % HELD_MAX */
    unsigned  heldFrom, heldTo; /* numbers of the oldest, and behind the newest */
    uint32_t  records;          /* of these */
    unsigned  count;            /* traces since texts were last written, also those that are not held any more */
    uint64_t  writtenAt;        /* monotonic ns */
    char text[EBPFMON_SLOW_SIZE];
};

/* For the walk through a trace. */
typedef struct {
    const ebpfMonTarget *t;
    ebpfMonTracePrinter *printer;
} recordTest;

ebpfMonSlowChains *ebpfMonSlowChainsNew(ebpfMonTargets *targets, ebpfMonTracePrinter *printer, ebpfMonTraceWalk *walk)
{
    ebpfMonSlowChains *slow = calloc(1, sizeof(*slow));

    if (!slow)
        return NULL;
    slow->targets = targets;
    slow->printer = printer;
    slow->walk = walk;
    return slow;
}

static void freeOldest(ebpfMonSlowChains *slow)
{
    ebpfMonTrace *trace = slow->held[slow->heldFrom++ % HELD_MAX].trace;

    slow->records -= trace->records;
    ebpfMonTraceFree(trace);
}

static void freeHeld(ebpfMonSlowChains *slow)
{
    while (slow->heldFrom != slow->heldTo)
        freeOldest(slow);
}

void ebpfMonSlowChainsFree(ebpfMonSlowChains *slow)
{
    if (slow)
        freeHeld(slow);
    free(slow);
}

static int isPrinted(void *arg, uint32_t index)
{
    const recordTest *test = arg;

    return ebpfMonTracePrinterMatches(test->printer, ebpfMonCatalogueName(test->t->cat, index));
}

static int isShown(void *arg, uint32_t index)
{
    const recordTest *test = arg;

    return !test->t->how || test->t->how[index] & EBPFMON_SHOWN;
}

static int isTracePrinted(ebpfMonSlowChains *slow, ebpfMonTarget *t, const ebpfMonTrace *trace)
{
    recordTest test = { t, slow->printer };

    return ebpfMonTracePrinterIsOn(slow->printer) && ebpfMonTraceHasRecord(trace, isPrinted, &test);
}

static int isTraceShown(ebpfMonTarget *t, const ebpfMonTrace *trace)
{
    recordTest test = { t, NULL };

    return ebpfMonTraceHasRecord(trace, isShown, &test);
}

int ebpfMonSlowChainsPrints(ebpfMonSlowChains *slow, ebpfMonTarget *t, const ebpfMonTrace *trace)
{
    return isTracePrinted(slow, t, trace);
}

void ebpfMonSlowChainsPrepend(char *buf, size_t size, const char *text, size_t length)
{
    size_t keep = strlen(buf);

    if (length >= size)
        length = size - 1;
    if (length + keep >= size) {
        keep = size - 1 - length;
        while (keep > 0 && (buf[keep - 1] != '\n' || buf[keep] == ' ')) /* lines in a trace begin with spaces */
            keep--;
    }
    memmove(buf + length, buf, keep);
    memcpy(buf, text, length);
    buf[length + keep] = 0;
}

int ebpfMonSlowChainsAdd(ebpfMonSlowChains *slow, ebpfMonTarget *t, ebpfMonTrace *trace, uint64_t unixOffset)
{
    int prints = isTracePrinted(slow, t, trace);

    if (prints) {
        ebpfMonTraceTextWrite(slow->walk, t, trace, unixOffset, slow->text, sizeof(slow->text));
        ebpfMonTracePrinterAdd(slow->printer, slow->text);
    }
    if (!prints && !isTraceShown(t, trace))
        return 0;
    while (slow->heldTo - slow->heldFrom == HELD_MAX ||
           (slow->heldTo != slow->heldFrom && slow->records + trace->records > RECORDS_MAX))
        freeOldest(slow);
    slow->held[slow->heldTo++ % HELD_MAX] = (heldTrace){ trace, unixOffset };
    slow->records += trace->records;
    slow->count++;
    return 1;
}

static int isAlways(void *arg, ebpfMonTarget *t, const ebpfMonTrace *trace)
{
    return 1;
}

/* Adds the text of a trace to those before it. If it does not fit, it is left out: half a trace would be taken for a
 * whole one. Only the first one is cut, and says so. 0: there is no room for another one. */
static int addText(ebpfMonSlowChains *slow, const heldTrace *held, size_t *length)
{
    size_t left = sizeof(slow->text) - *length, more = 0;
    char *to = slow->text + *length;
    ebpfMonTarget *t;
    int isFull;

    ebpfMonTraceReadWords(slow->targets, held->trace, isAlways, NULL);
    ebpfMonTargetsLock(slow->targets);
    t = ebpfMonTraceFindTarget(slow->targets, held->trace);
    if (t) /* else its IOC is not watched any more */
        more = ebpfMonTraceTextWrite(slow->walk, t, held->trace, held->unixOffset, to, left);
    ebpfMonTargetsUnlock(slow->targets);
    isFull = more == left - 1;
    if (isFull && *length == 0) {
        more = sizeof(slow->text) - sizeof(CUT);
        while (more > 0 && to[more - 1] != '\n')
            more--;
        strcpy(to + more, CUT);
        *length = more + sizeof(CUT) - 1;
    } else if (!isFull) {
        *length += more;
    }
    return !isFull;
}

/* The traces come in the order in which they are complete, which is not that of their ends. */
static void setLatestEnd(const ebpfMonSlowChains *slow, ebpfMonPublished *published)
{
    for (unsigned n = slow->heldFrom; n != slow->heldTo; n++) {
        const heldTrace *held = &slow->held[n % HELD_MAX];

        ebpfMonPublishedSetTime(published, ebpfMonGroupSlow, ebpfMonClockStamp(held->trace->end + held->unixOffset),
                                held->trace->end);
    }
}

/* Writes the newest first, until there is no room for older ones. */
static void writeHeld(ebpfMonSlowChains *slow)
{
    ebpfMonPublished *published;
    size_t length = 0;

    for (unsigned n = slow->heldTo; n != slow->heldFrom; n--)
        if (!addText(slow, &slow->held[(n - 1) % HELD_MAX], &length))
            break;
    published = ebpfMonPublishedLock();
    ebpfMonSlowChainsPrepend(published->chains.slowText, sizeof(published->chains.slowText), slow->text, length);
    published->chains.slowCount += slow->count;
    setLatestEnd(slow, published);
    ebpfMonPublishedUnlock();
    ebpfMonPublishedNotify(ebpfMonGroupSlow);
    freeHeld(slow);
    slow->count = 0;
}

void ebpfMonSlowChainsTick(ebpfMonSlowChains *slow, uint64_t now, int all)
{
    if (slow->heldFrom == slow->heldTo || (!all && now - slow->writtenAt < HOLD_NS))
        return;
    writeHeld(slow);
    slow->writtenAt = now;
}

uint64_t ebpfMonSlowChainsGetDue(const ebpfMonSlowChains *slow)
{
    return slow->heldFrom == slow->heldTo ? UINT64_MAX : slow->writtenAt + HOLD_NS;
}
