/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "export/otlpField.h"
#include "export/otlpJson.h"

#define CUMULATIVE 2 /* AggregationTemporality of metrics.proto */

typedef struct {
    ebpfMonJson j;
    const ebpfMonOtlpNumbers *n;
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

static void pointAttribute(items *m, const char *key, const char *value)
{
    listOpen(&m->j, "attributes");
    attribute(&m->j, key, value);
    listClose(&m->j);
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
            pointAttribute(m, "reason", n->lost[i].reason);
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
        pointAttribute(m, "reason", n->drop[i].reason);
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
    if (!begin(m, "epics.cost", "%", "CPU that watching takes from an IOC, of one core")) {
        gaugeOpen(m);
        for (unsigned i = 0; i < n->iocs; i++) {
            pointOpen(m, 0);
            pointAttribute(m, "epics.ioc", n->ioc[i].name);
            real(&m->j, "asDouble", NULL, n->ioc[i].cost);
            mapClose(&m->j);
        }
        dataClose(m);
    }
}

/* The board has lower edges; a bucket of OTLP ends with the bound of its number, and the last one has none. */
static void latency(items *m, ebpfMonOtlpSinces *starts)
{
    const ebpfMonOtlpNumbers *n = m->n;
    uint64_t bucket[EBPFMON_HIST_MAX], total = 0;
    int fewer = strcmp(starts->root, n->root) != 0;

    for (unsigned i = 0; i < EBPFMON_HIST_MAX; i++) {
        bucket[i] = n->hist[i] > 0 ? (uint64_t)n->hist[i] : 0;
        fewer |= bucket[i] < starts->bucket[i];
        total += bucket[i];
    }
    if (!starts->hist.since)
        starts->hist.since = n->now;
    else if (fewer)
        starts->hist.since = starts->before;
    memcpy(starts->bucket, bucket, sizeof(bucket));
    strcpy(starts->root, n->root);
    if (!(n->edge[EBPFMON_HIST_MAX - 1] > 0)) /* nothing was ranked yet */
        return;
    if (begin(m, "epics.chain.latency", "us", "Latency of processing chains, from the request of the lock on"))
        return;
    mapOpen(&m->j, "histogram");
    small(&m->j, "aggregationTemporality", CUMULATIVE);
    listOpen(&m->j, "dataPoints");
    pointOpen(m, starts->hist.since);
    if (n->root[0])
        pointAttribute(m, "epics.put.root", n->root);
    number(m, "count", total);
    listOpen(&m->j, "bucketCounts");
    for (unsigned i = 0; i < EBPFMON_HIST_MAX; i++)
        ebpfMonJsonInteger(&m->j, (long long)bucket[i]);
    listClose(&m->j);
    listOpen(&m->j, "explicitBounds");
    for (unsigned i = 1; i < EBPFMON_HIST_MAX; i++)
        ebpfMonJsonNumber(&m->j, NULL, n->edge[i]);
    listClose(&m->j);
    mapClose(&m->j);
    dataClose(m);
}

size_t ebpfMonOtlpMetricItems(const ebpfMonOtlpNumbers *n, ebpfMonOtlpSinces *starts, char *buf, size_t size,
                              unsigned *points)
{
    items m = {.n = n, .buf = buf, .size = size};
    uint64_t before = starts->before ? starts->before : n->now;

    starts->before = before;
    sum(&m, "epics.puts", "{put}", "Puts that passed the filter", n->puts, &starts->puts, before);
    sum(&m, "epics.puts_denied", "{put}", "Puts that were denied", n->denied, &starts->denied, before);
    sum(&m, "epics.processings", "{processing}", "Record processings", n->processings, &starts->processings, before);
    latency(&m, starts);
    iocs(&m);
    gauge(&m, "ebpfmon.cost", "%", "CPU that watching takes from all IOCs, of one core", n->cost);
    gauge(&m, "ebpfmon.cpu", "%", "The monitor's own CPU, of one core", n->cpu);
    gauge(&m, "ebpfmon.mem", "MBy", "The monitor's own memory, with its maps", n->mem);
    sum(&m, "ebpfmon.otlp.sent", "{item}", "Log records and spans that were accepted", n->sent, &starts->sent, before);
    losses(&m, starts);
    starts->before = n->now;
    *points = m.points;
    return m.cut ? 0 : m.len;
}
