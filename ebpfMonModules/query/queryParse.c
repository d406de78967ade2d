/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <epicsString.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/jsonPlace.h"
#include "common/files.h"
#include "query/queryPrograms.h"
#include "query/querySpec.h"
#include "query/queryParser.h"

/* --- the specification --- */

/* Reads a query, and the file of queries. documentation/use/queries.schema.json describes the format. */

#define KEYS_MOST    16384
#define SAMPLE_MOST  1000000
#define CPU_EVENTS_LEAST 10000 /* the least "sample" for events that a CPU counts */
#define KEYS_DEFAULT 1024 /* fewer on a host with many CPUs, because each CPU has its own cells */
#define BYTES_MOST   ((size_t)32 << 20) /* the size of all tables of one query */
#define HISTORY_DEFAULT 10.0 /* s */
#define SETTLE_DEFAULT  2.0  /* s */
#define QUERY_KEYS   "name, title, source, of, keys, where, value, unit, scale, histogram, sort, top, interval, " \
                     "stopAfter, sample, maxKeys, budget, start, events, stacks, metrics, history, perPut, settle"

static int readName(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *v)
{
    const ebpfMonQueryJsonValue *name = ebpfMonQueryJsonFind(v, "name");
    char *text = p->spec->name;

    if (!name)
        return ebpfMonQueryRefuse(p, v->at, "this query has no \"name\". Give it one: the names of its PVs begin with "
                                  "it");
    if (ebpfMonQueryReadText(p, v, "name", text, EBPFMON_QUERY_NAME_SIZE))
        return -1;
    for (; *text; text++)
        if (!isalnum((unsigned char)*text) && *text != '_')
            return ebpfMonQueryRefuse(p, name->at, "\"name\" may have letters, digits and _ only, because it is part "
                                      "of the names of PVs");
    return 0;
}

static int readOf(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *of)
{
    const ebpfMonQueryJsonValue *thread = ebpfMonQueryJsonFind(of, "thread"), *host = ebpfMonQueryJsonFind(of, "host");
    const ebpfMonQueryOrder *order = &p->spec->order;
    int wide = 0;

    if (ebpfMonQueryCheckKeys(p, of, "\"of\"", "ioc, thread, record, host") ||
        ebpfMonQueryReadText(p, of, "ioc", p->spec->ioc, sizeof(p->spec->ioc)) ||
        ebpfMonQueryReadText(p, of, "record", p->spec->record, sizeof(p->spec->record)) ||
        ebpfMonQueryReadBool(p, of, "host", &wide) || (thread && ebpfMonQueryReadThread(p, thread)))
        return -1;
    if (wide && order->source <= ebpfMonQueryUsdt)
        return ebpfMonQueryRefuse(p, host->at, "functions and USDT probes are probed in IOCs only: leave \"host\" out");
    if (wide && ebpfMonQueryJsonFind(of, "ioc"))
        return ebpfMonQueryRefuse(p, host->at, "\"host\" means all processes: leave \"ioc\" out");
    p->spec->order.plan.hostWide = (uint32_t)wide; /* only IOCs have records */
    p->spec->order.plan.withIdle = wide && order->source == ebpfMonQueryTracepoint;
    return 0;
}

static int readKeys(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *keys)
{
    struct ebpfMonQueryPlan *plan = &p->spec->order.plan;
    unsigned at = 0;

    if (keys->kind != ebpfMonQueryJsonList || keys->count > EBPFMON_QUERY_KEYS)
        return ebpfMonQueryRefuse(p, keys->at, "\"keys\" is a list of at most %d fields", EBPFMON_QUERY_KEYS);
    for (const ebpfMonQueryJsonValue *v = keys->first; v; v = v->next) {
        struct ebpfMonQueryField *f = &plan->key[plan->keys];

        if (ebpfMonQueryReadField(p, v, f, p->spec->keyName[plan->keys], EBPFMON_QUERY_CELL_SIZE))
            return -1;
        f->at = (uint8_t)at;
        at += f->size;
        plan->keys++;
    }
    return 0;
}

