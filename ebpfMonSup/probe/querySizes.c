/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "ebpfMonTable.h"
#include "probe/querySizes.h"

#define ELEMENT         64 /* what the kernel adds to key and value of a hash table, its share of the buckets included */
#define DEPTH_MOST      256u
#define CALLS_BYTES     (12u << 20) /* of calls under way, at most */
#define CALLING_THREADS 1024u

static unsigned countKey(const struct ebpfMonQueryPlan *plan)
{
    unsigned size = 0;

    for (unsigned i = 0; i < plan->keys; i++)
        size += plan->key[i].size;
    return size ? size : 8; /* a query without keys has one cell */
}

static void countCalls(const ebpfMonQueryOrder *order, ebpfMonQuerySizes *s)
{
    s->stride = (unsigned)offsetof(struct ebpfMonQueryCall, key) + s->key;
    s->depth = s->callingThreads = 1;
    if (order->source == ebpfMonQuerySyscallCall) /* a thread is in one at a time */
        s->callingThreads = EBPFMON_THREADS_MAX;
    if (order->source == ebpfMonQueryCall) {
        s->callingThreads = CALLING_THREADS;
        for (s->depth = DEPTH_MOST; s->depth * s->stride > CALLS_BYTES / CALLING_THREADS;)
            s->depth /= 2;
    }
    s->calls = (unsigned)sizeof(struct ebpfMonQueryInCalls) + s->depth * s->stride;
}

/* What comes in a second or two. */
static unsigned countRing(const struct ebpfMonQueryPlan *plan)
{
    return plan->sends == EBPFMON_QUERY_SENDS_STACKS ? 8u << 20 : plan->sends ? 1u << 20 : (unsigned)getpagesize();
}

void ebpfMonQuerySizesCount(const ebpfMonQueryOrder *order, ebpfMonQuerySizes *s)
{
    size_t cpus = (size_t)libbpf_num_possible_cpus();

    s->key = countKey(&order->plan);
    s->value = order->plan.hist ? sizeof(struct ebpfMonQueryCell) : offsetof(struct ebpfMonQueryCell, hist);
    countCalls(order, s);
    s->waits = order->source == ebpfMonQueryCpuWait ? EBPFMON_QUERY_WAITS : 1;
    s->sites = order->source == ebpfMonQueryUsdt ? EBPFMON_QUERY_SITES : 1;
    s->ring = countRing(&order->plan);
    s->bytes = order->maxKeys * (ELEMENT + s->key + cpus * s->value) +
               (size_t)s->callingThreads * (ELEMENT + s->calls) + s->ring +
               s->sites * (ELEMENT + sizeof(struct ebpfMonQuerySiteKey) + sizeof(struct ebpfMonQuerySite)) +
               s->waits * (ELEMENT + sizeof(struct ebpfMonQueryWait)) +
               (order->needsRecord ? EBPFMON_QUERY_THREADS : 1) * (ELEMENT + sizeof(struct ebpfMonQueryInHand));
}
