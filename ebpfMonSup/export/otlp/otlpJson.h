/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * OTLP in its JSON encoding (opentelemetry-proto; specification, protocol/otlp.md "JSON Protobuf Encoding": 64-bit
 * integers are strings, enums numbers, identities hexadecimal). Counts of metrics are numbers: otlpMetrics.c says why.
 * documentation/otlp.md says what stands in each.
 */
#ifndef EBPFMON_OTLPJSON_H
#define EBPFMON_OTLPJSON_H

#include <stddef.h>
#include <stdint.h>

#include "export/otlp/exemplar.h"
#include "export/otlp/otlpConf.h"
#include "export/otlp/span.h"
#include "model/published.h"
#include "model/put.h"

/* A request is: its head, items with commas between, its tail. Each: the length, no terminator; 0: too long. */
size_t ebpfMonOtlpHead(ebpfMonOtlpSignal signal, const ebpfMonOtlpConf *conf, char *buf, size_t size);
const char *ebpfMonOtlpTail(ebpfMonOtlpSignal signal);

/* put->who and origin, too, are used, for the body. observed: ns since 1970, when it was made a record. */
size_t ebpfMonOtlpLogRecord(const ebpfMonPut *put, uint64_t observed, char *buf, size_t size);

/* Spans of several services stand in one request: behind the request's head the head of a service, spans with commas
 * between, the service's tail, a comma, and so on. The tail of the request ends the last service, too. */
#define EBPFMON_OTLP_SERVICE_TAIL "]}]}"
size_t ebpfMonOtlpServiceHead(const ebpfMonSpanService *service, const ebpfMonOtlpConf *conf, char *buf, size_t size);
size_t ebpfMonOtlpSpan(const ebpfMonSpan *span, char *buf, size_t size);

#define EBPFMON_OTLP_SCOPE "ebpfMon"
const char *ebpfMonOtlpHost(void);

/* What the metrics are made of: a copy of the published's numbers. */
typedef struct {
    uint64_t now;            /* ns since 1970 */
    uint64_t counted;        /* the same: when the histograms were taken */
    unsigned putIocs;
    ebpfMonPutIoc putIoc[EBPFMON_IOCS_MAX];
    unsigned losses;
    struct { char reason[40]; uint64_t count; } lost[EBPFMON_LOSSES_MAX];
    double   cost, cpu, mem;
    unsigned iocs;
    struct { char name[EBPFMON_NAME_SIZE]; uint32_t records; double cost; uint64_t processings; } ioc[EBPFMON_IOCS_MAX];
    unsigned roots;
    ebpfMonChainRow chain[EBPFMON_TOP_MAX];
    char     root[EBPFMON_NAME_SIZE]; /* of the histogram; empty: all */
    double   hist[EBPFMON_HIST_MAX], edge[EBPFMON_HIST_MAX]; /* µs */
    uint64_t sent;           /* by OTLP itself */
    unsigned drops;
    struct { const char *reason; uint64_t count; } drop[8];
} ebpfMonOtlpNumbers;

/* Since when a sum counts. One that has become less began anew, and has to say so (metrics data model, "Resets and
 * gaps"). Zeroed: begins with the first call. */
typedef struct {
    uint64_t last, since;
} ebpfMonOtlpSince;

/* The same of one of many series, which come and go. */
typedef struct {
    uint64_t hash;           /* of its name and attributes; 0: free */
    uint64_t last, since, seen;
} ebpfMonOtlpSeries;

#define EBPFMON_OTLP_SERIES 2048

typedef struct {
    uint64_t first, before;  /* time of the first, of the last numbers */
    ebpfMonOtlpSeries series[EBPFMON_OTLP_SERIES];
    ebpfMonOtlpSince lost, hist, sent, drop;
    uint64_t bucket[EBPFMON_HIST_MAX];
    char     root[EBPFMON_NAME_SIZE];
} ebpfMonOtlpSinces;

/* The items; points: how many values there are. */
size_t ebpfMonOtlpMetricItems(const ebpfMonOtlpNumbers *n, const ebpfMonExemplars *exemplars, ebpfMonOtlpSinces *starts,
                              char *buf, size_t size, unsigned *points);

/* From the answer to an accepted request: how many of its items were refused all the same, and why. */
uint64_t ebpfMonOtlpRejected(const char *answer, size_t len, char *why, size_t size);

#endif
