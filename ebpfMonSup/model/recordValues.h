/* SPDX-License-Identifier: BSD-3-Clause */
/* Published: processings, chains, asynchronous records, and the records with scalars of their own. Latencies µs, those of
 * asynchronous records ms; rates per second. */
#ifndef EBPFMON_RECORDVALUES_H
#define EBPFMON_RECORDVALUES_H

#include <stdint.h>
#include <epicsTime.h>
#include "model/put.h"

#define EBPFMON_TOP_MAX   100  /* busiest records, slowest chains */
#define EBPFMON_HIST_MAX  32   /* octaves of the histogram */
#define EBPFMON_WATCH_MAX 1024 /* records with scalars of their own */
#define EBPFMON_SLOW_SIZE 16384

typedef struct {
    char     name[EBPFMON_NAME_SIZE]; /* record; RECORD@IOC where two watched IOCs have it */
    uint64_t count;
    double   rate;
    int      atLeast;      /* the count is a lower bound */
} ebpfMonProcRow;

typedef struct {
    uint64_t count;
    double   rate;
    unsigned busiestCount;
    ebpfMonProcRow busiest[EBPFMON_TOP_MAX];
} ebpfMonProcValues;

typedef struct {
    char     name[EBPFMON_NAME_SIZE]; /* root; ROOT@IOC where two watched IOCs have it */
    uint64_t count;
    double   last, mean, p50, p99, max, waitMean, waitMax;
    char     root[EBPFMON_NAME_SIZE], ioc[EBPFMON_NAME_SIZE]; /* the name is made of these */
    double   hist[EBPFMON_HIST_MAX];  /* as hist below */
} ebpfMonChainRow;

typedef struct {
    unsigned slowestCount;
    ebpfMonChainRow slowest[EBPFMON_TOP_MAX];
    char     selectedRoot[EBPFMON_NAME_SIZE]; /* hist is of the chains from this root; empty: from all roots */
    int      selectedFound;
    double   hist[EBPFMON_HIST_MAX];      /* chains between edge i and edge i+1 */
    double   histEdge[EBPFMON_HIST_MAX];  /* lower edges */
    double   histP50, histP99, histMax;   /* of the same chains; NaN: there are none */
    char     slowText[EBPFMON_SLOW_SIZE]; /* chains that were kept whole, as text, the newest first */
    uint64_t slowCount;
} ebpfMonChainValues;

/* Asynchronous processings: from the begin of the chain that began one to the end of the chain that completed it. */
typedef struct {
    char     name[EBPFMON_NAME_SIZE]; /* as that of a chain */
    uint64_t count;
    double   mean, p99, max; /* ms; 0 while none is complete */
    uint64_t timeouts;       /* of count: they ended with the alarm status TIMEOUT */
    double   busy;           /* ms, of the one that is under way; 0: none is */
} ebpfMonAsyncRow;

typedef struct {
    unsigned slowestCount;
    ebpfMonAsyncRow slowest[EBPFMON_TOP_MAX];
    int      selectedFound;
    double   hist[EBPFMON_HIST_MAX]; /* of the record of ebpfMonChainValues.selectedRoot, with the same edges */
    double   latencyMax; /* ms, of those that were completed in the last 9 to 17 s */
    double   busyMax;    /* ms, of those that are under way */
} ebpfMonAsyncValues;

typedef struct {
    char     record[EBPFMON_NAME_SIZE]; /* the name asked for, may be an alias */
    char     real[EBPFMON_NAME_SIZE];   /* the record's own name, once it was found */
    int      found;        /* some watched IOC has it */
    int      atLeast;
    uint64_t procCount;
    double   procRate;
    uint64_t chains;
    double   latMean, latP99, latMax; /* NaN while no chain was seen */
    uint64_t asyncCount;
    double   asyncMean, asyncP99, asyncMax; /* ms; NaN while none was seen */
    uint64_t putCount;
    char     putLast[EBPFMON_LINE_SIZE];
    epicsTimeStamp putTime;
} ebpfMonWatchRow;

typedef struct {
    unsigned count;        /* it only grows: a row keeps its index */
    ebpfMonWatchRow row[EBPFMON_WATCH_MAX];
} ebpfMonWatchValues;

#endif
