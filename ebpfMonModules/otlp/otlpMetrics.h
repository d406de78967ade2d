/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes metrics in OTLP's JSON. Counts are numbers, not texts: the source tells why. One thread. */
#ifndef EBPFMON_OTLPMETRICS_H
#define EBPFMON_OTLPMETRICS_H

#include <stddef.h>
#include <stdint.h>
#include "trace/span.h"
#include "export/shared/jsonGen.h"
#include "model/published.h"

/* --- the source ---
 *
 * The source of the metrics, and the time since which each sum counts. One thread.
 */

/* A process: an IOC with known health. */
typedef struct {
    char     name[EBPFMON_HEALTH_NAME];
    double   cpu;            /* percent of one core */
    double   mem;            /* MB */
} ebpfMonOtlpProcess;

/* The source of the metrics: a copy of the published numbers. */
typedef struct {
    uint64_t now;            /* ns since 1970 */
    uint64_t counted;        /* ns since 1970 at which the histograms were made */
    unsigned putIocs;
    ebpfMonPutIoc putIoc[EBPFMON_IOCS_MAX];
    uint64_t unexpected;     /* unexpected puts */
    unsigned losses;
    struct { char reason[40]; uint64_t count; } lost[EBPFMON_LOSSES_MAX];
    double   cost, cpu, mem;
    unsigned iocs;
    struct { char name[EBPFMON_NAME_SIZE]; uint32_t records; double cost; uint64_t processings; } ioc[EBPFMON_IOCS_MAX];
    unsigned processes;
    ebpfMonOtlpProcess process[EBPFMON_HEALTH_IOCS];
    unsigned gone, hangs;    /* IOCs that ended and have not come back; threads that hang */
    uint64_t lateScans, restarts;
    ebpfMonState state;
    unsigned roots;
    ebpfMonChainRow chain[EBPFMON_TOP_MAX];
    char     root[EBPFMON_NAME_SIZE]; /* root of the histogram; empty: all roots */
    double   hist[EBPFMON_HIST_MAX], edge[EBPFMON_HIST_MAX]; /* µs */
    uint64_t sent;           /* items that OTLP itself has sent */
    unsigned drops;
    struct { const char *reason; uint64_t count; } drop[8];
} ebpfMonOtlpNumbers;

/* The time since which a sum counts. If a sum has become smaller, it has begun again and must tell so (metrics data
 * model, "Resets and gaps"). Set it to 0 before the first use. */
typedef struct {
    uint64_t last, since;
} ebpfMonOtlpSince;

/* The same for one of many series. Series come and go. */
typedef struct {
    uint64_t hash;           /* hash of its name and attributes; 0: the place is free */
    uint64_t last, since, seen;
} ebpfMonOtlpSeries;

#define EBPFMON_OTLP_SERIES 2048

typedef struct {
    uint64_t first, before;  /* ns since 1970; time of the first numbers, and of the last ones */
    ebpfMonOtlpSeries series[EBPFMON_OTLP_SERIES];
    ebpfMonOtlpSince lost, hist, sent, drop, unexpected, lateScans, restarts;
    uint64_t bucket[EBPFMON_HIST_MAX];
    char     root[EBPFMON_NAME_SIZE];
} ebpfMonOtlpSinces;

/* --- exemplars ---
 *
 * The exemplars of latency histograms: for each root, the slowest chain whose span was sent since the metrics were sent
 * last. One thread.
 */

#define EBPFMON_EXEMPLARS 1024

typedef struct {
    char     ioc[64], root[EBPFMON_NAME_SIZE]; /* root is empty: the place is free */
    uint8_t  trace[EBPFMON_TRACE_ID], id[EBPFMON_SPAN_ID];
    uint64_t time;  /* ns since 1970; end of the span */
    double   value; /* µs; latency of the chain */
} ebpfMonExemplar;

typedef struct {
    unsigned used;
    ebpfMonExemplar of[EBPFMON_EXEMPLARS];
} ebpfMonExemplars;

/* Notes a span as an exemplar, if span->root is set, there is a place, and it is slower than the one noted. */
void ebpfMonExemplarAdd(ebpfMonExemplars *all, const ebpfMonSpan *span);

/* Finds an exemplar. NULL: there is none. "root" empty: the slowest of all roots; "ioc" empty: of all IOCs. "counted":
 * ns since 1970 at which the histogram was made. It does not contain spans that ended later, so they are left out. */
const ebpfMonExemplar *ebpfMonExemplarFind(const ebpfMonExemplars *all, const char *ioc, const char *root,
                                           uint64_t counted);

/* Removes the exemplars; those that ended after "counted" stay for the next time. */
void ebpfMonExemplarClear(ebpfMonExemplars *all, uint64_t counted);

/* --- metrics --- */

#define EBPFMON_OTLP_MODULE_ROWS 200 /* rows of metrics of modules, all together */

/* Writes the items of a request, with the metrics of modules, and with commas between them. *points gets the number of
 * values. Returns the length; 0: too long. */
size_t ebpfMonOtlpWriteMetrics(ebpfMonJson *json, const ebpfMonOtlpNumbers *numbers, const ebpfMonExemplars *exemplars,
                               ebpfMonOtlpSinces *sinces, char *buf, size_t size, unsigned *points);

#endif
