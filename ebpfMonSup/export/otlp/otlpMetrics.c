/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "export/otlp/otlpField.h"
#include "export/otlp/otlpJson.h"

#define CUMULATIVE 2 /* AggregationTemporality of metrics.proto */

/* The published has what people read; metrics have base units (semantic conventions, "Instrument units"). */
#define SECONDS(us)       ((us) / 1e6)
#define FRACTION(percent) ((percent) / 100)
#define BYTES(mb)         ((mb) * 1e6)

typedef struct {
    ebpfMonJson j;
    const ebpfMonOtlpNumbers *n;
    const ebpfMonExemplars *exemplars;
    ebpfMonOtlpSinces *starts;
    char  *buf;
    size_t size, len;
    int    cut;
    unsigned points;
} items;

static int begin(items *m, const char *name, const char *unit, const char *description)
{
    size_t comma = m->len > 0;

    if (m->cut || m->len + comma >= m->size) {
        m->cut = 1;
        return -1;
    }
    ebpfMonJsonBegin(&m->j, m->buf + m->len + comma, m->size - m->len - comma);
    if (!m->j.g) {
        m->cut = 1;
        return -1;
    }
    text(&m->j, "name", name);
    text(&m->j, "unit", unit);
    text(&m->j, "description", description);
    return 0;
}

static void end(items *m)
{
    size_t len = ebpfMonJsonEnd(&m->j);

    if (!len) {
        m->cut = 1;
        return;
    }
    if (m->len)
        m->buf[m->len++] = ',';
    m->len += len;
}

static void pointOpen(items *m, uint64_t since)
{
    mapOpen(&m->j, NULL);
    if (since)
        wide(&m->j, "startTimeUnixNano", since);
    wide(&m->j, "timeUnixNano", m->n->now);
    m->points++;
}

/* Counts as JSON numbers, which protobuf's JSON mapping accepts for 64 bits as well as strings: receivers in Rust
 * silently drop the point otherwise (open-telemetry/opentelemetry-rust issues 2487 and 3527). */
static void number(items *m, const char *key, uint64_t count)
{
    ebpfMonJsonKey(&m->j, key);
    ebpfMonJsonInteger(&m->j, (long long)count);
}

/* The second one only if it is given. */
static void pointAttributes(items *m, const char *key, const char *value, const char *key2, const char *value2)
{
    listOpen(&m->j, "attributes");
    attribute(&m->j, key, value);
    if (key2)
        attribute(&m->j, key2, value2);
    listClose(&m->j);
}

static void pointAttribute(items *m, const char *key, const char *value)
{
    pointAttributes(m, key, value, NULL, NULL);
}

static void gaugeOpen(items *m)
{
    mapOpen(&m->j, "gauge");
    listOpen(&m->j, "dataPoints");
}

static void sumOpen(items *m)
{
    mapOpen(&m->j, "sum");
    small(&m->j, "aggregationTemporality", CUMULATIVE);
    ebpfMonJsonKey(&m->j, "isMonotonic");
    yajl_gen_bool(m->j.g, 1);
    listOpen(&m->j, "dataPoints");
}

static void dataClose(items *m)
{
    listClose(&m->j);
    mapClose(&m->j);
    end(m);
}

static void gauge(items *m, const char *name, const char *unit, const char *description, double value)
{
    if (begin(m, name, unit, description))
        return;
    gaugeOpen(m);
    pointOpen(m, 0);
    real(&m->j, "asDouble", NULL, value);
    mapClose(&m->j);
    dataClose(m);
}

static uint64_t since(ebpfMonOtlpSince *s, const ebpfMonOtlpNumbers *n, uint64_t before, uint64_t value)
{
    if (!s->since)
        s->since = n->now;
    else if (value < s->last)
        s->since = before;
    s->last = value;
    return s->since;
}

static void sum(items *m, const char *name, const char *unit, const char *description, uint64_t value,
                ebpfMonOtlpSince *s, uint64_t before)
{
    uint64_t from = since(s, m->n, before, value);

    if (begin(m, name, unit, description))
        return;
    sumOpen(m);
    pointOpen(m, from);
    number(m, "asInt", value);
    mapClose(&m->j);
    dataClose(m);
}

static uint64_t hashOf(uint64_t h, const char *text)
{
    do
        h = (h ^ (unsigned char)*text) * 1099511628211u; /* FNV-1a, with the NUL */
    while (*text++);
    return h;
}

