/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "ebpfMonTable.h"
#include "probe/kernelLoad.h"
#include "probe/kernelTables.h"
#include "probe/preemption.h"
#include "query/queryPrograms.h"
#include "probe/ring.h"
#include "probe/uprobe.h"
#include "probe/uprobeMulti.h"
#include "ebpfMonQueryBpf.skel.h"

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

#define BATCH   64u

struct ebpfMonQueryPrograms {
    struct ebpfMonQueryBpf *skel;
    ebpfMonQueryOrder order;
    ebpfMonQuerySizes size;
    unsigned cpus;
    struct bpf_link **link; /* what is not in an IOC */
    unsigned links;
    uint8_t *keys, *values; /* for a batch of cells */
    ebpfMonRing ring;       /* of the events that are sent */
    int      isLoaded;      /* nonzero: the programs are loaded, and it is noted that they need roots */
    uint32_t sleeps;        /* flag of the ring, unused: the programs of a query wake nobody */
    ebpfMonQueryEventFn each;
    void    *arg;
};

/* The programs of the query's source; NULL after the last one. The probe that sees the end comes first: so no begin
 * stays without its end. */
static void findPrograms(const ebpfMonQueryPrograms *q, struct bpf_program *found[4])
{
    const struct ebpfMonQueryBpf *skel = q->skel;

    memset(found, 0, 4 * sizeof(found[0]));
    switch (q->order.source) {
    case ebpfMonQueryAtEntry:    found[0] = skel->progs.ebpfmon_query_entry; break;
    case ebpfMonQueryAtReturn:   found[0] = skel->progs.ebpfmon_query_return; break;
    case ebpfMonQueryUsdt:       found[0] = skel->progs.ebpfmon_query_usdt; break;
    case ebpfMonQuerySyscall:    found[0] = skel->progs.ebpfmon_query_syscall; break;
    case ebpfMonQueryEvent:      found[0] = skel->progs.ebpfmon_query_event; break;
    case ebpfMonQueryProfile:    found[0] = skel->progs.ebpfmon_query_profile; break;
    case ebpfMonQueryTracepoint: found[0] = skel->progs.ebpfmon_query_tracepoint; break;
    case ebpfMonQueryCall: /* here and below: the end comes first */
        found[0] = skel->progs.ebpfmon_query_end;
        found[1] = skel->progs.ebpfmon_query_begin;
        break;
    case ebpfMonQuerySyscallCall:
        found[0] = skel->progs.ebpfmon_query_syscall_end;
        found[1] = skel->progs.ebpfmon_query_syscall_begin;
        break;
    case ebpfMonQueryCpuWait:
        found[0] = skel->progs.ebpfmon_query_switch;
        found[1] = skel->progs.ebpfmon_query_wakeup;
        found[2] = skel->progs.ebpfmon_query_wakeup_new;
        break;
    }
}

/* The programs at dbProcess(). The return comes first: so no begin stays without its end. */
static void findRecordPrograms(const ebpfMonQueryPrograms *q, struct bpf_program *found[2])
{
    found[0] = q->skel->progs.ebpfmon_query_record_end;
    found[1] = q->skel->progs.ebpfmon_query_record_begin;
}

/* Nonzero: a table has an element for each thread, so the query must see which threads end. */
static int remembersThreads(const ebpfMonQueryPrograms *q)
{
    return q->order.needsRecord || q->size.callingThreads > 1;
}

/* Loads only the programs that this query needs. */
static void choosePrograms(ebpfMonQueryPrograms *q)
{
    struct bpf_program *wanted[4], *record[2], *prog;

    findPrograms(q, wanted);
    findRecordPrograms(q, record);
    bpf_object__for_each_program(prog, q->skel->obj)
        bpf_program__set_autoload(prog, prog == wanted[0] || prog == wanted[1] || prog == wanted[2] ||
                                  (remembersThreads(q) && prog == q->skel->progs.ebpfmon_query_exit) ||
                                  (q->order.needsRecord && (prog == record[0] || prog == record[1])));
    for (int i = 0; wanted[i] && ebpfMonFeature.uprobeMulti && q->order.source <= ebpfMonQueryUsdt; i++)
        bpf_program__set_expected_attach_type(wanted[i], (enum bpf_attach_type)EBPFMON_ATTACH_MULTI);
    for (int i = 0; i < 2 && ebpfMonFeature.uprobeMulti; i++)
        bpf_program__set_expected_attach_type(record[i], (enum bpf_attach_type)EBPFMON_ATTACH_MULTI);
}

