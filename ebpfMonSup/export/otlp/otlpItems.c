/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "common/hash.h"
#include "export/otlp/otlpField.h"
#include "export/otlp/otlpItems.h"

int ebpfMonOtlpItemBegin(ebpfMonOtlpItems *m, const char *name, const char *unit, const char *description)
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

static void endItem(ebpfMonOtlpItems *m)
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

void ebpfMonOtlpItemOpenPoint(ebpfMonOtlpItems *m, uint64_t since)
{
    ebpfMonJsonOpenObject(m->j, NULL);
    if (since)
        ebpfMonOtlpAddInteger64(m->j, "startTimeUnixNano", since);
    ebpfMonOtlpAddInteger64(m->j, "timeUnixNano", m->n->now);
    m->points++;
}

/* Counts are numbers of JSON. For 64 bits, protobuf's JSON mapping accepts numbers as well as strings. But receivers in
 * Rust drop the point without a message if it is a string (open-telemetry/opentelemetry-rust issues 2487 and 3527). */
void ebpfMonOtlpItemAddCount(ebpfMonOtlpItems *m, const char *key, uint64_t count)
{
    ebpfMonJsonAddInteger(m->j, key, (long long)count);
}

void ebpfMonOtlpItemOpenGauge(ebpfMonOtlpItems *m)
{
    ebpfMonJsonOpenObject(m->j, "gauge");
    ebpfMonJsonOpenList(m->j, "dataPoints");
}

void ebpfMonOtlpItemOpenSum(ebpfMonOtlpItems *m, int isMonotonic)
{
    ebpfMonJsonOpenObject(m->j, "sum");
    ebpfMonJsonAddInteger(m->j, "aggregationTemporality", EBPFMON_OTLP_CUMULATIVE);
    ebpfMonJsonAddBool(m->j, "isMonotonic", isMonotonic);
    ebpfMonJsonOpenList(m->j, "dataPoints");
}

void ebpfMonOtlpItemOpenHistogram(ebpfMonOtlpItems *m)
{
    ebpfMonJsonOpenObject(m->j, "histogram");
    ebpfMonJsonAddInteger(m->j, "aggregationTemporality", EBPFMON_OTLP_CUMULATIVE);
    ebpfMonJsonOpenList(m->j, "dataPoints");
}

void ebpfMonOtlpItemClose(ebpfMonOtlpItems *m)
{
    ebpfMonJsonCloseList(m->j);
    ebpfMonJsonCloseObject(m->j);
    endItem(m);
}

/* A new series counts since the first numbers: at that time its count was 0. */
uint64_t ebpfMonOtlpItemGetSince(ebpfMonOtlpItems *m, const char *metric, const char *key, const char *more,
                                 uint64_t value)
{
    enum { PROBES = 16 };
    ebpfMonOtlpSinces *starts = m->starts;
    uint64_t hash = ebpfMonHashFnv64(EBPFMON_FNV64_BEGIN, metric, strlen(metric) + 1);
    ebpfMonOtlpSeries *s = NULL;

    hash = ebpfMonHashFnv64(hash, key, strlen(key) + 1);
    hash = ebpfMonHashFnv64(hash, more, strlen(more) + 1) | 1;
    for (unsigned i = 0; i < PROBES; i++) {
        ebpfMonOtlpSeries *at = &starts->series[(hash / 2 + i) % EBPFMON_OTLP_SERIES];

        if (at->hash == hash) {
            s = at;
            break;
        }
        /* a free place, or the one that was not used for the longest time */
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
