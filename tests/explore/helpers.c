/* SPDX-License-Identifier: BSD-3-Clause */
/* The helpers of the kernel and the tables, for programs that run in user space. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "explore.h"
#include "helpers.h"
#include "common/maps.bpf.h"

#pragma clang section bss = ""

void *__real_memcpy(void *to, const void *from, size_t size);

#define ELEMENTS_MAX 8 /* of a table, by key */
#define BUCKETS      16
#define TABLES_MAX   64
#define ROOTS_MAX    16
#define KEY_MAX      64
#define EVENT_MAX    65536

typedef struct {
    uint32_t isUsed;
    uint32_t place; /* 0 or 1: which of its two values is in force. The kernel writes a new value beside the old one,
                     * and then exchanges both; who has found the old one goes on to use it (htab_map_update_elem) */
    uint8_t key[KEY_MAX];
} Element;

/* A table. What the programs can change of it is memory that they share. */
typedef struct {
    void *map; /* the address by which programs know it */
    const char *name;
    int type;
    size_t keySize, valueSize;
    uint32_t max;
    Element *element;
    char *value;
    uint32_t *bucket; /* a word for the keys that have the same hash: where one is sought that is not there */
} Table;

static struct {
    Table table[TABLES_MAX];
    unsigned count;
    int isOneCpu;
    char event[EXPLORE_THREADS_MAX][EVENT_MAX];
} all;

struct ebpfMonRecConf *helpersConf;
struct ebpfMonRecState *helpersState;
uint32_t *helpersClosure;

extern char colds[]; /* of cold.bpf.c alone */
#define COLD_SIZE 64

/* "map": what a program knows as the table, or the block of one that has blocks. */
static Table *findTable(const void *map)
{
    if ((const Table *)map >= all.table && (const Table *)map < all.table + TABLES_MAX)
        return (Table *)map;
    for (unsigned i = 0; i < all.count; i++)
        if (all.table[i].map == map)
            return &all.table[i];
    exploreFail("a program uses a table that is not known");
}

static int isArray(const Table *t)
{
    return t->type == BPF_MAP_TYPE_ARRAY || t->type == BPF_MAP_TYPE_PERCPU_ARRAY ||
           t->type == BPF_MAP_TYPE_ARRAY_OF_MAPS;
}

static Table *addTable(void *map, const char *name, int type, size_t keySize, size_t valueSize, uint32_t max)
{
    Table *t = &all.table[all.count++];
    size_t copies = type == BPF_MAP_TYPE_PERCPU_ARRAY ? EXPLORE_THREADS_MAX : 1;

    if (all.count == TABLES_MAX || keySize > KEY_MAX)
        abort();
    *t = (Table){ map, name, type, keySize, (valueSize + 7) & ~(size_t)7, max };
    if (!isArray(t))
        copies = 2;
    t->value = exploreAllocTable(copies * max * t->valueSize);
    exploreName(t->value, copies * max * t->valueSize, t->valueSize, name);
    if (isArray(t))
        return t;
    t->element = exploreAlloc(max * sizeof(*t->element));
    t->bucket = exploreAlloc(BUCKETS * sizeof(*t->bucket));
    exploreName(t->element, max * sizeof(*t->element), sizeof(*t->element), name);
    exploreName(t->bucket, BUCKETS * sizeof(*t->bucket), sizeof(*t->bucket), name);
    return t;
}

static uint32_t leastOf(uint32_t a, uint32_t b)
{
    return a && a < b ? a : b;
}

#define MAX_OF(map) (sizeof(*(map).max_entries) / sizeof(int))
#define TYPE_OF(map) (sizeof(*(map).type) / sizeof(int))

/* The user part sets the sizes of those that have size 1 here, but for "blank". */
#define ELEMENTS(map)                                                                                             \
    addTable(&map, #map "[%u]", TYPE_OF(map), sizeof(*map.key), sizeof(*map.value),                               \
             TYPE_OF(map) == BPF_MAP_TYPE_ARRAY || TYPE_OF(map) == BPF_MAP_TYPE_PERCPU_ARRAY ?                    \
             leastOf(MAX_OF(map), ELEMENTS_MAX) : ELEMENTS_MAX);
#define QUEUE(map) addTable(&map, #map "[%u]", BPF_MAP_TYPE_QUEUE, 0, sizeof(*map.value), ELEMENTS_MAX);
#define BLOCKS(map)                                                                                              \
    addTable(&map, #map "[%u]", BPF_MAP_TYPE_ARRAY_OF_MAPS, sizeof(uint32_t),                                    \
             sizeof(*map.values[0]->value_size) / sizeof(int),                                                   \
             &map == (void *)&closure ? PLACES_MAX / 2 : &map == (void *)&roots ? ROOTS_MAX : RECORDS_MAX);

