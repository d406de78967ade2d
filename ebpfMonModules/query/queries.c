/* SPDX-License-Identifier: BSD-3-Clause */
#include <epicsMutex.h>
#include <epicsString.h>
#include <epicsThread.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/text.h"
#include "common/textReport.h"
#include "common/worker.h"
#include "query/queries.h"
#include "query/queryRun.h"
#include "query/querySpec.h"
#include "query/queryValues.h"

/* --- print ---
 *
 * Writes queries and their results as text, for the shell. Any thread; takes the lock of the results for a copy.
 * "result": the number of a result (query/queryValues.h). */

#define BAR_WIDTH   50
#define VALUES_MOST 9 /* columns behind the keys */

static const char *const stateNames[] = {"absent", "off", "starting", "running", "done", "failed"};

/* Returns a copy of the result, which the caller frees; NULL without memory. */
static ebpfMonQueryResult *copyResult(ebpfMonQueryResults *results, int number)
{
    ebpfMonQueryResult *copy = malloc(sizeof(*copy));

    if (copy) {
        *copy = *ebpfMonQueryResultsLock(results, number);
        ebpfMonQueryResultsUnlock(results);
    }
    return copy;
}

/* Adds the list of queries: first the titles of the columns, then one line for each query. */
static void beginPrint(ebpfMonTextReport *report)
{
    static const ebpfMonReportColumn columns[] = {
        {"query", -24}, {"state", -9}, {"keys", 7}, {"events", 14}, {"dropped", 9}, {"cost %", 8}, {"file, message", 0}
    };

    ebpfMonTextReportBeginTable(report, columns, 7);
}

static void printLine(ebpfMonTextReport *report, ebpfMonQueryResults *results, int number, const char *file)
{
    ebpfMonQueryResult *r = copyResult(results, number);

    if (!r)
        return;
    ebpfMonTextReportAddCell(report, "%s", r->name);
    ebpfMonTextReportAddCell(report, "%s", stateNames[r->state]);
    ebpfMonTextReportAddCell(report, "%u", r->found);
    ebpfMonTextReportAddCell(report, "%llu", (unsigned long long)r->events);
    ebpfMonTextReportAddCell(report, "%llu", (unsigned long long)r->dropped);
    ebpfMonTextReportAddCell(report, "%.3f", r->cost);
    ebpfMonTextReportAddCell(report, "%s: %s", file, r->message);
    free(r);
}

static void addNumber(ebpfMonTextReport *report, double value)
{
    if (isnan(value))
        ebpfMonTextReportAddCell(report, "-");
    else
        ebpfMonTextReportAddCell(report, fabs(value) < 1e15 && value == floor(value) ? "%.0f" : "%.3f", value);
}

static void addRows(ebpfMonTextReport *report, const ebpfMonQueryResult *r)
{
    static const char *const titles[VALUES_MOST] = {"count", "rate/s", "sum", "mean", "min", "max", "p50", "p90",
                                                    "p99"};
    ebpfMonReportColumn columns[EBPFMON_QUERY_KEYS_MAX + VALUES_MOST];
    unsigned values = !r->hasValue ? 2 : !r->hasHist ? 6 : VALUES_MOST, n = 0;

    for (unsigned k = 0; k < r->keys; k++)
        columns[n++] = (ebpfMonReportColumn){ r->keyName[k], -24 };
    for (unsigned v = 0; v < values; v++)
        columns[n++] = (ebpfMonReportColumn){ titles[v], 14 };
    ebpfMonTextReportBeginTable(report, columns, n);
    for (unsigned i = 0; i < r->rows; i++) {
        const ebpfMonQueryRow *row = &r->row[i];
        const double value[VALUES_MOST] = { row->count, row->rate, row->sum, row->mean, row->min, row->max, row->p50,
                                            row->p90, row->p99 };

        for (unsigned k = 0; k < r->keys; k++)
            ebpfMonTextReportAddCell(report, "%s", row->key[k]);
        for (unsigned v = 0; v < values; v++)
            addNumber(report, value[v]);
    }
}

