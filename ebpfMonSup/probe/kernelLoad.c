/* SPDX-License-Identifier: BSD-3-Clause */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errlog.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "probe/childTrial.h"
#include "probe/kernelLoad.h"
#include "probe/kernelLoaded.h"
#include "probe/libbpfText.h"
#include "probe/preemption.h"
#include "probe/uprobeMulti.h"
#include "ebpfMonTable.h" /* the skeletons have its structs */
#include "ebpfMonBpf.skel.h"
#include "ebpfMonOldBpf.skel.h"

/* --- the object file: there are two, compiled from the same programs, one of them for kernels before 5.17 --- */

/* Both object files have programs and tables of the same names, except tables that only the programs use. So one
 * skeleton does for both. */
static struct ebpfMonBpf *openKernelObject(int isOld)
{
    struct ebpfMonBpf *skel = calloc(1, sizeof(*skel));
    int err;

    if (!skel)
        return NULL;
    err = ebpfMonBpf__create_skeleton(skel);
    if (!err) {
        if (isOld)
            skel->skeleton->data = (void *)ebpfMonOldBpf__elf_bytes(&skel->skeleton->data_sz);
        err = bpf_object__open_skeleton(skel->skeleton, NULL);
    }
    if (err) {
        ebpfMonBpf__destroy(skel);
        errno = -err;
        return NULL;
    }
    return skel;
}

/* --- loading --- */

ebpfMonFeatures ebpfMonFeature;
struct ebpfMonLoaded ebpfMonLoaded;

#define RECORDS_RESERVED 200000u  /* the default where tables do not grow: 45 MB */
#define RECORDS_GROWN    1048576u /* … where they do: 16 MB, and more with the records that are there */
#define ROOTS            262144u  /* the default: 1 MB, and more with the roots that are there */
#define ASYNCS_RESERVED  64u /* roots for each asynchronous record where tables do not grow */
#define ASYNCS_GROWN     8u
#define CLOSURE_FACTOR   6u /* places of the closure table for each record: the order, lists of single records, and the
                             * old table while it changes */

#define PAIRS(places) ((places) / 2 + 1) /* elements of the closure table */

static int useTables(uint32_t slots, uint32_t places)
{
    return ebpfMonBlockTableUse(&ebpfMonLoaded.conf, slots) || ebpfMonBlockTableUse(&ebpfMonLoaded.state, slots) ||
           (places && ebpfMonBlockTableUse(&ebpfMonLoaded.closure, PAIRS(places))) ? -1 : 0;
}

#define HASH_ELEMENT 64 /* bytes that the kernel needs for an element besides key and value, with its share of the
                         * buckets */

/* The memory (bytes) of the tables that are not mapped: hash tables that get all their memory when they are loaded,
 * "freeRoots" and "hits". Those that grow are not counted. */
static size_t countOtherTables(void)
{
    size_t bytes = 0;
    struct bpf_map *map;

    bpf_object__for_each_map(map, ebpfMonLoaded.skel->obj) {
        enum bpf_map_type type = bpf_map__type(map);
        size_t value = (bpf_map__value_size(map) + 7) / 8 * 8;

        if ((type != BPF_MAP_TYPE_HASH && type != BPF_MAP_TYPE_LRU_HASH) ||
            (bpf_map__map_flags(map) & BPF_F_NO_PREALLOC))
            continue;
        bytes += bpf_map__max_entries(map) * (HASH_ELEMENT + (bpf_map__key_size(map) + 7) / 8 * 8 + value);
    }
    bytes += bpf_map__max_entries(ebpfMonLoaded.skel->maps.freeRoots) * sizeof(uint32_t);
    return bytes + EBPFMON_TARGETS_MAX * sizeof(struct ebpfMonHits) * (size_t)libbpf_num_possible_cpus();
}

struct bpf_program *ebpfMonKernelGetProgram(ebpfMonProg prog)
{
    const struct ebpfMonBpf *skel = ebpfMonLoaded.skel;

