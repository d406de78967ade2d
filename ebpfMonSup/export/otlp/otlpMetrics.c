/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>

#include "export/otlp/otlpField.h"
#include "export/otlp/otlpItems.h"
#include "export/otlp/otlpMetrics.h"
#include "export/otlp/otlpQueries.h"

/* Published values have the units that people read; metrics have base units (semantic conventions, "Instrument
 * units"). */
#define SECONDS(us)       ((us) / 1e6)
#define FRACTION(percent) ((percent) / 100)
#define BYTES(mb)         ((mb) * 1e6)

static void addPointAttribute(ebpfMonOtlpItems *m, const char *key, const char *value)
{
    ebpfMonJsonOpenList(m->j, "attributes");
    ebpfMonOtlpAddTextAttribute(m->j, key, value);
    ebpfMonJsonCloseList(m->j);
}

static void addPointAttributes(ebpfMonOtlpItems *m, const char *key, const char *value, const char *key2,
                               const char *value2)
{
    ebpfMonJsonOpenList(m->j, "attributes");
    ebpfMonOtlpAddTextAttribute(m->j, key, value);
    ebpfMonOtlpAddTextAttribute(m->j, key2, value2);
    ebpfMonJsonCloseList(m->j);
}

static void addGauge(ebpfMonOtlpItems *m, const char *name, const char *unit, const char *description, double value)
{
    if (ebpfMonOtlpItemBegin(m, name, unit, description))
        return;
    ebpfMonOtlpItemOpenGauge(m);
    ebpfMonOtlpItemOpenPoint(m, 0);
    ebpfMonOtlpAddDouble(m->j, "asDouble", NULL, value);
    ebpfMonJsonCloseObject(m->j);
    ebpfMonOtlpItemClose(m);
}

static uint64_t getSince(ebpfMonOtlpSince *s, const ebpfMonOtlpNumbers *n, uint64_t before, uint64_t value)
{
    if (!s->since)
        s->since = n->now;
    else if (value < s->last)
        s->since = before;
    s->last = value;
    return s->since;
}

static void addSum(ebpfMonOtlpItems *m, const char *name, const char *unit, const char *description, uint64_t value,
                ebpfMonOtlpSince *s, uint64_t before)
{
    uint64_t from = getSince(s, m->n, before, value);

    if (ebpfMonOtlpItemBegin(m, name, unit, description))
        return;
    ebpfMonOtlpItemOpenSum(m, 1);
    ebpfMonOtlpItemOpenPoint(m, from);
    ebpfMonOtlpItemAddCount(m, "asInt", value);
    ebpfMonJsonCloseObject(m->j);
    ebpfMonOtlpItemClose(m);
}

/* Adds the point of one IOC. */
static void addIocPoint(ebpfMonOtlpItems *m, const char *metric, const char *ioc, uint64_t value)
{
    ebpfMonOtlpItemOpenPoint(m, ebpfMonOtlpItemGetSince(m, metric, ioc, "", value));
    addPointAttribute(m, "epics.ioc", ioc);
    ebpfMonOtlpItemAddCount(m, "asInt", value);
    ebpfMonJsonCloseObject(m->j);
}

static void addPutCounts(ebpfMonOtlpItems *m)
{
    const ebpfMonOtlpNumbers *n = m->n;

    if (n->putIocs && !ebpfMonOtlpItemBegin(m, "epics.puts", "{put}", "Puts that passed the filter")) {
        ebpfMonOtlpItemOpenSum(m, 1);
        for (unsigned i = 0; i < n->putIocs; i++)
            addIocPoint(m, "puts", n->putIoc[i].name, n->putIoc[i].puts);
        ebpfMonOtlpItemClose(m);
    }
    if (n->putIocs && !ebpfMonOtlpItemBegin(m, "epics.puts_denied", "{put}", "Puts that were denied")) {
        ebpfMonOtlpItemOpenSum(m, 1);
        for (unsigned i = 0; i < n->putIocs; i++)
            addIocPoint(m, "denied", n->putIoc[i].name, n->putIoc[i].denied);
        ebpfMonOtlpItemClose(m);
    }
    if (n->iocs && !ebpfMonOtlpItemBegin(m, "epics.processings", "{processing}", "Record processings")) {
        ebpfMonOtlpItemOpenSum(m, 1);
        for (unsigned i = 0; i < n->iocs; i++)
            addIocPoint(m, "processings", n->ioc[i].name, n->ioc[i].processings);
        ebpfMonOtlpItemClose(m);
    }
}

