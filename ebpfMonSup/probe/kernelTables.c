/* SPDX-License-Identifier: BSD-3-Clause */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <epicsAtomic.h>
#include <epicsThread.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/clock.h"
#include "common/worker.h"
#include "host/procRead.h"
#include "probe/kernelLoad.h"
#include "probe/kernelLoaded.h"
#include "probe/kernelTables.h"

/* --- connections --- */

/* Nonzero: found. */
static int findOwned(const struct ebpfMonPeer *peer, struct ebpfMonOwned *own)
{
    const struct ebpfMonBpf *skel = ebpfMonLoaded.skel;

    return bpf_map_lookup_elem(bpf_map__fd(skel->maps.owners), peer, own) == 0 ||
           bpf_map_lookup_elem(bpf_map__fd(skel->maps.endedOwners), peer, own) == 0;
}

static int findEarlier(const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first, struct ebpfMonOwned *own)
{
    const struct ebpfMonEarlierKey key = { .peer = *peer, .first = *first };

    return bpf_map_lookup_elem(bpf_map__fd(ebpfMonLoaded.skel->maps.earlier), &key, own) == 0;
}

static int isKnown(const struct ebpfMonFirst *first)
{
    return first->seq[0] || first->seq[1];
}

/* findOwner (bpf/thread/client.bpf.h) does the same, and says what it proves. */
uint32_t ebpfMonKernelGetOwned(const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first,
                               struct ebpfMonOwned *own)
{
    struct ebpfMonPeer at = *peer;
    uint32_t netns = peer->netns;

    if (findOwned(peer, own)) {
        if (!first || !isKnown(first) || !isKnown(&own->first) || ebpfMonFirstIsSame(&own->first, first))
            return netns;
        return findEarlier(peer, first, own) ? netns : 0;
    }
    at.netns = 0;
    if (!first || bpf_map_lookup_elem(bpf_map__fd(ebpfMonLoaded.skel->maps.clientNetns), &at, &netns))
        return 0;
    at.netns = netns;
    if (!findOwned(&at, own) || !ebpfMonFirstIsSame(&own->first, first))
        return isKnown(first) && findEarlier(&at, first, own) && !own->isChosen ? netns : 0;
    return own->isChosen ? 0 : netns;
}

uint32_t ebpfMonKernelGetOwner(const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first,
                               struct ebpfMonOwner *owner)
{
    struct ebpfMonOwned own;
    uint32_t netns = ebpfMonKernelGetOwned(peer, first, &own);

    if (netns)
        *owner = own.owner;
    return netns;
}

int ebpfMonKernelIsAccepted(const struct ebpfMonPeer *peer, struct ebpfMonFirst *first)
{
    return bpf_map_lookup_elem(bpf_map__fd(ebpfMonLoaded.skel->maps.accepted), peer, first) == 0;
}

int ebpfMonKernelHasBegun(const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first)
{
    struct ebpfMonServed served;
    struct ebpfMonFirst begun;
    struct ebpfMonOwned own;

    return (ebpfMonKernelGetOwned(peer, first, &own) && ebpfMonFirstIsSame(&own.first, first)) ||
           (ebpfMonKernelIsAccepted(peer, &begun) && ebpfMonFirstIsSame(&begun, first)) ||
           (ebpfMonKernelWasServed(peer, first, &served) && ebpfMonFirstIsSame(&served.first, first));
}

int ebpfMonKernelMayMissAccepted(void)
{
    return ebpfMonLoaded.skel->bss->acceptedIsFull != 0;
}

int ebpfMonKernelIsServed(const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first, const uint32_t *seq)
{
    struct ebpfMonServed served;

    return bpf_map_lookup_elem(bpf_map__fd(ebpfMonLoaded.skel->maps.served), peer, &served) == 0 &&
           (!first || ebpfMonFirstIsSame(first, &served.first)) &&
           (!seq || ((int32_t)(*seq - served.upTo) < 0 && (!first || (int32_t)(*seq - served.first.seq[0]) >= 0)));
}