    if (!skel)
        return NULL;
    switch (prog) {
    case ebpfMonProgPut:        return skel->progs.ebpfmon_put;
    case ebpfMonProgPutReturn:  return skel->progs.ebpfmon_put_return;
    case ebpfMonProgPutField:   return skel->progs.ebpfmon_putfield;
    case ebpfMonProgNotify:     return skel->progs.ebpfmon_notify;
    case ebpfMonProgCheckPut:   return skel->progs.ebpfmon_checkput;
    case ebpfMonProgCamessage:  return skel->progs.ebpfmon_camessage;
    case ebpfMonProgCaLink:     return skel->progs.ebpfmon_calink;
    case ebpfMonProgServe:      return skel->progs.ebpfmon_serve;
    case ebpfMonProgClaim:      return skel->progs.ebpfmon_claim;
    case ebpfMonProgLock:       return skel->progs.ebpfmon_lock;
    case ebpfMonProgPassBegin:  return skel->progs.ebpfmon_pass_begin;
    case ebpfMonProgUnlock:     return skel->progs.ebpfmon_unlock;
    case ebpfMonProgPassCount:  return skel->progs.ebpfmon_unlock;
    case ebpfMonProgPassNext:   return skel->progs.ebpfmon_pass_next;
    case ebpfMonProgListEnd:    return skel->progs.ebpfmon_list_end;
    case ebpfMonProgListBegin:  return skel->progs.ebpfmon_list_begin;
    case ebpfMonProgLocked:     return skel->progs.ebpfmon_locked;
    case ebpfMonProgAsk:        return skel->progs.ebpfmon_request;
    case ebpfMonProgAskMany:    return skel->progs.ebpfmon_request_many;
    case ebpfMonProgProcessCall: return skel->progs.ebpfmon_process_call;
    case ebpfMonProgUnlockMany: return skel->progs.ebpfmon_unlock_many;
    case ebpfMonProgCompleted:  return skel->progs.ebpfmon_completed;
    case ebpfMonProgProcess:    return skel->progs.ebpfmon_process;
    case ebpfMonProgCallback:   return skel->progs.ebpfmon_callback;
    case ebpfMonProgDelayed:    return skel->progs.ebpfmon_delayed;
    case ebpfMonProgOnce:       return skel->progs.ebpfmon_once;
    case ebpfMonProgPop:        return skel->progs.ebpfmon_pop;
    case ebpfMonProgPopReturn:  return skel->progs.ebpfmon_popped;
    case ebpfMonProgCount:      break;
    }
    return NULL;
}

/* A text for snprintf. */
#define STACK_REFUSED                                                                                             \
    "no probe is set, because it could crash this host: kernel %s preempts eBPF programs, and gives them a stack " \
    "that all threads of a CPU share. Please report this; another kernel is needed until then"

const char *ebpfMonKernelRelease(void)
{
    return ebpfMonLoaded.kernel.release;
}

void ebpfMonKernelExplainRefusal(int err, char *why, size_t size)
{
    const char *verdict = ebpfMonLibbpfTextGetVerdict();

    if (err == -EMFILE || err == -ENFILE)
        snprintf(why, size, "too few files are left for its programs (LimitNOFILE of the unit)");
    else if (err == -ENOMEM)
        snprintf(why, size,
                 "no memory for its programs and tables (MemoryMax of the unit; before Linux 5.11 also LimitMEMLOCK)");
    else if (err == -EBPFMON_STACK_REFUSED)
        snprintf(why, size, STACK_REFUSED, ebpfMonKernelRelease());
    else
        snprintf(why, size, "kernel %s refused its programs: %s (%s)", ebpfMonKernelRelease(), strerror(-err),
                 verdict[0] ? verdict : "no more is known");
}

/* Tells the operator why it was refused, and what to do. */
static void explainFailure(int err, char *why, size_t size)
{
    const char *warning = ebpfMonLibbpfTextGetWarning(), *verdict = ebpfMonLibbpfTextGetVerdict();

    if (err == EPERM || (err == EACCES && !verdict[0]))
        snprintf(why, size, "no privileges: start ebpfMon as root, or with CAP_BPF, CAP_PERFMON and "
                 "CAP_SYS_PTRACE");
    else if (err == EMFILE || err == ENFILE)
        snprintf(why, size, "too few files for its programs and tables: raise the limit (ulimit -n, LimitNOFILE), and "
                 "start it again");
    else if (access("/sys/kernel/btf/vmlinux", R_OK))
        snprintf(why, size, "this kernel has no BTF (/sys/kernel/btf/vmlinux): use one with "
                 "CONFIG_DEBUG_INFO_BTF, as distributions build them");
    else if (err == ENOMEM)
        snprintf(why, size,
                 "no memory for the tables of the kernel part: give ebpfMon more (MemoryMax of its unit; before "
                 "Linux 5.11 also LimitMEMLOCK), or ask for less by ebpfMonConfigure; then call ebpfMonStart");
    else if (err == EBPFMON_STACK_REFUSED)
        snprintf(why, size, STACK_REFUSED, ebpfMonKernelRelease());
    else
        snprintf(why, size, "kernel %s refused the eBPF programs (%s; %s): %s", ebpfMonKernelRelease(),
                 verdict[0] ? verdict : strerror(err), warning[0] ? warning : "no more is known",
                 ebpfMonFeature.loop ? "please report this" :
                                       "5.8 or later is needed. If this is one, please report this");
}

