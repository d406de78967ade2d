/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A list of the monitor as a table: its columns are arrays of equal length. They are read together when one of them
 * changed, and taken over only if all have the same time stamp: then they are of one moment (record/devCommon.c of the
 * monitor sets it). Until that is so, the table before is shown.
 */
#ifndef TOPTABLE_H
#define TOPTABLE_H

#include "topPvs.h"
#include "topSheet.h"

#define TOP_COLUMNS_MAX 10
#define TOP_FILTER_SIZE 64

typedef enum {
    topAsText,
    topAsTime,    /* the text of a time; where there is little room without its date and microseconds */
    topAsCount,   /* a number, no digit after the point */
    topAsTenths, topAsThousandths,
    topAsFlag     /* not shown; says something of its row */
} topFormat;

typedef enum {
    topFlagNothing,
    topFlagMajor,   /* not 0: the row is MAJOR */
    topFlagMinor,
    topFlagAtLeast  /* not 0: the first number of the row is a lower bound */
} topFlag;

typedef struct {
    const char *name;    /* of the PV */
    const char *heading;
    topFormat   format;
    topFlag     flag;
} topColumnIs;

typedef struct {
    const char *title;
    topColumnIs column[TOP_COLUMNS_MAX]; /* up to the first without a name */
    int         records; /* the column whose texts are records, or PVs of them; -1: none */
    int         severity; /* of all of its rows: 0, or topMajor */
} topTableIs;

typedef struct {
    topPv   *pv;
    struct topTable *table;
    unsigned seen;       /* pv->changes when it was read last */
    char   (*texts)[MAX_STRING_SIZE], (*newTexts)[MAX_STRING_SIZE];
    double  *numbers, *newNumbers;
    size_t   room, newRoom;
    unsigned count, newCount;
    int      severity, newSeverity;
    epicsTimeStamp time, newTime;
    int      isNew;      /* the new ones came */
} topColumn;

typedef struct topTable {
    const topTableIs *is;
    topColumn column[TOP_COLUMNS_MAX];
    unsigned  columns;
    unsigned  rows;
    int       isKnown;   /* it was whole once */
    int       waiting;   /* answers that are to come */
    unsigned  tries;     /* readings in a row whose columns were of several moments */
    unsigned  changes;   /* how often it was taken over */
    int       sortBy;    /* column; -1: in the order of the monitor */
    int       isReversed;
} topTable;

/* 0, or -1 with a message. "table" is all zero, and stays where it is. */
int topTableOpen(topTable *table, const topTableIs *is, topPvs *pvs);
void topTableClose(topTable *table);

/* Asks for its columns if one of them changed. Nonzero: it is up to date. */
int topTableRead(topTable *table);

/* Nonzero: its values can be believed. */
int topTableIsValid(const topTable *table);

/* The name of the record in a row, without its field and IOC: "A:B" of "A:B.HIGH" and of "A:B@ioc". */
void topTableGetRecord(const topTable *table, unsigned row, char *name, size_t size);

/* Which rows to show, in which order, at most "max". "filter": part of a text of the row, or a pattern with * and ?;
 * "record": rows of this record only. Both may be empty. Returns their number. */
unsigned topTableChoose(const topTable *table, const char *filter, const char *record, unsigned *rows, unsigned max);

/* A cell as it is shown. "isBrief": little room. */
void topTableFormat(const topTable *table, unsigned row, unsigned column, int isBrief, char *text, size_t size);

/* topPlain, or how bad the row is. */
topStyle topTableGetStyle(const topTable *table, unsigned row);

#endif
