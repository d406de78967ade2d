/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the cells of a table at one moment: copies them under the lock of the published values, and formats them
 * without it. The structs are the caller's. One call at a time for each table. */
#ifndef EBPFMON_TABLEROWS_H
#define EBPFMON_TABLEROWS_H

#include <epicsTime.h>
#include <epicsTypes.h>
#include <stdint.h>

#include "model/published.h"
#include "record/pvTable.h"

/* --- puts that are shown ---
 *
 * Which puts a list has shown, so that only new ones have to be formatted: a put that is published does not change any
 * more, but the newest row of a run gives its place to the next put. One put changes lists of 200. The struct is the
 * caller's; one call at a time. */

typedef struct ebpfMonShownPuts {
    unsigned count;
    uint64_t serial[EBPFMON_PUTS_MAX]; /* of its rows, the newest first */
} ebpfMonShownPuts;

/* Compares the first "max" rows of a PV that has puts with those of the last call. Returns how many are new; they stand
 * before the others, which were rows of the last call and have moved on by "moved". "shown" has all rows now. The
 * caller holds the lock of the published values. */
unsigned ebpfMonShownPutsUpdate(ebpfMonShownPuts *shown, const ebpfMonPublished *published, const ebpfMonPv *pv,
                                unsigned max, unsigned *moved);

/* --- rows --- */

#ifdef __cplusplus
extern "C" {
#endif

struct ebpfMonPv; /* record/pvTable.h and record/tableRows.h, which are for C only */
struct ebpfMonShownPuts;

typedef enum {
    ebpfMonCellsText,
    ebpfMonCellsInt,
    ebpfMonCellsLong,
    ebpfMonCellsDouble
} ebpfMonCellsType;

/* A column. The caller sets pv, precision, scale and size. */
typedef struct {
    const struct ebpfMonPv *pv;
    int      precision;      /* digits after the point */
    double   scale;          /* the value of a cell for 1 in the waveform */
    unsigned size;           /* rows at most */
    ebpfMonCellsType type;   /* ebpfMonTableCellsInit sets it and what follows */
    union {
        char        **text;  /* each text has memory of its own */
        epicsInt32   *integer;
        epicsInt64   *count;
        double       *real;
    } cell;
    epicsTimeStamp *time;    /* times before they are formatted as text; NULL: the column has no times */
    char     day[16];        /* of the first time; puts of other days show their date */
    struct ebpfMonShownPuts *shown; /* of the first column of a table of puts; else NULL */
} ebpfMonTableCells;

typedef struct {
    unsigned rows;
    epicsTimeStamp time;
    epicsEnum16 severity;    /* INVALID: there are no values, and the cells are the last valid ones */
} ebpfMonTableMoment;

/* Gets memory for the cells. 0, or -1 without memory; then call ebpfMonTableCellsFree, too. */
int ebpfMonTableCellsInit(ebpfMonTableCells *column);
void ebpfMonTableCellsFree(ebpfMonTableCells *column);

/* Reads all columns of a table. All columns must have the group and the rows of the first one. The caller does not
 * hold the lock of the published values. */
void ebpfMonTableRead(ebpfMonTableCells *column, unsigned columns, ebpfMonTableMoment *moment);

#ifdef __cplusplus
}
#endif

#endif