static void addBars(ebpfMonTextReport *report, const ebpfMonQueryResult *r)
{
    double most = 0;

    for (unsigned i = 0; i < r->bars; i++)
        most = fmax(most, r->hist[i]);
    if (r->bars)
        ebpfMonTextReportAdd(report, "%14s %s\n", "from", r->unit);
    for (unsigned i = 0; i < r->bars; i++) {
        char bar[BAR_WIDTH + 1] = "";

        memset(bar, '#', most > 0 ? (size_t)lround(BAR_WIDTH * r->hist[i] / most) : 0);
        ebpfMonTextReportAdd(report, "%14.6g %14.0f |%-*s|\n", r->histEdge[i], r->hist[i], BAR_WIDTH, bar);
    }
}

static void addEvents(ebpfMonTextReport *report, const ebpfMonQueryResult *r)
{
    ebpfMonReportColumn columns[4 + EBPFMON_QUERY_KEYS_MAX] = {
        {"time", -29}, {"thread", -15}, {"CPU", 4}, {"value", 12}
    };
    unsigned n = 4;

    for (unsigned k = 0; k < r->keys; k++)
        columns[n++] = (ebpfMonReportColumn){ r->keyName[k], -24 };
    if (r->eventRows)
        ebpfMonTextReportBeginTable(report, columns, n);
    for (unsigned i = 0; i < r->eventRows; i++) {
        const ebpfMonQueryEventRow *e = &r->event[i];

        ebpfMonTextReportAddCell(report, "%s", e->time);
        ebpfMonTextReportAddCell(report, "%s", e->thread);
        addNumber(report, e->cpu);
        addNumber(report, e->value);
        for (unsigned k = 0; k < r->keys; k++)
            ebpfMonTextReportAddCell(report, "%s", e->key[k]);
    }
}

/* Adds the stacks of a result, one line for each stack, in the format of flamegraph.pl. */
static void printStacks(ebpfMonTextReport *report, ebpfMonQueryResults *results, int number)
{
    char *text = ebpfMonQueryResultsCopyStacks(results, number), *rest = text;

    for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest))
        ebpfMonTextReportAdd(report, "%s\n", line);
    free(text);
}

/* Adds the rows of a result, its histogram as bars, and its last events. */
static void printResult(ebpfMonTextReport *report, ebpfMonQueryResults *results, int number)
{
    ebpfMonQueryResult *r = copyResult(results, number);

    if (!r)
        return;
    ebpfMonTextReportAdd(report, "%s: %s\n%s: %s; cost %.3f %% of a core\n", r->name, r->title, stateNames[r->state],
                         r->message, r->cost);
    ebpfMonTextReportAdd(report, "%llu events, %llu dropped, %u keys%s%s%s\n", (unsigned long long)r->events,
                         (unsigned long long)r->dropped, r->found, r->isEstimate ? ", estimated from a sample" : "",
                         r->unit[0] ? ", values in " : "", r->unit);
    if (r->rows < r->found)
        ebpfMonTextReportAdd(report, "the first %u keys; the other %u have %.0f events (\"top\" shows up to %d)\n",
                             r->rows, r->found - r->rows, r->rest, EBPFMON_QUERY_ROWS_MAX);
    if (r->keys || r->rows)
        addRows(report, r);
    addBars(report, r);
    addEvents(report, r);
    free(r);
}

/* --- the budget of an IOC --- */

/* Sets what queries take from this IOC. Returns the number of the dearest one; -1: none takes anything. */
static int sumUp(ebpfMonTarget *t, const ebpfMonModule *module, ebpfMonQueryRun *const run[], unsigned count)
{
    double most = 0, sum = 0;
    int dearest = -1;

    for (unsigned i = 0; i < count; i++) {
        double cost = run[i] ? ebpfMonQueryRunGetCostOf(run[i], t->iocId) : 0;

        sum += cost;
        if (cost > most) {
            most = cost;
            dearest = (int)i;
        }
    }
    ebpfMonTargetSetShare(t, module, sum);
    return dearest;
}