/* Shares tables of the kernel part with the query. 0 or a negative errno. */
static int shareTables(struct ebpfMonQueryBpf *skel)
{
    struct bpf_map *shared[] = { skel->maps.threads, skel->maps.targets, skel->maps.recIndex, skel->maps.recState,
                                 skel->maps.causes };

    for (size_t i = 0; i < sizeof(shared) / sizeof(shared[0]); i++) {
        int fd = ebpfMonKernelGetTableFd(bpf_map__name(shared[i]));

        if (fd < 0)
            return -ENODEV;
        if (bpf_map__reuse_fd(shared[i], fd))
            return -errno;
    }
    return 0;
}

/* Nonzero: its programs can read the functions of the kernel without harm. bpf_get_stack() copies from a buffer that
 * another thread may fill meanwhile if the first one is preempted, and then writes behind its own (CVE-2026-89580).
 * Nothing tells which kernels have the correction (15f1bd857466). Programs at functions of an IOC may always be
 * preempted, and would read nothing: the registers are those of the IOC. Those of perf events run in an interrupt, or
 * with preemption off (__perf_sw_event(), kernel/events/core.c), and so do those at sched_switch. */
static int canReadKernel(const ebpfMonQueryOrder *order)
{
    switch (order->source) {
    case ebpfMonQueryProfile: case ebpfMonQueryEvent:
        return 1;
    case ebpfMonQueryTracepoint:
        return strcmp(order->tracepoint, "sched_switch") == 0 || !ebpfMonKernelMayPreemptTracepoints();
    case ebpfMonQuerySyscall: case ebpfMonQuerySyscallCall:
        return !ebpfMonKernelMayPreemptTracepoints();
    default:
        return 0;
    }
}

int ebpfMonQueryProgramsLackKernel(const ebpfMonQueryPrograms *q)
{
    return q->order.plan.sends == EBPFMON_QUERY_SENDS_STACKS && q->order.source > ebpfMonQueryUsdt &&
           !q->order.plan.kernelStacks;
}

/* 0 or a negative errno. */
static int loadPrograms(ebpfMonQueryPrograms *q)
{
    struct ebpfMonQueryBpf *skel = q->skel;
    int err;

    q->order.plan.keySize = q->size.key;
    q->order.plan.depth = q->size.depth;
    q->order.plan.stride = q->size.stride;
    q->order.plan.kernelStacks = (uint32_t)canReadKernel(&q->order);
    *(struct ebpfMonQueryPlan *)&skel->rodata->plan = q->order.plan;
    bpf_map__set_key_size(skel->maps.cells, q->size.key);
    bpf_map__set_value_size(skel->maps.cells, q->size.value);
    bpf_map__set_value_size(skel->maps.noCell, q->size.value);
    bpf_map__set_max_entries(skel->maps.cells, q->order.maxKeys);
    bpf_map__set_value_size(skel->maps.inCalls, q->size.calls);
    bpf_map__set_value_size(skel->maps.inNoCall, q->size.calls);
    bpf_map__set_max_entries(skel->maps.inCalls, q->size.callingThreads);
    bpf_map__set_max_entries(skel->maps.waits, q->size.waits);
    bpf_map__set_max_entries(skel->maps.sites, q->size.sites);
    bpf_map__set_max_entries(skel->maps.sent, q->size.ring);
    if (!q->order.needsRecord)
        bpf_map__set_max_entries(skel->maps.inHand, 1);
    choosePrograms(q);
    err = shareTables(skel);
    if (!err)
        err = ebpfMonQueryBpf__load(skel);
    return err ? err : ebpfMonThreadStackCheck(skel->obj);
}

/* 0 or a negative errno. */
static int openRing(ebpfMonQueryPrograms *q)
{
    return q->order.plan.sends && ebpfMonRingOpen(&q->ring, bpf_map__fd(q->skel->maps.sent), q->size.ring,
                                                  (sizeof(struct ebpfMonQueryEvent) + 7) & ~7ul, &q->sleeps) ?
               -errno :
               0;
}