static int readLinear(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *v)
{
    struct ebpfMonQueryPlan *plan = &p->spec->order.plan;
    double from = 0, to = 0, scale = p->spec->scale;
    int64_t steps = 20;

    if (ebpfMonQueryCheckKeys(p, v, "a linear histogram", "from, to, steps") ||
        ebpfMonQueryReadNumber(p, v, "from", -1e15 * scale, 1e15 * scale, &from) ||
        ebpfMonQueryReadNumber(p, v, "to", -1e15 * scale, 1e15 * scale, &to) ||
        ebpfMonQueryReadWhole(p, v, "steps", 1, EBPFMON_QUERY_BARS_MAX - 2, &steps))
        return -1;
    plan->hist = EBPFMON_QUERY_LINEAR;
    plan->from = (int64_t)floor(from / scale);
    plan->step = (int64_t)floor((to - from) / scale / (double)steps);
    plan->steps = (uint32_t)steps;
    return plan->step >= 1 ? 0 :
        ebpfMonQueryRefuse(p, v->at, "a step of this histogram is smaller than one count (1 ns of a duration). Set a "
                           "larger \"to\", or fewer \"steps\"");
}

static int readHistogram(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *v)
{
    if (!ebpfMonQueryHasValue(p->spec))
        return ebpfMonQueryRefuse(p, v->at, "a histogram needs a \"value\", and this query has none. Give it one");
    if (v->kind == ebpfMonQueryJsonText && strcmp(v->text, "log2") == 0) {
        p->spec->order.plan.hist = EBPFMON_QUERY_LOG2;
        return 0;
    }
    if (v->kind == ebpfMonQueryJsonMap)
        return readLinear(p, v);
    return ebpfMonQueryRefuse(p, v->at, "\"histogram\" is \"log2\" or {\"from\": A, \"to\": B, \"steps\": N}");
}

/* Reads what the query counts of each put, after its keys and its value. "value": as it was given, or NULL. */
static int readPerPut(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *v, const ebpfMonQueryJsonValue *value)
{
    static const char *const kinds[] = {"count", "sum", NULL};
    const ebpfMonQueryJsonValue *per = ebpfMonQueryJsonFind(v, "perPut"), *settle = ebpfMonQueryJsonFind(v, "settle");
    struct ebpfMonQueryPlan *plan = &p->spec->order.plan;
    int kind;

    p->spec->settle = SETTLE_DEFAULT;
    if (!per)
        return settle ? ebpfMonQueryRefuse(p, settle->at,
                                           "\"settle\" is for distributions over puts: set \"perPut\", or leave "
                                           "it out") :
                        0;
    if (ebpfMonQueryReadWord(p, per, "\"perPut\"", kinds, &kind) ||
        ebpfMonQueryReadNumber(p, v, "settle", 0.5, 3600, &p->spec->settle))
        return -1;
    p->spec->perPut = kind ? ebpfMonQueryPutSum : ebpfMonQueryPutCount;
    if (plan->hostWide)
        return ebpfMonQueryRefuse(p, per->at, "puts are known in IOCs only: leave \"host\" or \"perPut\" out");
    if (plan->keys == EBPFMON_QUERY_KEYS)
        return ebpfMonQueryRefuse(p, per->at,
                                  "with \"perPut\" a query has three keys at most, because the put is one, too");
    if (ebpfMonQueryHasSite(plan))
        return ebpfMonQueryRefuse(p, per->at, "the key \"site\" and \"perPut\" do not go together");
    if (kind && plan->value.what == EBPFMON_QUERY_NOTHING)
        return ebpfMonQueryRefuse(p, per->at,
                                  "\"sum\" is that of a \"value\", and this query has none. Give it one, or use "
                                  "\"count\"");
    if (!kind && value)
        return ebpfMonQueryRefuse(p, value->at,
                                  "with \"perPut\": \"count\" the value is the number of events in a put: leave "
                                  "\"value\" out, or use \"sum\"");
    if (!kind)
        memset(&plan->value, 0, sizeof(plan->value));
    plan->perPut = 1;
    return 0;
}