int ebpfMonKernelGetCertificate(const struct ebpfMonPeer *peer, struct ebpfMonCertificate *certificate)
{
    return bpf_map_lookup_elem(bpf_map__fd(ebpfMonLoaded.skel->maps.certificates), peer, certificate) == 0;
}

int ebpfMonKernelWasServed(const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first,
                           struct ebpfMonServed *served)
{
    struct ebpfMonOwned own;

    if (bpf_map_lookup_elem(bpf_map__fd(ebpfMonLoaded.skel->maps.endedServed), peer, served))
        return 0;
    if (!isKnown(first) || !isKnown(&served->first) || ebpfMonFirstIsSame(&served->first, first))
        return 1;
    if (!findEarlier(peer, first, &own))
        return 0;
    *served = (struct ebpfMonServed){ .first = own.first, .upTo = own.upTo, .endedAt = own.endedAt };
    return 1;
}

int ebpfMonKernelSetOwner(const struct ebpfMonPeer *peer, const struct ebpfMonOwner *owner)
{
    int fd = bpf_map__fd(ebpfMonLoaded.skel->maps.clientNetns);
    struct ebpfMonOwned own = { .owner = *owner };
    struct ebpfMonPeer at = *peer;
    uint32_t netns = peer->netns, other, many = EBPFMON_NETNS_MANY;

    if (bpf_map_update_elem(bpf_map__fd(ebpfMonLoaded.skel->maps.owners), peer, &own, BPF_NOEXIST))
        return errno == EEXIST ? 0 : -1; /* the kernel part has seen it */
    at.netns = 0;
    if (ebpfMonIsLoopback(peer->addr, peer->addr6) || bpf_map_update_elem(fd, &at, &netns, BPF_NOEXIST) == 0)
        return 0;
    if (bpf_map_lookup_elem(fd, &at, &other) == 0 && other != netns)
        bpf_map_update_elem(fd, &at, &many, BPF_ANY);
    return 0;
}

/* --- histograms of roots --- */

#define SPARE  4096u /* room for roots that nobody expects, within a second */
#define RETRY_NS EBPFMON_SECOND_NS /* so soon the kernel is asked for memory again */

int ebpfMonKernelOpenRoots(unsigned most)
{
    ebpfMonLoadedRoots *roots = &ebpfMonLoaded.roots;

    roots->most = most;
    roots->stat = ebpfMonBlockTableOpen(&roots->table, ebpfMonLoaded.skel->maps.roots, sizeof(struct ebpfMonRootStat),
                                        EBPFMON_ROOT_BLOCK, most);
    return roots->stat ? 0 : -1;
}

static void freeNumber(uint32_t number)
{
    bpf_map_update_elem(bpf_map__fd(ebpfMonLoaded.skel->maps.freeRoots), NULL, &number, BPF_ANY);
}

/* 0, or -1: the kernel gives no memory. */
static int addBlock(ebpfMonLoadedRoots *roots)
{
    uint32_t from = (uint32_t)roots->made, left = roots->most - from;
    uint32_t count = left < EBPFMON_ROOT_BLOCK ? left : EBPFMON_ROOT_BLOCK;

    if (roots->refusedAt && ebpfMonClockMonotonic() - roots->refusedAt < RETRY_NS)
        return -1;
    if (ebpfMonBlockTableUse(&roots->table, from + count)) {
        roots->refusedAt = ebpfMonClockMonotonic();
        return -1;
    }
    epicsAtomicSetSizeT(&roots->made, from + count);
    for (uint32_t i = 1; i <= count; i++)
        freeNumber(from + i);
    return 0;
}

static void addUsed(uint32_t more)
{
    __atomic_fetch_add(&ebpfMonLoaded.skel->bss->rootsUsed, more, __ATOMIC_RELAXED);
}

uint32_t ebpfMonKernelCountRoots(void)
{
    return __atomic_load_n(&ebpfMonLoaded.skel->bss->rootsUsed, __ATOMIC_RELAXED);
}

