/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A list of the monitor as a table: its columns are arrays of the same length. If one of them changes, all are read
 * together. The answers are shown only if all have the same time stamp, because then they are values of the same moment
 * (record/devCommon.c of the monitor sets the time stamp). Until then the old rows are shown. One thread (topPvs.h).
 */
#ifndef EBPFMON_TOPTABLE_H
#define EBPFMON_TOPTABLE_H

#include <compilerDependencies.h>
#include <stddef.h>
#include <stdio.h>
#include "topPvs.h"

/* --- the sheet ---
 *
 * Lines of text with styles, which are made before they are drawn or printed. All text is cleaned here
 * (common/text.h): it is valid UTF-8 without control characters, because it may come from other programs. One
 * thread.
 */

typedef enum {
    topPlain, topMinor, topMajor, topInvalid, /* in the order of the alarm severities */
    topTitle, topHeading, topDim, topBar,
    topStyles
} topStyle;

#define TOP_SELECTED 0x100 /* a bit that can be added to a style */

typedef struct { /* neighbouring characters of one style */
    size_t   at, length; /* bytes of "text" */
    unsigned style;
} topRun;

typedef struct {
    char    *text;
    topRun  *run;
    size_t  *line;       /* for each line the index of the run behind its last one */
    size_t   length, runs, lines;
    size_t   textRoom, runRoom, lineRoom;
    int      columns;    /* columns of the present line so far */
    int      isShort;    /* something is missing, because there was no memory */
} topSheet;

void topSheetClear(topSheet *sheet);
void topSheetFree(topSheet *sheet);

/* Adds text to the present line. */
void topSheetAdd(topSheet *sheet, unsigned style, const char *format, ...) EPICS_PRINTF_STYLE(3, 4);
/* Adds blanks up to this column. */
void topSheetFill(topSheet *sheet, unsigned style, int column);
void topSheetEndLine(topSheet *sheet);

/* The runs of a line: the index of the first one, and of the one behind the last. */
size_t topSheetFirstRun(const topSheet *sheet, size_t line);
size_t topSheetEndRun(const topSheet *sheet, size_t line);

/* Prints all lines, without styles and without blanks at their ends. */
void topSheetPrint(const topSheet *sheet, FILE *out);

/* The number of columns that a clean text takes on a terminal. */
int topTextWidth(const char *text, size_t length);
/* The number of its bytes that fit into so many columns. */
size_t topTextFit(const char *text, size_t length, int columns);

/* --- tables --- */

#define TOP_COLUMNS_MAX 10
#define TOP_FILTER_SIZE 64

typedef enum {
    topAsText,
    topAsTime,    /* the text of a time; if there is little room, without date and microseconds */
    topAsCount,   /* a number without digits after the point */
    topAsTenths, topAsThousandths, /* a number with one or three digits after the point */
    topAsMillis,  /* a time in us, shown in ms with three digits after the point */
    topAsFlag     /* not shown; it tells something about its row (topFlag) */
} topFormat;

typedef enum {
    topFlagNothing,
    topFlagMajor,   /* not 0: the row is MAJOR */
    topFlagMinor,
    topFlagSeverity, /* the row has this severity */
    topFlagAtLeast, /* not 0: the first number of the row is a lower bound */
    topFlagResult   /* a text: the row is MINOR if the put was not made as it was sent */
} topFlag;

typedef enum {
    topFitUsual,
    topFitKeep, /* on a narrow screen it stays wide … */
    topFitFirst /* … and this one goes first */
} topFit;

typedef struct {
    const char *name;    /* of the PV */
    const char *heading;
    topFormat   format;
    topFlag     flag;
    topFit      fit;
} topColumnSpec;

typedef struct {
    const char *title;
    topColumnSpec column[TOP_COLUMNS_MAX]; /* ends with the first one without a name */
    int         records; /* index of the column that has records, or PVs of records; -1: none */
    int         severity; /* style of all rows: 0, or topMajor */
} topTableSpec;

typedef struct {
    topPv   *pv;
    struct topTable *table;
    unsigned seen;       /* pv->changes at the last reading */
    char   (*texts)[MAX_STRING_SIZE], (*newTexts)[MAX_STRING_SIZE];
    double  *numbers, *newNumbers;
    size_t   room, newRoom;
    unsigned count, newCount;
    int      severity, newSeverity;
    epicsTimeStamp time, newTime;
    int      isNew;      /* the answer to the last reading has come */
} topColumn;

typedef struct topTable {
    const topTableSpec *spec;
    topColumn column[TOP_COLUMNS_MAX];
    unsigned  columns;
    unsigned  rows;
    int       isKnown;   /* all columns were read once */
    int       waiting;   /* answers that have not come yet */
    unsigned  tries;     /* readings in a row with columns of different times */
    unsigned  changes;   /* how often new rows were shown */
    int       sortBy;    /* index of the column; -1: the order of the monitor */
    int       isReversed;
} topTable;

/* Connects the columns. "table" is all zero, and must not be moved; "spec" must stay. 0, or -1 after a message. */
int topTableOpen(topTable *table, const topTableSpec *spec, topPvs *pvs);
void topTableClose(topTable *table);

/* Requests its columns if one of them has changed; does not wait. Nonzero: the table is up to date. */
int topTableRead(topTable *table);

/* Nonzero: its values are valid. */
int topTableIsValid(const topTable *table);

/* Copies the name of the record in a row, without field and IOC: "A:B" for "A:B.HIGH" and for "A:B@ioc". A name that is
 * cut keeps its "...". "": there is none. */
void topTableGetRecord(const topTable *table, unsigned row, char *name, size_t size);

/* Nonzero: only the beginning of this name of a record is known, because an element of a list has 39 characters. */
int topTableIsCut(const char *name);

/* Chooses which rows are shown and in which order, at most "max". "filter": only rows that have this text, or match
 * this pattern with * and ?; "record": only rows of this record, and those that may be of it because a name is cut.
 * Both may be "". Sets "rows" to indexes; returns their number. */
unsigned topTableChoose(const topTable *table, const char *filter, const char *record, unsigned *rows, unsigned max);

/* Writes the text of a cell. "isBrief": there is little room. */
void topTableFormat(const topTable *table, unsigned row, unsigned column, int isBrief, char *text, size_t size);

/* The style of a row: topPlain, topMinor or topMajor. */
topStyle topTableGetStyle(const topTable *table, unsigned row);

#endif
