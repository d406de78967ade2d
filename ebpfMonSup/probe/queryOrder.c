/* SPDX-License-Identifier: BSD-3-Clause */
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>
#include "ebpfMonTable.h"
#include "probe/queryOrder.h"

/* --- events of the kernel and the CPU --- */

#define SOFTWARE(name) PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##name
#define HARDWARE(name) PERF_TYPE_HARDWARE, PERF_COUNT_HW_##name

/* The other events of perf are clocks; the source "profile" of a query uses those. */
static const ebpfMonPerfEvent events[] = {
    { "page-faults", SOFTWARE(PAGE_FAULTS) },
    { "minor-faults", SOFTWARE(PAGE_FAULTS_MIN) },
    { "major-faults", SOFTWARE(PAGE_FAULTS_MAJ) },
    { "context-switches", SOFTWARE(CONTEXT_SWITCHES) },
    { "cpu-migrations", SOFTWARE(CPU_MIGRATIONS) },
    { "alignment-faults", SOFTWARE(ALIGNMENT_FAULTS) },
    { "emulation-faults", SOFTWARE(EMULATION_FAULTS) },
    { "cycles", HARDWARE(CPU_CYCLES) },
    { "instructions", HARDWARE(INSTRUCTIONS) },
    { "cache-references", HARDWARE(CACHE_REFERENCES) },
    { "cache-misses", HARDWARE(CACHE_MISSES) },
    { "branches", HARDWARE(BRANCH_INSTRUCTIONS) },
    { "branch-misses", HARDWARE(BRANCH_MISSES) },
};

const ebpfMonPerfEvent *ebpfMonPerfEventFind(const char *name)
{
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
        if (strcmp(events[i].name, name) == 0)
            return &events[i];
    return NULL;
}

const char *ebpfMonPerfEventNames(void)
{
    return "page-faults, minor-faults, major-faults, context-switches, cpu-migrations, alignment-faults, "
           "emulation-faults, "
           "cycles, instructions, cache-references, cache-misses, branches, branch-misses";
}

int ebpfMonPerfEventIsOfCpu(const ebpfMonPerfEvent *event)
{
    return event->type == PERF_TYPE_HARDWARE;
}

/* --- sizes of tables --- */

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