/* Adds up what queries take from each IOC. "run": "count" runs; NULL is none. Call it about once a second. Returns the
 * number of the run that is to be stopped: an IOC was over its budget for ten seconds, and this query takes the most
 * from it. "why" says so. -1: none. Takes the targets lock. */
static int checkQueryBudget(ebpfMonTargets *targets, const ebpfMonModule *module, ebpfMonQueryRun *const run[],
                            unsigned count, char *why, size_t size)
{
    int stop = -1;

    ebpfMonTargetsLock(targets);
    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(targets); t; t = t->next) {
        int dearest = t->gone ? -1 : sumUp(t, module, run, count);

        if (stop >= 0 || dearest < 0 || !ebpfMonTargetMustSave(t, module, ebpfMonClockSeconds()))
            continue;
        stop = dearest;
        snprintf(why, size,
                 "stopped: IOC %.60s paid %.3g %% of a core, %.3g %% of it for this query, and FILTER_BUDGET is %.3g. "
                 "Choose other events or IOCs, or set a larger budget",
                 t->name, ebpfMonTargetGetCost(t), ebpfMonQueryRunGetCostOf(run[dearest], t->iocId), t->cost.limit);
    }
    ebpfMonTargetsUnlock(targets);
    return stop;
}

/* Nonzero: an IOC at which this query would look has used up its budget. "why" says which. Takes the targets lock. */
static int refusesBudget(ebpfMonTargets *targets, const ebpfMonQuerySpec *spec, char *why, size_t size)
{
    int refuses = 0;

    ebpfMonTargetsLock(targets);
    for (const ebpfMonTarget *t = ebpfMonTargetsGetFirst(targets); t && !refuses; t = t->next) {
        refuses = !t->gone && t->level != ebpfMonLevelOff && ebpfMonTargetIsSpent(t) &&
                  epicsStrGlobMatch(t->name, spec->ioc);
        if (refuses)
            snprintf(why, size,
                     "not started: IOC %.60s pays %.3g %% of a core already, %.3g %% of it for queries and other "
                     "modules, and FILTER_BUDGET is %.3g. Stop another query, or set a larger budget",
                     t->name, ebpfMonTargetGetCost(t), ebpfMonTargetGetCost(t) - t->cost.now, t->cost.limit);
    }
    ebpfMonTargetsUnlock(targets);
    return refuses;
}

/* --- queries --- */

#define LONGEST_WAIT 1.0 /* s that the thread sleeps at most, because rings of events must be read */

typedef struct {
    char   file[PATH_MAX];
    int    result;          /* number of its result (query/queryValues.h) */
    ebpfMonQuerySpec spec;  /* the specification that the file has now */
    int    isWanted;        /* it should run */
    int    isRenewed;       /* the file was loaded again */
    int    isRemoved;       /* its file does not have it any more. Another query may take its place */
    int    isReserved;      /* … but not that of a file that is being loaded */
    int    isBusy;          /* the query thread runs it, or is about to; only that thread writes this */
    /* only the query thread uses what follows */
    ebpfMonQuerySpec runs;  /* the specification with which it runs */
    ebpfMonQueryRun *run;   /* NULL: it does not run */
} Query;

struct ebpfMonQueries {
    const ebpfMonModule *module; /* fixed */
    ebpfMonQueryResults *results; /* fixed; it has a lock of its own */
    epicsMutexId lock;      /* guards what follows, except the members of the query thread */
    Query    *query[EBPFMON_QUERIES_MAX];
    unsigned  count;
    int       canRun;       /* the kernel part is loaded */
    ebpfMonTargets *targets;   /* set before the query thread starts, as the next; this thread reads them without the
                                * lock */
    const ebpfMonCosts *costs;
    ebpfMonWorker *worker;  /* NULL: no query was started yet */
};