void ebpfMonKernelReserveRoots(void)
{
    ebpfMonLoadedRoots *roots = &ebpfMonLoaded.roots;
    size_t need = (size_t)ebpfMonKernelCountRoots() + SPARE;

    while (roots->made < need && roots->made < roots->most && addBlock(roots) == 0)
        ;
}

uint32_t ebpfMonKernelTakeRoot(uint32_t slot)
{
    uint32_t number;

    ebpfMonKernelReserveRoots();
    if (bpf_map_lookup_and_delete_elem(bpf_map__fd(ebpfMonLoaded.skel->maps.freeRoots), NULL, &number))
        return 0;
    addUsed(1);
    __atomic_store_n(&((struct ebpfMonRootStat *)&ebpfMonLoaded.roots.stat[number - 1])->owner, (uint64_t)slot + 1,
                     __ATOMIC_RELEASE); /* after the count: ebpfMonKernelEachRoot */
    return number;
}

void ebpfMonKernelRemoveRoots(uint32_t first, uint32_t count)
{
    const ebpfMonLoadedRoots *roots = &ebpfMonLoaded.roots;

    for (uint32_t i = 0; i < roots->made; i++) {
        struct ebpfMonRootStat *stat = (struct ebpfMonRootStat *)&roots->stat[i];
        uint64_t owner = stat->owner;

        if (!owner || owner - 1 < first || owner - 1 - first >= count)
            continue;
        memset(stat, 0, sizeof(*stat));
        freeNumber(i + 1);
        addUsed((uint32_t)-1);
    }
}

void ebpfMonKernelEachRoot(void (*each)(void *arg, uint32_t slot, const struct ebpfMonRootStat *stat), void *arg)
{
    const ebpfMonLoadedRoots *roots = &ebpfMonLoaded.roots;
    size_t made = epicsAtomicGetSizeT(&roots->made);
    uint32_t owned = 0, most = 0;

    /* The numbers are given in sequence, so most roots without an owner are behind the others, and each would be a miss
     * of the caches. A root counts as used before it has its owner. Meanwhile the follower may remove some: then more
     * are looked at than needed. */
    for (size_t i = 0; i < made; i++) {
        uint32_t used = ebpfMonKernelCountRoots();
        struct ebpfMonRootStat copy;

        most = used > most ? used : most;
        if (owned == most)
            break;
        owned += __atomic_load_n(&roots->stat[i].owner, __ATOMIC_ACQUIRE) != 0; /* before the count is read again */
        if (!roots->stat[i].chains)
            continue;
        memcpy(&copy, (const void *)&roots->stat[i], sizeof(copy));
        if (copy.owner && copy.owner == roots->stat[i].owner) /* else the follower clears it */
            each(arg, (uint32_t)copy.owner - 1, &copy);
    }
}

/* --- tables with a key --- */

#define PROGRAMS (EBPFMON_PROBES / EBPFMON_TARGETS_MAX)

_Static_assert((int)ebpfMonProgCount <= PROGRAMS, "each program of an IOC has a place in probeNumbers");

/* The place of this IOC in the table of hits; with tgid 0, a free place. EBPFMON_TARGETS_MAX: there is none. */
static uint32_t findHits(uint32_t tgid)
{
    uint32_t at = 0;

    while (at < EBPFMON_TARGETS_MAX && ebpfMonLoaded.hitsOf[at] != tgid)
        at++;
    return at;
}

/* Gets the place of this IOC in the table of hits; the first call takes a free one, and clears it. */
static uint32_t takeHits(uint32_t tgid)
{
    uint32_t at = findHits(tgid);
    struct ebpfMonHits *zero;

    if (at < EBPFMON_TARGETS_MAX || (at = findHits(0)) == EBPFMON_TARGETS_MAX)
        return at;
    zero = calloc((size_t)libbpf_num_possible_cpus(), sizeof(*zero));
    if (!zero || bpf_map_update_elem(bpf_map__fd(ebpfMonLoaded.skel->maps.hits), &at, zero, BPF_ANY))
        at = EBPFMON_TARGETS_MAX;
    else
        ebpfMonLoaded.hitsOf[at] = tgid;
    free(zero);
    return at;
}

