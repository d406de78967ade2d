/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which PV shows which published value. A PV is one line of the table in pvTable.c. Its name is the text after the "@"
 * in the field INP. Call these functions with the lock of the published values held; the rows are valid as long.
 */
#ifndef EBPFMON_PVTABLE_H
#define EBPFMON_PVTABLE_H

#include <stddef.h>
#include <stdint.h>

#include <epicsTypes.h>

#include "model/published.h"

/* The type of a PV's value in its row. All from ebpfMonCellText on are text. */
typedef enum {
    ebpfMonCellInt,      /* int, enum */
    ebpfMonCellUnsigned,
    ebpfMonCellCount,    /* uint64_t */
    ebpfMonCellDouble,
    ebpfMonCellText,     /* char[] */
    ebpfMonCellLines,    /* char[], several lines */
    ebpfMonCellLevel,    /* ebpfMonLevel, by name */
    ebpfMonCellTime,     /* epicsTimeStamp */
    ebpfMonCellPutLine   /* a whole ebpfMonPut */
} ebpfMonCell;

/* Row number "index", newest or largest first; NULL after the last one. */
typedef const void *(*ebpfMonRowGet)(const ebpfMonPublished *published, unsigned index);

typedef struct ebpfMonPv {
    const char   *name;
    ebpfMonGroup  group;
    ebpfMonRowGet row;
    ebpfMonCell   cell;
    size_t        offset; /* in the row */
    int           always; /* its value is valid also while the monitor does not run */
} ebpfMonPv;

/* Finds a PV by its name: with "watch" one of ebpfMonWatch.db, else one of ebpfMon.db. NULL when there is none. */
const ebpfMonPv *ebpfMonPvFind(const char *name, int watch);

int ebpfMonPvIsText(const ebpfMonPv *pv);
/* Nonzero: a column of IOCS, IOC_HEALTH or IOC_DELAYS, with one row an IOC. */
int ebpfMonPvIsOfIoc(const ebpfMonPv *pv);
/* The row of this IOC in such a column; NULL: there is no such IOC. */
const void *ebpfMonPvIocRow(const ebpfMonPublished *published, const ebpfMonPv *pv, const char *ioc);

/* "row" must not be NULL. */
int64_t ebpfMonPvInteger(const ebpfMonPv *pv, const void *row);
double ebpfMonPvDouble(const ebpfMonPv *pv, const void *row);

/* Returns nonzero when the text was cut. For a NULL row the text is empty, or says that there was no put yet. */
int ebpfMonPvText(const ebpfMonPv *pv, const void *row, char *buf, size_t size);

/* The time stamp for a record of this PV, whose (first) row is "row": that of the put for a PV that shows puts, that of
 * the group for any other. secPastEpoch is 0 when nothing happened yet. */
epicsTimeStamp ebpfMonPvTime(const ebpfMonPublished *published, const ebpfMonPv *pv, const void *row);

/* The alarm that a PV has besides its limits: PUT_BAD_* are MAJOR while an unexpected put is open, RULES_MSG is MINOR
 * when the monitor refused the newest rules, IOC_EVENTS is MAJOR while an IOC is gone or hangs, and HANG_STACKS while a
 * thread hangs. */
epicsEnum16 ebpfMonPvSeverity(const ebpfMonPublished *published, const ebpfMonPv *pv);

/* Nonzero when the PV is about a record or a root that the monitor does not find, or not measured yet. */
int ebpfMonPvMissing(const ebpfMonPublished *published, const ebpfMonPv *pv, const void *row);

#endif