/* Reads the value, its unit, its scale and its histogram. */
static int readMeasure(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *v)
{
    ebpfMonQuerySpec *spec = p->spec;
    struct ebpfMonQueryField *value = &spec->order.plan.value;
    const ebpfMonQueryJsonValue *given = ebpfMonQueryJsonFind(v, "value"), *hist = ebpfMonQueryJsonFind(v, "histogram");
    ebpfMonQuerySource source = spec->order.source;

    if (given && ebpfMonQueryReadField(p, given, value, NULL, 0))
        return -1;
    if (!given && (source == ebpfMonQueryCall || source == ebpfMonQuerySyscallCall || source == ebpfMonQueryCpuWait))
        *value = (struct ebpfMonQueryField){ .what = EBPFMON_QUERY_DURATION, .type = EBPFMON_QUERY_U64, .size = 8 };
    if (given && (ebpfMonQueryIsText(value) || ebpfMonQueryIsRecord(value) || value->what == EBPFMON_QUERY_IOC ||
                  value->what == EBPFMON_QUERY_SYSCALL || value->what == EBPFMON_QUERY_PUT ||
                  value->what == EBPFMON_QUERY_FUNCTION || value->what == EBPFMON_QUERY_SITE ||
                  ebpfMonQueryIsWho(value) || ebpfMonQueryIsFile(value) || ebpfMonQueryIsLock(value)))
        return ebpfMonQueryRefuse(p, given->at, "a value is a number: \"duration\", \"return\" or an argument");
    if (readPerPut(p, v, given))
        return -1;
    value->form = ebpfMonQueryIsDouble(value) ? EBPFMON_QUERY_FIXED : EBPFMON_QUERY_BITS;
    spec->scale = value->what == EBPFMON_QUERY_DURATION ? 1e-3 : 1;
    strcpy(spec->unit, value->what == EBPFMON_QUERY_DURATION ? "us" : "");
    if (ebpfMonQueryReadNumber(p, v, "scale", 1e-12, 1e12, &spec->scale) ||
        ebpfMonQueryReadText(p, v, "unit", spec->unit, sizeof(spec->unit)))
        return -1;
    if (value->form == EBPFMON_QUERY_FIXED)
        spec->scale = ldexp(spec->scale, -EBPFMON_QUERY_POINT);
    return hist ? readHistogram(p, hist) : 0;
}

static int readStop(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *v)
{
    return ebpfMonQueryCheckKeys(p, v, "\"stopAfter\"", "seconds, count") ||
           ebpfMonQueryReadNumber(p, v, "seconds", 0.1, 1e9, &p->spec->stopSeconds) ||
           ebpfMonQueryReadNumber(p, v, "count", 1, 1e15, &p->spec->stopCount) ? -1 : 0;
}

/* Reads the time of a column in the history of the histogram, after the interval. */
static int readHistory(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *v)
{
    const ebpfMonQueryJsonValue *history = ebpfMonQueryJsonFind(v, "history");
    ebpfMonQuerySpec *spec = p->spec;

    spec->history = fmax(HISTORY_DEFAULT, spec->interval);
    if (ebpfMonQueryReadNumber(p, v, "history", 0.5, 86400, &spec->history))
        return -1;
    if (history && spec->order.plan.hist == EBPFMON_QUERY_NO_HIST)
        return ebpfMonQueryRefuse(p, history->at,
                                  "\"history\" is that of the histogram, and this query has none. Give it "
                                  "a \"histogram\"");
    if (spec->history < spec->interval)
        return ebpfMonQueryRefuse(p, history->at, "\"history\" is the time of a column, and cannot be shorter than "
                                  "\"interval\", which is %g s", spec->interval);
    return 0;
}

