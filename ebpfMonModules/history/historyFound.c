/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/text.h"
#include "common/worker.h"
#include "history/historyAsk.h"
#include "history/historyFound.h"
#include "history/historyRow.h"

#define PART    200
#define MOST_NS 20000000000ull /* for one answer */

struct ebpfMonHistoryFinder {
    const ebpfMonModule *module;
    const char *file;
    ebpfMonSharedWorker worker;
    epicsMutexId lock;                    /* guards the next two */
    char  part[ebpfMonAskParts][PART];
    int   isAsked;
    ebpfMonHistoryFound shown;            /* under the lock of the published values */
    /* the thread's own */
    ebpfMonWorker *self;
    ebpfMonHistoryFound found;
    size_t used;                          /* of found.text */
    uint64_t since;                       /* monotonic ns: of this answer */
};

/* The text without rows says why there are none. */
static void sayWhyNone(ebpfMonHistoryFinder *f)
{
    if (!f->found.rows)
        snprintf(f->found.text, sizeof(f->found.text), "%s\n", f->found.message);
}

ebpfMonHistoryFinder *ebpfMonHistoryFinderNew(const ebpfMonModule *module)
{
    ebpfMonHistoryFinder *f = calloc(1, sizeof(*f));

    if (!f)
        return NULL;
    f->module = module;
    f->lock = epicsMutexMustCreate();
    ebpfMonSharedWorkerInit(&f->worker);
    snprintf(f->found.message, sizeof(f->found.message), "nothing is kept: ebpfMonHistoryKeep FILE");
    sayWhyNone(f);
    f->shown = f->found;
    return f;
}

const ebpfMonHistoryFound *ebpfMonHistoryFinderGet(const ebpfMonHistoryFinder *f)
{
    return &f->shown;
}

void ebpfMonHistoryFinderAsk(ebpfMonHistoryFinder *f, ebpfMonAskPart part, const char *text)
{
    epicsMutexMustLock(f->lock);
    ebpfMonTextCopy(f->part[part], PART, text);
    f->isAsked = 1;
    epicsMutexUnlock(f->lock);
    ebpfMonSharedWorkerWake(&f->worker);
}

#define COPY(to, from) ebpfMonTextCopy(r->to, sizeof(r->to), from)

/* "×1500", "denied", "unexpected: …", or what kind of row it is. */
static void writeResult(sqlite3_stmt *row, char *buf, size_t size)
{
    const char *kind = ebpfMonHistoryRowText(row, ebpfMonAtKind);
    const char *result = ebpfMonHistoryRowText(row, ebpfMonAtResult);
    const char *reason = ebpfMonHistoryRowText(row, ebpfMonAtReason);
    long long n = sqlite3_column_int64(row, ebpfMonAtN);
    char times[32] = "";

    if (n > 1)
        snprintf(times, sizeof(times), "\303\227%lld ", n);
    snprintf(buf, size, "%s%s%s%s", times, strcmp(kind, "put") != 0 ? strcmp(kind, "gap") == 0 ? "not watched" : kind :
             strcmp(result, "ok") == 0 ? "" : result, reason[0] ? " unexpected: " : "", reason);
}

/* Before the rows that are there: the newest comes last, and stands first. */
static void putLine(ebpfMonHistoryFinder *f, sqlite3_stmt *row)
{
    char *line = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&line, &length);

    if (!out)
        return;
    ebpfMonHistoryRowWriteText(row, out);
    fclose(out);
    if (length < sizeof(f->found.text)) {
        size_t rest = sizeof(f->found.text) - 1 - length;

        memmove(f->found.text + length, f->found.text, f->used < rest ? f->used : rest);
        memcpy(f->found.text, line, length);
        f->used = f->used < rest ? f->used + length : sizeof(f->found.text) - 1;
        while (f->used && f->found.text[f->used - 1] != '\n') /* whole lines */
            f->used--;
        f->found.text[f->used] = 0;
    }
    free(line);
}