/* What this kernel does not have but the query needs. NULL: nothing. */
static const char *findMissingFeature(const ebpfMonQueryOrder *order)
{
    if (order->plan.sends == EBPFMON_QUERY_SENDS_STACKS &&
        libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_task_pt_regs, NULL) != 1)
        return "stacks need kernel 5.15";
    return NULL;
}

ebpfMonQueryPrograms *ebpfMonQueryProgramsLoad(const ebpfMonQueryOrder *order, char *why, size_t size)
{
    const char *lack = findMissingFeature(order);
    ebpfMonQueryPrograms *q = lack ? NULL : calloc(1, sizeof(*q));
    int err = -ENOMEM;

    if (lack) {
        snprintf(why, size, "%s; this is %s", lack, ebpfMonKernelRelease());
        return NULL;
    }
    if (q) {
        q->order = *order;
        ebpfMonQuerySizesCount(order, &q->size);
        q->cpus = (unsigned)libbpf_num_possible_cpus();
        q->keys = malloc((size_t)BATCH * q->size.key);
        q->values = malloc((size_t)BATCH * q->cpus * q->size.value);
        q->skel = q->keys && q->values ? ebpfMonQueryBpf__open() : NULL;
        if (q->skel)
            err = loadPrograms(q);
        if (!err)
            err = openRing(q);
    }
    if (!err) {
        q->isLoaded = 1;
        ebpfMonKernelNeedRoots(1);
        return q;
    }
    ebpfMonKernelExplainRefusal(err, why, size);
    ebpfMonQueryProgramsFree(q);
    return NULL;
}

void ebpfMonQueryProgramsFree(ebpfMonQueryPrograms *q)
{
    if (!q)
        return;
    if (q->isLoaded)
        ebpfMonKernelNeedRoots(-1);
    for (unsigned i = 0; i < q->links; i++)
        bpf_link__destroy(q->link[i]);
    free(q->link);
    ebpfMonRingClose(&q->ring);
    ebpfMonQueryBpf__destroy(q->skel);
    free(q->keys);
    free(q->values);
    free(q);
}

/* Keeps a link until the query ends. NULL is a failed attach. 0, or -1 with errno. */
static int addLink(ebpfMonQueryPrograms *q, struct bpf_link *link)
{
    struct bpf_link **more = link ? realloc(q->link, (q->links + 1) * sizeof(*more)) : NULL;

    if (!more) {
        int err = errno;

        bpf_link__destroy(link);
        errno = err;
        return -1;
    }
    q->link = more;
    q->link[q->links++] = link;
    return 0;
}

/* Opens one perf event for each CPU that is switched on. 0, or -1 with errno. */
static int attachPerfEvents(ebpfMonQueryPrograms *q, const struct bpf_program *prog)
{
    const ebpfMonPerfEvent *event = q->order.event;
    struct perf_event_attr attr = {.size = sizeof(attr), .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK};

    if (q->order.source == ebpfMonQueryEvent) {
        attr.type = event->type;
        attr.config = event->config;
        attr.sample_period = q->order.plan.sample;
    } else {
        attr.freq = 1;
        attr.sample_freq = q->order.rate;
    }
    for (unsigned cpu = 0; cpu < q->cpus; cpu++) {
        int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

        if (fd < 0 && errno == ENODEV) /* this CPU is switched off */
            continue;
        if (fd < 0)
            return -1;
        if (addLink(q, bpf_program__attach_perf_event(prog, fd))) {
            close(fd);
            return -1;
        }
    }
    return 0;
}

static void explainAttach(const ebpfMonQueryOrder *order, int err, char *why, size_t size)
{
    if (order->source == ebpfMonQueryTracepoint && err == EINVAL)
        snprintf(why, size, "tracepoint %s has fewer arguments on this kernel than the query asks for",
                 order->tracepoint);
    else if (order->source == ebpfMonQueryTracepoint)
        snprintf(why, size, "tracepoint %s: %s. /sys/kernel/tracing/available_events lists those of this kernel",
                 order->tracepoint, strerror(err));
    else if (order->source == ebpfMonQueryEvent && (err == ENOENT || err == EOPNOTSUPP))
        snprintf(why, size, "this machine does not count %s%s", order->event->name,
                 ebpfMonPerfEventIsOfCpu(order->event) ? ": many virtual machines count nothing of the CPU" : "");
    else
        snprintf(why, size, "its programs cannot be attached: %s", strerror(err));
}

