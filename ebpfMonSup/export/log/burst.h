/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The burst filter: puts to one PV in quick succession become two lines, the first put at once and a summary of all of
 * them at the end. Each PV has a burst of its own, so puts to other PVs in between do not end it; the summary names
 * every writer. One thread. Times in seconds, monotonic; they come from the caller.
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
    int      hasRange;     /* all values were single numbers */
    double   min, max;     /* without NaN */
    unsigned writers;      /* valid entries, the first to write first */
    ebpfMonBurstWriter writer[EBPFMON_BURST_WRITERS];
    unsigned long others;  /* puts by further writers */
} ebpfMonBurstInfo;

/* Gets each line. info is NULL for a single put; else it is a summary, and "put" is the last put with the old value of
 * the first. */
typedef void (*ebpfMonBurstSink)(void *arg, const ebpfMonPut *put, const ebpfMonBurstInfo *info);

typedef struct ebpfMonBurst ebpfMonBurst;

/*
 * "pvs": how many PVs are remembered at a time; when there are more, the burst of the PV that was quiet longest ends
 * early. A burst ends "idle" seconds after its last put, or with the first put that comes "total" seconds after its
 * first. NULL without memory.
 */
ebpfMonBurst *ebpfMonBurstNew(unsigned pvs, double idle, double total, ebpfMonBurstSink sink, void *arg);

/* Nonzero: the put became a line of its own, at once; 0: it will be in a summary. */
int ebpfMonBurstAddPut(ebpfMonBurst *b, const ebpfMonPut *put, double now);

/* Ends the bursts that are over. */
void ebpfMonBurstTick(ebpfMonBurst *b, double now);

/* Ends all bursts, then frees the filter. */
void ebpfMonBurstFree(ebpfMonBurst *b);

#endif
