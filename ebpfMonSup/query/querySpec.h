/* SPDX-License-Identifier: BSD-3-Clause */
/* A query that was checked: what its programs do in the kernel, where they are attached, and what is published. */
#ifndef EBPFMON_QUERYSPEC_H
#define EBPFMON_QUERYSPEC_H

#include <stddef.h>

#include "code/functionSite.h"
#include "model/queryValues.h"
#include "probe/queryPrograms.h"

#define EBPFMON_QUERY_PATTERN 61

typedef enum { ebpfMonQuerySortCount, ebpfMonQuerySortRate, ebpfMonQuerySortSum, ebpfMonQuerySortMean,
               ebpfMonQuerySortMax, ebpfMonQuerySortLast } ebpfMonQuerySort;

typedef struct {
    char   name[EBPFMON_QUERY_NAME_SIZE];
    char   title[80];
    char   unit[16];
    char   ioc[EBPFMON_QUERY_PATTERN];    /* patterns (glob): which IOCs */
    char   record[EBPFMON_QUERY_PATTERN]; /* which records among the keys are shown */
    char   keyName[EBPFMON_QUERY_KEYS][EBPFMON_QUERY_CELL_SIZE];
    ebpfMonQueryOrder order;
    ebpfMonFunctionWanted function;       /* of the three sources that are functions */
    double scale;       /* from what the kernel counts to the unit */
    ebpfMonQuerySort sort;
    unsigned top;       /* rows that are published */
    unsigned metrics;   /* … and those that are sent to a collector of metrics */
    double interval;    /* s */
    double stopSeconds; /* 0: it goes on */
    double stopCount;   /* events; 0: it goes on */
    double budget;      /* percent of one core */
    int    start;       /* it starts when it is loaded */
    int    showEvents;  /* its last events are shown one by one … */
    int    showStacks;  /* … and the stacks of all, folded */
} ebpfMonQuerySpec;

typedef struct {
    unsigned count;
    ebpfMonQuerySpec spec[];
} ebpfMonQuerySet;

/* All queries of a file, which the caller frees. NULL: "why" has "file:line:column: reason. what to do". */
ebpfMonQuerySet *ebpfMonQueryParse(const char *file, const char *text, size_t length, char *why, size_t size);

/* Nonzero: it is text; else it is a number, or a record. */
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

static inline int ebpfMonQueryIsDouble(const struct ebpfMonQueryField *f)
{
    return f->what == EBPFMON_QUERY_ARG && (f->type == EBPFMON_QUERY_F32 || f->type == EBPFMON_QUERY_F64);
}

/* Nonzero: struct ebpfMonQueryWho. */
static inline int ebpfMonQueryIsWho(const struct ebpfMonQueryField *f)
{
    return f->what == EBPFMON_QUERY_AUTHOR || f->what == EBPFMON_QUERY_CLIENT;
}

/* Nonzero: struct ebpfMonQueryFile. */
static inline int ebpfMonQueryIsFile(const struct ebpfMonQueryField *f)
{
    return f->what == EBPFMON_QUERY_FILE || (f->what == EBPFMON_QUERY_ARG && f->type == EBPFMON_QUERY_SOCKET);
}

static inline int ebpfMonQueryIsSigned(const struct ebpfMonQueryField *f)
{
    return (f->what == EBPFMON_QUERY_ARG || f->what == EBPFMON_QUERY_RETURN) && f->type >= EBPFMON_QUERY_S8 &&
           f->type <= EBPFMON_QUERY_S64;
}

#endif