static int readLimits(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *v)
{
    static const char *const sorts[] = {"count", "rate", "sum", "mean", "max", "last", NULL};
    const ebpfMonQueryJsonValue *sort = ebpfMonQueryJsonFind(v, "sort"), *stop = ebpfMonQueryJsonFind(v, "stopAfter");
    ebpfMonQuerySpec *spec = p->spec;
    int64_t top = 20, metrics = 0, sample = 1, maxKeys = KEYS_DEFAULT;
    int by = ebpfMonQuerySortCount;

    spec->interval = 1;
    spec->budget = 5;
    if ((sort && ebpfMonQueryReadWord(p, sort, "\"sort\"", sorts, &by)) || (stop && readStop(p, stop)) ||
        ebpfMonQueryReadWhole(p, v, "top", 1, EBPFMON_QUERY_ROWS_MAX, &top) ||
        ebpfMonQueryReadWhole(p, v, "metrics", 0, EBPFMON_QUERY_METRICS_MAX, &metrics) ||
        ebpfMonQueryReadNumber(p, v, "interval", 0.5, 3600, &spec->interval) || readHistory(p, v) ||
        ebpfMonQueryReadWhole(p, v, "sample", 1, SAMPLE_MOST, &sample) ||
        ebpfMonQueryReadWhole(p, v, "maxKeys", 1, KEYS_MOST, &maxKeys) ||
        ebpfMonQueryReadNumber(p, v, "budget", 0.01, 100, &spec->budget) ||
        ebpfMonQueryReadBool(p, v, "start", &spec->start) || ebpfMonQueryReadBool(p, v, "events", &spec->showEvents) ||
        ebpfMonQueryReadBool(p, v, "stacks", &spec->showStacks))
        return -1;
    spec->showStacks |= ebpfMonQueryHasSite(&spec->order.plan);
    if (spec->perPut && (spec->showStacks || spec->showEvents || sample > 1))
        return ebpfMonQueryRefuse(p, ebpfMonQueryJsonFind(v, "perPut")->at,
                                  "\"perPut\" adds up whole puts: leave \"events\", "
                                  "\"stacks\" and \"sample\" out");
    if (spec->showStacks && spec->order.source == ebpfMonQueryCpuWait)
        return ebpfMonQueryRefuse(p, ebpfMonQueryJsonFind(v, "stacks")->at, "the stack of a thread that waits for a "
                                  "CPU cannot be read. Use the source {\"tracepoint\": \"sched_switch\"}");
    spec->order.plan.sends = spec->showStacks ? EBPFMON_QUERY_SENDS_STACKS
                           : spec->showEvents ? EBPFMON_QUERY_SENDS_EVENTS : EBPFMON_QUERY_SENDS_NOTHING;
    if (spec->order.source == ebpfMonQueryEvent && ebpfMonPerfEventIsOfCpu(spec->order.event) &&
        sample < CPU_EVENTS_LEAST)
        return ebpfMonQueryRefuse(p, v->at, "the CPU counts \"%s\" too often to look at each one: set \"sample\" to %d "
                                  "or more", spec->order.event->name, CPU_EVENTS_LEAST);
    if (by >= ebpfMonQuerySortSum && !ebpfMonQueryHasValue(spec))
        return ebpfMonQueryRefuse(p, sort->at, "this query has no \"value\": sort by \"count\" or \"rate\"");
    spec->sort = (ebpfMonQuerySort)by;
    if (metrics > top)
        return ebpfMonQueryRefuse(p, ebpfMonQueryJsonFind(v, "metrics")->at, "\"metrics\" cannot be larger than "
                                  "\"top\", which is %u", (unsigned)top);
    spec->top = (unsigned)top;
    spec->metrics = (unsigned)metrics;
    spec->order.plan.sample = (uint32_t)sample;
    spec->order.maxKeys = (unsigned)maxKeys;
    return 0;
}

static size_t countBytes(const ebpfMonQueryOrder *order)
{
    ebpfMonQuerySizes sizes;

    ebpfMonQuerySizesCount(order, &sizes);
    return sizes.bytes;
}

static int hasRecord(const struct ebpfMonQueryPlan *plan)
{
    for (unsigned i = 0; i < plan->keys; i++)
        if (ebpfMonQueryIsRecord(&plan->key[i]))
            return 1;
    return 0;
}

