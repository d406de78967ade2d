/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The burst filter. Puts to one PV in quick succession become two lines: the first put at once, and at the end a
 * summary of all puts. Each PV has a burst of its own, so puts to other PVs do not end it. The summary names the
 * writers, but not what a put may have had of its own, such as a result. One thread. Times are monotonic seconds, which
 * the caller gives.
 */
#ifndef EBPFMON_BURST_H
#define EBPFMON_BURST_H

#include "model/put.h"

#define EBPFMON_BURST_WRITERS 8

/* Puts with the same user and host. Those without a user have the same origin, too: links and threads have neither. */
typedef struct {
    char user[40], host[64];
    unsigned long count;
    ebpfMonThrough through; /* this and "peer": of the first put */
    char peer[EBPFMON_PEER_SIZE];
    int  isUnsure;         /* as in ebpfMonPut */
} ebpfMonBurstWriter;

typedef struct {
    unsigned long puts;    /* puts of the whole burst, with the first one */
    int      hasRange;     /* nonzero: all values were single numbers */
    double   min, max;     /* of these numbers; NaN does not count */
    unsigned writers;      /* valid entries; the first writer comes first */
    ebpfMonBurstWriter writer[EBPFMON_BURST_WRITERS];
    unsigned long others;  /* puts by other writers */
} ebpfMonBurstInfo;

/* Receives each line. Single put: "info" is NULL. Summary: "put" is the last put, with the old value of the first
 * one. */
typedef void (*ebpfMonBurstSink)(void *arg, const ebpfMonPut *put, const ebpfMonBurstInfo *info);

typedef struct ebpfMonBurst ebpfMonBurst;

/*
 * Makes a filter. "pvs": number of PVs that are remembered at a time; if there are more, the burst ends early of the PV
 * that was quiet for the longest time. A burst ends "idle" seconds after its last put, or with the first put that comes
 * "total" seconds after its first one. NULL: no memory.
 */
ebpfMonBurst *ebpfMonBurstNew(unsigned pvs, double idle, double total, ebpfMonBurstSink sink, void *arg);

/* Nonzero: the put became a line at once; 0: it will be in a summary. */
int ebpfMonBurstAddPut(ebpfMonBurst *b, const ebpfMonPut *put, double now);

/* Ends the bursts that were idle for long enough. */
void ebpfMonBurstTick(ebpfMonBurst *b, double now);

/* Ends all bursts, then frees the filter. */
void ebpfMonBurstFree(ebpfMonBurst *b);

#endif
