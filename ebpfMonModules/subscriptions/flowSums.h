/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the clients of one watched record have in all, and those of one IOC (ebpfMonSubscriptionsWatch.db,
 * ebpfMonSubscriptionsIoc.db). Only the thread of subscriptions.c uses this module.
 */
#ifndef EBPFMON_FLOWSUMS_H
#define EBPFMON_FLOWSUMS_H

#include "subscriptions/flowIoc.h"

#define EBPFMON_FLOW_SUMS 1024

typedef struct {
    char     ioc[EBPFMON_IOCNAME_SIZE]; /* of that of an IOC */
    int      isKnown;       /* of a record: an IOC whose subscriptions are read has it */
    unsigned subscriptions, stalled; /* stalled: that wait for a client that does not take them */
    unsigned waiting;       /* updates */
    double   silence;       /* s: for how long at most a client does not take what waits; 0: none */
    double   mergedRate;    /* 1/s; NaN: not known, because an array is among them */
} ebpfMonFlowSum;

typedef struct flowSumPlace flowSumPlace;

typedef struct {
    ebpfMonFlowSum *row;    /* the caller's, EBPFMON_FLOW_SUMS of them; one for each watched record */
    unsigned rows;
    flowSumPlace *place;    /* where the IOCs have them */
    size_t   places, room;
} ebpfMonFlowSums;

/* Finds the watched records in these IOCs. "row" is all zero. */
void ebpfMonFlowSumsBegin(ebpfMonFlowSums *sums, ebpfMonFlowSum *row, const ebpfMonFlowIoc *ioc, unsigned iocs);

/* One subscription. */
typedef struct {
    int      isStalled;     /* its client is (ebpfMonFlowIsStalled) … */
    double   silence;       /* … for so many seconds */
    uint32_t waiting;
    double   mergedRate;    /* NaN: not known */
} ebpfMonFlowSumPart;

void ebpfMonFlowSumsAdd(ebpfMonFlowSums *sums, const ebpfMonFlowIoc *ioc, long record, const ebpfMonFlowSumPart *part);
void ebpfMonFlowSumAdd(ebpfMonFlowSum *sum, const ebpfMonFlowSumPart *part);

#endif