static void addReasonPoint(ebpfMonOtlpItems *m, uint64_t from, const char *reason, uint64_t count)
{
    ebpfMonOtlpItemOpenPoint(m, from);
    addPointAttribute(m, "ebpfmon.reason", reason);
    ebpfMonOtlpItemAddCount(m, "asInt", count);
    ebpfMonJsonCloseObject(m->j);
}

static void addLosses(ebpfMonOtlpItems *m, ebpfMonOtlpSinces *starts)
{
    const ebpfMonOtlpNumbers *n = m->n;
    uint64_t total = 0, from;

    for (unsigned i = 0; i < n->losses; i++)
        total += n->lost[i].count;
    from = getSince(&starts->lost, n, starts->before, total);
    if (n->losses && !ebpfMonOtlpItemBegin(m, "ebpfmon.lost", "{event}", "Events that the monitor lost")) {
        ebpfMonOtlpItemOpenSum(m, 1);
        for (unsigned i = 0; i < n->losses; i++)
            addReasonPoint(m, from, n->lost[i].reason, n->lost[i].count);
        ebpfMonOtlpItemClose(m);
    }
    total = 0;
    for (unsigned i = 0; i < n->drops; i++)
        total += n->drop[i].count;
    from = getSince(&starts->drop, n, starts->before, total);
    if (ebpfMonOtlpItemBegin(m, "ebpfmon.otlp.lost", "{item}", "Log records and spans that could not be sent"))
        return;
    ebpfMonOtlpItemOpenSum(m, 1);
    for (unsigned i = 0; i < n->drops; i++)
        addReasonPoint(m, from, n->drop[i].reason, n->drop[i].count);
    ebpfMonOtlpItemClose(m);
}

static void addIocs(ebpfMonOtlpItems *m)
{
    const ebpfMonOtlpNumbers *n = m->n;

    if (!n->iocs)
        return;
    if (!ebpfMonOtlpItemBegin(m, "epics.records", "{record}", "Records of an IOC")) {
        ebpfMonOtlpItemOpenGauge(m);
        for (unsigned i = 0; i < n->iocs; i++) {
            ebpfMonOtlpItemOpenPoint(m, 0);
            addPointAttribute(m, "epics.ioc", n->ioc[i].name);
            ebpfMonOtlpItemAddCount(m, "asInt", n->ioc[i].records);
            ebpfMonJsonCloseObject(m->j);
        }
        ebpfMonOtlpItemClose(m);
    }
    if (!ebpfMonOtlpItemBegin(m, "epics.cost", "1", "CPU that watching takes from an IOC, of one core")) {
        ebpfMonOtlpItemOpenGauge(m);
        for (unsigned i = 0; i < n->iocs; i++) {
            ebpfMonOtlpItemOpenPoint(m, 0);
            addPointAttribute(m, "epics.ioc", n->ioc[i].name);
            ebpfMonOtlpAddDouble(m->j, "asDouble", NULL, FRACTION(n->ioc[i].cost));
            ebpfMonJsonCloseObject(m->j);
        }
        ebpfMonOtlpItemClose(m);
    }
}

