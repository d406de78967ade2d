/* SPDX-License-Identifier: BSD-3-Clause */
/* The last put of each thread: the chain that the thread reports next may be its. Event thread only. */
#ifndef EBPFMON_LASTPUTS_H
#define EBPFMON_LASTPUTS_H

#include "ebpfMonEvent.h"
#include "monitor/traces.h"

#define EBPFMON_PUTS_BEFORE 4

typedef struct {
    uint64_t at, precord;
    char     who[80]; /* "put by U@H", as in a put's cause; empty: not a client */
} ebpfMonPutSeen;

typedef struct {
    uint32_t iocId, tid;
    uint64_t id;
    ebpfMonPutSeen seen;
    ebpfMonPutSeen before[EBPFMON_PUTS_BEFORE]; /* of the same thread, in any order; at 0: none */
    unsigned next; /* of those the one that is overwritten next */
    int      byClient;
    int      done; /* "put" is valid */
    ebpfMonTracePut put;
} ebpfMonLastPut;

/* The put that began this chain of record "root"; NULL: none did. */
const ebpfMonLastPut *ebpfMonLastPutOf(const struct ebpfMonChain *chain, uint64_t root);

/* Who made the put that began the chain in which something was handed over; empty: not known. */
const char *ebpfMonLastPutBy(uint32_t iocId, const struct ebpfMonGiver *giver);

/* "who": as in ebpfMonPutSeen. */
void ebpfMonLastPutSeen(const struct ebpfMonPutEvent *ev, const char *who);
void ebpfMonLastPutDone(uint32_t iocId, uint32_t tid, uint64_t id, const ebpfMonTracePut *put);

#endif
