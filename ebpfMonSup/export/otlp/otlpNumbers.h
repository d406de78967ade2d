/* SPDX-License-Identifier: BSD-3-Clause */
/* The source of the metrics, and the time since which each sum counts. One thread. */
#ifndef EBPFMON_OTLPNUMBERS_H
#define EBPFMON_OTLPNUMBERS_H

#include <stdint.h>

#include "model/published.h"
#include "model/queryValues.h"

/* A process: an IOC with known health. */
typedef struct {
    char     name[EBPFMON_HEALTH_NAME];
    double   cpu;            /* percent of one core */
    double   mem;            /* MB */
} ebpfMonOtlpProcess;

#define EBPFMON_OTLP_QUERY_ROWS 200 /* rows of all queries together */

/* A query that sends some of its rows. */
typedef struct {
    char     name[EBPFMON_QUERY_NAME_SIZE], title[80], unit[16];
    char     keyName[EBPFMON_QUERY_KEYS_MAX][EBPFMON_QUERY_CELL_SIZE];
    unsigned keys;
    int      hasValue;
    unsigned first, rows;    /* index of its first row in queryRow, and their number */
    unsigned bars;           /* of the histogram of each row; 0: it has none */
    double   barMost[EBPFMON_QUERY_BARS_MAX]; /* the greatest value that comes into a bar; the last bar has no limit */
} ebpfMonOtlpQuery;

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
    unsigned queries, queryRows;
    ebpfMonOtlpQuery query[EBPFMON_QUERIES_MAX];
    ebpfMonQueryRow queryRow[EBPFMON_OTLP_QUERY_ROWS];
    double   queryBar[EBPFMON_OTLP_QUERY_ROWS][EBPFMON_QUERY_BARS_MAX];
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

#endif