void helpersMakeTables(int isOneCpu)
{
    all.count = 0;
    all.isOneCpu = isOneCpu;
#include "tables.inc"
    addTable(colds, "colds[%u]", BPF_MAP_TYPE_PERCPU_ARRAY, sizeof(uint32_t), COLD_SIZE, 1);
    helpersConf = (void *)findTable(&recConf)->value;
    helpersState = (void *)findTable(&recState)->value;
    helpersClosure = (void *)findTable(&closure)->value;
    exploreIgnore(shares, sizeof(shares)); /* of events */
    /* Element.place tells which configuration is in force */
    exploreIgnore(findTable(&targets)->value, 2 * ELEMENTS_MAX * findTable(&targets)->valueSize);
    exploreName(shares, sizeof(shares), sizeof(shares[0]), "shares[%u]");
    exploreName((void *)stretchPuts, sizeof(stretchPuts), sizeof(stretchPuts[0]), "stretchPuts[%u]");
}

/* --- elements --------------------------------------------------------------------------------------------------- */

static uint32_t *findBucket(const Table *t, const void *key)
{
    uint32_t hash = 0;

    for (size_t i = 0; i < t->keySize; i++)
        hash = 31 * hash + ((const uint8_t *)key)[i];
    return &t->bucket[(hash ^ hash >> 7) % BUCKETS];
}

static void *valueAt(const Table *t, uint32_t i)
{
    uint32_t copy = 0;

    if (!isArray(t))
        copy = t->element[i].place;
    else if (t->type == BPF_MAP_TYPE_PERCPU_ARRAY && !all.isOneCpu && exploreSelf() > 0)
        copy = (uint32_t)exploreSelf();
    return t->value + (copy * t->max + i) * t->valueSize;
}

/* The number of the element; -1: there is none. */
static int findElement(const Table *t, const void *key)
{
    for (uint32_t i = 0; i < t->max; i++)
        if (t->element[i].isUsed && !memcmp(t->element[i].key, key, t->keySize))
            return (int)i;
    return -1;
}

void *bpf_map_lookup_elem(void *map, const void *key)
{
    const Table *t = findTable(map);
    int i;

    if (isArray(t)) {
        uint32_t at = *(const uint32_t *)key;

        if (t->type == BPF_MAP_TYPE_ARRAY_OF_MAPS && map == t->map)
            return at ? NULL : (void *)t; /* it has one block */
        return at < t->max ? valueAt(t, at) : NULL;
    }
    exploreAccess(findBucket(t, key), sizeof(uint32_t), 0);
    i = findElement(t, key);
    if (i < 0)
        return NULL;
    exploreAccess(&t->element[i].place, sizeof(uint32_t), 0);
    return valueAt(t, (uint32_t)i);
}

/* Writes a value beside the one that is in force, and exchanges both. */
static long exchangeValue(const Table *t, uint32_t i, const void *value)
{
    Element *e = &t->element[i];
    uint32_t place = !e->place;
    char *to = t->value + (place * t->max + i) * t->valueSize;

    exploreAccess(to, t->valueSize, 1); /* as one point: who has found this element long ago may see it */
    __real_memcpy(to, value, t->valueSize);
    exploreAccess(&e->place, sizeof(e->place), 1);
    e->place = place;
    return 0;
}

long bpf_map_update_elem(void *map, const void *key, const void *value, __u64 flags)
{
    const Table *t = findTable(map);
    int i;

    if (isArray(t))
        exploreFail("a program writes a whole element of an array");
    exploreAccess(findBucket(t, key), sizeof(uint32_t), 1);
    i = findElement(t, key);
    if (i >= 0)
        return flags == BPF_NOEXIST ? -EEXIST : exchangeValue(t, (uint32_t)i, value);
    /* each thread has the same element in all runs: so its words are no points */
    for (uint32_t n = 0, k = *(const uint8_t *)key % t->max; n < t->max; n++, k = (k + 1) % t->max)
        if (!t->element[k].isUsed) {
            t->element[k].isUsed = 1; /* nobody sees it before it is whole */
            __real_memcpy(t->element[k].key, key, t->keySize);
            exploreAccess(valueAt(t, k), t->valueSize, 1);
            __real_memcpy(valueAt(t, k), value, t->valueSize);
            return 0;
        }
    return -E2BIG;
}

