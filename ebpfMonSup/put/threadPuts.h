/* SPDX-License-Identifier: BSD-3-Clause */
/* The last put of each thread: the chain that the thread reports next may be its. Event thread only. */
#ifndef EBPFMON_THREADPUTS_H
#define EBPFMON_THREADPUTS_H

#include "ebpfMonEvent.h"
#include "trace/trace.h"

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
    ebpfMonPutSummary put;
} ebpfMonThreadPut;

/* The put that began this chain of record "root"; NULL: none did. */
const ebpfMonThreadPut *ebpfMonThreadPutsFindForChain(const struct ebpfMonChain *chain, uint64_t root);

/* Who made the put that began the chain in which something was handed over; empty: not known. */
const char *ebpfMonThreadPutsFindWriter(uint32_t iocId, const struct ebpfMonSourceChain *source);

/* "who": as in ebpfMonPutSeen. */
void ebpfMonThreadPutsAdd(const struct ebpfMonPutEvent *ev, const char *who);
void ebpfMonThreadPutsComplete(uint32_t iocId, uint32_t tid, uint64_t id, const ebpfMonPutSummary *put);

#endif
