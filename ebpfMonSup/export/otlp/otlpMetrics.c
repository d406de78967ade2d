/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "common/hash.h"
#include "export/otlp/otlpField.h"
#include "export/otlp/otlpMetrics.h"

#define CUMULATIVE 2 /* AggregationTemporality of metrics.proto */

/* What is published has the units that people read; metrics have base units (semantic conventions, "Instrument
 * units"). */
#define SECONDS(us)       ((us) / 1e6)
#define FRACTION(percent) ((percent) / 100)
#define BYTES(mb)         ((mb) * 1e6)

typedef struct {
    ebpfMonJson *j;
    const ebpfMonOtlpNumbers *n;
    const ebpfMonExemplars *exemplars;
    ebpfMonOtlpSinces *starts;
    char  *buf;
    size_t size, len;
    int    cut;
    unsigned points;
} items;

static int beginItem(items *m, const char *name, const char *unit, const char *description)
{
    size_t comma = m->len > 0;

    if (m->cut || m->len + comma >= m->size) {
        m->cut = 1;
        return -1;
    }
    if (ebpfMonJsonBegin(m->j, m->buf + m->len + comma, m->size - m->len - comma)) {
        m->cut = 1;
        return -1;
    }
    ebpfMonJsonAddText(m->j, "name", name);
    ebpfMonJsonAddText(m->j, "unit", unit);
    ebpfMonJsonAddText(m->j, "description", description);
    return 0;
}

static void endItem(items *m)
{
    size_t len = ebpfMonJsonEnd(m->j);

    if (!len) {
        m->cut = 1;
        return;
    }
    if (m->len)
        m->buf[m->len++] = ',';
    m->len += len;
}

static void openPoint(items *m, uint64_t since)
{
    ebpfMonJsonOpenObject(m->j, NULL);
    if (since)
        ebpfMonOtlpAddInteger64(m->j, "startTimeUnixNano", since);
    ebpfMonOtlpAddInteger64(m->j, "timeUnixNano", m->n->now);
    m->points++;
}

/* Counts as JSON numbers, which protobuf's JSON mapping accepts for 64 bits as well as strings: receivers in Rust
 * silently drop the point otherwise (open-telemetry/opentelemetry-rust issues 2487 and 3527). */
static void addCount(items *m, const char *key, uint64_t count)
{
    ebpfMonJsonAddInteger(m->j, key, (long long)count);
}

static void addAttribute(items *m, const char *key, const char *value)
{
    ebpfMonJsonOpenList(m->j, "attributes");
    ebpfMonOtlpAddTextAttribute(m->j, key, value);
    ebpfMonJsonCloseList(m->j);
}

static void addAttributes(items *m, const char *key, const char *value, const char *key2, const char *value2)
{
    ebpfMonJsonOpenList(m->j, "attributes");
    ebpfMonOtlpAddTextAttribute(m->j, key, value);
    ebpfMonOtlpAddTextAttribute(m->j, key2, value2);
    ebpfMonJsonCloseList(m->j);
}

static void openGauge(items *m)
{
    ebpfMonJsonOpenObject(m->j, "gauge");
    ebpfMonJsonOpenList(m->j, "dataPoints");
}

static void openSum(items *m)
{
    ebpfMonJsonOpenObject(m->j, "sum");
    ebpfMonJsonAddInteger(m->j, "aggregationTemporality", CUMULATIVE);
    ebpfMonJsonAddBool(m->j, "isMonotonic", 1);
    ebpfMonJsonOpenList(m->j, "dataPoints");
}

static void closeData(items *m)
{
    ebpfMonJsonCloseList(m->j);
    ebpfMonJsonCloseObject(m->j);
    endItem(m);
}

