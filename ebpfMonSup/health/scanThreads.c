/* SPDX-License-Identifier: BSD-3-Clause */
#include <alarm.h>
#include <epicsStdlib.h>
#include <epicsString.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/clock.h"
#include "health/lives.h"
#include "health/scanThreads.h"
#include "host/memory.h"
#include "ioc/baseLayout.h"
#include "ioc/recordLinks.h"
#include "watch/target.h"

/* --- the mean period --- */

#define EBPFMON_SCAN_FAR     2  /* a real period of more than so many nominal ones is far too long */

void ebpfMonScanWindowAdd(ebpfMonScanWindow *w, const ebpfMonScanSample *now, uint64_t present,
                          ebpfMonScanRow *row)
{
    static const ebpfMonScanSample nothing;
    const unsigned size = EBPFMON_SCAN_SECONDS + 1;
    const ebpfMonScanSample *old;

    if (w->n && now->passes < w->at[w->newest].passes) /* the kernel part counts from 0 again: begin anew */
        w->n = 0;
    w->newest = w->n ? (w->newest + 1) % size : 0;
    w->at[w->newest] = *now;
    if (w->n < size)
        w->n++;
    old = &w->at[(w->newest + size - (w->n - 1)) % size];
    if (w->n == 1 && now->passes) /* the first sample: it has all passes since the kernel part began to count */
        old = &nothing;
    if (now->passes > old->passes) {
        uint64_t sum = now->sum - old->sum;

        row->period = (double)sum / (double)(now->passes - old->passes) / 1e9;
        row->busy = sum ? 100.0 * (double)(now->busy - old->busy) / (double)sum : 0;
    }
    row->worst = (double)now->max / 1e9;
    row->late = now->late;
    if ((double)present / 1e9 > row->period)
        row->period = (double)present / 1e9;
    if ((double)present / 1e9 > row->worst)
        row->worst = (double)present / 1e9;
}

double ebpfMonScanParsePeriod(const char *choice)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = { { "", 1 }, { "second", 1 }, { "seconds", 1 }, { "minute", 60 }, { "minutes", 60 }, { "hour", 3600 },
                  { "hours", 3600 } };
    double number;
    char *unit;

    if (epicsParseDouble(choice, &number, &unit) || number <= 0)
        return 0;
    if (epicsStrCaseCmp(unit, "Hz") == 0 || epicsStrCaseCmp(unit, "Hertz") == 0)
        return 1 / number;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (epicsStrCaseCmp(unit, units[i].name) == 0)
            return number * units[i].seconds;
    return 0;
}

/* --- threads --- */

#define MENU_MAX 100

typedef struct {
    uint32_t id, tid;
    pid_t    pid;
    uint64_t first, period; /* as in ebpfMonScan, at the last look */
    uint16_t spvt;    /* as in ebpfMonScanIoc */
    int      seen;    /* this second */
    uint64_t ended;   /* the first look without the thread, while its IOC goes on (monotonic ns); 0: none */
    int      isEndTold;
    double   ratio;   /* its real period, divided by the nominal one */
    int      isIdle;  /* it has nothing to scan: no row is shown, but what was counted is kept */
    uint64_t late;    /* late periods that lateCount has */
    uint64_t lateAt;  /* when the last one was seen (monotonic ns) */
    uint64_t gapAt;   /* when the last wait ended that the kernel part does not count (monotonic ns) … */
    double   gapLate; /* … and by how much the thread was late then (s); 0: it is not why it is late now */
    uint64_t list;    /* address of its scan list in the IOC's memory; 0: not known yet */
    uint64_t begin;   /* of its last pass, as the kernel part has it (monotonic ns) */
    uint64_t sum;     /* as ebpfMonScan.sum, at the last look */
    uint64_t filled;  /* since when the list has records, as far as is known (monotonic ns); 0: it had none */
    int      isOfStill; /* as ebpfMonScanIoc.isStill */
    int      isStanding; /* it is in a chain for too long, or does not begin a pass */
    uint64_t wait;    /* ns that it does not begin a pass of a list that has records; 0: it is in time */
    uint64_t gaps, gapSum, gapMax; /* waits that are over, which the kernel part took for an empty list; in ns */
    uint64_t topRoot; /* address of the root of the chain that takes the most time */
    ebpfMonScanWindow window;
    ebpfMonScanRow row;
} scanThread;