static void freeHits(uint32_t tgid)
{
    uint32_t at = findHits(tgid);

    if (at < EBPFMON_TARGETS_MAX)
        ebpfMonLoaded.hitsOf[at] = 0;
}

uint64_t ebpfMonKernelNumberProbe(uint32_t tgid, unsigned prog)
{
    uint32_t hits = findHits(tgid), at = hits * PROGRAMS + prog;

    if (hits == EBPFMON_TARGETS_MAX || !ebpfMonFeature.uprobeMulti)
        return 0;
    if (!++ebpfMonLoaded.lastProbe)
        ebpfMonLoaded.lastProbe = 1;
    ebpfMonLoaded.skel->bss->probeNumbers[at] = ebpfMonLoaded.lastProbe;
    return (uint64_t)ebpfMonLoaded.lastProbe << 32 | at;
}

void ebpfMonKernelTakeProbeAway(uint64_t cookie)
{
    uint32_t at = (uint32_t)cookie;

    if (cookie && ebpfMonLoaded.skel->bss->probeNumbers[at] == cookie >> 32)
        ebpfMonLoaded.skel->bss->probeNumbers[at] = 0;
}

int ebpfMonKernelSetTarget(uint32_t tgid, const struct ebpfMonTargetConf *conf)
{
    static const struct ebpfMonQueues empty;
    struct ebpfMonTargetConf own = *conf;
    uint32_t at = takeHits(tgid);

    if (at == EBPFMON_TARGETS_MAX)
        return -1;
    own.hits = (uint16_t)at;
    ebpfMonLoaded.skel->bss->targetBits[tgid / 64 % EBPFMON_TARGET_WORDS] |= 1ull << tgid % 64;
    bpf_map_update_elem(bpf_map__fd(ebpfMonLoaded.skel->maps.queues), &tgid, &empty, BPF_NOEXIST);
    return bpf_map_update_elem(bpf_map__fd(ebpfMonLoaded.skel->maps.targets), &tgid, &own, BPF_ANY);
}

void ebpfMonKernelRemoveTarget(uint32_t tgid)
{
    bpf_map_delete_elem(bpf_map__fd(ebpfMonLoaded.skel->maps.targets), &tgid);
    freeHits(tgid);
    bpf_map_delete_elem(bpf_map__fd(ebpfMonLoaded.skel->maps.queues), &tgid);
    bpf_map_delete_elem(bpf_map__fd(ebpfMonLoaded.skel->maps.passNotes), &tgid);
}

int ebpfMonKernelSetList(uint32_t tgid, uint64_t mutex, const struct ebpfMonList *list)
{
    int fd = bpf_map__fd(ebpfMonLoaded.skel->maps.lists);
    struct ebpfMonListKey key = { mutex, tgid };
    struct ebpfMonList now = {};

    bpf_map_lookup_elem(fd, &key, &now);
    now.first = list->first;
    now.len = list->len;
    now.isWhole = 0;
    return bpf_map_update_elem(fd, &key, &now, BPF_ANY);
}

void ebpfMonKernelRemoveLists(uint32_t tgid)
{
    struct ebpfMonListKey *own = malloc(EBPFMON_LISTS_MAX * sizeof(*own)), key, next, *at = NULL;
    int fd = bpf_map__fd(ebpfMonLoaded.skel->maps.lists);
    unsigned n = 0;

    for (unsigned i = 0; own && i < EBPFMON_LISTS_MAX && bpf_map_get_next_key(fd, at, &next) == 0; i++) {
        key = next;
        at = &key;
        if (key.tgid == tgid)
            own[n++] = key;
    }
    for (unsigned i = 0; i < n; i++)
        bpf_map_delete_elem(fd, &own[i]);
    free(own);
}

