/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errlog.h>

#include "probe/loader.h"
#include "probe/multi.h"
#include "ebpfMonBpf.skel.h"

ebpfMonFeatures ebpfMonFeature;

static struct ebpfMonBpf *skel;
static struct ring_buffer *ringBuf;
static ebpfMonTables tables;
static ebpfMonEventFn onEvent;
static void *onEventArg;
static char libbpfSaid[160], verifierSaid[120];

/* The verifier's log tells each step that it took; its verdict is the last line before the statistics. */
static void keepVerdict(const char *log)
{
    const char *end = strstr(log, "\nprocessed "), *begin = end;

    if (!end)
        return;
    while (begin > log && begin[-1] != '\n')
        begin--;
    snprintf(verifierSaid, sizeof(verifierSaid), "%.*s", (int)(end - begin), begin);
}

/* libbpf explains a failed load in many lines; the first, which names the program, and the verifier's verdict are kept
 * for the operator. */
static int quiet(enum libbpf_print_level level, const char *fmt, va_list ap)
{
    va_list again;
    char *log = NULL;

    if (level != LIBBPF_WARN)
        return 0;
    va_copy(again, ap);
    if (!libbpfSaid[0]) {
        vsnprintf(libbpfSaid, sizeof(libbpfSaid), fmt, ap);
        libbpfSaid[strcspn(libbpfSaid, "\n")] = 0;
    }
    if (!verifierSaid[0] && vasprintf(&log, fmt, again) >= 0) {
        keepVerdict(log);
        free(log);
    }
    va_end(again);
    return 0;
}

static int ringEvent(void *ctx, void *data, size_t size)
{
    (void)ctx;
    if (size >= sizeof(struct ebpfMonHead) && onEvent)
        onEvent(onEventArg, data, size);
    return 0;
}

static void *mapTable(struct bpf_map *map, size_t count, size_t each)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), len = (count * each + page - 1) / page * page;
    void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

    tables.bytes += len;
    return p == MAP_FAILED ? NULL : p;
}

#define HASH_ELEMENT 64 /* what the kernel adds to key and value, its share of the buckets included */

/* What the tables that nobody maps take: hash tables, made in full as they are loaded. */
static size_t otherTables(void)
{
    size_t bytes = 0, cpus = (size_t)libbpf_num_possible_cpus();
    struct bpf_map *map;

    bpf_object__for_each_map(map, skel->obj) {
        enum bpf_map_type type = bpf_map__type(map);
        size_t value = (bpf_map__value_size(map) + 7) / 8 * 8;

        if (type == BPF_MAP_TYPE_PERCPU_HASH)
            value *= cpus;
        else if (type != BPF_MAP_TYPE_HASH && type != BPF_MAP_TYPE_LRU_HASH)
            continue;
        bytes += bpf_map__max_entries(map) * (HASH_ELEMENT + (bpf_map__key_size(map) + 7) / 8 * 8 + value);
    }
    return bytes;
}

static struct bpf_program **programs(void)
{
    static struct bpf_program *p[ebpfMonProgCount];

    p[ebpfMonProgPut] = skel->progs.ebpfmon_put;
    p[ebpfMonProgPutReturn] = skel->progs.ebpfmon_put_return;
    p[ebpfMonProgPutField] = skel->progs.ebpfmon_putfield;
    p[ebpfMonProgNotify] = skel->progs.ebpfmon_notify;
    p[ebpfMonProgCheckPut] = skel->progs.ebpfmon_checkput;
    p[ebpfMonProgCamessage] = skel->progs.ebpfmon_camessage;
    p[ebpfMonProgCaLink] = skel->progs.ebpfmon_calink;
    p[ebpfMonProgLock] = skel->progs.ebpfmon_lock;
    p[ebpfMonProgUnlock] = skel->progs.ebpfmon_unlock;
    p[ebpfMonProgUnlockMany] = skel->progs.ebpfmon_unlock_many;
    p[ebpfMonProgCompleted] = skel->progs.ebpfmon_completed;
    p[ebpfMonProgProcess] = skel->progs.ebpfmon_process;
    p[ebpfMonProgCallback] = skel->progs.ebpfmon_callback;
    p[ebpfMonProgDelayed] = skel->progs.ebpfmon_delayed;
    p[ebpfMonProgOnce] = skel->progs.ebpfmon_once;
    p[ebpfMonProgPop] = skel->progs.ebpfmon_pop;
    p[ebpfMonProgPopReturn] = skel->progs.ebpfmon_popped;
    return p;
}

