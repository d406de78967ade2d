/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds which records each scan list processes, and whether a sweep (bpf/pass/sweep.bpf.c) can count them. A sweep
 * needs that no record processes twice between two looks. So each record must belong to one root of one scan list, and
 * each list must be scanned by one thread. Only the follower uses this module.
 */
#ifndef EBPFMON_SWEEPPLAN_H
#define EBPFMON_SWEEPPLAN_H

#include "ioc/closure.h"
#include "watch/target.h"

typedef struct {
    uint64_t mutex;      /* of the scan list */
    uint32_t first, len; /* its records, in the list of the closures */
} ebpfMonSweptList;

typedef struct ebpfMonSweepPlan {
    int       fits;       /* passes can be watched */
    int       pays;       /* … and it costs less than to watch chains */
    uint32_t  records;
    uint64_t *listOf;     /* by record: the mutex of its scan list; 0: it is in none */
    uint32_t  listCount;
    ebpfMonSweptList *list;
    uint32_t *group;      /* by record: the first record of its group (all records that links connect) */
    uint32_t *groupFirst; /* by first record of a group: its records that lists process, in the list of the closures */
    uint32_t *groupLen;
    uint8_t  *isShared;   /* by record: it may be processed twice between two looks, so it does not fit */
} ebpfMonSweepPlan;

/* Makes the plan from the present scan lists and links. Appends to the list of "c". "isSerial": no list is scanned by
 * two threads at a time. NULL without memory, or if the IOC's does not answer. */
ebpfMonSweepPlan *ebpfMonSweepPlanMake(const ebpfMonTarget *t, ebpfMonClosures *c, int isSerial);
void ebpfMonSweepPlanFree(ebpfMonSweepPlan *plan); /* NULL does no harm */

#endif