int ebpfMonKernelSetPlain(const struct ebpfMonProgram *program, int isPlain)
{
    int fd = bpf_map__fd(ebpfMonLoaded.skel->maps.plainPrograms);
    uint8_t value = 0;

    return isPlain ? bpf_map_update_elem(fd, program, &value, BPF_ANY) : bpf_map_delete_elem(fd, program);
}

void ebpfMonKernelSetFound(uint32_t tgid, int isFound)
{
    int fd = bpf_map__fd(ebpfMonLoaded.skel->maps.found);
    uint8_t value = 0;

    if (isFound)
        bpf_map_update_elem(fd, &tgid, &value, BPF_ANY);
    else
        bpf_map_delete_elem(fd, &tgid);
}

int ebpfMonKernelBeginPassNotes(uint32_t tgid)
{
    static const struct ebpfMonPassNotes none;

    return bpf_map_update_elem(bpf_map__fd(ebpfMonLoaded.skel->maps.passNotes), &tgid, &none, BPF_ANY);
}

int ebpfMonKernelGetPassNotes(uint32_t tgid, struct ebpfMonPassNotes *notes)
{
    return bpf_map_lookup_elem(bpf_map__fd(ebpfMonLoaded.skel->maps.passNotes), &tgid, notes);
}

#define BATCH 1024
#define REFUSED_MAX     100
#define REFUSED_SECONDS 0.001

/* Waits, after an update that failed. Nonzero: try it again. A table that grows has few free elements, and the kernel
 * makes more meanwhile (kernel/bpf/memalloc.c). */
static int awaitElements(unsigned *refused)
{
    if (errno != ENOMEM || ++*refused > REFUSED_MAX)
        return 0;
    epicsThreadSleep(REFUSED_SECONDS);
    return 1;
}

int ebpfMonKernelSetRecordIndex(uint32_t tgid, const uint64_t *precord, uint32_t count, uint32_t first)
{
    LIBBPF_OPTS(bpf_map_batch_opts, opts, .elem_flags = BPF_ANY);
    struct ebpfMonRecKey key[BATCH];
    unsigned refused = 0;
    uint32_t slot[BATCH];

    for (uint32_t at = 0; at < count;) {
        uint32_t n = 0, done;

        ebpfMonWorkerGiveSignHere();
        for (; n < BATCH && at + n < count; n++) {
            key[n] = (struct ebpfMonRecKey){ .tgid = tgid, .precord = precord[at + n] };
            slot[n] = first + at + n;
        }
        done = n;
        if (!bpf_map_update_batch(bpf_map__fd(ebpfMonLoaded.skel->maps.recIndex), key, slot, &done, &opts)) {
            at += n;
            continue;
        }
        if (!awaitElements(&refused))
            return -1;
        at += done < n ? done : 0;
    }
    return 0;
}

void ebpfMonKernelRemoveRecordIndex(uint32_t tgid, const uint64_t *precord, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct ebpfMonRecKey key = { .tgid = tgid, .precord = precord[i] };

        if (i % BATCH == 0)
            ebpfMonWorkerGiveSignHere();
        bpf_map_delete_elem(bpf_map__fd(ebpfMonLoaded.skel->maps.recIndex), &key);
    }
}

int ebpfMonKernelSetArray(uint32_t tgid, uint64_t pfldDes, const struct ebpfMonArrayConf *conf)
{
    struct ebpfMonFieldKey key = { pfldDes, tgid };
    unsigned refused = 0;

    while (bpf_map_update_elem(bpf_map__fd(ebpfMonLoaded.skel->maps.arrays), &key, conf, BPF_ANY))
        if (!awaitElements(&refused))
            return -1;
    return 0;
}

void ebpfMonKernelRemoveArray(uint32_t tgid, uint64_t pfldDes)
{
    struct ebpfMonFieldKey key = { pfldDes, tgid };

    bpf_map_delete_elem(bpf_map__fd(ebpfMonLoaded.skel->maps.arrays), &key);
}

/* The memory of a table (bytes), as the kernel tells it: since 6.4 what the table takes (map_mem_usage), before what a
 * full one would take. */
