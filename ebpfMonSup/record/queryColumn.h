/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which value of a query a record shows: INP or OUT "@query(NAME, COLUMN)". The query need not be loaded; it may be
 * loaded later or never. documentation/use/queries.md lists the columns.
 */
#ifndef EBPFMON_QUERYCOLUMN_H
#define EBPFMON_QUERYCOLUMN_H

#include <dbCommon.h>
#include <dbScan.h>

#include "model/queryValues.h"

typedef enum { ebpfMonQueryColumnNumber, ebpfMonQueryColumnText, ebpfMonQueryColumnNumbers, ebpfMonQueryColumnTexts,
               ebpfMonQueryColumnCommand } ebpfMonQueryColumnKind;

typedef struct ebpfMonQueryColumn ebpfMonQueryColumn;

/* What a record shows; its DPVT. It is never freed. */
typedef struct {
    int number; /* number of the result (model/queryValues.h) */
    char name[EBPFMON_QUERY_NAME_SIZE];
    const ebpfMonQueryColumn *column;
} ebpfMonQueryDev;

/* Reads INP or OUT, and sets DPVT. A waveform of texts may show a column of numbers, too. 0, or a status for Base after
 * a message. The thread of iocInit. */
long ebpfMonQueryColumnInit(dbCommon *prec, ebpfMonQueryColumnKind kind);

/* The function getIoIntInfo of the device supports: the scan list of the query. */
long ebpfMonQueryColumnScanList(int leaves, dbCommon *prec, IOSCANPVT *list);

/* Begins to read the value of a record: locks the result, and sets the record's time stamp and alarm. Not NULL: the
 * caller reads the value and then calls ebpfMonQueryColumnEnd(). NULL: there is no value, and nothing is locked. */
const ebpfMonQueryResult *ebpfMonQueryColumnBegin(dbCommon *prec);
/* Unlocks the result. */
void ebpfMonQueryColumnEnd(void);

/* Read the value. The caller holds the lock. "row": the row, if the column has several; else 0. */
double ebpfMonQueryColumnNumberOf(const ebpfMonQueryDev *dev, const ebpfMonQueryResult *result, unsigned row);
const char *ebpfMonQueryColumnTextOf(const ebpfMonQueryDev *dev, const ebpfMonQueryResult *result, unsigned row);
/* The same as a text, of a column with rows. A number has so many digits after the point; one that is not known is
 * empty. */
void ebpfMonQueryColumnPrint(const ebpfMonQueryDev *dev, const ebpfMonQueryResult *result, unsigned row, int digits,
                             char *text, size_t size);
unsigned ebpfMonQueryColumnCount(const ebpfMonQueryDev *dev, const ebpfMonQueryResult *result);

/* The thread of iocInit calls both, at the same times as ebpfMonScanInit and ebpfMonScanStop. */
void ebpfMonQueryScanInit(void);
void ebpfMonQueryScanStop(void);

#endif
