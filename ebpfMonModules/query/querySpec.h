/* SPDX-License-Identifier: BSD-3-Clause */
/* The specification of a query that was checked: what its programs do in the kernel, where they are attached, and
 * what is published. No shared state. */
#ifndef EBPFMON_QUERYSPEC_H
#define EBPFMON_QUERYSPEC_H

#include <stddef.h>

#include "shared/functionSite.h"
#include "query/queryValues.h"
#include "query/queryPrograms.h"

#define EBPFMON_QUERY_PATTERN 61

typedef enum { ebpfMonQuerySortCount, ebpfMonQuerySortRate, ebpfMonQuerySortSum, ebpfMonQuerySortMean,
               ebpfMonQuerySortMax, ebpfMonQuerySortLast } ebpfMonQuerySort;

/* What a row has a distribution of, over puts. Without puts it is the value of the events. */
typedef enum { ebpfMonQueryNoPuts, ebpfMonQueryPutCount, ebpfMonQueryPutSum } ebpfMonQueryPerPut;

typedef struct {
    char   name[EBPFMON_QUERY_NAME_SIZE];
    char   title[80];
    char   unit[16];
    char   ioc[EBPFMON_QUERY_PATTERN];    /* pattern (glob) of the IOCs at which it looks */
    char   record[EBPFMON_QUERY_PATTERN]; /* pattern of the records in keys that are shown; "": all */
    char   keyName[EBPFMON_QUERY_KEYS][EBPFMON_QUERY_CELL_SIZE];
    ebpfMonQueryOrder order;
    ebpfMonFunctionWanted function;       /* for sources that are functions or USDT probes */
    ebpfMonQueryPerPut perPut;
    double settle;      /* s; a put without an event for so long is over */
    double scale;       /* factor from the kernel part's value to the unit */
    ebpfMonQuerySort sort;
    unsigned top;       /* rows that are published */
    unsigned metrics;   /* the first of these rows, which are sent to a collector of metrics */
    double interval;    /* s between two looks */
    double history;     /* s of a column in the history of its histogram */
    double stopSeconds; /* it stops after this time; 0: never */
    double stopCount;   /* it stops after so many events; 0: never */
    double budget;      /* percent of one core */
    int    start;       /* nonzero: it starts when it is loaded */
    int    showEvents;  /* nonzero: its last events are shown one by one */
    int    showStacks;  /* nonzero: the stacks of all its events are shown, folded */
} ebpfMonQuerySpec;

typedef struct {
    unsigned count;
    ebpfMonQuerySpec spec[];
} ebpfMonQuerySet;

/* Reads all queries of a file; the caller frees the set by free(). NULL: "why" has "file:line:column: reason. What
 * to do". Any thread. */
ebpfMonQuerySet *ebpfMonQueryParse(const char *file, const char *text, size_t length, char *why, size_t size);

/* Reads all queries of the file; the caller frees the set by free(). "path" (PATH_MAX bytes) gets the full name of
 * the file. NULL: "why" says what is wrong and what to do. */
ebpfMonQuerySet *ebpfMonQueryFileRead(const char *file, char *path, char *why, size_t size);

/* --- Kinds of fields; nonzero: the field is of this kind --- */

static inline int ebpfMonQueryIsText(const struct ebpfMonQueryField *f)
{
    return f->what == EBPFMON_QUERY_THREAD || f->what == EBPFMON_QUERY_BEFORE ||
           (f->what == EBPFMON_QUERY_ARG && f->type == EBPFMON_QUERY_CHARS);
}

static inline int ebpfMonQueryIsRecord(const struct ebpfMonQueryField *f)
{
    return f->what == EBPFMON_QUERY_ROOT || f->what == EBPFMON_QUERY_IN_HAND ||
           (f->what == EBPFMON_QUERY_ARG && f->type == EBPFMON_QUERY_RECORD);
}

static inline int ebpfMonQueryIsLock(const struct ebpfMonQueryField *f)
{
    return f->what == EBPFMON_QUERY_ARG && f->type == EBPFMON_QUERY_LOCK;
}

static inline int ebpfMonQueryIsDouble(const struct ebpfMonQueryField *f)
{
    return f->what == EBPFMON_QUERY_ARG && (f->type == EBPFMON_QUERY_F32 || f->type == EBPFMON_QUERY_F64);
}

/* Its bytes are a struct ebpfMonQueryWho. */
static inline int ebpfMonQueryIsWho(const struct ebpfMonQueryField *f)
{
    return f->what == EBPFMON_QUERY_AUTHOR || f->what == EBPFMON_QUERY_CLIENT ||
           (f->what == EBPFMON_QUERY_ARG && f->type == EBPFMON_QUERY_CA_CLIENT);
}

/* Its bytes are a struct ebpfMonQueryFile. */
static inline int ebpfMonQueryIsFile(const struct ebpfMonQueryField *f)
{
    return f->what == EBPFMON_QUERY_FILE || (f->what == EBPFMON_QUERY_ARG && f->type == EBPFMON_QUERY_SOCKET);
}

/* Its rows have a value besides their count: that of the events, or that of the puts. */
static inline int ebpfMonQueryHasValue(const ebpfMonQuerySpec *spec)
{
    return spec->perPut || spec->order.plan.value.what != EBPFMON_QUERY_NOTHING;
}

/* One of the keys is the site (queryCells.h). */
static inline int ebpfMonQueryHasSite(const struct ebpfMonQueryPlan *plan)
{
    for (unsigned i = 0; i < plan->keys; i++)
        if (plan->key[i].what == EBPFMON_QUERY_SITE)
            return 1;
    return 0;
}

static inline int ebpfMonQueryIsSigned(const struct ebpfMonQueryField *f)
{
    return (f->what == EBPFMON_QUERY_ARG || f->what == EBPFMON_QUERY_RETURN) && f->type >= EBPFMON_QUERY_S8 &&
           f->type <= EBPFMON_QUERY_S64;
}

#endif
