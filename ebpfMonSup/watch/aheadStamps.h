/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Was the clock set back before the monitor began to count? Then records have time stamps that are later than now, and
 * the next processing of each of them has an earlier one, which shows no processing. A clock that only runs ahead gives
 * later ones. The follower's.
 */
#ifndef EBPFMON_AHEADSTAMPS_H
#define EBPFMON_AHEADSTAMPS_H

#include <sys/types.h>

#include "ioc/catalogue.h"

/* The records that had such a stamp, and have not processed since. Zeros: none. */
typedef struct {
    struct ebpfMonAheadStamp *of;
    uint32_t count, room;
    uint32_t next;   /* place at which the next look begins */
    int      isFull; /* there was no memory for one of them */
    uint64_t latest; /* ns since 1970: the clock of the IOC runs ahead, and was so late at least. 0: not known */
} ebpfMonAheadStamps;

/* The record begins to be counted with this time stamp (as it lies in the record). */
void ebpfMonAheadStampsAdd(ebpfMonAheadStamps *ahead, uint32_t index, uint64_t stamp);

/* Looks at some hundreds of the records. Nonzero: one has an earlier stamp than at first, or may have had one. */
int ebpfMonAheadStampsWentBack(ebpfMonAheadStamps *ahead, pid_t pid, const ebpfMonCatalogue *cat);

/* Forgets all of them. */
void ebpfMonAheadStampsClear(ebpfMonAheadStamps *ahead);

#endif
