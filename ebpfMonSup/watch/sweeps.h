/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Passes of scan lists, each watched by two traps, instead of chains (bpf/pass/sweep.bpf.c): the tables that the kernel
 * part needs for this, and the change from chains to passes and back. Only recordTables uses this module, in the
 * follower's thread.
 */
#ifndef EBPFMON_SWEEPS_H
#define EBPFMON_SWEEPS_H

#include "ioc/closure.h"
#include "watch/recordTablesKernel.h"
#include "watch/target.h"

/* --- the plan ---
 *
 * Finds which records each scan list processes, and whether a sweep (bpf/pass/sweep.bpf.c) can count them. A sweep
 * needs that no record processes twice between two looks. So each record must belong to one root of one scan list, and
 * each list must be scanned by one thread. Only the follower uses this module.
 */

typedef struct {
    uint64_t mutex;      /* of the scan list */
    uint32_t first, len; /* its records, in the list of the closures */
} ebpfMonSweptList;

typedef struct ebpfMonSweepPlan {
    int       fits;       /* passes can be watched */
    int       pays;       /* … and it costs less than to watch chains */
    uint32_t  longest;    /* at so many records a thread looks at most while it holds a lock set, because it enters or
                           * leaves a group */
    uint32_t  records;
    uint64_t *listOf;     /* by record: the mutex of its scan list; 0: it is in none */
    uint32_t  listCount;
    ebpfMonSweptList *list;
    uint32_t *group;      /* by record: the first record of its group (all records that links connect) */
    uint32_t *groupFirst; /* by first record of a group: its records that lists process, in the list of the closures */
    uint32_t *groupLen;
    uint8_t  *isShared;   /* by record: it may be processed twice between two looks, so it does not fit */
    void     *arrays;     /* the block of all of these */
} ebpfMonSweepPlan;

/* Makes the plan from the present scan lists and links. Appends to the list of "c". "isSerial": no list is scanned by
 * two threads at a time. NULL without memory, or if the IOC's does not answer. */
ebpfMonSweepPlan *ebpfMonSweepPlanMake(const ebpfMonTarget *t, ebpfMonClosures *c, int isSerial);
void ebpfMonSweepPlanFree(ebpfMonSweepPlan *plan); /* NULL does no harm */

/* --- the tables --- */

/* Puts a plan in force, instead of the one before, and owns it; its closures must be in force. 0, or -1: there is no
 * room for its lists; then the plan before stays, and this one is freed. */
int  ebpfMonSweepsWrite(const ebpfMonRecordTablesKernel *kernel, ebpfMonTarget *t, ebpfMonSweepPlan *plan);

/* Notes that no thread is inside a group. Call it before sweeps begin. */
void ebpfMonSweepsReset(ebpfMonTarget *t);

/* Removes what Write put into the tables. */
void ebpfMonSweepsRemove(const ebpfMonRecordTablesKernel *kernel, ebpfMonTarget *t);

/* Call it while both passes and chains are watched. Nonzero: every processing was counted, so the passes need not be
 * watched any more. */
int  ebpfMonSweepsAreSettled(const ebpfMonTarget *t);

/* A byte for each record, nonzero: it may have processed twice between two looks. NULL without memory. */
uint8_t *ebpfMonSweepsFindUnsettled(const ebpfMonTarget *t);

#endif
