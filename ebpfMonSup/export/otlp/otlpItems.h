/* SPDX-License-Identifier: BSD-3-Clause */
/* Metrics and their points, one behind the other in a text. Private to otlpMetrics.c and otlpQueries.c. One thread. */
#ifndef EBPFMON_OTLPITEMS_H
#define EBPFMON_OTLPITEMS_H

#include "export/otlp/exemplar.h"
#include "export/otlp/otlpNumbers.h"
#include "export/shared/jsonGen.h"

#define EBPFMON_OTLP_CUMULATIVE 2 /* AggregationTemporality of metrics.proto */

typedef struct {
    ebpfMonJson *j;
    const ebpfMonOtlpNumbers *n;
    const ebpfMonExemplars *exemplars;
    ebpfMonOtlpSinces *starts;
    char  *buf;
    size_t size, len;
    int    cut;      /* it does not fit */
    unsigned points;
} ebpfMonOtlpItems;

/* A metric. 0, or -1: it does not fit. Then its kind, its points, and the end. */
int ebpfMonOtlpItemBegin(ebpfMonOtlpItems *items, const char *name, const char *unit, const char *description);
void ebpfMonOtlpItemOpenGauge(ebpfMonOtlpItems *items);
void ebpfMonOtlpItemOpenSum(ebpfMonOtlpItems *items, int isMonotonic);
void ebpfMonOtlpItemClose(ebpfMonOtlpItems *items);

/* A point is an object of JSON, which the caller closes. "since": ns since 1970, 0: of a gauge. */
void ebpfMonOtlpItemOpenPoint(ebpfMonOtlpItems *items, uint64_t since);
void ebpfMonOtlpItemAddCount(ebpfMonOtlpItems *items, const char *key, uint64_t count);

/* Since when a series counts: one of those that come and go, by three texts. */
uint64_t ebpfMonOtlpItemGetSince(ebpfMonOtlpItems *items, const char *metric, const char *key, const char *more,
                                 uint64_t value);

#endif
