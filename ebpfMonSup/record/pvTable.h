/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which PV shows which published value. A PV is one line of the table in pvTable.c, or of one of a module (struct
 * ebpfMonPv in ebpfMonModule.h). Its name is the text after the "@"
 * in the field INP. The functions that get published values or a row need the lock of the published values, and a row
 * is valid as long as the caller holds it. The others: any thread, without a lock.
 */
#ifndef EBPFMON_PVTABLE_H
#define EBPFMON_PVTABLE_H

#include <stddef.h>
#include <stdint.h>

#include <epicsTypes.h>

#include "ebpfMonModule.h"
#include "model/published.h"

/* Finds a PV by its name, also one of a module. "watch": nonzero, a PV of ebpfMonWatch.db; 0, any other one. NULL:
 * there is none. */
const ebpfMonPv *ebpfMonPvFind(const char *name, int watch);

int ebpfMonPvIsText(const ebpfMonPv *pv);
/* Nonzero: it is a column of IOCS, IOC_HEALTH or IOC_DELAYS, which have one row for each IOC. */
int ebpfMonPvIsOfIoc(const ebpfMonPv *pv);
/* The row of this IOC in such a column; NULL: there is no such IOC. */
const void *ebpfMonPvIocRow(const ebpfMonPublished *published, const ebpfMonPv *pv, const char *ioc);

/* Nonzero: its rows are puts of one list (ebpfMonPut.serial). */
int ebpfMonPvHasPuts(const ebpfMonPv *pv);

/* "row" must not be NULL. */
int64_t ebpfMonPvInteger(const ebpfMonPv *pv, const void *row);
double ebpfMonPvDouble(const ebpfMonPv *pv, const void *row);
/* Nonzero: the number is not known of this row (member "gaps"). */
int ebpfMonPvIsGap(const ebpfMonPv *pv, const void *row);

/* Writes the value as text. Nonzero: the text was cut. If "row" is NULL the text is empty, or says that there was no
 * put yet. */
int ebpfMonPvText(const ebpfMonPv *pv, const void *row, char *buf, size_t size);

/* The time stamp for a record of this PV. "row": its first row. A PV that shows puts has the time of the put, any
 * other PV the time of its group. secPastEpoch is 0 if nothing has happened yet. */
epicsTimeStamp ebpfMonPvTime(const ebpfMonPublished *published, const ebpfMonPv *pv, const void *row);

/* The alarm that a PV has in addition to its limits, such as MAJOR of PUT_BAD_* while an unexpected put is open. */
epicsEnum16 ebpfMonPvSeverity(const ebpfMonPublished *published, const ebpfMonPv *pv);
/* The cause of an alarm of this PV, for the field AMSG; empty: none is known. "row" must not be NULL. */
const char *ebpfMonPvAlarmText(const ebpfMonPv *pv, const void *row);

/* Nonzero: there is no value, because the monitor does not find the record or root of the PV, or has not measured it
 * yet. */
int ebpfMonPvMissing(const ebpfMonPublished *published, const ebpfMonPv *pv, const void *row);

#endif
