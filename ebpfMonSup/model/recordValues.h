/* SPDX-License-Identifier: BSD-3-Clause */
/* Published values: processings, chains, asynchronous records, and watched records. Latencies µs; times of asynchronous
 * records ms; rates per second. */
#ifndef EBPFMON_RECORDVALUES_H
#define EBPFMON_RECORDVALUES_H

#include <stdint.h>
#include <epicsTime.h>
#include "model/put.h"

#define EBPFMON_TOP_MAX   100  /* rows of busiest records, of slowest chains … */
#define EBPFMON_HIST_MAX  32   /* octaves of the histogram */
#define EBPFMON_WATCH_MAX 1024 /* watched records, which have PVs of their own */
#define EBPFMON_SLOW_SIZE 16000 /* NELM of CHAIN_LOG (Db/ebpfMonLines.template) */

typedef struct {
    char     name[EBPFMON_NAME_SIZE]; /* record; RECORD@IOC if two watched IOCs have it */
    uint64_t count;
    double   rate;
    int      atLeast;      /* nonzero: the count is a lower bound */
} ebpfMonProcRow;

typedef struct {
    uint64_t count;
    double   rate;
    unsigned busiestCount;
    ebpfMonProcRow busiest[EBPFMON_TOP_MAX];
} ebpfMonProcValues;

typedef struct {
    char     name[EBPFMON_NAME_SIZE]; /* root; ROOT@IOC if two watched IOCs have it */
    uint64_t count;
    double   last, mean, p50, p99, max, waitMean, waitMax;
    char     root[EBPFMON_NAME_SIZE], ioc[EBPFMON_NAME_SIZE]; /* the parts of the name */
    double   hist[EBPFMON_HIST_MAX];  /* see ebpfMonChainValues.hist */
} ebpfMonChainRow;

typedef struct {
    unsigned slowestCount;
    ebpfMonChainRow slowest[EBPFMON_TOP_MAX];
    char     selectedRoot[EBPFMON_NAME_SIZE]; /* hist has the chains of this root; empty: of all roots */
    int      selectedFound;
    double   hist[EBPFMON_HIST_MAX];      /* chains from edge i to edge i + 1 */
    double   histEdge[EBPFMON_HIST_MAX];  /* lower edges */
    double   histP50, histP99, histMax;   /* of the same chains; NaN: there are none */
    char     slowText[EBPFMON_SLOW_SIZE]; /* text of chains that were kept whole, the newest first */
    uint64_t slowCount;
} ebpfMonChainValues;

/* Asynchronous processings, from the begin of the chain that began one to the end of the chain that completed it. */
typedef struct {
    char     name[EBPFMON_NAME_SIZE]; /* record; RECORD@IOC if two watched IOCs have it */
    uint64_t count;
    double   mean, p99, max; /* ms; 0: none is complete */
    uint64_t timeouts;       /* of these, processings that ended with the alarm status TIMEOUT */
    double   busy;           /* ms since the present one began; 0: there is none */
} ebpfMonAsyncRow;

typedef struct {
    unsigned slowestCount;
    ebpfMonAsyncRow slowest[EBPFMON_TOP_MAX];
    int      selectedFound;
    double   hist[EBPFMON_HIST_MAX]; /* of the record ebpfMonChainValues.selectedRoot, with the same edges */
    double   latencyMax; /* ms; the longest of those that completed in the last 9 to 17 s */
    double   busyMax;    /* ms; the longest of those that are not complete */
} ebpfMonAsyncValues;

typedef struct {
    char     record[EBPFMON_NAME_SIZE]; /* the name that the operator gave; it may be an alias */
    char     real[EBPFMON_NAME_SIZE];   /* the record's own name; empty: not found yet */
    int      found;        /* nonzero: a watched IOC has it */
    int      atLeast;
    uint64_t procCount;
    double   procRate;
    uint64_t chains;
    double   latMean, latP99, latMax; /* NaN: no chain was seen */
    uint64_t asyncCount;
    double   asyncMean, asyncP99, asyncMax; /* ms; NaN: none was seen */
    uint64_t putCount;
    char     putLast[EBPFMON_LINE_SIZE];
    epicsTimeStamp putTime;
    uint64_t putAt;        /* the same in monotonic ns */
} ebpfMonWatchRow;

typedef struct {
    unsigned count;        /* rows in use; it never becomes smaller, and a row keeps its index */
    ebpfMonWatchRow row[EBPFMON_WATCH_MAX];
} ebpfMonWatchValues;

#endif
