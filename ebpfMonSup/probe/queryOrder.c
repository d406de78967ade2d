/* SPDX-License-Identifier: BSD-3-Clause */
#include <bpf/libbpf.h>
#include <stddef.h>
#include <unistd.h>
#include "ebpfMonTable.h"
#include "probe/queryOrder.h"

#define ELEMENT         64 /* bytes that the kernel needs for an element besides key and value, with its share of the
                            * buckets */
#define CALLING_THREADS 1024u

static unsigned countKey(const struct ebpfMonQueryPlan *plan)
{
    unsigned size = 0;

    for (unsigned i = 0; i < plan->keys; i++)
        size += plan->key[i].size;
    if (plan->perPut)
        size += (unsigned)sizeof(__u64);
    return size ? size : 8; /* a query without keys has one cell, whose key is 8 zero bytes */
}

static void countCalls(const ebpfMonQueryOrder *order, ebpfMonQuerySizes *s)
{
    s->stride = (unsigned)offsetof(struct ebpfMonQueryCall, key) + s->key;
    s->depth = s->callingThreads = 1;
    if (order->source == ebpfMonQuerySyscallCall) /* a thread is in one system call at a time */
        s->callingThreads = EBPFMON_THREADS_MAX;
    if (order->source == ebpfMonQueryCall) {
        s->callingThreads = CALLING_THREADS;
        s->depth = EBPFMON_QUERY_DEPTH;
    }
    s->calls = (unsigned)sizeof(struct ebpfMonQueryInCalls) + s->depth * s->stride;
}

/* The size of the ring (bytes): enough for the events of a second or two. */
static unsigned countRing(const struct ebpfMonQueryPlan *plan)
{
    return plan->sends == EBPFMON_QUERY_SENDS_STACKS ? 8u << 20 : plan->sends ? 1u << 20 : (unsigned)getpagesize();
}

void ebpfMonQuerySizesCount(const ebpfMonQueryOrder *order, ebpfMonQuerySizes *s)
{
    size_t cpus = (size_t)libbpf_num_possible_cpus();

    s->key = countKey(&order->plan);
    s->value = order->plan.hist && !order->plan.perPut ? sizeof(struct ebpfMonQueryCell) :
                                                         offsetof(struct ebpfMonQueryCell, hist);
    countCalls(order, s);
    s->waits = order->source == ebpfMonQueryCpuWait ? EBPFMON_QUERY_WAITS : 1;
    s->sites = order->source == ebpfMonQueryUsdt ? EBPFMON_QUERY_SITES : 1;
    s->ring = countRing(&order->plan);
    s->bytes = EBPFMON_QUERY_PAYERS * cpus * sizeof(struct ebpfMonQueryCounts) +
               order->maxKeys * (ELEMENT + s->key + cpus * s->value) +
               (size_t)s->callingThreads * (ELEMENT + s->calls) + s->ring +
               s->sites * (ELEMENT + sizeof(struct ebpfMonQuerySiteKey) + sizeof(struct ebpfMonQuerySite)) +
               s->waits * (ELEMENT + sizeof(struct ebpfMonQueryWait)) +
               (order->needsRecord ? EBPFMON_QUERY_THREADS : 1) * (ELEMENT + sizeof(struct ebpfMonQueryInHand));
}