struct bpf_program *ebpfMonProgram(ebpfMonProg prog)
{
    return skel ? programs()[prog] : NULL;
}

int ebpfMonProgFd(ebpfMonProg prog)
{
    return skel ? bpf_program__fd(programs()[prog]) : -1;
}

const char *ebpfMonKernelRelease(void)
{
    static struct utsname name;

    return uname(&name) ? "?" : name.release;
}

/* Why the kernel refused, in the words of somebody who can do something about it. */
static void explain(int err, char *why, size_t size)
{
    if (err == EPERM || (err == EACCES && !verifierSaid[0]))
        snprintf(why, size, "no privileges: start ebpfMon as root, or with CAP_BPF, CAP_PERFMON and "
                 "CAP_SYS_PTRACE");
    else if (access("/sys/kernel/btf/vmlinux", R_OK))
        snprintf(why, size, "this kernel has no BTF (/sys/kernel/btf/vmlinux): use one with "
                 "CONFIG_DEBUG_INFO_BTF, as distributions build them");
    else
        snprintf(why, size, "kernel %s refused the eBPF programs (%s; %s): %s", ebpfMonKernelRelease(),
                 verifierSaid[0] ? verifierSaid : strerror(err), libbpfSaid[0] ? libbpfSaid : "no more is known",
                 ebpfMonFeature.loop ? "please report this" : "5.17 or later is needed");
}

static void attachHost(struct bpf_program *prog, struct bpf_link **link, int *feature, const char *what)
{
    *link = bpf_program__attach(prog);
    if (*link) {
        if (feature)
            *feature = 1;
        return;
    }
    errlogSevPrintf(errlogMinor, "ebpfMon: %s cannot be watched on this kernel: %s\n", what, strerror(errno));
}

static int hasTracepoint(const char *name)
{
    struct btf *btf = btf__load_vmlinux_btf();
    char type[64];
    int has;

    snprintf(type, sizeof(type), "btf_trace_%s", name);
    has = btf && btf__find_by_name_kind(btf, type, BTF_KIND_TYPEDEF) > 0;
    btf__free(btf);
    return has;
}

/* What this kernel has no place for is not loaded: one program that it refuses would be the end of all. */
static void leaveOut(void)
{
    struct bpf_program *const walking[] = {
        skel->progs.ebpfmon_unlock, skel->progs.ebpfmon_unlock_many, skel->progs.ebpfmon_regs,
        skel->progs.ebpfmon_switch, skel->progs.ebpfmon_wakeup,
    };

    ebpfMonFeature.loop = libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_loop, NULL) != 0;
    for (size_t i = 0; !ebpfMonFeature.loop && i < sizeof(walking) / sizeof(walking[0]); i++)
        bpf_program__set_autoload(walking[i], false);
    /* its helper came with the same kernel as bpf_loop */
    if (!ebpfMonFeature.loop || hasTracepoint("sock_recv_length"))
        bpf_program__set_autoload(skel->progs.ebpfmon_recv_tcp, false);
    else
        bpf_program__set_autoload(skel->progs.ebpfmon_recv, false);
}

