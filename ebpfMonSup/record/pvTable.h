/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which PV shows what of the published. A PV is one line of the table in pvTable.c; its name is what stands in
 * INP after the "@". Getters are to be called under the published's lock.
 */
#ifndef EBPFMON_PVTABLE_H
#define EBPFMON_PVTABLE_H

#include <stddef.h>
#include <stdint.h>

#include <epicsTypes.h>

#include "model/published.h"

/* What lies at a PV's place in its row. Everything from ebpfMonCellText on is text. */
typedef enum {
    ebpfMonCellInt,      /* int, enum */
    ebpfMonCellUnsigned,
    ebpfMonCellCount,    /* uint64_t */
    ebpfMonCellDouble,
    ebpfMonCellText,     /* char[] */
    ebpfMonCellLevel,    /* ebpfMonLevel, by name */
    ebpfMonCellTime,     /* epicsTimeStamp */
    ebpfMonCellPutLine   /* a whole ebpfMonPut */
} ebpfMonCell;

/* Row number "index", newest or largest first; NULL after the last one. */
typedef const void *(*ebpfMonRowGet)(const ebpfMonPublished *published, unsigned index);

typedef struct {
    const char   *name;
    ebpfMonGroup  group;
    ebpfMonRowGet row;
    ebpfMonCell   cell;
    size_t        offset; /* in the row */
    int           always; /* has a meaning while the monitor does not run */
} ebpfMonPv;

/* "watch": of a record's own scalars, else of the host's PVs. NULL when there is none. */
const ebpfMonPv *ebpfMonPvFind(const char *name, int watch);

int ebpfMonPvIsText(const ebpfMonPv *pv);

/* "row" must not be NULL. */
int64_t ebpfMonPvInteger(const ebpfMonPv *pv, const void *row);
double ebpfMonPvDouble(const ebpfMonPv *pv, const void *row);

/* Nonzero when the text was cut. A NULL row is no text, or says that there was no put yet. */
int ebpfMonPvText(const ebpfMonPv *pv, const void *row, char *buf, size_t size);

/* Time stamp for a record of this PV, whose (first) row is "row": of the put for what shows puts, of the
 * group otherwise; secPastEpoch 0 when nothing has happened yet. */
epicsTimeStamp ebpfMonPvTime(const ebpfMonPublished *published, const ebpfMonPv *pv, const void *row);

/* The alarm that a PV has besides its limits: MAJOR for all of unexpected puts while one is open, MINOR for RULES_MSG
 * when the last rules were refused, MAJOR for IOC_EVENTS while an IOC is missing or hangs, for
 * HANG_STACKS while one hangs. */
epicsEnum16 ebpfMonPvSeverity(const ebpfMonPublished *published, const ebpfMonPv *pv);

/* Nonzero when the PV asks for something that the monitor cannot find (a record, a chain root). */
int ebpfMonPvMissing(const ebpfMonPublished *published, const ebpfMonPv *pv, const void *row);

#endif