static void attachHost(struct bpf_program *prog, struct bpf_link **link, int *feature, const char *what)
{
    *link = bpf_program__attach(prog);
    if (*link) {
        if (feature)
            *feature = 1;
        return;
    }
    errlogSevPrintf(errlogMinor, "ebpfMon: %s cannot be seen on this kernel: %s\n", what, strerror(errno));
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

/* Leaves out the programs that this kernel cannot run: if it refuses one, it loads none. */
static void leaveOutPrograms(void)
{
    struct ebpfMonBpf *skel = ebpfMonLoaded.skel;
    struct bpf_program *const inLists[] = { /* only uprobe_multi can attach these: kernel 6.6 */
        skel->progs.ebpfmon_pass_next, skel->progs.ebpfmon_list_end, skel->progs.ebpfmon_list_begin,
        skel->progs.ebpfmon_locked, skel->progs.ebpfmon_process_call,
    };

    for (size_t i = 0; !ebpfMonFeature.loop && i < sizeof(inLists) / sizeof(inLists[0]); i++)
        bpf_program__set_autoload(inLists[i], false);
    if (hasTracepoint("sock_recv_length"))
        bpf_program__set_autoload(skel->progs.ebpfmon_recv_tcp, false);
    else
        bpf_program__set_autoload(skel->progs.ebpfmon_recv, false);
}

/* Raises the limits of this process. The kernel checks them when a table or a file is made. */
static void raiseLimits(void)
{
    struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY }, files;

    setrlimit(RLIMIT_MEMLOCK, &all); /* kernels before 5.11 count the memory of BPF tables here */
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max; /* an IOC needs a dozen links */
        setrlimit(RLIMIT_NOFILE, &files);
    }
}

/* Lets tables grow: they take memory only for the elements that they have, not for all that they may have. Since kernel
 * 6.1 (fba1a1c6c912, 86fe28f7692d) a program may add an element to such a table whatever it has interrupted. We
 * recognise these kernels by bpf_user_ringbuf_drain, which 6.1 has too. The other tables stay as they are: they are
 * full soon, or they drop their oldest element.
 *
 * A table that grows has a few free elements (of struct thread four), and the kernel makes more in an interrupt that it
 * raises itself (irq_work, kernel/bpf/memalloc.c). A real-time kernel does that in a thread, later: some threads that
 * begin at once got no element. There the tables to which traps add get all their memory when they are loaded (50 MB);
 * the user part, which adds to the others, waits and tries again. */
static void letTablesGrow(void)
{
    struct ebpfMonBpf *skel = ebpfMonLoaded.skel;
    struct bpf_map *byUser[] = { skel->maps.recIndex, skel->maps.passNotes, skel->maps.arrays };
    struct bpf_map *byTraps[] = { skel->maps.threads, skel->maps.asyncs, skel->maps.groupThreads };

    ebpfMonLoaded.grows = libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_user_ringbuf_drain, NULL) == 1;
    ebpfMonLoaded.isRealTime = ebpfMonKernelIsRealTime();
    for (unsigned i = 0; ebpfMonLoaded.grows && i < sizeof(byUser) / sizeof(byUser[0]); i++)
        bpf_map__set_map_flags(byUser[i], bpf_map__map_flags(byUser[i]) | BPF_F_NO_PREALLOC);
    if (!ebpfMonLoaded.grows || ebpfMonLoaded.isRealTime)
        return;
    for (unsigned i = 0; i < sizeof(byTraps) / sizeof(byTraps[0]); i++)
        bpf_map__set_map_flags(byTraps[i], bpf_map__map_flags(byTraps[i]) | BPF_F_NO_PREALLOC);
}

/* The default sizes of this kernel, where none was asked for. */
static ebpfMonLoadSizes findSizes(const ebpfMonLoadSizes *asked)
{
    ebpfMonLoadSizes s = *asked;

    if (!s.maxRecords)
        s.maxRecords = ebpfMonLoaded.grows ? RECORDS_GROWN : RECORDS_RESERVED;
    if (!s.maxRoots)
        s.maxRoots = ROOTS;
    if (s.maxRoots > s.maxRecords)
        s.maxRoots = s.maxRecords;
    s.maxClosure = s.maxRecords * CLOSURE_FACTOR;
    return s;
}

