/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which puts a list has shown, so that only new ones have to be formatted: a put that is published does not change any
 * more. One put changes lists of 200. The struct is the caller's; one call at a time.
 */
#ifndef EBPFMON_SHOWNPUTS_H
#define EBPFMON_SHOWNPUTS_H

#include <stdint.h>

#include "model/published.h"
#include "record/pvTable.h"

typedef struct ebpfMonShownPuts {
    unsigned count;
    uint64_t serial[EBPFMON_PUTS_MAX]; /* of its rows, the newest first */
} ebpfMonShownPuts;

/* Compares the first "max" rows of a PV that has puts with those of the last call. Returns how many are new; they stand
 * before the others, which are the first rows of the last call. "shown" has all rows now. The caller holds the lock of
 * the published values. */
unsigned ebpfMonShownPutsUpdate(ebpfMonShownPuts *shown, const ebpfMonPublished *published, const ebpfMonPv *pv,
                                unsigned max);

#endif