ebpfMonQueries *ebpfMonQueriesNew(const ebpfMonModule *module, ebpfMonQueryResults *results)
{
    ebpfMonQueries *q = calloc(1, sizeof(*q));

    if (q) {
        q->lock = epicsMutexMustCreate();
        q->module = module;
        q->results = results;
    }
    return q;
}

static void setState(ebpfMonQueries *q, const Query *query, ebpfMonQueryState state, const char *message)
{
    ebpfMonQueryResult *result = ebpfMonQueryResultsLock(q->results, query->result);

    result->state = state;
    ebpfMonTextCopy(result->message, sizeof(result->message), message);
    if (state != ebpfMonQueryRunning)
        result->cost = result->now.rate = result->now.sumRate = result->now.mean = result->now.max = 0;
    ebpfMonQueryResultsUnlock(q->results);
    ebpfMonQueryResultsNotify(q->results, query->result);
}

/* Sets what does not change while the query runs, and removes the results of an earlier run. */
static void describeResult(ebpfMonQueries *q, int number, const ebpfMonQuerySpec *s)
{
    ebpfMonQueryResult *r = ebpfMonQueryResultsLock(q->results, number);

    memset(r->row, 0, sizeof(r->row));
    memset(r->keyName, 0, sizeof(r->keyName));
    r->found = r->rows = r->bars = r->rowBars = r->eventRows = 0;
    r->heatSeconds = s->order.plan.hist ? s->history : 0;
    for (size_t i = 0; i < sizeof(r->heat) / sizeof(r->heat[0]); i++)
        r->heat[i] = NAN;
    for (size_t i = 0; i < sizeof(r->heatEdge) / sizeof(r->heatEdge[0]); i++)
        r->heatEdge[i] = NAN;
    r->events = r->dropped = 0;
    r->rest = 0;
    memcpy(r->title, s->title, sizeof(r->title));
    memcpy(r->unit, s->unit, sizeof(r->unit));
    r->keys = s->order.plan.keys;
    memcpy(r->keyName, s->keyName, sizeof(r->keyName));
    r->metrics = s->metrics;
    r->hasValue = ebpfMonQueryHasValue(s);
    r->hasHist = s->order.plan.hist != EBPFMON_QUERY_NO_HIST;
    r->isEstimate = s->order.plan.sample > 1;
    ebpfMonQueryResultsUnlock(q->results);
    ebpfMonQueryResultsSetStacks(q->results, number, NULL);
}

/* --- The query thread --- */

static void endRun(Query *query)
{
    ebpfMonQueryRunStop(query->run);
    query->run = NULL;
}

/* A query ends by itself, or cannot run. */
static void giveUp(ebpfMonQueries *q, Query *query, ebpfMonQueryState state, const char *message)
{
    epicsMutexMustLock(q->lock);
    query->isWanted = 0;
    epicsMutexUnlock(q->lock);
    endRun(query);
    setState(q, query, state, message);
}

/* Starts a query. The caller does not hold the lock, because loading and attaching programs may take seconds. */
static void beginRun(ebpfMonQueries *q, Query *query, const ebpfMonQuerySources *from)
{
    char why[256];

    describeResult(q, query->result, &query->runs);
    setState(q, query, ebpfMonQueryStarting, "its programs are being loaded");
    if (!refusesBudget(from->targets, &query->runs, why, sizeof(why)))
        query->run = ebpfMonQueryRunStart(&query->runs, from, why, sizeof(why));
    if (query->run)
        setState(q, query, ebpfMonQueryRunning, "runs");
    else
        giveUp(q, query, ebpfMonQueryFailed, why);
}