static void setSizes(const ebpfMonLoadSizes *sizes)
{
    struct ebpfMonBpf *skel = ebpfMonLoaded.skel;
    int trapsReserve = !ebpfMonLoaded.grows || ebpfMonLoaded.isRealTime; /* see letTablesGrow */
    unsigned asyncs = sizes->maxRoots / (trapsReserve ? ASYNCS_RESERVED : ASYNCS_GROWN);

    bpf_map__set_max_entries(skel->maps.recIndex, sizes->maxRecords);
    ebpfMonBlockTableSetMost(skel->maps.recConf, sizes->maxRecords, EBPFMON_BLOCK);
    ebpfMonBlockTableSetMost(skel->maps.recState, sizes->maxRecords, EBPFMON_BLOCK);
    ebpfMonBlockTableSetMost(skel->maps.closure, PAIRS(sizes->maxClosure), EBPFMON_BLOCK);
    ebpfMonBlockTableSetMost(skel->maps.roots, sizes->maxRoots, EBPFMON_ROOT_BLOCK);
    bpf_map__set_max_entries(skel->maps.freeRoots, sizes->maxRoots);
    bpf_map__set_max_entries(skel->maps.asyncs, asyncs ? asyncs : 1);
    if (ebpfMonLoaded.grows) { /* else passes are not watched */
        bpf_map__set_max_entries(skel->maps.groupThreads, EBPFMON_THREADS_MAX);
        bpf_map__set_max_entries(skel->maps.passNotes, EBPFMON_TARGETS_MAX);
    }
    bpf_map__set_max_entries(skel->maps.ring, sizes->ringBytes);
    bpf_map__set_map_flags(skel->maps.lost, BPF_F_MMAPABLE);
}

/* The counters of lost events are read very often, so they are mapped. 0, or -1 with errno. */
static int mapLost(void)
{
    int fd = bpf_map__fd(ebpfMonLoaded.skel->maps.lost);
    void *lost = mmap(NULL, EBPFMON_LOST_KERNEL * sizeof(uint64_t), PROT_READ, MAP_SHARED, fd, 0);

    if (lost == MAP_FAILED)
        return -1;
    ebpfMonLoaded.lost = lost;
    return 0;
}

static void unmapLost(void)
{
    if (ebpfMonLoaded.lost)
        munmap((void *)ebpfMonLoaded.lost, EBPFMON_LOST_KERNEL * sizeof(uint64_t));
}

/* 0, or -1 with errno. */
static int mapTables(const ebpfMonLoadSizes *sizes)
{
    struct ebpfMonBpf *skel = ebpfMonLoaded.skel;
    ebpfMonTables *tables = &ebpfMonLoaded.tables;

    tables->size = *sizes;
    tables->use = useTables;
    tables->conf = ebpfMonBlockTableOpen(&ebpfMonLoaded.conf, skel->maps.recConf, sizeof(struct ebpfMonRecConf),
                                         EBPFMON_BLOCK, sizes->maxRecords);
    tables->state = ebpfMonBlockTableOpen(&ebpfMonLoaded.state, skel->maps.recState, sizeof(struct ebpfMonRecState),
                                          EBPFMON_BLOCK, sizes->maxRecords);
    tables->closure = ebpfMonBlockTableOpen(&ebpfMonLoaded.closure, skel->maps.closure,
                                            sizeof(struct ebpfMonClosurePair), EBPFMON_BLOCK, PAIRS(sizes->maxClosure));
    if (!tables->conf || !tables->state || !tables->closure || ebpfMonKernelOpenRoots(sizes->maxRoots) || mapLost() ||
        ebpfMonKernelOpenRing(sizes->ringBytes))
        return -1;
    tables->bytes += sizes->ringBytes + countOtherTables();
    return 0;
}

static void attachHostPrograms(void)
{
    static const char peer[] = "the connection that a server reads from (CA clients are still known)";
    struct ebpfMonBpf *skel = ebpfMonLoaded.skel;

    attachHost(skel->progs.ebpfmon_exec, &skel->links.ebpfmon_exec, NULL, "the start of programs");
    attachHost(skel->progs.ebpfmon_exit, &skel->links.ebpfmon_exit, NULL, "the end of programs");
    if (bpf_program__autoload(skel->progs.ebpfmon_recv))
        attachHost(skel->progs.ebpfmon_recv, &skel->links.ebpfmon_recv, &ebpfMonFeature.recvLength, peer);
    else
        attachHost(skel->progs.ebpfmon_recv_tcp, &skel->links.ebpfmon_recv_tcp, &ebpfMonFeature.recvLength, peer);
    attachHost(skel->progs.ebpfmon_connect, &skel->links.ebpfmon_connect, &ebpfMonFeature.connectState,
               "who opens a connection");
    attachHost(skel->progs.ebpfmon_regs, &skel->links.ebpfmon_regs, NULL, "the stack of a thread that hangs");
}

