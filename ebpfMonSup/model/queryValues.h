/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What queries found: one result for each query, by name. The room query/ writes them, records and shell copy them, all
 * under one lock that is held for a copy. Afterwards the writer tells the listener which result changed.
 *
 * One list in a process, as the published values are (published.h): records are made before any query is loaded, and they
 * find its result by its name, which then is empty.
 */
#ifndef EBPFMON_QUERYVALUES_H
#define EBPFMON_QUERYVALUES_H

#include <stdint.h>
#include <epicsTime.h>

#define EBPFMON_QUERIES_MAX     64
#define EBPFMON_QUERY_NAME_SIZE 32
#define EBPFMON_QUERY_KEYS_MAX  4
#define EBPFMON_QUERY_CELL_SIZE 64
#define EBPFMON_QUERY_ROWS_MAX  100
#define EBPFMON_QUERY_BARS_MAX  64
#define EBPFMON_QUERY_EVENTS_MAX 100

typedef enum {
    ebpfMonQueryAbsent,   /* no file has a query of this name */
    ebpfMonQueryOff,
    ebpfMonQueryStarting, /* asked for; its programs are being loaded, or the monitor does not run yet */
    ebpfMonQueryRunning,
    ebpfMonQueryDone,     /* it stopped as its stopAfter says */
    ebpfMonQueryFailed    /* the message says why */
} ebpfMonQueryState;

typedef struct {
    char   key[EBPFMON_QUERY_KEYS_MAX][EBPFMON_QUERY_CELL_SIZE];
    double count, rate;                 /* rate: a second, of the last interval */
    double sum, min, max, mean, last;   /* of the value, in its unit */
    double p50, p90, p99;               /* NAN without a log2 histogram; upper edges of buckets */
} ebpfMonQueryRow;

/* One event. */
typedef struct {
    char     time[32];    /* local: "2026-03-01 12:00:00.123456789" */
    char     thread[16];
    double   cpu, value;  /* value: in its unit */
    char     key[EBPFMON_QUERY_KEYS_MAX][EBPFMON_QUERY_CELL_SIZE];
} ebpfMonQueryEventRow;

typedef struct {
    char     name[EBPFMON_QUERY_NAME_SIZE];
    char     title[80];
    char     unit[16];    /* of the value */
    char     keyName[EBPFMON_QUERY_KEYS_MAX][EBPFMON_QUERY_CELL_SIZE];
    unsigned keys;
    int      hasValue, hasHist;
    unsigned metrics;     /* rows that go to a collector of metrics */
    ebpfMonQueryState state;
    char     message[200];
    double   cost;        /* percent of one core: its traps and programs */
    uint64_t events;      /* that met the conditions */
    uint64_t dropped;     /* … and found no room, or could not be read, or whose begin could not be noted */
    unsigned found;       /* keys that there are; "rows" has the first of them */
    unsigned rows;
    int      isEstimate;  /* it looks at a sample only */
    epicsTimeStamp time;  /* of the last look */
    ebpfMonQueryRow row[EBPFMON_QUERY_ROWS_MAX];
    unsigned eventRows;   /* the last events, the newest first, if the query asks for them */
    ebpfMonQueryEventRow event[EBPFMON_QUERY_EVENTS_MAX];
    unsigned bars;        /* of the histogram, over all keys */
    double   hist[EBPFMON_QUERY_BARS_MAX], histEdge[EBPFMON_QUERY_BARS_MAX]; /* edge: the lower one, in the unit */
} ebpfMonQueryResult;

/* All functions: any thread. */

/* The number of the result with this name, which is made if there is none. -1: there are EBPFMON_QUERIES_MAX, or no
 * memory, or the name is too long. */
int ebpfMonQueryResultsAdd(const char *name);

/* How many results there are; their number grows only. */
int ebpfMonQueryResultsCount(void);

/* Never wait for anything before ebpfMonQueryResultsUnlock. The pointer stays good; its content is the lock's. */
ebpfMonQueryResult *ebpfMonQueryResultsLock(int number);
void ebpfMonQueryResultsUnlock(void);

/* The stacks of its events, folded (query/queryStacks.h): sets them, and they are freed here; a copy, which the caller frees.
 * NULL: there are none. */
void ebpfMonQueryResultsSetStacks(int number, char *text);
char *ebpfMonQueryResultsCopyStacks(int number);

/* Tells the listener. Not under the lock. */
void ebpfMonQueryResultsNotify(int number);
/* "changed" is called by whoever writes, without the lock; NULL: nobody listens. */
void ebpfMonQueryResultsSetListener(void (*changed)(int number));

#endif