int ebpfMonKernelLoad(const ebpfMonLoadSizes *sizes, char *why, size_t size)
{
    static const char fromWhom[] = "who a server reads from (CA clients are known all the same)";
    struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY }, files;
    int err;

    libbpf_set_print(quiet);
    libbpfSaid[0] = verifierSaid[0] = 0;
    setrlimit(RLIMIT_MEMLOCK, &all); /* kernels before 5.11 account BPF memory there */
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max; /* a dozen links a target */
        setrlimit(RLIMIT_NOFILE, &files);
    }
    memset(&tables, 0, sizeof(tables));
    skel = ebpfMonBpf__open();
    if (!skel) {
        explain(errno, why, size);
        return -1;
    }
    bpf_map__set_max_entries(skel->maps.recIndex, sizes->maxRecords);
    bpf_map__set_max_entries(skel->maps.recConf, sizes->maxRecords);
    bpf_map__set_max_entries(skel->maps.recState, sizes->maxRecords);
    bpf_map__set_max_entries(skel->maps.closure, sizes->maxClosure / 2 + 1);
    bpf_map__set_max_entries(skel->maps.roots, sizes->maxRoots);
    bpf_map__set_max_entries(skel->maps.ring, sizes->ringBytes);
    ebpfMonFeature.uprobeMulti = ebpfMonMultiWorks();
    if (ebpfMonFeature.uprobeMulti)
        for (int i = 0; i < ebpfMonProgCount; i++)
            bpf_program__set_expected_attach_type(programs()[i], (enum bpf_attach_type)EBPFMON_ATTACH_MULTI);
    leaveOut();
    err = ebpfMonBpf__load(skel);
    if (err) {
        explain(-err, why, size);
        ebpfMonKernelUnload();
        return -1;
    }
    tables.size = *sizes;
    tables.conf = mapTable(skel->maps.recConf, sizes->maxRecords, sizeof(struct ebpfMonRecConf));
    tables.state = mapTable(skel->maps.recState, sizes->maxRecords, sizeof(struct ebpfMonRecState));
    tables.closure = mapTable(skel->maps.closure, sizes->maxClosure / 2 + 1, sizeof(struct ebpfMonClosurePair));
    ringBuf = ring_buffer__new(bpf_map__fd(skel->maps.ring), ringEvent, NULL, NULL);
    if (!tables.conf || !tables.state || !tables.closure || !ringBuf) {
        snprintf(why, size, "the eBPF tables cannot be mapped: %s. Less memory is asked for by ebpfMonConfigure",
                 strerror(errno));
        ebpfMonKernelUnload();
        return -1;
    }
    tables.bytes += sizes->ringBytes + otherTables();
    attachHost(skel->progs.ebpfmon_exec, &skel->links.ebpfmon_exec, NULL, "the start of programs");
    attachHost(skel->progs.ebpfmon_exit, &skel->links.ebpfmon_exit, NULL, "the end of programs");
    if (bpf_program__autoload(skel->progs.ebpfmon_recv))
        attachHost(skel->progs.ebpfmon_recv, &skel->links.ebpfmon_recv, &ebpfMonFeature.recvLength, fromWhom);
    else
        attachHost(skel->progs.ebpfmon_recv_tcp, &skel->links.ebpfmon_recv_tcp, &ebpfMonFeature.recvLength, fromWhom);
    attachHost(skel->progs.ebpfmon_connect, &skel->links.ebpfmon_connect, &ebpfMonFeature.connectState,
               "who opens a connection");
    if (ebpfMonFeature.loop) /* else no hang is seen */
        attachHost(skel->progs.ebpfmon_regs, &skel->links.ebpfmon_regs, NULL, "where a thread that hangs is");
    return 0;
}

void ebpfMonKernelWatchScheduler(int on)
{
    static int refused; /* said once */

    if (on && !skel->links.ebpfmon_switch && !refused) {
        attachHost(skel->progs.ebpfmon_wakeup, &skel->links.ebpfmon_wakeup, NULL, "who is woken");
        attachHost(skel->progs.ebpfmon_switch, &skel->links.ebpfmon_switch, NULL, "what waits for a CPU");
        refused = !skel->links.ebpfmon_switch;
    } else if (!on && skel->links.ebpfmon_switch) {
        bpf_link__destroy(skel->links.ebpfmon_switch);
        bpf_link__destroy(skel->links.ebpfmon_wakeup);
        skel->links.ebpfmon_switch = skel->links.ebpfmon_wakeup = NULL;
    }
}

static void unmapTable(volatile void *p, size_t count, size_t each)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    if (p)
        munmap((void *)p, (count * each + page - 1) / page * page);
}

void ebpfMonKernelUnload(void)
{
    if (ringBuf)
        ring_buffer__free(ringBuf);
    ringBuf = NULL;
    unmapTable(tables.conf, tables.size.maxRecords, sizeof(struct ebpfMonRecConf));
    unmapTable(tables.state, tables.size.maxRecords, sizeof(struct ebpfMonRecState));
    unmapTable(tables.closure, tables.size.maxClosure / 2 + 1, sizeof(struct ebpfMonClosurePair));
    memset(&tables, 0, sizeof(tables));
    ebpfMonBpf__destroy(skel);
    skel = NULL;
}

const ebpfMonTables *ebpfMonKernelTables(void)
{
    return skel ? &tables : NULL;
}

