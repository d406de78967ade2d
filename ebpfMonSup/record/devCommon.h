/* SPDX-License-Identifier: BSD-3-Clause */
/* What the device supports of all input records share. */
#ifndef EBPFMON_DEVCOMMON_H
#define EBPFMON_DEVCOMMON_H

#include <dbCommon.h>
#include <dbScan.h>

#include "record/pvTable.h"

/* What a record shows; its DPVT. It is never freed. The lock of the record guards it. */
typedef struct {
    const ebpfMonPv *pv;
    unsigned row;    /* index of the watched record; else 0 */
    char     ioc[EBPFMON_NAME_SIZE]; /* the record shows the row of this IOC; empty: it does not belong to one IOC */
    size_t   rawSize;
    void    *raw;    /* waveform of lines or times: copies of the rows, which are formatted without the lock */
    struct ebpfMonPutTexts *puts; /* waveform of text whose rows are puts; else NULL */
} ebpfMonDev;

/* Reads INP "@NAME", "@NAME record" or "@NAME ioc", and sets DPVT. "text": nonzero, the PV must be text; 0, it must
 * be a number. 0, or a status for Base after a message. The thread of iocInit. */
long ebpfMonDevInit(dbCommon *prec, int text);

/* The functions getIoIntInfo of the device supports: of records that show a value, and of those that show rows
 * (record/pvScan.h). */
long ebpfMonDevScanValue(int leaves, dbCommon *prec, IOSCANPVT *list);
long ebpfMonDevScanRows(int leaves, dbCommon *prec, IOSCANPVT *list);

/* The row that the record shows; NULL: there is none. The caller holds the lock of the published values. */
const void *ebpfMonDevRow(const ebpfMonDev *dev, const ebpfMonPublished *published);

/* Begins to read the value of a record: locks the published values, and sets the record's time stamp. Not NULL: the
 * caller reads the value and then calls ebpfMonPublishedUnlock(). NULL: there is no value, the alarm is set, and
 * nothing is locked; the caller returns -1. */
const ebpfMonPublished *ebpfMonDevBegin(dbCommon *prec);

#endif