static size_t countMemory(const struct bpf_map *map)
{
    char name[32], text[1024];

    snprintf(name, sizeof(name), "fdinfo/%d", bpf_map__fd(map));
    ebpfMonProcReadText(0, name, text, sizeof(text));
    return (size_t)ebpfMonProcFindNumber(text, "\nmemlock:", 0);
}

size_t ebpfMonKernelCountMemory(void)
{
    size_t bytes = ebpfMonLoaded.tables.bytes + ebpfMonMappedTableGetMade(&ebpfMonLoaded.conf.mapped) +
                   ebpfMonMappedTableGetMade(&ebpfMonLoaded.state.mapped) +
                   ebpfMonMappedTableGetMade(&ebpfMonLoaded.closure.mapped) +
                   ebpfMonMappedTableGetMade(&ebpfMonLoaded.roots.table.mapped);
    struct bpf_map *map;

    if (!ebpfMonLoaded.skel || !ebpfMonLoaded.grows)
        return bytes;
    bpf_object__for_each_map(map, ebpfMonLoaded.skel->obj)
        if (bpf_map__map_flags(map) & BPF_F_NO_PREALLOC)
            bytes += countMemory(map);
    return bytes;
}

/* Removes the elements of these slots from a table that has the slot as its key. The loop is bounded, because programs
 * can add elements meanwhile. */
static void removeSlots(const struct bpf_map *map, uint32_t first, uint32_t count)
{
    uint32_t room = bpf_map__max_entries(map), n = 0, key, next, *at = NULL, *slot = malloc(room * sizeof(*slot));
    int fd = bpf_map__fd(map);

    for (uint32_t i = 0; slot && i < room && bpf_map_get_next_key(fd, at, &next) == 0; i++) {
        key = next;
        at = &key;
        if (key - first < count)
            slot[n++] = key;
    }
    for (uint32_t i = 0; i < n; i++)
        bpf_map_delete_elem(fd, &slot[i]);
    free(slot);
}

/* An empty table takes as long to read as a full one. */
static int hasAsyncs(void)
{
    return *(volatile uint32_t *)&ebpfMonLoaded.skel->bss->hasAsyncs != 0;
}

void ebpfMonKernelRemoveAsyncs(uint32_t first, uint32_t count)
{
    if (hasAsyncs())
        removeSlots(ebpfMonLoaded.skel->maps.asyncs, first, count);
}

void ebpfMonKernelRemoveThreads(pid_t pid)
{
    int *tids, n = ebpfMonProcListNumbers(pid, "task", UINT_MAX, &tids);

    for (int i = 0; i < n; i++)
        bpf_map_delete_elem(bpf_map__fd(ebpfMonLoaded.skel->maps.threads), &tids[i]);
    free(tids);
}

#define BATCH_READ 128 /* elements that one call reads. If a bucket of the table had more, the call would fail with
                        * ENOSPC; in practice a bucket has fewer */

/* Some elements of a table with 32-bit keys, and how far it was read. */
typedef struct {
    const struct bpf_map *map;
    uint32_t keys[BATCH_READ], count, at, calls;
    char *values;
    int more;
} tableBatch;

static void beginTable(tableBatch *b, const struct bpf_map *map)
{
    *b = (tableBatch){ .map = map, .values = malloc(BATCH_READ * bpf_map__value_size(map)) };
    b->more = b->values != NULL;
}

/* Nonzero: there are "count" more elements; 0: it was the last call. If a program adds or removes an element meanwhile,
 * that element may be missed, or come twice. */
static int readBatch(tableBatch *b)
{
    uint32_t most = bpf_map__max_entries(b->map) / BATCH_READ + 64;

    b->count = BATCH_READ;
    if (b->more && b->calls < most) {
        b->more = bpf_map_lookup_batch(bpf_map__fd(b->map), b->calls ? &b->at : NULL, &b->at, b->keys, b->values,
                                       &b->count, NULL) == 0;
        b->calls++;
        if ((b->more || errno == ENOENT) && b->count <= BATCH_READ) /* ENOENT: these are the last ones */
            return 1;
    }
    free(b->values);
    return 0;
}