static void addProcesses(ebpfMonOtlpItems *m, const char *name, const char *unit, const char *description,
                         double (*get)(const ebpfMonOtlpProcess *p))
{
    const ebpfMonOtlpNumbers *n = m->n;

    if (!n->processes || ebpfMonOtlpItemBegin(m, name, unit, description))
        return;
    ebpfMonOtlpItemOpenGauge(m);
    for (unsigned i = 0; i < n->processes; i++) {
        double value = get(&n->process[i]);

        if (isnan(value)) /* not measured yet */
            continue;
        ebpfMonOtlpItemOpenPoint(m, 0);
        addPointAttribute(m, "epics.ioc", n->process[i].name);
        ebpfMonOtlpAddDouble(m->j, "asDouble", NULL, value);
        ebpfMonJsonCloseObject(m->j);
    }
    ebpfMonOtlpItemClose(m);
}

static double getCpu(const ebpfMonOtlpProcess *p)
{
    return FRACTION(p->cpu);
}

static double getMemory(const ebpfMonOtlpProcess *p)
{
    return BYTES(p->mem);
}

/* Adds the numbers of the whole host on which somebody may have to act: alert rules need no more. */
static void addHealth(ebpfMonOtlpItems *m)
{
    const ebpfMonOtlpNumbers *n = m->n;
    ebpfMonOtlpSinces *s = m->starts;

    addSum(m, "epics.puts_unexpected", "{put}", "Puts that the rules do not expect", n->unexpected, &s->unexpected,
           s->before);
    addGauge(m, "epics.iocs_gone", "{ioc}", "IOCs that ended and did not come back", n->gone);
    addGauge(m, "epics.threads_hanging", "{thread}", "Threads of IOCs that hang", n->hangs);
    addSum(m, "epics.scans_late", "{scan}", "Periods of scan threads that were too long", n->lateScans, &s->lateScans,
           s->before);
    addSum(m, "epics.ioc_restarts", "{restart}", "IOCs that ended and came back", n->restarts, &s->restarts, s->before);
    addProcesses(m, "epics.ioc.cpu", "1", "CPU of an IOC, of one core", getCpu);
    addProcesses(m, "epics.ioc.memory", "By", "Resident memory of an IOC", getMemory);
    addGauge(m, "ebpfmon.state", "{state}", "0 starting, 1 running, 2 degraded, 3 failed", n->state);
}

/* The time is a number, and the list is there even if it is empty: otherwise receivers in Rust drop the whole histogram
 * (see ebpfMonOtlpItemAddCount). */
static void addExemplar(ebpfMonOtlpItems *m, const char *ioc, const char *root)
{
    const ebpfMonExemplar *e = ebpfMonExemplarFind(m->exemplars, ioc, root, m->n->counted);

    if (!e)
        return;
    ebpfMonJsonOpenList(m->j, "exemplars");
    ebpfMonJsonOpenObject(m->j, NULL);
    ebpfMonOtlpItemAddCount(m, "timeUnixNano", e->time);
    ebpfMonJsonOpenList(m->j, "filteredAttributes");
    ebpfMonJsonCloseList(m->j);
    ebpfMonOtlpAddDouble(m->j, "asDouble", NULL, SECONDS(e->value));
    ebpfMonOtlpAddId(m->j, "traceId", e->trace, sizeof(e->trace));
    ebpfMonOtlpAddId(m->j, "spanId", e->id, sizeof(e->id));
    ebpfMonJsonCloseObject(m->j);
    ebpfMonJsonCloseList(m->j);
}

static uint64_t getCount(double value)
{
    return value > 0 ? (uint64_t)value : 0;
}

/* Published buckets have lower edges. A bucket of OTLP ends with the bound of the same index, and the last one has no
 * bound. */
static void addHistogram(ebpfMonOtlpItems *m, const double *hist)
{
    uint64_t total = 0;

    for (unsigned i = 0; i < EBPFMON_HIST_MAX; i++)
        total += getCount(hist[i]);
    ebpfMonOtlpItemAddCount(m, "count", total);
    ebpfMonJsonOpenList(m->j, "bucketCounts");
    for (unsigned i = 0; i < EBPFMON_HIST_MAX; i++)
        ebpfMonJsonWriteInteger(m->j, (long long)getCount(hist[i]));
    ebpfMonJsonCloseList(m->j);
    ebpfMonJsonOpenList(m->j, "explicitBounds");
    for (unsigned i = 1; i < EBPFMON_HIST_MAX; i++)
        ebpfMonJsonWriteNumber(m->j, NULL, SECONDS(m->n->edge[i]));
    ebpfMonJsonCloseList(m->j);
}