struct ebpfMonScanThreads {
    unsigned   count;
    scanThread scan[EBPFMON_HEALTH_SCANS];
    uint64_t   lateCount; /* late periods of all threads, also of those that have ended */
    int        isWaiting; /* some thread should have begun its pass before this look */
};

ebpfMonScanThreads *ebpfMonScanThreadsNew(void)
{
    return calloc(1, sizeof(ebpfMonScanThreads));
}

void ebpfMonScanThreadsFree(ebpfMonScanThreads *scans)
{
    free(scans);
}

void ebpfMonScanThreadsBegin(ebpfMonScanThreads *scans)
{
    for (unsigned i = 0; i < scans->count; i++)
        scans->scan[i].seen = 0;
    scans->isWaiting = 0;
}

/* Finds the choice of menuScan that has this period (s), in the IOC's memory. If there is none: "… second". */
static void readScanName(const ebpfMonScanIoc *ioc, double period, char *name, size_t size)
{
    struct layoutMenu menu;

    snprintf(name, size, "%g second", period);
    if (!ioc->scanMenu || ebpfMonMemReadNow(ioc->pid, ioc->scanMenu, &menu, sizeof(menu)))
        return;
    for (int32_t i = 0; i < menu.nChoice && i < MENU_MAX; i++) {
        char text[40];
        uint64_t at;
        double value;

        if (ebpfMonMemReadNow(ioc->pid, menu.papChoiceValue + 8 * (uint64_t)i, &at, sizeof(at)) ||
            ebpfMonMemReadNow(ioc->pid, at, text, sizeof(text)))
            return;
        text[sizeof(text) - 1] = 0;
        value = ebpfMonScanParsePeriod(text);
        if (value > 0.999 * period && value < 1.001 * period) { /* "period" is from the thread's name: six digits */
            snprintf(name, size, "%s", text);
            return;
        }
    }
}

/* NULL: the thread is not there. */
static scanThread *findScan(ebpfMonScanThreads *scans, uint32_t id, uint32_t tid)
{
    for (unsigned i = 0; i < scans->count; i++)
        if (scans->scan[i].id == id && scans->scan[i].tid == tid)
            return &scans->scan[i];
    return NULL;
}

/* NULL: there are EBPFMON_HEALTH_SCANS already, and all of them scan. */
static scanThread *addScan(ebpfMonScanThreads *scans, const ebpfMonScanIoc *ioc, uint32_t tid, double period)
{
    unsigned i = scans->count;

    if (i == EBPFMON_HEALTH_SCANS)
        for (i = 0; i < scans->count && !scans->scan[i].isIdle; i++)
            ;
    else
        scans->count++;
    if (i == EBPFMON_HEALTH_SCANS)
        return NULL;
    scans->scan[i] = (scanThread){ .id = ioc->id, .tid = tid, .pid = ioc->pid, .spvt = ioc->spvt };
    scans->scan[i].row.period = period;
    readScanName(ioc, period, scans->scan[i].row.name, sizeof(scans->scan[i].row.name));
    return &scans->scan[i];
}

/* A pass has begun since the last look. If the thread had waited, and the kernel part did not count this period (see
 * isScanIdle), it counts now: the passes after it are in "sum". */
static void endWait(scanThread *s, const struct ebpfMonScan *k, uint64_t now)
{
    uint64_t first = k->begin - (k->sum - s->sum), since = s->filled > s->begin ? s->filled : s->begin;

    if (s->wait && first > since && first - since > k->period + k->period / 2) {
        s->gaps++;
        s->gapSum += first - since;
        s->gapLate = (double)(first - since - k->period) / 1e9;
        if (first - since > s->gapMax)
            s->gapMax = first - since;
        s->gapAt = now;
    }
    s->begin = s->filled = k->begin;
    s->wait = 0;
}

