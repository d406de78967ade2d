/* SPDX-License-Identifier: BSD-3-Clause */
/* What the metrics are made of, and since when each sum counts. One thread. */
#ifndef EBPFMON_OTLPNUMBERS_H
#define EBPFMON_OTLPNUMBERS_H

#include <stdint.h>

#include "model/published.h"
#include "model/queryValues.h"

/* A process: an IOC whose health is known. */
typedef struct {
    char     name[EBPFMON_HEALTH_NAME];
    double   cpu;            /* percent of one core */
    double   mem;            /* MB */
} ebpfMonOtlpProcess;

#define EBPFMON_OTLP_QUERY_ROWS 200 /* of all queries */

/* A query some of whose rows are sent. */
typedef struct {
    char     name[EBPFMON_QUERY_NAME_SIZE], title[80], unit[16];
    char     keyName[EBPFMON_QUERY_KEYS_MAX][EBPFMON_QUERY_CELL_SIZE];
    unsigned keys;
    int      hasValue;
    unsigned first, rows;    /* in queryRow */
} ebpfMonOtlpQuery;

/* What the metrics are made of: a copy of the published numbers. */
typedef struct {
    uint64_t now;            /* ns since 1970 */
    uint64_t counted;        /* the same: when the histograms were taken */
    unsigned putIocs;
    ebpfMonPutIoc putIoc[EBPFMON_IOCS_MAX];
    uint64_t unexpected;     /* puts */
    unsigned losses;
    struct { char reason[40]; uint64_t count; } lost[EBPFMON_LOSSES_MAX];
    double   cost, cpu, mem;
    unsigned iocs;
    struct { char name[EBPFMON_NAME_SIZE]; uint32_t records; double cost; uint64_t processings; } ioc[EBPFMON_IOCS_MAX];
    unsigned processes;
    ebpfMonOtlpProcess process[EBPFMON_HEALTH_IOCS];
    unsigned gone, hangs;    /* IOCs that ended; threads that hang */
    uint64_t lateScans, restarts;
    ebpfMonState state;
    unsigned roots;
    ebpfMonChainRow chain[EBPFMON_TOP_MAX];
    char     root[EBPFMON_NAME_SIZE]; /* of the histogram; empty: all */
    double   hist[EBPFMON_HIST_MAX], edge[EBPFMON_HIST_MAX]; /* µs */
    unsigned queries, queryRows;
    ebpfMonOtlpQuery query[EBPFMON_QUERIES_MAX];
    ebpfMonQueryRow queryRow[EBPFMON_OTLP_QUERY_ROWS];
    uint64_t sent;           /* by OTLP itself */
    unsigned drops;
    struct { const char *reason; uint64_t count; } drop[8];
} ebpfMonOtlpNumbers;

/* Since when a sum counts. A sum that has become less has begun anew, and has to say so (metrics data model, "Resets
 * and gaps"). Set to 0 before the first use. */
typedef struct {
    uint64_t last, since;
} ebpfMonOtlpSince;

/* The same for one of many series, which come and go. */
typedef struct {
    uint64_t hash;           /* of its name and attributes; 0: free */
    uint64_t last, since, seen;
} ebpfMonOtlpSeries;

#define EBPFMON_OTLP_SERIES 2048

typedef struct {
    uint64_t first, before;  /* time of the first, of the last numbers */
    ebpfMonOtlpSeries series[EBPFMON_OTLP_SERIES];
    ebpfMonOtlpSince lost, hist, sent, drop, unexpected, lateScans, restarts;
    uint64_t bucket[EBPFMON_HIST_MAX];
    char     root[EBPFMON_NAME_SIZE];
} ebpfMonOtlpSinces;

#endif
