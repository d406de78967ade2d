/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stretches of a chain: records each of which is processed by the forward link of the one before, and by no
 * other record. The time stamp of the last one is then enough for all of them: recGblFwdLink comes after a
 * record's time stamp, so none of them is later than the last, and the last cannot have processed without them.
 * Works on numbers alone.
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
 * forward link, or EBPFMON_NO_RECORD. skip[i]: nonzero: its time stamp does not show each processing, or it may process twice.
 * No stretch is longer than "max" + 1 records. NULL without memory. */
ebpfMonStretches *ebpfMonStretchesMake(uint32_t n, const uint32_t *order, const uint32_t *start,
                                       const uint32_t *to, const uint32_t *fwd, const uint8_t *skip,
                                       unsigned max);
void ebpfMonStretchesFree(ebpfMonStretches *s);

/* The record before this one in its stretch, or EBPFMON_NO_RECORD. */
uint32_t ebpfMonStretchBefore(const ebpfMonStretches *s, uint32_t record);

#endif