long bpf_map_delete_elem(void *map, const void *key)
{
    const Table *t = findTable(map);
    int i;

    exploreAccess(findBucket(t, key), sizeof(uint32_t), 1);
    i = findElement(t, key);
    if (i < 0)
        return -ENOENT;
    t->element[i].isUsed = 0;
    return 0;
}

/* Of a queue, the elements in use are the first ones; the order does not matter to anybody. */
long bpf_map_pop_elem(void *map, void *value)
{
    const Table *t = findTable(map);

    exploreAccess(t->bucket, sizeof(uint32_t), 1);
    for (uint32_t i = 0; i < t->max; i++)
        if (t->element[i].isUsed) {
            t->element[i].isUsed = 0;
            memcpy(value, valueAt(t, i), sizeof(uint32_t));
            return 0;
        }
    return -ENOENT;
}

long bpf_map_push_elem(void *map, const void *value, __u64 flags)
{
    const Table *t = findTable(map);

    exploreAccess(t->bucket, sizeof(uint32_t), 1);
    for (uint32_t i = 0; i < t->max; i++)
        if (!t->element[i].isUsed) {
            t->element[i].isUsed = 1;
            exploreAccess(valueAt(t, i), sizeof(uint32_t), 1);
            memcpy(valueAt(t, i), value, sizeof(uint32_t));
            return 0;
        }
    return -E2BIG;
}

void *helpersElement(void *map, const void *key)
{
    const Table *t = findTable(map);
    int i;

    if (isArray(t))
        return valueAt(t, *(const uint32_t *)key);
    i = findElement(t, key);
    for (uint32_t k = 0; i < 0 && k < t->max; k++)
        if (!t->element[k].isUsed) {
            i = (int)k;
            t->element[k].isUsed = 1;
            memcpy(t->element[k].key, key, t->keySize);
        }
    return i < 0 ? NULL : valueAt(t, (uint32_t)i);
}

void helpersForEach(void *map, void (*look)(const void *key, void *value))
{
    const Table *t = findTable(map);

    for (uint32_t i = 0; i < t->max; i++)
        if (isArray(t))
            look(&i, valueAt(t, i));
        else if (t->element[i].isUsed)
            look(t->element[i].key, valueAt(t, i));
}

/* --- the other helpers ------------------------------------------------------------------------------------------ */

#define WORD 8

/* Word by word, from the lowest address on, as the kernel copies. */
long bpf_probe_read_user(void *to, __u32 size, const void *from)
{
    if (!exploreIsShared(from, size)) {
        exploreNote("cannot read %u bytes at %p", size, from);
        memset(to, 0, size);
        return -EFAULT;
    }
    for (__u32 done = 0, n; done < size; done += n) {
        const char *at = (const char *)from + done;
        char word[WORD];

        n = WORD - (uintptr_t)at % WORD;
        if (n > size - done)
            n = size - done;
        exploreAccess(at, n, 0);
        __real_memcpy(word, at, n);
        exploreAccess((char *)to + done, n, 1);
        __real_memcpy((char *)to + done, word, n);
    }
    return 0;
}

long bpf_probe_read_user_str(void *to, __u32 size, const void *from)
{
    __u32 n = 0;

    if (!exploreIsShared(from, 1) || !size)
        return -EFAULT;
    while (n + 1 < size && ((const char *)from)[n])
        n++;
    exploreAccess(to, n + 1, 1);
    __real_memcpy(to, from, n);
    ((char *)to)[n] = 0;
    return n + 1;
}

long bpf_loop(__u32 count, void *step, void *walk, __u64 flags)
{
    long (*call)(__u32 i, void *walk) = (long (*)(__u32, void *))step;
    __u32 i = 0;

    while (i < count && !call(i, walk))
        i++;
    return i;
}

__u64 bpf_ktime_get_ns(void)
{
    return exploreNow();
}

__u64 bpf_get_current_pid_tgid(void)
{
    return (__u64)HELPERS_TGID << 32 | (__u32)(HELPERS_TGID + 1 + exploreSelf());
}

long bpf_get_current_comm(void *to, __u32 size)
{
    strncpy(to, exploreComm(exploreSelf()), size);
    return 0;
}

void *bpf_ringbuf_reserve(void *map, __u64 size, __u64 flags)
{
    return size <= EVENT_MAX ? all.event[exploreSelf()] : NULL;
}

long bpf_seq_write(void *seq, const void *from, __u32 size)
{
    return size;
}

int bpf_get_smp_processor_id(void)
{
    return all.isOneCpu ? 0 : exploreSelf();
}