/* Its structs have 64-bit members, so a value is aligned. */
static const void *getValue(const tableBatch *b, uint32_t k)
{
    return b->values + k * bpf_map__value_size(b->map);
}

/* The value begins with the struct that "each" gets. */
void ebpfMonKernelEachThread(void (*each)(void *arg, uint32_t tid, const struct ebpfMonThread *seen), void *arg)
{
    tableBatch b;

    for (beginTable(&b, ebpfMonLoaded.skel->maps.threads); readBatch(&b);)
        for (uint32_t k = 0; k < b.count; k++)
            each(arg, b.keys[k], getValue(&b, k));
}

/* The directory of a thread is there as long as the thread is, though /proc does not list it. */
static int isThreadThere(uint32_t tid)
{
    char path[32];

    snprintf(path, sizeof(path), "/proc/%u", (unsigned)tid);
    return access(path, F_OK) == 0;
}

void ebpfMonKernelRemoveEnded(void)
{
    const struct ebpfMonBpf *skel = ebpfMonLoaded.skel;
    const struct bpf_map *tables[] = { skel->maps.threads, skel->maps.groupThreads };
    tableBatch b;

    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
        for (beginTable(&b, tables[i]); readBatch(&b);)
            for (uint32_t k = 0; k < b.count; k++) {
                ebpfMonWorkerGiveSignHere();
                if (!isThreadThere(b.keys[k]))
                    bpf_map_delete_elem(bpf_map__fd(tables[i]), &b.keys[k]);
            }
}

int ebpfMonKernelFindCause(uint32_t slot, struct ebpfMonCauseEvent *cause)
{
    return ebpfMonLoaded.skel &&
           bpf_map_lookup_elem(bpf_map__fd(ebpfMonLoaded.skel->maps.causes), &slot, cause) == 0 ? 0 : -1;
}

uint64_t ebpfMonKernelCountTimeouts(uint32_t slot)
{
    struct ebpfMonAsyncStat stat;

    return bpf_map_lookup_elem(bpf_map__fd(ebpfMonLoaded.skel->maps.asyncs), &slot, &stat) ? 0 : stat.timeouts;
}

uint64_t ebpfMonKernelGetReleased(uint32_t tgid, uint64_t lockSet)
{
    struct ebpfMonLockKey key = { lockSet, tgid };
    uint64_t at = 0;

    return bpf_map_lookup_elem(bpf_map__fd(ebpfMonLoaded.skel->maps.released), &key, &at) ? 0 : at;
}

void ebpfMonKernelNeedRoots(int more)
{
    if (ebpfMonLoaded.skel)
        __atomic_fetch_add(&ebpfMonLoaded.skel->bss->rootsNeeded, (uint32_t)more, __ATOMIC_SEQ_CST);
}

int ebpfMonKernelGetTableFd(const char *name)
{
    return ebpfMonLoaded.skel ? bpf_object__find_map_fd_by_name(ebpfMonLoaded.skel->obj, name) : -1;
}

int ebpfMonKernelGetQueues(uint32_t tgid, struct ebpfMonQueues *queues)
{
    return bpf_map_lookup_elem(bpf_map__fd(ebpfMonLoaded.skel->maps.queues), &tgid, queues);
}

int ebpfMonKernelGetRegs(uint32_t tid, ebpfMonKernelRegs *found)
{
    const size_t head = sizeof(found->regs), whole = head + sizeof(found->ret);
    struct ebpfMonBpf *skel = ebpfMonLoaded.skel;
    uint32_t zero = 0;
    ssize_t n;
    int fd;

    if (!skel->links.ebpfmon_regs || bpf_map_update_elem(bpf_map__fd(skel->maps.regsOf), &zero, &tid, BPF_ANY))
        return -1;
    fd = bpf_iter_create(bpf_link__fd(skel->links.ebpfmon_regs));
    if (fd < 0)
        return -1;
    do
        n = read(fd, found, whole);
    while (n < 0 && (errno == EINTR || errno == EAGAIN));
    close(fd);
    if (n < (ssize_t)head)
        return -1;
    found->returns = (unsigned)(((size_t)n - head) / sizeof(found->ret[0]));
    return 0;
}