/* Notes how long the thread has not begun a pass, although its list has records. It does not matter why: the process is
 * stopped, or the thread waits for the lock of its list, is suspended, or gets no CPU. */
static void noteWait(scanThread *s, const ebpfMonScanIoc *ioc, const struct ebpfMonThread *seen, uint64_t now)
{
    const struct ebpfMonScan *k = &seen->scan;
    uint64_t limit = k->period + k->period / 2;

    if (s->begin != k->begin)
        endWait(s, k, now);
    s->sum = k->sum;
    if (seen->heldCount || now <= k->begin + limit)
        return;
    if (!s->list)
        s->list = ebpfMonScanListFind(ioc->pid, k->first, ioc->spvt, (double)k->period / 1e9);
    if (!s->list || ebpfMonScanListCount(ioc->pid, s->list) <= 0)
        s->filled = s->wait = 0;
    else if (!s->filled) /* since the last look it got records: the thread has a period to begin */
        s->filled = now;
    else
        s->wait = now - s->filled > limit ? now - s->filled : 0;
}

/* The thread has nothing to scan any more. The kernel part, which does not know whether a list has records, uses the
 * same rule without "wait" (beginScanPass in bpf/thread/scanThread.bpf.h). */
static int isScanIdle(const scanThread *s, const struct ebpfMonThread *seen, uint64_t now)
{
    const struct ebpfMonScan *k = &seen->scan;

    return !seen->heldCount && now > k->end && now - k->end > 4 * k->period + EBPFMON_SECOND_NS && !(s && s->wait);
}

/* Finds the thread, or adds it if it scans, and notes that it was seen. NULL: it has no row. */
static scanThread *noteScan(ebpfMonScanThreads *scans, const ebpfMonScanIoc *ioc, uint32_t tid,
                            const struct ebpfMonThread *seen, uint64_t now)
{
    scanThread *s = findScan(scans, ioc->id, tid);
    int isIdle;

    if (s)
        noteWait(s, ioc, seen, now);
    isIdle = isScanIdle(s, seen, now);
    if (!s && !isIdle)
        s = addScan(scans, ioc, tid, (double)seen->scan.period / 1e9);
    if (!s)
        return NULL;
    if (s->isIdle && !isIdle) { /* its seconds before the pause are no part of the window now */
        memset(&s->window, 0, sizeof(s->window));
        s->lateAt = s->gapAt = 0;
    }
    s->seen = 1;
    s->isIdle = isIdle;
    return isIdle ? NULL : s;
}

/* A shorter wait may be between two chains of its pass. */
static int standsStill(const scanThread *s)
{
    return s->wait > EBPFMON_SECOND_NS;
}

static int isRecent(uint64_t at, uint64_t now)
{
    return at && now - at < EBPFMON_SCAN_SECONDS * EBPFMON_SECOND_NS;
}