static void readResults(ebpfMonQueries *q, Query *query, const ebpfMonQuerySources *from)
{
    char message[200];
    ebpfMonQueryVerdict verdict = ebpfMonQueryRunLook(query->run, from, query->result, message, sizeof(message));

    if (verdict == ebpfMonQueryGoesOn) {
        setState(q, query, ebpfMonQueryRunning, message);
        return;
    }
    giveUp(q, query, verdict == ebpfMonQueryIsDone ? ebpfMonQueryDone : ebpfMonQueryFailed,
           verdict == ebpfMonQueryIsDone ? "stopped, as its \"stopAfter\" says" : message);
}

/* Starts, reads or stops one query if this is due. Returns when the next call is due (monotonic s). */
static double advanceQuery(ebpfMonQueries *q, Query *query, const ebpfMonQuerySources *from, int isEnd)
{
    int isWanted, isRenewed;

    epicsMutexMustLock(q->lock);
    isWanted = query->isWanted && !isEnd;
    isRenewed = query->isRenewed;
    query->isRenewed = 0;
    if (query->run && (isRenewed || !isWanted)) {
        epicsMutexUnlock(q->lock);
        endRun(query);
        setState(q, query, query->isRemoved ? ebpfMonQueryAbsent : ebpfMonQueryOff,
                 query->isRemoved ? "its file does not have it any more" : "stopped");
        epicsMutexMustLock(q->lock);
    }
    if (!query->run && isWanted)
        query->runs = query->spec;
    query->isBusy = isWanted;
    epicsMutexUnlock(q->lock);
    if (!query->run && isWanted)
        beginRun(q, query, from);
    else if (query->run && ebpfMonClockSeconds() >= ebpfMonQueryRunGetDue(query->run))
        readResults(q, query, from);
    else if (query->run)
        ebpfMonQueryRunDrain(query->run);
    return query->run ? ebpfMonQueryRunGetDue(query->run) : HUGE_VAL;
}

/* Stops a query that an IOC cannot pay for. */
static void keepBudgets(ebpfMonQueries *q, unsigned count)
{
    ebpfMonQueryRun *run[EBPFMON_QUERIES_MAX];
    char why[256];
    int stop;

    for (unsigned i = 0; i < count; i++)
        run[i] = q->query[i]->run;
    stop = checkQueryBudget(q->targets, q->module, run, count, why, sizeof(why));
    if (stop >= 0)
        giveUp(q, q->query[stop], ebpfMonQueryFailed, why);
}

static unsigned countQueries(ebpfMonQueries *q)
{
    unsigned count;

    epicsMutexMustLock(q->lock);
    count = q->count;
    epicsMutexUnlock(q->lock);
    return count;
}

static void runQueries(ebpfMonWorker *worker, void *arg)
{
    ebpfMonQueries *q = arg;
    const ebpfMonQuerySources from = { q->targets, q->costs, q->results, worker };

    while (!ebpfMonWorkerIsStopping(worker)) {
        double due = HUGE_VAL, wait;

        unsigned count = countQueries(q);

        for (unsigned i = 0; i < count; i++)
            due = fmin(due, advanceQuery(q, q->query[i], &from, 0));
        keepBudgets(q, count);
        wait = due - ebpfMonClockSeconds();
        if (wait > 0)
            ebpfMonWorkerWait(worker, wait < LONGEST_WAIT ? wait : LONGEST_WAIT);
    }
    for (unsigned i = 0; i < countQueries(q); i++)
        advanceQuery(q, q->query[i], &from, 1);
}

/* --- Any thread. The caller holds the lock --- */

/* There is no thread for the queries that are wanted. They do not wait for one: a command tries again. */
static void refuseWanted(ebpfMonQueries *q)
{
    for (unsigned i = 0; i < q->count; i++) {
        if (!q->query[i]->isWanted)
            continue;
        q->query[i]->isWanted = 0;
        setState(q, q->query[i], ebpfMonQueryFailed,
                 "the thread of queries cannot be started: raise LimitNOFILE and TasksMax of the unit, and start it "
                 "again");
    }
}