static int openHistograms(ebpfMonOtlpItems *m, const char *name, const char *description)
{
    /* without an edge no histogram was made yet */
    if (!(m->n->edge[EBPFMON_HIST_MAX - 1] > 0) || ebpfMonOtlpItemBegin(m, name, "s", description))
        return -1;
    ebpfMonOtlpItemOpenHistogram(m);
    return 0;
}

static void addLatency(ebpfMonOtlpItems *m)
{
    const ebpfMonOtlpNumbers *n = m->n;
    ebpfMonOtlpSinces *starts = m->starts;
    int fewer = strcmp(starts->root, n->root) != 0;

    for (unsigned i = 0; i < EBPFMON_HIST_MAX; i++) {
        fewer |= getCount(n->hist[i]) < starts->bucket[i];
        starts->bucket[i] = getCount(n->hist[i]);
    }
    if (!starts->hist.since)
        starts->hist.since = n->now;
    else if (fewer)
        starts->hist.since = starts->before;
    strcpy(starts->root, n->root);
    if (openHistograms(m, "epics.chain.latency", "Latency of processing chains, from when they had the lock"))
        return;
    ebpfMonOtlpItemOpenPoint(m, starts->hist.since);
    if (n->root[0])
        addPointAttribute(m, "epics.record.name", n->root);
    addHistogram(m, n->hist);
    addExemplar(m, "", n->root);
    ebpfMonJsonCloseObject(m->j);
    ebpfMonOtlpItemClose(m);
}

static void addRoots(ebpfMonOtlpItems *m)
{
    const ebpfMonOtlpNumbers *n = m->n;

    if (!n->roots || openHistograms(m, "epics.root.latency", "The same of each of the slowest root records"))
        return;
    for (unsigned i = 0; i < n->roots; i++) {
        const ebpfMonChainRow *c = &n->chain[i];

        ebpfMonOtlpItemOpenPoint(m, ebpfMonOtlpItemGetSince(m, "root", c->ioc, c->root, c->count));
        addPointAttributes(m, "epics.ioc", c->ioc, "epics.record.name", c->root);
        addHistogram(m, c->hist);
        ebpfMonOtlpAddDouble(m->j, "sum", NULL, SECONDS(c->mean * (double)c->count));
        ebpfMonOtlpAddDouble(m->j, "max", NULL, SECONDS(c->max));
        addExemplar(m, c->ioc, c->root);
        ebpfMonJsonCloseObject(m->j);
    }
    ebpfMonOtlpItemClose(m);
}

size_t ebpfMonOtlpWriteMetrics(ebpfMonJson *json, const ebpfMonOtlpNumbers *n, const ebpfMonExemplars *exemplars,
                               ebpfMonOtlpSinces *starts, char *buf, size_t size, unsigned *points)
{
    ebpfMonOtlpItems m = {.j = json, .n = n, .exemplars = exemplars, .starts = starts, .buf = buf, .size = size};

    if (!starts->first)
        starts->first = starts->before = n->now;
    addPutCounts(&m);
    addLatency(&m);
    addRoots(&m);
    addIocs(&m);
    addHealth(&m);
    ebpfMonOtlpQueriesWrite(&m);
    addGauge(&m, "ebpfmon.cost", "1", "CPU that watching takes from all IOCs, of one core", FRACTION(n->cost));
    addGauge(&m, "ebpfmon.cpu", "1", "The monitor's own CPU, of one core", FRACTION(n->cpu));
    addGauge(&m, "ebpfmon.mem", "By", "The monitor's own memory, with its maps", BYTES(n->mem));
    addSum(&m, "ebpfmon.otlp.sent", "{item}", "What was accepted", n->sent, &starts->sent, starts->before);
    addLosses(&m, starts);
    starts->before = n->now;
    *points = m.points;
    return m.cut ? 0 : m.len;
}
