/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The burst filter: puts to one PV in quick succession become two lines, the first put at once and a summary of all of
 * them at the end. Each PV has a burst of its own, so others in between do not end it; every writer is named.
 * A pure data structure: time comes from the caller (seconds, monotonic), and one thread uses it.
 */
#ifndef EBPFMON_BURST_H
#define EBPFMON_BURST_H

#include "model/put.h"

#define EBPFMON_BURST_WRITERS 8

typedef struct {
    char user[40], host[64];
    unsigned long count;
} ebpfMonBurstWriter;

typedef struct {
    unsigned long puts;    /* of the whole burst, with the first */
    int      hasRange;     /* all were single numbers */
    double   min, max;     /* NaN is not counted */
    unsigned writers;      /* valid entries, the first to write first */
    ebpfMonBurstWriter writer[EBPFMON_BURST_WRITERS];
    unsigned long others;  /* puts by further writers */
} ebpfMonBurstInfo;

/* A line: info is NULL for a single put; else put is the last one, with the old value of the first. */
typedef void (*ebpfMonBurstEmit)(void *arg, const ebpfMonPut *put, const ebpfMonBurstInfo *info);

typedef struct ebpfMonBurst ebpfMonBurst;

/* pvs: remembered at a time; when there are more, the burst of the PV that was quiet longest ends early.
 * A burst ends idle seconds after its last put, or with the first put that is total seconds after its first. */
ebpfMonBurst *ebpfMonBurstCreate(unsigned pvs, double idle, double total, ebpfMonBurstEmit emit, void *arg);

/* Nonzero: it is a line of its own, emitted; 0: it is joined with others. */
int ebpfMonBurstPut(ebpfMonBurst *b, const ebpfMonPut *put, double now);

void ebpfMonBurstTick(ebpfMonBurst *b, double now);

/* Ends all bursts, and with them the filter. */
void ebpfMonBurstDestroy(ebpfMonBurst *b);

#endif