int ebpfMonQueryProgramsAttach(ebpfMonQueryPrograms *q, char *why, size_t size)
{
    struct bpf_program *prog[4];
    int failed = remembersThreads(q) && addLink(q, bpf_program__attach(q->skel->progs.ebpfmon_query_exit));

    findPrograms(q, prog);
    switch (failed ? ebpfMonQueryAtEntry : q->order.source) {
    case ebpfMonQueryAtEntry: case ebpfMonQueryAtReturn: case ebpfMonQueryCall: case ebpfMonQueryUsdt:
        break;
    case ebpfMonQueryProfile: case ebpfMonQueryEvent:
        failed = attachPerfEvents(q, prog[0]);
        break;
    case ebpfMonQueryTracepoint:
        failed = addLink(q, bpf_program__attach_raw_tracepoint(prog[0], q->order.tracepoint));
        break;
    default:
        for (int i = 0; prog[i] && !failed; i++)
            failed = addLink(q, bpf_program__attach(prog[i]));
    }
    if (!failed)
        return 0;
    explainAttach(&q->order, errno, why, size);
    return -1;
}

int ebpfMonQueryProgramsProbe(ebpfMonQueryPrograms *q, const ebpfMonUprobePlaces *places, ebpfMonProbe *probe,
                              unsigned *probes)
{
    struct bpf_program *prog[4];
    int err = 0;

    findPrograms(q, prog);
    *probes = 0;
    for (unsigned i = 0; prog[i] && !err; i++)
        err = ebpfMonUprobeSet(prog[i], places, q->order.source == ebpfMonQueryAtReturn ||
                               (q->order.source == ebpfMonQueryCall && !i), probe, probes);
    if (err && *probes)
        ebpfMonCloserClose(probe, *probes);
    return err;
}

int ebpfMonQueryProgramsProbeRecord(ebpfMonQueryPrograms *q, const ebpfMonUprobePlaces *places, ebpfMonProbe *probe,
                                    unsigned *probes)
{
    struct bpf_program *prog[2];
    int err = 0;

    findRecordPrograms(q, prog);
    *probes = 0;
    for (unsigned i = 0; i < 2 && !err; i++)
        err = ebpfMonUprobeSet(prog[i], places, !i, probe, probes);
    if (err && *probes)
        ebpfMonCloserClose(probe, *probes);
    return err;
}

int ebpfMonQueryProgramsAddSite(ebpfMonQueryPrograms *q, pid_t pid, uint64_t address,
                                const struct ebpfMonQuerySite *site)
{
    struct ebpfMonQuerySiteKey key = { .ip = address, .tgid = (uint32_t)pid };

    return bpf_map_update_elem(bpf_map__fd(q->skel->maps.sites), &key, site, BPF_ANY) ? errno : 0;
}

/* The next key is read before this one is deleted; else the kernel would begin again with the first key. */
static void removeSites(ebpfMonQueryPrograms *q, pid_t pid)
{
    struct ebpfMonQuerySiteKey key, next;
    int fd = bpf_map__fd(q->skel->maps.sites);
    int more = bpf_map_get_next_key(fd, NULL, &next) == 0;

    for (unsigned n = 0; more && n < EBPFMON_QUERY_SITES; n++) {
        key = next;
        more = bpf_map_get_next_key(fd, &key, &next) == 0;
        if (key.tgid == (uint32_t)pid)
            bpf_map_delete_elem(fd, &key);
    }
}

int ebpfMonQueryProgramsAddProcess(ebpfMonQueryPrograms *q, pid_t pid, const struct ebpfMonQueryChosen *ioc)
{
    uint32_t tgid = (uint32_t)pid;

    return bpf_map_update_elem(bpf_map__fd(q->skel->maps.chosen), &tgid, ioc, BPF_ANY) ? errno : 0;
}