void ebpfMonScanThreadsAdd(ebpfMonScanThreads *scans, const ebpfMonScanIoc *ioc, uint32_t tid,
                           const struct ebpfMonThread *seen, uint64_t now)
{
    const struct ebpfMonScan *k = &seen->scan;
    scanThread *s = k->period && k->begin ? noteScan(scans, ioc, tid, seen, now) : NULL;
    uint64_t present = now > k->begin ? now - k->begin : 0, late;

    if (!s)
        return;
    late = k->late + s->gaps;
    s->first = k->first;
    s->period = k->period;
    snprintf(s->row.ioc, sizeof(s->row.ioc), "%s", ioc->name);
    if (!seen->heldCount || present <= k->period + k->period / 2)
        present = s->wait;
    ebpfMonScanWindowAdd(&s->window,
                         &(ebpfMonScanSample){ k->passes + s->gaps, k->sum + s->gapSum,
                                               k->max > s->gapMax ? k->max : s->gapMax, k->busy, late },
                         present, &s->row);
    if (late > s->late)
        scans->lateCount += late - s->late;
    if (late > s->late && now != s->gapAt)
        s->lateAt = now;
    s->late = late;
    s->row.late += s->wait != 0;
    if (isRecent(s->lateAt, now) || !isRecent(s->gapAt, now))
        s->gapLate = 0;
    if (now > k->begin + k->period && (present || now < k->begin + 4 * k->period))
        scans->isWaiting = 1;
    s->isStanding = present != 0;
    s->isOfStill = ioc->isStill;
    s->ratio = s->row.period * 1e9 / (double)k->period;
    s->row.severity = !present && !isRecent(s->lateAt, now) && !isRecent(s->gapAt, now) ? NO_ALARM :
                      s->ratio > EBPFMON_SCAN_FAR ? MAJOR_ALARM : MINOR_ALARM;
    s->topRoot = standsStill(s) || s->gapLate > 0 ? 0 : isRecent(s->lateAt, now) ? k->lateTopRoot : k->topRoot;
    if (seen->heldCount && now > seen->held[0].begin && now - seen->held[0].begin > k->period)
        s->topRoot = seen->held[0].root; /* this chain still runs, and takes longer than the whole period */
}

/* Those that scan first; by IOC, the fastest thread first. Base starts the threads in the order of menuScan, the
 * slowest first (scanInit in dbScan.c), so the fastest has the highest tid. */
static int compareScans(const void *a, const void *b)
{
    const scanThread *x = a, *y = b;

    if (x->isIdle != y->isIdle)
        return x->isIdle ? 1 : -1;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return x->tid < y->tid ? 1 : x->tid > y->tid ? -1 : 0;
}

/* Without the slowest record a note is short enough for an element of IOC_NOTES. */
static void describeLate(const scanThread *s, int withRecord, char *buf, size_t size)
{
    if (s->ended)
        snprintf(buf, size, "scan thread \"%s\" has ended", s->row.name);
    else if (standsStill(s))
        snprintf(buf, size, "scan \"%s\" not begun for %.1f s", s->row.name, s->row.period);
    else if (s->gapLate > 0)
        snprintf(buf, size, "scan \"%s\" was late by %.3g s", s->row.name, s->gapLate);
    else if (s->ratio > 1.05)
        snprintf(buf, size, "scan \"%s\" takes %.3g s%s%s", s->row.name, s->row.period,
                 withRecord && s->row.topRoot[0] ? ", slowest record " : "", withRecord ? s->row.topRoot : "");
    else
        snprintf(buf, size, "scan \"%s\" was late in the last 10 s", s->row.name);
}

/* One of an IOC that goes on is worse: that others stand still is told anyway. */
static int isWorse(const scanThread *s, const scanThread *than)
{
    return s->isOfStill != than->isOfStill ? than->isOfStill : s->ratio > than->ratio;
}

/* The threads that are late now, and the worst one in words. The first "n" threads have rows. */
static void publishLate(const ebpfMonScanThreads *scans, unsigned n, ebpfMonHealth *health)
{
    const scanThread *worst = NULL;
    char text[150];

    health->lateNow = health->ended = 0;
    health->isFarLate = 0;
    health->standing = 0;
    health->lateBrief[0] = 0;
    snprintf(health->lateText, sizeof(health->lateText), "%s", EBPFMON_NO_LATE);
    for (unsigned i = 0; i < n; i++) {
        const scanThread *s = &scans->scan[i];

        if (!s->row.severity)
            continue;
        health->lateNow++;
        health->ended += s->ended != 0;
        health->isFarLate |= s->row.severity == MAJOR_ALARM;
        describeLate(s, 0, text, sizeof(text));
        ebpfMonHealthAddIll(health, s->id, s->row.severity, text);
        if (!worst || isWorse(s, worst))
            worst = s;
        if (s->isStanding && health->standing < EBPFMON_HUNG_THREADS) {
            unsigned to = worst == s ? 0 : health->standing; /* the worst one comes first */

            health->lateThread[health->standing] = health->lateThread[to];
            health->lateThread[to].iocId = s->id;
            health->lateThread[to].tid = s->tid;
            health->standing++;
        }
    }
    health->areLateStill = worst && worst->isOfStill;
    if (!worst)
        return;
    snprintf(health->lateBrief, sizeof(health->lateBrief), "%s %s: %s", worst->row.ioc, worst->row.name,
             worst->ended ? "has ended" : standsStill(worst) ? "stands still" :
             worst->gapLate > 0 ? "was late" : worst->row.topRoot);
    describeLate(worst, 1, text, sizeof(text));
    snprintf(health->lateText, sizeof(health->lateText), "IOC %s: %.130s", worst->row.ioc, text);
}