/* A series that is new counts from the first numbers on: nothing of it had been counted then. */
static uint64_t seriesSince(items *m, const char *metric, const char *ioc, const char *record, uint64_t value)
{
    enum { PROBES = 16 };
    ebpfMonOtlpSinces *starts = m->starts;
    uint64_t hash = hashOf(hashOf(hashOf(14695981039346656037u, metric), ioc), record) | 1;
    ebpfMonOtlpSeries *s = NULL;

    for (unsigned i = 0; i < PROBES; i++) {
        ebpfMonOtlpSeries *at = &starts->series[(hash / 2 + i) % EBPFMON_OTLP_SERIES];

        if (at->hash == hash) {
            s = at;
            break;
        }
        if (!s || (s->hash && (!at->hash || at->seen < s->seen))) /* a free place, else the one unused for longest */
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
static void iocPoint(items *m, const char *metric, const char *ioc, uint64_t value)
{
    pointOpen(m, seriesSince(m, metric, ioc, "", value));
    pointAttribute(m, "epics.ioc", ioc);
    number(m, "asInt", value);
    mapClose(&m->j);
}

static void counts(items *m)
{
    const ebpfMonOtlpNumbers *n = m->n;

    if (n->putIocs && !begin(m, "epics.puts", "{put}", "Puts that passed the filter")) {
        sumOpen(m);
        for (unsigned i = 0; i < n->putIocs; i++)
            iocPoint(m, "puts", n->putIoc[i].name, n->putIoc[i].puts);
        dataClose(m);
    }
    if (n->putIocs && !begin(m, "epics.puts_denied", "{put}", "Puts that were denied")) {
        sumOpen(m);
        for (unsigned i = 0; i < n->putIocs; i++)
            iocPoint(m, "denied", n->putIoc[i].name, n->putIoc[i].denied);
        dataClose(m);
    }
    if (n->iocs && !begin(m, "epics.processings", "{processing}", "Record processings")) {
        sumOpen(m);
        for (unsigned i = 0; i < n->iocs; i++)
            iocPoint(m, "processings", n->ioc[i].name, n->ioc[i].processings);
        dataClose(m);
    }
}

static void losses(items *m, ebpfMonOtlpSinces *starts)
{
    const ebpfMonOtlpNumbers *n = m->n;
    uint64_t total = 0, from;

    for (unsigned i = 0; i < n->losses; i++)
        total += n->lost[i].count;
    from = since(&starts->lost, n, starts->before, total);
    if (n->losses && !begin(m, "ebpfmon.lost", "{event}", "Events that the monitor lost")) {
        sumOpen(m);
        for (unsigned i = 0; i < n->losses; i++) {
            pointOpen(m, from);
            pointAttribute(m, "ebpfmon.reason", n->lost[i].reason);
            number(m, "asInt", n->lost[i].count);
            mapClose(&m->j);
        }
        dataClose(m);
    }
    total = 0;
    for (unsigned i = 0; i < n->drops; i++)
        total += n->drop[i].count;
    from = since(&starts->drop, n, starts->before, total);
    if (begin(m, "ebpfmon.otlp.lost", "{item}", "Log records and spans that could not be sent"))
        return;
    sumOpen(m);
    for (unsigned i = 0; i < n->drops; i++) {
        pointOpen(m, from);
        pointAttribute(m, "ebpfmon.reason", n->drop[i].reason);
        number(m, "asInt", n->drop[i].count);
        mapClose(&m->j);
    }
    dataClose(m);
}

static void iocs(items *m)
{
    const ebpfMonOtlpNumbers *n = m->n;

    if (!n->iocs)
        return;
    if (!begin(m, "epics.records", "{record}", "Records of an IOC")) {
        gaugeOpen(m);
        for (unsigned i = 0; i < n->iocs; i++) {
            pointOpen(m, 0);
            pointAttribute(m, "epics.ioc", n->ioc[i].name);
            number(m, "asInt", n->ioc[i].records);
            mapClose(&m->j);
        }
        dataClose(m);
    }
    if (!begin(m, "epics.cost", "1", "CPU that watching takes from an IOC, of one core")) {
        gaugeOpen(m);
        for (unsigned i = 0; i < n->iocs; i++) {
            pointOpen(m, 0);
            pointAttribute(m, "epics.ioc", n->ioc[i].name);
            real(&m->j, "asDouble", NULL, FRACTION(n->ioc[i].cost));
            mapClose(&m->j);
        }
        dataClose(m);
    }
}

/* The time as a number and an empty list: else receivers in Rust drop the whole histogram, as "number" says. */
static void exemplar(items *m, const char *ioc, const char *root)
{
    const ebpfMonExemplar *e = ebpfMonExemplarFind(m->exemplars, ioc, root, m->n->counted);

    if (!e)
        return;
    listOpen(&m->j, "exemplars");
    mapOpen(&m->j, NULL);
    number(m, "timeUnixNano", e->time);
    listOpen(&m->j, "filteredAttributes");
    listClose(&m->j);
    real(&m->j, "asDouble", NULL, SECONDS(e->value));
    identity(&m->j, "traceId", e->trace, sizeof(e->trace));
    identity(&m->j, "spanId", e->id, sizeof(e->id));
    mapClose(&m->j);
    listClose(&m->j);
}

static uint64_t countOf(double value)
{
    return value > 0 ? (uint64_t)value : 0;
}

/* The published has lower edges; a bucket of OTLP ends with the bound of its number, and the last one has none. */
static void histogram(items *m, const double *hist)
{
    uint64_t total = 0;

    for (unsigned i = 0; i < EBPFMON_HIST_MAX; i++)
        total += countOf(hist[i]);
    number(m, "count", total);
    listOpen(&m->j, "bucketCounts");
    for (unsigned i = 0; i < EBPFMON_HIST_MAX; i++)
        ebpfMonJsonInteger(&m->j, (long long)countOf(hist[i]));
    listClose(&m->j);
    listOpen(&m->j, "explicitBounds");
    for (unsigned i = 1; i < EBPFMON_HIST_MAX; i++)
        ebpfMonJsonNumber(&m->j, NULL, SECONDS(m->n->edge[i]));
    listClose(&m->j);
}

static int histogramsOpen(items *m, const char *name, const char *description)
{
    if (!(m->n->edge[EBPFMON_HIST_MAX - 1] > 0) || begin(m, name, "s", description)) /* nothing was ranked yet */
        return -1;
    mapOpen(&m->j, "histogram");
    small(&m->j, "aggregationTemporality", CUMULATIVE);
    listOpen(&m->j, "dataPoints");
    return 0;
}

static void latency(items *m)
{
    const ebpfMonOtlpNumbers *n = m->n;
    ebpfMonOtlpSinces *starts = m->starts;
    int fewer = strcmp(starts->root, n->root) != 0;

    for (unsigned i = 0; i < EBPFMON_HIST_MAX; i++) {
        fewer |= countOf(n->hist[i]) < starts->bucket[i];
        starts->bucket[i] = countOf(n->hist[i]);
    }
    if (!starts->hist.since)
        starts->hist.since = n->now;
    else if (fewer)
        starts->hist.since = starts->before;
    strcpy(starts->root, n->root);
    if (histogramsOpen(m, "epics.chain.latency", "Latency of processing chains, from when they had the lock"))
        return;
    pointOpen(m, starts->hist.since);
    if (n->root[0])
        pointAttribute(m, "epics.record.name", n->root);
    histogram(m, n->hist);
    exemplar(m, "", n->root);
    mapClose(&m->j);
    dataClose(m);
}

static void roots(items *m)
{
    const ebpfMonOtlpNumbers *n = m->n;

    if (!n->roots || histogramsOpen(m, "epics.root.latency", "The same of each of the slowest root records"))
        return;
    for (unsigned i = 0; i < n->roots; i++) {
        const ebpfMonChainRow *c = &n->chain[i];

        pointOpen(m, seriesSince(m, "root", c->ioc, c->root, c->count));
        pointAttributes(m, "epics.ioc", c->ioc, "epics.record.name", c->root);
        histogram(m, c->hist);
        real(&m->j, "sum", NULL, SECONDS(c->mean * (double)c->count));
        real(&m->j, "max", NULL, SECONDS(c->max));
        exemplar(m, c->ioc, c->root);
        mapClose(&m->j);
    }
    dataClose(m);
}

size_t ebpfMonOtlpMetricItems(const ebpfMonOtlpNumbers *n, const ebpfMonExemplars *exemplars, ebpfMonOtlpSinces *starts,
                              char *buf, size_t size, unsigned *points)
{
    items m = {.n = n, .exemplars = exemplars, .starts = starts, .buf = buf, .size = size};

    if (!starts->first)
        starts->first = starts->before = n->now;
    counts(&m);
    latency(&m);
    roots(&m);
    iocs(&m);
    gauge(&m, "ebpfmon.cost", "1", "CPU that watching takes from all IOCs, of one core", FRACTION(n->cost));
    gauge(&m, "ebpfmon.cpu", "1", "The monitor's own CPU, of one core", FRACTION(n->cpu));
    gauge(&m, "ebpfmon.mem", "By", "The monitor's own memory, with its maps", BYTES(n->mem));
    sum(&m, "ebpfmon.otlp.sent", "{item}", "What was accepted", n->sent, &starts->sent, starts->before);
    losses(&m, starts);
    starts->before = n->now;
    *points = m.points;
    return m.cut ? 0 : m.len;
}
