/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The results of queries: one for each query, by name. The query thread writes them; PVs and the shell copy them. Both
 * do so under one lock, which is held only as long as a copy takes. Then the writer notifies the listener which result
 * has changed.
 *
 * Records are made before any query is loaded. A record finds the result of its query by the name of the query; the
 * result is empty then.
 */
#ifndef EBPFMON_QUERYVALUES_H
#define EBPFMON_QUERYVALUES_H

#include <stdint.h>
#include <epicsTime.h>

#include "ebpfMonModule.h"

#define EBPFMON_QUERIES_MAX     128
#define EBPFMON_QUERY_NAME_SIZE 32
#define EBPFMON_QUERY_KEYS_MAX  4
#define EBPFMON_QUERY_CELL_SIZE 64
#define EBPFMON_QUERY_ROWS_MAX  100
#define EBPFMON_QUERY_BARS_MAX  64
#define EBPFMON_QUERY_EVENTS_MAX 100
#define EBPFMON_QUERY_METRICS_MAX 50 /* rows that go to a collector of metrics, or show their own histogram */
#define EBPFMON_QUERY_HEAT_ROWS    32
#define EBPFMON_QUERY_HEAT_COLUMNS 60

typedef enum {
    ebpfMonQueryAbsent,   /* no file has a query of this name */
    ebpfMonQueryOff,
    ebpfMonQueryStarting, /* it will run; its programs are being loaded, or the monitor does not run yet */
    ebpfMonQueryRunning,
    ebpfMonQueryDone,     /* it stopped, because its stopAfter was reached */
    ebpfMonQueryFailed    /* the message tells why */
} ebpfMonQueryState;

typedef struct {
    char   key[EBPFMON_QUERY_KEYS_MAX][EBPFMON_QUERY_CELL_SIZE];
    double count, rate;                 /* rate: per second, in the last interval */
    double sum, min, max, mean, last;   /* of the value; all in its unit */
    double p50, p90, p99;               /* upper edges of buckets; NaN: the query has no log2 histogram */
} ebpfMonQueryRow;

/* A single event. */
typedef struct {
    char     time[32];    /* local time: "2026-03-01 12:00:00.123456789" */
    char     thread[16];
    double   cpu, value;  /* number of the CPU; value in its unit */
    char     key[EBPFMON_QUERY_KEYS_MAX][EBPFMON_QUERY_CELL_SIZE];
} ebpfMonQueryEventRow;

typedef struct {
    char     name[EBPFMON_QUERY_NAME_SIZE];
    char     title[80];
    char     unit[16];    /* unit of the value */
    char     keyName[EBPFMON_QUERY_KEYS_MAX][EBPFMON_QUERY_CELL_SIZE];
    unsigned keys;
    int      hasValue, hasHist;
    unsigned metrics;     /* number of rows that go to a collector of metrics */
    ebpfMonQueryState state;
    char     message[200];
    double   cost;        /* percent of one core; of its traps and programs */
    uint64_t events;      /* events that met the conditions */
    uint64_t dropped;     /* events that were dropped: there was no room, a field could not be read, or the begin
                           * could not be noted */
    unsigned found;       /* number of keys; row[] has the first ones */
    double   rest;        /* events of the keys that are not in row[] */
    unsigned rows;
    int      isEstimate;  /* nonzero: it looks only at a sample of the events */
    epicsTimeStamp time;  /* time of the last look */
    struct {
        double rate, sumRate; /* events, and sum of the value, a second */
        double mean, max;     /* of the value; 0: there was no event. max: as ebpfMonQueryRow.p50, without a histogram
                               * since the start */
    } now;                /* of all rows together, between the last two looks */
    ebpfMonQueryRow row[EBPFMON_QUERY_ROWS_MAX];
    unsigned eventRows;   /* the last events, the newest first, if the query sends events */
    ebpfMonQueryEventRow event[EBPFMON_QUERY_EVENTS_MAX];
    unsigned bars;        /* bars of the histogram of all keys */
    double   hist[EBPFMON_QUERY_BARS_MAX], histEdge[EBPFMON_QUERY_BARS_MAX]; /* histEdge: lower edges, in the unit of
                                                                              * the value */
    /* the history of this histogram: each row is a bar, the greatest values first; each column a time, the newest last.
     * NaN: not known */
    double   heatSeconds; /* time of a column; 0: there is no histogram */
    double   heat[EBPFMON_QUERY_HEAT_ROWS * EBPFMON_QUERY_HEAT_COLUMNS];
    double   heatEdge[EBPFMON_QUERY_HEAT_ROWS]; /* lower edges */
    /* the histograms of the first rows. Other than "hist", they always have all bars */
    unsigned rowBars;     /* 0: there are none */
    double   rowBar[EBPFMON_QUERY_METRICS_MAX][EBPFMON_QUERY_BARS_MAX];
    double   barEdge[EBPFMON_QUERY_BARS_MAX]; /* lower edges */
    double   barMost[EBPFMON_QUERY_BARS_MAX]; /* the greatest value that comes into this bar; the last bar has no
                                               * limit */
} ebpfMonQueryResult;

typedef struct ebpfMonQueryResults ebpfMonQueryResults;

/* Makes the results, all empty. NULL: no memory. */
ebpfMonQueryResults *ebpfMonQueryResultsNew(void);
/* Only when no thread uses them any more. NULL does no harm. */
void ebpfMonQueryResultsFree(ebpfMonQueryResults *results);

/* All other functions: any thread. */

/* Returns the number of the result with this name; makes it if there is none. -1: there are EBPFMON_QUERIES_MAX, or no
 * memory, or the name is too long. */
int ebpfMonQueryResultsAdd(ebpfMonQueryResults *results, const char *name);

/* A record shows this result: it keeps its name. */
void ebpfMonQueryResultsKeep(ebpfMonQueryResults *results, int number);

/* Empties a result and gives it a name that no other one has. 0, or -1: a record shows it, another one has the name, or
 * the name is too long. */
int ebpfMonQueryResultsRename(ebpfMonQueryResults *results, int number, const char *name);

/* Locks the results. Never wait for anything before ebpfMonQueryResultsUnlock. The pointer stays valid; read and write
 * its contents only under the lock. */
ebpfMonQueryResult *ebpfMonQueryResultsLock(ebpfMonQueryResults *results, int number);
void ebpfMonQueryResultsUnlock(ebpfMonQueryResults *results);

/* The folded stacks of its events (query/queryStacks.h). Set: takes over "text", which it frees later. Copy: the caller
 * frees the copy. NULL: there are none. */
void ebpfMonQueryResultsSetStacks(ebpfMonQueryResults *results, int number, char *text);
char *ebpfMonQueryResultsCopyStacks(ebpfMonQueryResults *results, int number);

/* Gives the rows that are to be sent as metrics (ebpfMonModule.metrics), under the lock. */
void ebpfMonQueryResultsGiveMetrics(ebpfMonQueryResults *results, ebpfMonModuleTakeMetric take, void *to);

/* Notifies the listener. Not under the lock. */
void ebpfMonQueryResultsNotify(ebpfMonQueryResults *results, int number);
/* Sets the listener. The thread that writes a result calls "changed", without the lock. NULL: nobody listens. */
void ebpfMonQueryResultsSetListener(ebpfMonQueryResults *results, void (*changed)(int number));

#endif