/* The kernel part knows processes by the ids of the host. In another namespace /proc has others, so no event would find
 * its IOC, and nothing would be missing by any count. The number is PROC_PID_INIT_INO of the kernel (proc_ns.h). */
static int hasHostIds(void)
{
    struct stat own;

    return stat("/proc/self/ns/pid", &own) || own.st_ino == 0xEFFFFFFC;
}

int ebpfMonKernelLoad(const ebpfMonLoadSizes *asked, char *why, size_t size)
{
    ebpfMonLoadSizes sizes;
    int err;

    if (!hasHostIds()) {
        snprintf(why, size, "it is in a container without the process ids of the host, so it would see no put: give it "
                 "these (pid: host, hostPID: true)");
        return -1;
    }
    ebpfMonLibbpfTextBegin();
    uname(&ebpfMonLoaded.kernel);
    raiseLimits();
    memset(&ebpfMonLoaded.tables, 0, sizeof(ebpfMonLoaded.tables));
    ebpfMonFeature.loop = libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_loop, NULL) != 0;
    ebpfMonLoaded.skel = openKernelObject(!ebpfMonFeature.loop);
    if (!ebpfMonLoaded.skel) {
        explainFailure(errno, why, size);
        return -1;
    }
    letTablesGrow();
    sizes = findSizes(asked);
    setSizes(&sizes);
    ebpfMonFeature.uprobeMulti = ebpfMonUprobeMultiIsSupported();
    for (int i = 0; ebpfMonFeature.uprobeMulti && i < ebpfMonProgCount; i++)
        bpf_program__set_expected_attach_type(ebpfMonKernelGetProgram((ebpfMonProg)i),
                                              (enum bpf_attach_type)EBPFMON_ATTACH_MULTI);
    leaveOutPrograms();
    err = ebpfMonBpf__load(ebpfMonLoaded.skel);
    if (!err)
        err = ebpfMonThreadStackTry(bpf_program__fd(ebpfMonLoaded.skel->progs.ebpfmon_stack_trial));
    if (!err)
        err = ebpfMonThreadStackCheck(ebpfMonLoaded.skel->obj);
    if (err) {
        explainFailure(-err, why, size);
        ebpfMonKernelUnload();
        return -1;
    }
    if (mapTables(&sizes)) {
        if (errno == EMFILE)
            explainFailure(errno, why, size);
        else
            snprintf(why, size, "the eBPF tables cannot be mapped: %s. Ask for less memory by ebpfMonConfigure",
                     strerror(errno));
        ebpfMonKernelUnload();
        return -1;
    }
    ebpfMonLoaded.nopHarms = ebpfMonFeature.uprobeMulti && ebpfMonNopTryHarm();
    attachHostPrograms();
    return 0;
}

void ebpfMonKernelWatchScheduler(int on)
{
    struct ebpfMonBpf *skel = ebpfMonLoaded.skel;

    if (on && !skel->links.ebpfmon_switch && !ebpfMonLoaded.schedulerRefused) {
        attachHost(skel->progs.ebpfmon_wakeup, &skel->links.ebpfmon_wakeup, NULL, "which threads are woken");
        attachHost(skel->progs.ebpfmon_switch, &skel->links.ebpfmon_switch, NULL, "which threads wait for a CPU");
        ebpfMonLoaded.schedulerRefused = !skel->links.ebpfmon_switch;
    } else if (!on && skel->links.ebpfmon_switch) {
        bpf_link__destroy(skel->links.ebpfmon_switch);
        bpf_link__destroy(skel->links.ebpfmon_wakeup);
        skel->links.ebpfmon_switch = skel->links.ebpfmon_wakeup = NULL;
    }
}

void ebpfMonKernelUnload(void)
{
    ebpfMonKernelCloseRing();
    ebpfMonMappedTableClose(&ebpfMonLoaded.conf.mapped);
    ebpfMonMappedTableClose(&ebpfMonLoaded.state.mapped);
    ebpfMonMappedTableClose(&ebpfMonLoaded.closure.mapped);
    ebpfMonMappedTableClose(&ebpfMonLoaded.roots.table.mapped);
    unmapLost();
    ebpfMonBpf__destroy(ebpfMonLoaded.skel);
    memset(&ebpfMonLoaded, 0, sizeof(ebpfMonLoaded));
}

const ebpfMonTables *ebpfMonKernelTables(void)
{
    return ebpfMonLoaded.skel ? &ebpfMonLoaded.tables : NULL;
}