static int readQuery(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *v)
{
    const ebpfMonQueryJsonValue *source, *of, *keys, *where, *record;
    size_t bytes;

    if (ebpfMonQueryCheckKeys(p, v, "a query", QUERY_KEYS) || readName(p, v) ||
        ebpfMonQueryReadText(p, v, "title", p->spec->title, sizeof(p->spec->title)))
        return -1;
    source = ebpfMonQueryJsonFind(v, "source");
    of = ebpfMonQueryJsonFind(v, "of");
    keys = ebpfMonQueryJsonFind(v, "keys");
    where = ebpfMonQueryJsonFind(v, "where");
    if (!source)
        return ebpfMonQueryRefuse(p, v->at, "query %s has no \"source\". Say at what it looks", p->spec->name);
    strcpy(p->spec->ioc, "*");
    if (ebpfMonQueryReadSource(p, source))
        return -1;
    /* the programs of queries come before those that see the puts: dbPut() itself belongs to its put at its return
     * only */
    p->spec->order.plan.lateOrigin = p->spec->order.source == ebpfMonQueryCall &&
                                     epicsStrGlobMatch("dbPut", p->spec->function.symbol);
    if ((of && readOf(p, of)) || (keys && readKeys(p, keys)) ||
        (where && ebpfMonQueryReadWhere(p, where)) || readMeasure(p, v) || readLimits(p, v))
        return -1;
    ebpfMonQueryOrderTerms(&p->spec->order.plan);
    record = of ? ebpfMonQueryJsonFind(of, "record") : NULL;
    if (record && !hasRecord(&p->spec->order.plan))
        return ebpfMonQueryRefuse(p, record->at, "\"record\" chooses among keys: add \"root\", \"record\", or an "
                                  "argument \"as\" \"record\", to \"keys\"");
    while (!ebpfMonQueryJsonFind(v, "maxKeys") && p->spec->order.maxKeys > 1 &&
           countBytes(&p->spec->order) > BYTES_MOST)
        p->spec->order.maxKeys /= 2;
    bytes = countBytes(&p->spec->order);
    if (bytes > BYTES_MOST)
        return ebpfMonQueryRefuse(p, v->at, "the tables of query %s would take %u MiB on this host; 32 are allowed. "
                                  "Set a smaller \"maxKeys\" than %u, or leave \"histogram\" out", p->spec->name,
                                  (unsigned)(bytes >> 20), p->spec->order.maxKeys);
    return 0;
}

static int readQueries(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *list, ebpfMonQuerySet *set)
{
    for (const ebpfMonQueryJsonValue *v = list->first; v; v = v->next) {
        p->spec = &set->spec[set->count];
        if (readQuery(p, v))
            return -1;
        for (unsigned i = 0; i < set->count; i++)
            if (strcmp(set->spec[i].name, p->spec->name) == 0)
                return ebpfMonQueryRefuse(p, v->at, "there are two queries \"%s\". Give each its own name",
                                          p->spec->name);
        set->count++;
    }
    return 0;
}

static ebpfMonQuerySet *readFile(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *top)
{
    const ebpfMonQueryJsonValue *list = ebpfMonQueryJsonFind(top, "queries");
    ebpfMonQuerySet *set;

    if (ebpfMonQueryCheckKeys(p, top, "the file", "queries"))
        return NULL;
    if (!list || list->kind != ebpfMonQueryJsonList || !list->count || list->count > EBPFMON_QUERIES_MAX) {
        ebpfMonQueryRefuse(p, list ? list->at : top->at, "\"queries\" is a list of 1 to %d queries",
                           EBPFMON_QUERIES_MAX);
        return NULL;
    }
    set = calloc(1, sizeof(*set) + list->count * sizeof(set->spec[0]));
    if (!set) {
        ebpfMonQueryRefuse(p, top->at, "out of memory");
        return NULL;
    }
    if (readQueries(p, list, set) == 0)
        return set;
    free(set);
    return NULL;
}

ebpfMonQuerySet *ebpfMonQueryParse(const char *file, const char *text, size_t length, char *why, size_t size)
{
    ebpfMonQueryParser p = { .why = "" };
    ebpfMonQueryJson *json = ebpfMonQueryJsonRead(text, length, p.why, sizeof(p.why), &p.at);
    ebpfMonQuerySet *set = json ? readFile(&p, ebpfMonQueryJsonGetTop(json)) : NULL;

    if (!set)
        ebpfMonJsonFormatPlace(file, text, length, p.at, p.why, why, size);
    ebpfMonQueryJsonFree(json);
    return set;
}

/* --- a file --- */

#define FILE_MAX (1024u * 1024u)

ebpfMonQuerySet *ebpfMonQueryFileRead(const char *file, char *path, char *why, size_t size)
{
    ebpfMonQuerySet *set;
    size_t length;
    char *text;

    if (!file || !file[0]) {
        snprintf(why, size, "give the name of a file: ebpfMonQueryLoad \"FILE\"");
        return NULL;
    }
    text = ebpfMonWholeFileRead(file, FILE_MAX, &length, why, size);
    if (!text)
        return NULL;
    if (!realpath(file, path))
        snprintf(path, PATH_MAX, "%s", file);
    set = ebpfMonQueryParse(file, text, length, why, size);
    free(text);
    return set;
}