static void addGauge(items *m, const char *name, const char *unit, const char *description, double value)
{
    if (beginItem(m, name, unit, description))
        return;
    openGauge(m);
    openPoint(m, 0);
    ebpfMonOtlpAddDouble(m->j, "asDouble", NULL, value);
    ebpfMonJsonCloseObject(m->j);
    closeData(m);
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

static void addSum(items *m, const char *name, const char *unit, const char *description, uint64_t value,
                ebpfMonOtlpSince *s, uint64_t before)
{
    uint64_t from = getSince(s, m->n, before, value);

    if (beginItem(m, name, unit, description))
        return;
    openSum(m);
    openPoint(m, from);
    addCount(m, "asInt", value);
    ebpfMonJsonCloseObject(m->j);
    closeData(m);
}

/* A new series counts from the first numbers on: at that time its count was 0. */
static uint64_t getSeriesSince(items *m, const char *metric, const char *ioc, const char *record, uint64_t value)
{
    enum { PROBES = 16 };
    ebpfMonOtlpSinces *starts = m->starts;
    uint64_t hash = ebpfMonHashFnv64(EBPFMON_FNV64_BEGIN, metric, strlen(metric) + 1);
    ebpfMonOtlpSeries *s = NULL;

    hash = ebpfMonHashFnv64(hash, ioc, strlen(ioc) + 1);
    hash = ebpfMonHashFnv64(hash, record, strlen(record) + 1) | 1;
    for (unsigned i = 0; i < PROBES; i++) {
        ebpfMonOtlpSeries *at = &starts->series[(hash / 2 + i) % EBPFMON_OTLP_SERIES];

        if (at->hash == hash) {
            s = at;
            break;
        }
        /* a free place, else the one that was not used for longest */
        if (!s || (s->hash && (!at->hash || at->seen < s->seen)))
            s = at;
    }
    if (s->hash != hash)
        *s = (ebpfMonOtlpSeries){ .hash = hash, .since = starts->first };
    else if (value < s->last)
        s->since = starts->before;
    s->last = value;
    s->seen = m->n->now;
    return s->since;
}

/* By IOC. */
static void addIocPoint(items *m, const char *metric, const char *ioc, uint64_t value)
{
    openPoint(m, getSeriesSince(m, metric, ioc, "", value));
    addAttribute(m, "epics.ioc", ioc);
    addCount(m, "asInt", value);
    ebpfMonJsonCloseObject(m->j);
}

static void addPutCounts(items *m)
{
    const ebpfMonOtlpNumbers *n = m->n;

    if (n->putIocs && !beginItem(m, "epics.puts", "{put}", "Puts that passed the filter")) {
        openSum(m);
        for (unsigned i = 0; i < n->putIocs; i++)
            addIocPoint(m, "puts", n->putIoc[i].name, n->putIoc[i].puts);
        closeData(m);
    }
    if (n->putIocs && !beginItem(m, "epics.puts_denied", "{put}", "Puts that were denied")) {
        openSum(m);
        for (unsigned i = 0; i < n->putIocs; i++)
            addIocPoint(m, "denied", n->putIoc[i].name, n->putIoc[i].denied);
        closeData(m);
    }
    if (n->iocs && !beginItem(m, "epics.processings", "{processing}", "Record processings")) {
        openSum(m);
        for (unsigned i = 0; i < n->iocs; i++)
            addIocPoint(m, "processings", n->ioc[i].name, n->ioc[i].processings);
        closeData(m);
    }
}

static void addLosses(items *m, ebpfMonOtlpSinces *starts)
{
    const ebpfMonOtlpNumbers *n = m->n;
    uint64_t total = 0, from;

    for (unsigned i = 0; i < n->losses; i++)
        total += n->lost[i].count;
    from = getSince(&starts->lost, n, starts->before, total);
    if (n->losses && !beginItem(m, "ebpfmon.lost", "{event}", "Events that the monitor lost")) {
        openSum(m);
        for (unsigned i = 0; i < n->losses; i++) {
            openPoint(m, from);
            addAttribute(m, "ebpfmon.reason", n->lost[i].reason);
            addCount(m, "asInt", n->lost[i].count);
            ebpfMonJsonCloseObject(m->j);
        }
        closeData(m);
    }
    total = 0;
    for (unsigned i = 0; i < n->drops; i++)
        total += n->drop[i].count;
    from = getSince(&starts->drop, n, starts->before, total);
    if (beginItem(m, "ebpfmon.otlp.lost", "{item}", "Log records and spans that could not be sent"))
        return;
    openSum(m);
    for (unsigned i = 0; i < n->drops; i++) {
        openPoint(m, from);
        addAttribute(m, "ebpfmon.reason", n->drop[i].reason);
        addCount(m, "asInt", n->drop[i].count);
        ebpfMonJsonCloseObject(m->j);
    }
    closeData(m);
}

static void addIocs(items *m)
{
    const ebpfMonOtlpNumbers *n = m->n;

    if (!n->iocs)
        return;
    if (!beginItem(m, "epics.records", "{record}", "Records of an IOC")) {
        openGauge(m);
        for (unsigned i = 0; i < n->iocs; i++) {
            openPoint(m, 0);
            addAttribute(m, "epics.ioc", n->ioc[i].name);
            addCount(m, "asInt", n->ioc[i].records);
            ebpfMonJsonCloseObject(m->j);
        }
        closeData(m);
    }
    if (!beginItem(m, "epics.cost", "1", "CPU that watching takes from an IOC, of one core")) {
        openGauge(m);
        for (unsigned i = 0; i < n->iocs; i++) {
            openPoint(m, 0);
            addAttribute(m, "epics.ioc", n->ioc[i].name);
            ebpfMonOtlpAddDouble(m->j, "asDouble", NULL, FRACTION(n->ioc[i].cost));
            ebpfMonJsonCloseObject(m->j);
        }
        closeData(m);
    }
}

static void addProcesses(items *m, const char *name, const char *unit, const char *description,
                         double (*get)(const ebpfMonOtlpProcess *p))
{
    const ebpfMonOtlpNumbers *n = m->n;

    if (!n->processes || beginItem(m, name, unit, description))
        return;
    openGauge(m);
    for (unsigned i = 0; i < n->processes; i++) {
        openPoint(m, 0);
        addAttribute(m, "epics.ioc", n->process[i].name);
        ebpfMonOtlpAddDouble(m->j, "asDouble", NULL, get(&n->process[i]));
        ebpfMonJsonCloseObject(m->j);
    }
    closeData(m);
}

static double getCpu(const ebpfMonOtlpProcess *p)
{
    return FRACTION(p->cpu);
}

static double getMemory(const ebpfMonOtlpProcess *p)
{
    return BYTES(p->mem);
}

/* What somebody has to act on, of the whole host: alert rules need no more. */
static void addHealth(items *m)
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

/* The time as a number and an empty list: else receivers in Rust drop the whole histogram, as "number" says. */
static void addExemplar(items *m, const char *ioc, const char *root)
{
    const ebpfMonExemplar *e = ebpfMonExemplarFind(m->exemplars, ioc, root, m->n->counted);

    if (!e)
        return;
    ebpfMonJsonOpenList(m->j, "exemplars");
    ebpfMonJsonOpenObject(m->j, NULL);
    addCount(m, "timeUnixNano", e->time);
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

/* What is published has lower edges; a bucket of OTLP ends with the bound of its number, and the last one has none. */
static void addHistogram(items *m, const double *hist)
{
    uint64_t total = 0;

    for (unsigned i = 0; i < EBPFMON_HIST_MAX; i++)
        total += getCount(hist[i]);
    addCount(m, "count", total);
    ebpfMonJsonOpenList(m->j, "bucketCounts");
    for (unsigned i = 0; i < EBPFMON_HIST_MAX; i++)
        ebpfMonJsonWriteInteger(m->j, (long long)getCount(hist[i]));
    ebpfMonJsonCloseList(m->j);
    ebpfMonJsonOpenList(m->j, "explicitBounds");
    for (unsigned i = 1; i < EBPFMON_HIST_MAX; i++)
        ebpfMonJsonWriteNumber(m->j, NULL, SECONDS(m->n->edge[i]));
    ebpfMonJsonCloseList(m->j);
}

static int openHistograms(items *m, const char *name, const char *description)
{
    if (!(m->n->edge[EBPFMON_HIST_MAX - 1] > 0) || beginItem(m, name, "s", description)) /* nothing was ranked yet */
        return -1;
    ebpfMonJsonOpenObject(m->j, "histogram");
    ebpfMonJsonAddInteger(m->j, "aggregationTemporality", CUMULATIVE);
    ebpfMonJsonOpenList(m->j, "dataPoints");
    return 0;
}

static void addLatency(items *m)
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
    openPoint(m, starts->hist.since);
    if (n->root[0])
        addAttribute(m, "epics.record.name", n->root);
    addHistogram(m, n->hist);
    addExemplar(m, "", n->root);
    ebpfMonJsonCloseObject(m->j);
    closeData(m);
}

static void addRoots(items *m)
{
    const ebpfMonOtlpNumbers *n = m->n;

    if (!n->roots || openHistograms(m, "epics.root.latency", "The same of each of the slowest root records"))
        return;
    for (unsigned i = 0; i < n->roots; i++) {
        const ebpfMonChainRow *c = &n->chain[i];

        openPoint(m, getSeriesSince(m, "root", c->ioc, c->root, c->count));
        addAttributes(m, "epics.ioc", c->ioc, "epics.record.name", c->root);
        addHistogram(m, c->hist);
        ebpfMonOtlpAddDouble(m->j, "sum", NULL, SECONDS(c->mean * (double)c->count));
        ebpfMonOtlpAddDouble(m->j, "max", NULL, SECONDS(c->max));
        addExemplar(m, c->ioc, c->root);
        ebpfMonJsonCloseObject(m->j);
    }
    closeData(m);
}

size_t ebpfMonOtlpWriteMetrics(ebpfMonJson *json, const ebpfMonOtlpNumbers *n, const ebpfMonExemplars *exemplars,
                               ebpfMonOtlpSinces *starts, char *buf, size_t size, unsigned *points)
{
    items m = {.j = json, .n = n, .exemplars = exemplars, .starts = starts, .buf = buf, .size = size};

    if (!starts->first)
        starts->first = starts->before = n->now;
    addPutCounts(&m);
    addLatency(&m);
    addRoots(&m);
    addIocs(&m);
    addHealth(&m);
    addGauge(&m, "ebpfmon.cost", "1", "CPU that watching takes from all IOCs, of one core", FRACTION(n->cost));
    addGauge(&m, "ebpfmon.cpu", "1", "The monitor's own CPU, of one core", FRACTION(n->cpu));
    addGauge(&m, "ebpfmon.mem", "By", "The monitor's own memory, with its maps", BYTES(n->mem));
    addSum(&m, "ebpfmon.otlp.sent", "{item}", "What was accepted", n->sent, &starts->sent, starts->before);
    addLosses(&m, starts);
    starts->before = n->now;
    *points = m.points;
    return m.cut ? 0 : m.len;
}