int ebpfMonKernelSetTarget(uint32_t tgid, const struct ebpfMonTargetConf *conf)
{
    int fd = bpf_map__fd(skel->maps.hits), cpus = libbpf_num_possible_cpus();
    struct ebpfMonHits *zero = calloc((size_t)cpus, sizeof(*zero));
    static const struct ebpfMonQueues empty;

    if (!zero)
        return -1;
    bpf_map_update_elem(fd, &tgid, zero, BPF_NOEXIST);
    free(zero);
    bpf_map_update_elem(bpf_map__fd(skel->maps.queues), &tgid, &empty, BPF_NOEXIST);
    return bpf_map_update_elem(bpf_map__fd(skel->maps.targets), &tgid, conf, BPF_ANY);
}

void ebpfMonKernelRemoveTarget(uint32_t tgid)
{
    bpf_map_delete_elem(bpf_map__fd(skel->maps.targets), &tgid);
    bpf_map_delete_elem(bpf_map__fd(skel->maps.hits), &tgid);
    bpf_map_delete_elem(bpf_map__fd(skel->maps.queues), &tgid);
}

#define BATCH 1024

int ebpfMonKernelSetRecordIndex(uint32_t tgid, const uint64_t *precord, uint32_t count, uint32_t first)
{
    LIBBPF_OPTS(bpf_map_batch_opts, opts, .elem_flags = BPF_ANY);
    struct ebpfMonRecKey key[BATCH];
    uint32_t slot[BATCH];

    for (uint32_t at = 0; at < count;) {
        uint32_t n = 0, done;

        for (; n < BATCH && at + n < count; n++) {
            key[n] = (struct ebpfMonRecKey){ .tgid = tgid, .precord = precord[at + n] };
            slot[n] = first + at + n;
        }
        done = n;
        if (bpf_map_update_batch(bpf_map__fd(skel->maps.recIndex), key, slot, &done, &opts))
            return -1;
        at += n;
    }
    return 0;
}

void ebpfMonKernelRemoveRecordIndex(uint32_t tgid, const uint64_t *precord, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct ebpfMonRecKey key = { .tgid = tgid, .precord = precord[i] };

        bpf_map_delete_elem(bpf_map__fd(skel->maps.recIndex), &key);
    }
}

/* struct fldKey of maps.bpf.h, which only the kernel half includes */
struct fldKey {
    uint64_t pfldDes, tgid;
};

int ebpfMonKernelSetArray(uint32_t tgid, uint64_t pfldDes, const struct ebpfMonArrayConf *conf)
{
    struct fldKey key = { pfldDes, tgid };

    return bpf_map_update_elem(bpf_map__fd(skel->maps.arrays), &key, conf, BPF_ANY);
}

void ebpfMonKernelRemoveArray(uint32_t tgid, uint64_t pfldDes)
{
    struct fldKey key = { pfldDes, tgid };

    bpf_map_delete_elem(bpf_map__fd(skel->maps.arrays), &key);
}

int ebpfMonKernelGetOwner(const struct ebpfMonPeer *peer, struct ebpfMonOwner *owner)
{
    return bpf_map_lookup_elem(bpf_map__fd(skel->maps.owners), peer, owner);
}

int ebpfMonKernelSetOwner(const struct ebpfMonPeer *peer, const struct ebpfMonOwner *owner)
{
    return bpf_map_update_elem(bpf_map__fd(skel->maps.owners), peer, owner, BPF_ANY);
}

struct purge {
    uint32_t first, count, n;
    uint32_t *slot;
};

static void purgeEach(void *arg, uint32_t slot, const struct ebpfMonRootStat *stat)
{
    struct purge *p = arg;

    (void)stat;
    if (slot - p->first < p->count && p->n < tables.size.maxRoots)
        p->slot[p->n++] = slot;
}

void ebpfMonKernelRemoveRoots(uint32_t first, uint32_t count)
{
    struct purge p = { .first = first, .count = count };

    p.slot = malloc(tables.size.maxRoots * sizeof(*p.slot));
    if (!p.slot)
        return;
    ebpfMonKernelEachRoot(purgeEach, &p);
    for (uint32_t i = 0; i < p.n; i++)
        bpf_map_delete_elem(bpf_map__fd(skel->maps.roots), &p.slot[i]);
    free(p.slot);
}

void ebpfMonKernelRemoveThreads(pid_t pid)
{
    char path[64];
    struct dirent *e;
    DIR *d;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    d = opendir(path);
    while (d && (e = readdir(d)) != NULL) {
        uint32_t tid = (uint32_t)strtoul(e->d_name, NULL, 10);

        if (tid)
            bpf_map_delete_elem(bpf_map__fd(skel->maps.threads), &tid);
    }
    if (d)
        closedir(d);
}

#define THREADS 512 /* at a time; more than a bucket of the table can hold */