void ebpfMonKernelGetHits(uint32_t tgid, struct ebpfMonHits *sum)
{
    uint32_t at = findHits(tgid);

    /* behind the last place the sum is 0 */
    ebpfMonPerCpuSum(ebpfMonLoaded.skel->maps.hits, &at, sum, sizeof(*sum));
}

void ebpfMonKernelGetLost(uint64_t lost[EBPFMON_LOST_KERNEL])
{
    for (unsigned i = 0; i < EBPFMON_LOST_KERNEL; i++)
        lost[i] = ebpfMonLoaded.lost ? ebpfMonLoaded.lost[i] : 0;
}

uint64_t ebpfMonKernelCountSkipped(void)
{
    return ebpfMonLoaded.skel ? ebpfMonSkippedRunsCount(ebpfMonLoaded.skel->obj) : 0;
}

#define MISSED_NS 10000000000ull /* ns; a thread that lives receives again in this time, or may serve one connection for
                                  * good, as those of pvAccessCPP do */

int ebpfMonKernelMissedReceive(void)
{
    struct ebpfMonBpf *skel = ebpfMonLoaded.skel;
    uint64_t now = ebpfMonClockMonotonic(), skipped = 0;

    if (skel && bpf_program__autoload(skel->progs.ebpfmon_recv))
        skipped = ebpfMonSkippedRunsOf(bpf_program__fd(skel->progs.ebpfmon_recv));
    else if (skel)
        skipped = ebpfMonSkippedRunsOf(bpf_program__fd(skel->progs.ebpfmon_recv_tcp));
    if (skipped != ebpfMonLoaded.skippedReceives)
        ebpfMonLoaded.skippedReceiveAt = now;
    ebpfMonLoaded.skippedReceives = skipped;
    return ebpfMonLoaded.skippedReceiveAt && now - ebpfMonLoaded.skippedReceiveAt < MISSED_NS;
}

void ebpfMonKernelEachAsync(void (*each)(void *arg, uint32_t slot, const struct ebpfMonAsyncStat *stat), void *arg)
{
    tableBatch b;

    if (!hasAsyncs())
        return;
    for (beginTable(&b, ebpfMonLoaded.skel->maps.asyncs); readBatch(&b);)
        for (uint32_t k = 0; k < b.count; k++)
            each(arg, b.keys[k], getValue(&b, k));
}

/* --- counters of each CPU --- */

void ebpfMonPerCpuSum(const struct bpf_map *map, const void *key, void *sum, size_t size)
{
    int cpus = libbpf_num_possible_cpus();
    char *each = cpus > 0 ? calloc((size_t)cpus, size) : NULL;

    memset(sum, 0, size);
    if (each && bpf_map_lookup_elem(bpf_map__fd(map), key, each) == 0)
        for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
            uint64_t total = 0, one;

            for (int c = 0; c < cpus; c++) {
                memcpy(&one, each + (size_t)c * size + at, sizeof(one));
                total += one;
            }
            memcpy((char *)sum + at, &total, sizeof(total));
        }
    free(each);
}

/* --- programs that the kernel did not run --- */

uint64_t ebpfMonSkippedRunsOf(int fd)
{
    struct bpf_prog_info info = {};
    uint32_t size = sizeof(info);

    return bpf_obj_get_info_by_fd(fd, &info, &size) ? 0 : info.recursion_misses;
}

uint64_t ebpfMonSkippedRunsCount(const struct bpf_object *object)
{
    struct bpf_program *prog;
    uint64_t sum = 0;

    bpf_object__for_each_program(prog, object)
        if (bpf_program__type(prog) != BPF_PROG_TYPE_KPROBE && bpf_program__fd(prog) >= 0)
            sum += ebpfMonSkippedRunsOf(bpf_program__fd(prog));
    return sum;
}