void ebpfMonQueryProgramsRemoveProcess(ebpfMonQueryPrograms *q, pid_t pid)
{
    uint32_t tgid = (uint32_t)pid;

    bpf_map_delete_elem(bpf_map__fd(q->skel->maps.chosen), &tgid);
    if (q->order.source == ebpfMonQueryUsdt)
        removeSites(q, pid);
}

unsigned ebpfMonQueryProgramsGetKeySize(const ebpfMonQueryPrograms *q)
{
    return q->size.key;
}

/* Adds the cells of all CPUs. */
static void addCpus(const ebpfMonQueryPrograms *q, const uint8_t *values, struct ebpfMonQueryCell *sum)
{
    unsigned buckets = q->size.value < sizeof(*sum) ? 0 : EBPFMON_QUERY_BUCKETS;

    memset(sum, 0, sizeof(*sum));
    for (unsigned cpu = 0; cpu < q->cpus; cpu++) {
        const struct ebpfMonQueryCell *c = (const void *)(values + (size_t)cpu * q->size.value);

        sum->count += c->count;
        sum->sum += c->sum;
        if (c->high > sum->high)
            sum->high = c->high;
        if (c->low > sum->low)
            sum->low = c->low;
        if (c->lastAt > sum->lastAt) {
            sum->lastAt = c->lastAt;
            sum->last = c->last;
        }
        for (unsigned b = 0; b < buckets; b++)
            sum->hist[b] += c->hist[b];
    }
}

int ebpfMonQueryProgramsReadCells(ebpfMonQueryPrograms *q, ebpfMonQueryCellFn each, void *arg)
{
    int fd = bpf_map__fd(q->skel->maps.cells), status;
    uint8_t from[EBPFMON_QUERY_KEY_SIZE], to[EBPFMON_QUERY_KEY_SIZE];
    struct ebpfMonQueryCell sum;
    uint32_t seen = 0, n;
    int first = 1;

    do {
        n = BATCH;
        status = bpf_map_lookup_batch(fd, first ? NULL : from, to, q->keys, q->values, &n, NULL);
        if (status && errno != ENOENT)
            return -1;
        for (uint32_t i = 0; i < n; i++) {
            addCpus(q, q->values + (size_t)i * q->cpus * q->size.value, &sum);
            each(arg, q->keys + (size_t)i * q->size.key, &sum);
        }
        memcpy(from, to, sizeof(from));
        first = 0;
        seen += n;
    } while (!status && seen < 2 * q->order.maxKeys);
    return 0;
}

int ebpfMonQueryProgramsTakeCell(ebpfMonQueryPrograms *q, const uint8_t *key, struct ebpfMonQueryCell *cell)
{
    int fd = bpf_map__fd(q->skel->maps.cells);

    /* before 5.14 a table with a value for each CPU cannot do both at once */
    if (bpf_map_lookup_and_delete_elem(fd, key, q->values) &&
        (bpf_map_lookup_elem(fd, key, q->values) || bpf_map_delete_elem(fd, key)))
        return -1;
    addCpus(q, q->values, cell);
    return 0;
}

static void takeQueryEvent(void *arg, const void *data, size_t size)
{
    const ebpfMonQueryPrograms *q = arg;

    if (size >= (q->order.plan.sends == EBPFMON_QUERY_SENDS_STACKS ? sizeof(struct ebpfMonQueryEvent)
                                                                   : offsetof(struct ebpfMonQueryEvent, regs)))
        q->each(q->arg, data);
}

void ebpfMonQueryProgramsReadEvents(ebpfMonQueryPrograms *q, ebpfMonQueryEventFn each, void *arg)
{
    int isWhole;

    q->each = each;
    q->arg = arg;
    if (q->order.plan.sends)
        ebpfMonRingRead(&q->ring, takeQueryEvent, q, &isWhole);
}

void ebpfMonQueryProgramsReadCounts(ebpfMonQueryPrograms *q, uint32_t payer, struct ebpfMonQueryCounts *counts)
{
    ebpfMonPerCpuSum(q->skel->maps.counts, &payer, counts, sizeof(*counts));
}

uint64_t ebpfMonQueryProgramsCountSkipped(const ebpfMonQueryPrograms *q)
{
    return ebpfMonSkippedRunsCount(q->skel->obj);
}
