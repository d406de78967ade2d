/* SPDX-License-Identifier: BSD-3-Clause */
/* What the device supports of all input record types share. */
#ifndef EBPFMON_DEVCOMMON_H
#define EBPFMON_DEVCOMMON_H

#include <dbCommon.h>
#include <dbScan.h>

#include "record/pvTable.h"

typedef struct {
    const ebpfMonPv *pv;
    unsigned row;    /* of a watched record; 0 otherwise */
    char     ioc[EBPFMON_NAME_SIZE]; /* the row is that of this IOC; empty: it is not about one IOC */
    size_t   rawSize;
    void    *raw;    /* waveform of lines or times: the rows, copied, to be formatted without the lock */
} ebpfMonDev;

/* From INP "@NAME", "@NAME record" or "@NAME ioc" to dpvt. The PV must be text, or must not be. */
long ebpfMonDevInit(dbCommon *prec, int text);

long ebpfMonDevScanList(int leaves, dbCommon *prec, IOSCANPVT *list);

/* The row that the record shows; NULL: there is none. Under the lock. */
const void *ebpfMonDevRow(const ebpfMonDev *dev, const ebpfMonPublished *published);

/* Locks the published, sets the record's time stamp and, when there is no value to be had, its alarm.
 * Not NULL: read, then ebpfMonPublishedUnlock(). NULL: nothing is locked, return -1. */
const ebpfMonPublished *ebpfMonDevBegin(dbCommon *prec);

#endif