/* Wakes the query thread. Makes it when it is needed for the first time. */
static void wakeThread(ebpfMonQueries *q)
{
    int isNeeded = 0;

    for (unsigned i = 0; i < q->count; i++)
        isNeeded |= q->query[i]->isWanted;
    if (!q->worker && q->canRun && isNeeded)
        q->worker = ebpfMonWorkerStart("ebpfMonQuery", epicsThreadPriorityLow, runQueries, q);
    if (!q->worker && q->canRun && isNeeded)
        refuseWanted(q);
    ebpfMonWorkerWake(q->worker);
}

static Query *findQuery(ebpfMonQueries *q, const char *name)
{
    for (unsigned i = 0; i < q->count; i++)
        if (!q->query[i]->isRemoved && strcmp(q->query[i]->spec.name, name) == 0)
            return q->query[i];
    return NULL;
}

/* Gives the place of a removed query to another name. NULL: all removed ones still run, or records show them. */
static Query *reusePlace(ebpfMonQueries *q, const char *name)
{
    for (unsigned i = 0; i < q->count; i++) {
        Query *query = q->query[i];

        if (query->isRemoved && !query->isReserved && !query->isWanted && !query->isBusy &&
            ebpfMonQueryResultsRename(q->results, query->result, name) == 0)
            return query;
    }
    return NULL;
}

static Query *makePlace(ebpfMonQueries *q, const char *name)
{
    int number = q->count < EBPFMON_QUERIES_MAX ? ebpfMonQueryResultsAdd(q->results, name) : -1;
    Query *query = number < 0 ? NULL : calloc(1, sizeof(*query));

    if (!query)
        return NULL;
    query->result = number;
    q->query[q->count++] = query;
    return query;
}

/* Finds the place of a query by its name, or makes one. A removed query still has its place, until another one needs
 * it. NULL: there are too many, or no memory. */
static Query *addQuery(ebpfMonQueries *q, const char *file, const char *name)
{
    Query *query;

    for (unsigned i = 0; i < q->count; i++)
        if (strcmp(q->query[i]->spec.name, name) == 0)
            return q->query[i];
    query = makePlace(q, name);
    if (!query)
        query = reusePlace(q, name);
    if (!query)
        return NULL;
    snprintf(query->file, sizeof(query->file), "%s", file);
    snprintf(query->spec.name, sizeof(query->spec.name), "%s", name);
    query->isRemoved = 1;
    return query;
}

static void freeReserved(ebpfMonQueries *q)
{
    for (unsigned i = 0; i < q->count; i++)
        q->query[i]->isReserved = 0;
}

/* Reserves all places that the set needs, before any query is changed; freeReserved() ends this. 0, or -1: "text" says
 * what is wrong. */
static int reservePlaces(ebpfMonQueries *q, const ebpfMonQuerySet *set, const char *file, char *text, size_t size)
{
    for (unsigned i = 0; i < set->count; i++) {
        const Query *other = findQuery(q, set->spec[i].name);
        Query *place;

        if (other && strcmp(other->file, file) != 0) {
            snprintf(text, size, "refused: query %s is in %s, too. Give it another name", set->spec[i].name,
                     other->file);
            return -1;
        }
        place = addQuery(q, file, set->spec[i].name);
        if (!place) {
            snprintf(text, size, "refused: there are %d names of queries already, with the names in records. Load "
                     "fewer queries", EBPFMON_QUERIES_MAX);
            return -1;
        }
        place->isReserved = 1;
    }
    return 0;
}

