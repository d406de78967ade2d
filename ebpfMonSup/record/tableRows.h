/* SPDX-License-Identifier: BSD-3-Clause */
/* The cells of a table at one moment, as a person wants to read them: copied under the lock, formatted without it. */
#ifndef EBPFMON_TABLEROWS_H
#define EBPFMON_TABLEROWS_H

#include <epicsTime.h>
#include <epicsTypes.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ebpfMonPv; /* record/pvTable.h, which is for C only */

typedef enum {
    ebpfMonCellsText,
    ebpfMonCellsInt,
    ebpfMonCellsLong,
    ebpfMonCellsDouble
} ebpfMonCellsType;

/* A column: what it shows and where its cells go. The first members are the caller's. */
typedef struct {
    const struct ebpfMonPv *pv;
    int      precision;      /* digits after the point */
    unsigned size;           /* most rows */
    ebpfMonCellsType type;   /* ebpfMonTableCellsInit sets it, and has room for the cells */
    union {
        char        **text;  /* each allocated */
        epicsInt32   *integer;
        epicsInt64   *count;
        double       *real;
    } cell;
    epicsTimeStamp *time;    /* of a column of times, before they are text */
} ebpfMonTableCells;

typedef struct {
    unsigned rows;
    epicsTimeStamp time;
    epicsEnum16 severity;    /* INVALID: the cells are those of the last time that was valid */
} ebpfMonTableMoment;

/* 0, or -1 without memory; ebpfMonTableCellsFree frees what there is. */
int ebpfMonTableCellsInit(ebpfMonTableCells *column);
void ebpfMonTableCellsFree(ebpfMonTableCells *column);

/* Reads all columns of a table. Each has the same group and the same rows as the first one. */
void ebpfMonTableRead(ebpfMonTableCells *column, unsigned columns, ebpfMonTableMoment *moment);

#ifdef __cplusplus
}
#endif

#endif
