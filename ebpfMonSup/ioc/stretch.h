/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stretches of a chain: a row of records, each of which is processed by the forward link of the record before, and by
 * no other record. The time stamp of the last record is then enough for all of them. A record calls recGblFwdLink after
 * it has set its time stamp, so no time stamp is later than the last, and the last record cannot have processed without
 * the others. This module works on numbers only.
 */
#ifndef EBPFMON_STRETCH_H
#define EBPFMON_STRETCH_H

#include <stdint.h>

#define EBPFMON_NO_RECORD UINT32_MAX

typedef struct {
    uint32_t n;
    uint32_t *order; /* by place: the record */
    uint32_t *place; /* by record */
    uint8_t  *ahead; /* by record: how many records of its stretch come after it; 0: the last, or in none */
} ebpfMonStretches;

/* "order": the records as the closures have them. Edges as in closure.h. fwd[i]: the target of record i's
 * forward link, or EBPFMON_NO_RECORD. skip[i] nonzero: the time stamp does not show each processing, or record i may
 * process twice. No stretch is longer than "max" + 1 records. NULL without memory. */
ebpfMonStretches *ebpfMonStretchesMake(uint32_t n, const uint32_t *order, const uint32_t *start,
                                       const uint32_t *to, const uint32_t *fwd, const uint8_t *skip,
                                       unsigned max);
void ebpfMonStretchesFree(ebpfMonStretches *s);

/* The record before this one in its stretch, or EBPFMON_NO_RECORD. */
uint32_t ebpfMonStretchBefore(const ebpfMonStretches *s, uint32_t record);

#endif
