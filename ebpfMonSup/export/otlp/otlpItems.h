/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes metrics with their points, one after the other, into a text. Private to otlpMetrics.c and otlpQueries.c. One
 * thread. */
#ifndef EBPFMON_OTLPITEMS_H
#define EBPFMON_OTLPITEMS_H

#include "export/otlp/exemplar.h"
#include "export/otlp/otlpNumbers.h"
#include "export/shared/jsonGen.h"

#define EBPFMON_OTLP_CUMULATIVE 2 /* "cumulative" of AggregationTemporality in metrics.proto */

typedef struct {
    ebpfMonJson *j;
    const ebpfMonOtlpNumbers *n;
    const ebpfMonExemplars *exemplars;
    ebpfMonOtlpSinces *starts;
    char  *buf;
    size_t size, len;
    int    cut;      /* nonzero: something did not fit */
    unsigned points;
} ebpfMonOtlpItems;

/* Begin a metric; then open its kind, add its points, and close it. Begin: 0, or -1: it does not fit. */
int ebpfMonOtlpItemBegin(ebpfMonOtlpItems *items, const char *name, const char *unit, const char *description);
void ebpfMonOtlpItemOpenGauge(ebpfMonOtlpItems *items);
void ebpfMonOtlpItemOpenSum(ebpfMonOtlpItems *items, int isMonotonic);
/* Of histograms with explicit bounds. */
void ebpfMonOtlpItemOpenHistogram(ebpfMonOtlpItems *items);
void ebpfMonOtlpItemClose(ebpfMonOtlpItems *items);

/* Open a point, an object of JSON which the caller closes. "since": ns since 1970; 0: the point of a gauge. */
void ebpfMonOtlpItemOpenPoint(ebpfMonOtlpItems *items, uint64_t since);
void ebpfMonOtlpItemAddCount(ebpfMonOtlpItems *items, const char *key, uint64_t count);

/* Returns the time (ns since 1970) since which a series counts. Series come and go; three texts identify one. */
uint64_t ebpfMonOtlpItemGetSince(ebpfMonOtlpItems *items, const char *metric, const char *key, const char *more,
                                 uint64_t value);

#endif