static void takeRow(void *arg, sqlite3_stmt *row)
{
    ebpfMonHistoryFinder *f = arg;
    ebpfMonHistoryFoundRow *r;
    char result[200];

    if (f->found.rows == EBPFMON_HISTORY_FOUND) /* gaps come in addition */
        memmove(f->found.row, f->found.row + 1, --f->found.rows * sizeof(*r));
    r = &f->found.row[f->found.rows++];
    ebpfMonHistoryFormatTime(sqlite3_column_int64(row, ebpfMonAtTime), 0, r->time, sizeof(r->time));
    COPY(pv, ebpfMonHistoryRowText(row, ebpfMonAtPv));
    COPY(old, ebpfMonHistoryRowText(row, ebpfMonAtOld));
    COPY(value, ebpfMonHistoryRowText(row, ebpfMonAtValue));
    COPY(who, ebpfMonHistoryRowText(row, ebpfMonAtWho));
    COPY(ioc, ebpfMonHistoryRowText(row, ebpfMonAtIoc));
    writeResult(row, result, sizeof(result));
    COPY(result, result);
    putLine(f, row);
}

static int mustStop(void *arg)
{
    ebpfMonHistoryFinder *f = arg;

    return ebpfMonWorkerIsStopping(f->self) || ebpfMonClockMonotonic() - f->since > MOST_NS;
}

static void answerQuestion(ebpfMonHistoryFinder *f, char part[ebpfMonAskParts][PART])
{
    int64_t now = (int64_t)ebpfMonClockReal();
    ebpfMonHistoryQuestion q = {
        .file = f->file, .most = EBPFMON_HISTORY_FOUND, .pv = part[ebpfMonAskPv][0] ? part[ebpfMonAskPv] : NULL,
        .user = part[ebpfMonAskUser][0] ? part[ebpfMonAskUser] : NULL, .isStopping = mustStop, .arg = f,
    };
    const char *from = part[ebpfMonAskFrom][0] ? part[ebpfMonAskFrom] : "-1d", *to = part[ebpfMonAskTo];
    char why[200];
    long rows;

    memset(&f->found, 0, sizeof(f->found));
    f->used = 0;
    f->since = ebpfMonClockMonotonic();
    if (ebpfMonHistoryParseRange(from, now, &q.from, &q.to) ||
        (to[0] && ebpfMonHistoryParseEnd(to, now, q.from, &q.to))) {
        snprintf(f->found.message, sizeof(f->found.message), "no time: give one as -2h, yesterday, 03:10, "
                 "03:10..03:20 or 2026-11-28 03:10:05");
        return;
    }
    if (q.to && q.from > q.to) {
        snprintf(f->found.message, sizeof(f->found.message), "the time from which to ask is after the one to which");
        return;
    }
    rows = ebpfMonHistoryEach(&q, takeRow, f, why, sizeof(why));
    if (rows < 0)
        snprintf(f->found.message, sizeof(f->found.message), "%s",
                 ebpfMonClockMonotonic() - f->since > MOST_NS ? "it takes too long: ask for a shorter time" : why);
    else if (rows == EBPFMON_HISTORY_FOUND)
        snprintf(f->found.message, sizeof(f->found.message), "the newest %ld rows; there may be more", rows);
    else
        snprintf(f->found.message, sizeof(f->found.message), "%ld row%s", rows, rows == 1 ? "" : "s");
}

static void runFinder(ebpfMonWorker *worker, void *arg)
{
    ebpfMonHistoryFinder *f = arg;
    char part[ebpfMonAskParts][PART];

    f->self = worker;
    ebpfMonWorkerWaitsForOthers(worker); /* for the disk */
    snprintf(f->found.message, sizeof(f->found.message), "write HISTORY_FROM, HISTORY_TO, HISTORY_PV or HISTORY_USER");
    while (!ebpfMonWorkerIsStopping(worker)) {
        int isAsked;

        epicsMutexMustLock(f->lock);
        memcpy(part, f->part, sizeof(part));
        isAsked = f->isAsked;
        f->isAsked = 0;
        epicsMutexUnlock(f->lock);
        if (isAsked)
            answerQuestion(f, part);
        sayWhyNone(f);
        ebpfMonModuleShowValues(f->module, &f->shown, &f->found, sizeof(f->found));
        ebpfMonWorkerWait(worker, 60);
    }
}

int ebpfMonHistoryFinderStart(ebpfMonHistoryFinder *f, const char *file)
{
    f->file = file;
    return ebpfMonSharedWorkerSet(&f->worker,
                                  ebpfMonWorkerStart("ebpfMonFinder", epicsThreadPriorityLow, runFinder, f));
}

int ebpfMonHistoryFinderStop(ebpfMonHistoryFinder *f, double seconds)
{
    return ebpfMonSharedWorkerStop(&f->worker, seconds);
}
