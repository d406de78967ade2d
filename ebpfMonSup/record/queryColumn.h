/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which record shows what of a query: INP or OUT "@query(NAME, COLUMN)". Any query may be named, also one that is loaded
 * later or never. The columns are in documentation/queries.md.
 */
#ifndef EBPFMON_QUERYCOLUMN_H
#define EBPFMON_QUERYCOLUMN_H

#include <dbCommon.h>
#include <dbScan.h>

#include "model/queryValues.h"

typedef enum { ebpfMonQueryColumnNumber, ebpfMonQueryColumnText, ebpfMonQueryColumnNumbers, ebpfMonQueryColumnTexts,
               ebpfMonQueryColumnCommand } ebpfMonQueryColumnKind;

typedef struct ebpfMonQueryColumn ebpfMonQueryColumn;

/* What a record shows; in dpvt. */
typedef struct {
    int number; /* of the result */
    char name[EBPFMON_QUERY_NAME_SIZE];
    const ebpfMonQueryColumn *column;
} ebpfMonQueryDev;

/* Sets dpvt. 0, or a status with a message. */
long ebpfMonQueryColumnInit(dbCommon *prec, ebpfMonQueryColumnKind kind);

/* The scan list of its query. */
long ebpfMonQueryColumnScanList(int leaves, dbCommon *prec, IOSCANPVT *list);

/* Locks the result, and sets the record's time and alarm. NULL: nothing is locked, and there is no value. */
const ebpfMonQueryResult *ebpfMonQueryColumnBegin(dbCommon *prec);

/* Under the lock. "row": of a column of several. */
double ebpfMonQueryColumnNumberOf(const ebpfMonQueryDev *dev, const ebpfMonQueryResult *result, unsigned row);
const char *ebpfMonQueryColumnTextOf(const ebpfMonQueryDev *dev, const ebpfMonQueryResult *result, unsigned row);
unsigned ebpfMonQueryColumnCount(const ebpfMonQueryDev *dev, const ebpfMonQueryResult *result);

/* The thread of iocInit: as ebpfMonScanInit and ebpfMonScanStop. */
void ebpfMonQueryScanInit(void);
void ebpfMonQueryScanStop(void);

#endif