/* Of a thread that the kernel part does not know: 0 if it is there, or if its IOC is not, or is not watched closely. */
static int hasEnded(const scanThread *s, ebpfMonTargets *targets)
{
    const ebpfMonTarget *t;
    int isTimed;
    char path[64];

    ebpfMonTargetsLock(targets);
    t = ebpfMonTargetsFindById(targets, s->id);
    isTimed = t && !t->gone && t->level >= ebpfMonLevelChains;
    ebpfMonTargetsUnlock(targets);
    snprintf(path, sizeof(path), "/proc/%d/task/%u", (int)s->pid, (unsigned)s->tid);
    return isTimed && access(path, F_OK);
}

/* Nobody processes the records of its list any more. An event tells it at the second look: the first one may be in the
 * middle of the end of the IOC. An IOC that exits, or is paused, does not scan (scanCtl). */
static void noteEnd(ebpfMonScanThreads *scans, scanThread *s, uint64_t now, ebpfMonHealth *health)
{
    double since = (double)(now - s->begin) / 1e9;
    epicsTimeStamp at;

    if (!s->list)
        s->list = ebpfMonScanListFind(s->pid, s->first, s->spvt, (double)s->period / 1e9);
    s->isIdle = !s->list || ebpfMonScanListCount(s->pid, s->list) <= 0;
    s->isStanding = 0;
    if (!s->ended) {
        s->ended = now;
        return;
    }
    if (!s->isIdle && !s->isEndTold) {
        s->isEndTold = 1;
        epicsTimeGetCurrent(&at);
        ebpfMonHealthEventsAdd(health, &at, 1, "IOC %s (pid %d): scan thread \"%s\" has ended, its records are not "
                               "processed", s->row.ioc, (int)s->pid, s->row.name);
        s->row.late++;
        scans->lateCount++;
    }
    s->row.severity = s->isIdle ? NO_ALARM : MAJOR_ALARM;
    s->row.period = since;
    if (since > s->row.worst)
        s->row.worst = since;
    s->ratio = since * 1e9 / (double)s->period;
}

void ebpfMonScanThreadsPublish(ebpfMonScanThreads *scans, ebpfMonTargets *targets, ebpfMonHealth *health)
{
    unsigned i, n = 0;

    for (i = 0; i < scans->count; i++) {
        scanThread *s = &scans->scan[i];

        if (!s->seen && hasEnded(s, targets))
            noteEnd(scans, s, ebpfMonClockMonotonic(), health);
        else if (!s->seen)
            continue;
        scans->scan[n++] = *s;
    }
    scans->count = n;
    qsort(scans->scan, n, sizeof(scans->scan[0]), compareScans);
    while (n && scans->scan[n - 1].isIdle)
        n--;
    ebpfMonTargetsLock(targets);
    for (i = 0; i < n; i++) {
        scanThread *s = &scans->scan[i];

        ebpfMonRecordNameFind(ebpfMonTargetsFindById(targets, s->id), s->topRoot, s->row.topRoot,
                              sizeof(s->row.topRoot));
    }
    ebpfMonTargetsUnlock(targets);
    for (i = 0; i < n; i++)
        health->scan[i] = scans->scan[i].row;
    health->scans = n;
    health->lateCount = scans->lateCount;
    publishLate(scans, n, health);
}

int ebpfMonScanThreadsAreWaiting(const ebpfMonScanThreads *scans)
{
    return scans->isWaiting;
}