static void setQueries(ebpfMonQueries *q, const ebpfMonQuerySet *set, const char *file)
{
    for (unsigned i = 0; i < q->count; i++)
        if (strcmp(q->query[i]->file, file) == 0)
            q->query[i]->isRemoved = 1;
    for (unsigned i = 0; i < set->count; i++) {
        Query *query = addQuery(q, file, set->spec[i].name);
        int isKnown = query->isWanted;

        query->isRemoved = 0;
        query->isRenewed = 1;
        query->isWanted = isKnown || set->spec[i].start;
        query->spec = set->spec[i];
        snprintf(query->file, sizeof(query->file), "%s", file);
        describeResult(q, query->result, &query->spec);
        setState(q, query, query->isWanted ? ebpfMonQueryStarting : ebpfMonQueryOff,
                 query->isWanted ? "starts with the monitor" : "loaded, not started");
    }
    for (unsigned i = 0; i < q->count; i++)
        if (q->query[i]->isRemoved) {
            q->query[i]->isWanted = 0;
            setState(q, q->query[i], ebpfMonQueryAbsent, "its file does not have it any more");
        }
}

/* --- Any thread, without a lock --- */

int ebpfMonQueriesLoad(ebpfMonQueries *q, const char *file, char *text, size_t size)
{
    char path[PATH_MAX];
    ebpfMonQuerySet *set = ebpfMonQueryFileRead(file, path, text, size);
    int status = -1;

    if (!set)
        return -1;
    epicsMutexMustLock(q->lock);
    if (reservePlaces(q, set, path, text, size) == 0) {
        setQueries(q, set, path);
        snprintf(text, size, "%u queries of %s are loaded", set->count, file);
        wakeThread(q);
        status = 0;
    }
    freeReserved(q);
    epicsMutexUnlock(q->lock);
    free(set);
    return status;
}

int ebpfMonQueriesRun(ebpfMonQueries *q, const char *name, int on)
{
    Query *query;

    epicsMutexMustLock(q->lock);
    query = findQuery(q, name);
    if (query && query->isWanted != on) {
        query->isWanted = on;
        setState(q, query, on ? ebpfMonQueryStarting : ebpfMonQueryOff, on ? "starts with the monitor" : "stopped");
        wakeThread(q);
    }
    epicsMutexUnlock(q->lock);
    return query ? 0 : -1;
}

int ebpfMonQueriesBegin(void *queries, const ebpfMonModuleCore *core)
{
    ebpfMonQueries *q = queries;

    epicsMutexMustLock(q->lock);
    q->targets = core->targets;
    q->costs = core->costs;
    q->canRun = 1;
    wakeThread(q);
    epicsMutexUnlock(q->lock);
    return 0;
}

int ebpfMonQueriesStop(void *queries, double seconds)
{
    ebpfMonQueries *q = queries;

    epicsMutexMustLock(q->lock);
    q->canRun = 0;
    epicsMutexUnlock(q->lock);
    return ebpfMonWorkerStop(&q->worker, seconds);
}

void ebpfMonQueriesAddList(ebpfMonQueries *q, ebpfMonTextReport *report)
{
    epicsMutexMustLock(q->lock);
    beginPrint(report);
    for (unsigned i = 0; i < q->count; i++)
        if (!q->query[i]->isRemoved)
            printLine(report, q->results, q->query[i]->result, q->query[i]->file);
    epicsMutexUnlock(q->lock);
}

/* The number of the result of a query; -1: there is none of that name. */
static int findResult(ebpfMonQueries *q, const char *name)
{
    const Query *query;
    int number = -1;

    epicsMutexMustLock(q->lock);
    query = findQuery(q, name);
    if (query)
        number = query->result;
    epicsMutexUnlock(q->lock);
    return number;
}

int ebpfMonQueriesAddResult(ebpfMonQueries *q, ebpfMonTextReport *report, const char *name)
{
    int number = findResult(q, name);

    if (number >= 0)
        printResult(report, q->results, number);
    return number < 0 ? -1 : 0;
}

int ebpfMonQueriesAddStacks(ebpfMonQueries *q, ebpfMonTextReport *report, const char *name)
{
    int number = findResult(q, name);

    if (number >= 0)
        printStacks(report, q->results, number);
    return number < 0 ? -1 : 0;
}
