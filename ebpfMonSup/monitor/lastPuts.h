/* SPDX-License-Identifier: BSD-3-Clause */
/* The last put of each thread: the chain that the thread reports next may be its. Event thread only. */
#ifndef EBPFMON_LASTPUTS_H
#define EBPFMON_LASTPUTS_H

#include "ebpfMonEvent.h"
#include "monitor/traces.h"

typedef struct {
    uint32_t iocId, tid;
    uint64_t at, id, precord;
    int      byClient;
    char     who[80]; /* "put by U@H", as in a put's cause; empty: not a client */
    int      done; /* "put" is valid */
    ebpfMonTracePut put;
} ebpfMonLastPut;

/* The put that began this chain of record "root"; NULL: none did. */
const ebpfMonLastPut *ebpfMonLastPutOf(const struct ebpfMonChain *chain, uint64_t root);

/* Who made the put that began the chain in which something was handed over; empty: not known. */
const char *ebpfMonLastPutBy(uint32_t iocId, const struct ebpfMonGiver *giver);

/* "who": as in ebpfMonLastPut. */
void ebpfMonLastPutSeen(const struct ebpfMonPutEvent *ev, const char *who);
void ebpfMonLastPutDone(uint32_t iocId, uint32_t tid, uint64_t id, const ebpfMonTracePut *put);

#endif