void ebpfMonKernelEachThread(void (*each)(void *arg, uint32_t tid, const struct ebpfMonThread *seen), void *arg)
{
    uint32_t tid[THREADS], at, rounds = bpf_map__max_entries(skel->maps.threads) / THREADS + 64;
    size_t size = bpf_map__value_size(skel->maps.threads);
    char *value = malloc(THREADS * size);
    int fd = bpf_map__fd(skel->maps.threads), more = value != NULL;

    for (uint32_t i = 0; more && i < rounds; i++) {
        uint32_t n = THREADS;

        more = bpf_map_lookup_batch(fd, i ? &at : NULL, &at, tid, value, &n, NULL) == 0;
        if (!more && errno != ENOENT) /* ENOENT: these were the last */
            break;
        for (uint32_t k = 0; k < n && k < THREADS; k++) {
            struct ebpfMonThread seen;

            memcpy(&seen, value + k * size, sizeof(seen));
            each(arg, tid[k], &seen);
        }
    }
    free(value);
}

uint64_t ebpfMonKernelGetReleased(uint32_t tgid, uint64_t lockSet)
{
    uint64_t key[2] = { lockSet, tgid }, at = 0; /* struct lockKey of maps.bpf.h */

    return bpf_map_lookup_elem(bpf_map__fd(skel->maps.released), key, &at) ? 0 : at;
}

int ebpfMonKernelGetQueues(uint32_t tgid, struct ebpfMonQueues *queues)
{
    return bpf_map_lookup_elem(bpf_map__fd(skel->maps.queues), &tgid, queues);
}

int ebpfMonKernelGetRegs(uint32_t tid, struct ebpfMonTaskRegs *regs)
{
    uint32_t zero = 0;
    ssize_t n;
    int fd;

    if (!skel->links.ebpfmon_regs || bpf_map_update_elem(bpf_map__fd(skel->maps.regsOf), &zero, &tid, BPF_ANY))
        return -1;
    fd = bpf_iter_create(bpf_link__fd(skel->links.ebpfmon_regs));
    if (fd < 0)
        return -1;
    do
        n = read(fd, regs, sizeof(*regs));
    while (n < 0 && (errno == EINTR || errno == EAGAIN));
    close(fd);
    return n == sizeof(*regs) ? 0 : -1;
}

void ebpfMonKernelGetHits(uint32_t tgid, struct ebpfMonHits *sum)
{
    int cpus = libbpf_num_possible_cpus();
    struct ebpfMonHits *each = cpus > 0 ? calloc((size_t)cpus, sizeof(*each)) : NULL;

    memset(sum, 0, sizeof(*sum));
    if (each && bpf_map_lookup_elem(bpf_map__fd(skel->maps.hits), &tgid, each) == 0)
        for (int c = 0; c < cpus; c++)
            for (int k = 0; k < EBPFMON_HIT_KINDS; k++)
                sum->n[k] += each[c].n[k];
    free(each);
}

void ebpfMonKernelGetLost(uint64_t lost[EBPFMON_LOST_KERNEL])
{
    for (uint32_t i = 0; i < EBPFMON_LOST_KERNEL; i++) {
        lost[i] = 0;
        if (skel)
            bpf_map_lookup_elem(bpf_map__fd(skel->maps.lost), &i, &lost[i]);
    }
}

void ebpfMonKernelEachRoot(void (*each)(void *arg, uint32_t slot, const struct ebpfMonRootStat *stat), void *arg)
{
    int fd = bpf_map__fd(skel->maps.roots);
    struct ebpfMonRootStat stat;
    uint32_t key, next, *at = NULL;

    /* bounded: roots can be added while we go round */
    for (unsigned n = 0; n < tables.size.maxRoots && bpf_map_get_next_key(fd, at, &next) == 0; n++) {
        key = next;
        at = &key;
        if (bpf_map_lookup_elem(fd, &key, &stat) == 0)
            each(arg, key, &stat);
    }
}

int ebpfMonKernelReadEvents(int ms, ebpfMonEventFn event, void *arg)
{
    int n;

    if (!ringBuf)
        return -1;
    onEvent = event;
    onEventArg = arg;
    n = ring_buffer__poll(ringBuf, ms);
    if (n < 0 && n != -EINTR)
        return -1;
    /* Wake-ups are a hint; whatever came in between is taken now. */
    ring_buffer__consume(ringBuf);
    return n < 0 ? 0 : n;
}
