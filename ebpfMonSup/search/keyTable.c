/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "common/hash.h"
#include "search/keyTable.h"

static ebpfMonKeyHead *getHead(const ebpfMonKeyTable *table, uint32_t at)
{
    return (ebpfMonKeyHead *)(void *)(table->entries + at * table->size);
}

static uint32_t getPlace(const ebpfMonKeyTable *table, const void *entry)
{
    return (uint32_t)((size_t)((const char *)entry - table->entries) / table->size);
}

static uint32_t *getBucket(const ebpfMonKeyTable *table, uint64_t key)
{
    return &table->buckets[ebpfMonHashMix(key ^ table->seed) & (table->number - 1)];
}

void ebpfMonKeyTableInit(ebpfMonKeyTable *table, void *entries, size_t size, uint32_t number, uint32_t *buckets,
                    uint64_t seed)
{
    memset(table, 0, sizeof(*table));
    table->entries = entries;
    table->size = size;
    table->number = number;
    table->buckets = buckets;
    table->seed = seed;
    for (uint32_t i = 0; i < number; i++) {
        getHead(table, i)->used = 0;
        getHead(table, i)->chain = i + 1 < number ? i + 1 : EBPFMON_KEY_NONE;
        buckets[i] = EBPFMON_KEY_NONE;
    }
    for (int i = 0; i < 2; i++)
        table->list[i].newest = table->list[i].oldest = EBPFMON_KEY_NONE;
}

static void leaveList(ebpfMonKeyTable *table, uint32_t at)
{
    ebpfMonKeyHead *h = getHead(table, at);
    ebpfMonKeyList *list = &table->list[h->raised];

    if (h->newer != EBPFMON_KEY_NONE)
        getHead(table, h->newer)->older = h->older;
    else
        list->newest = h->older;
    if (h->older != EBPFMON_KEY_NONE)
        getHead(table, h->older)->newer = h->newer;
    else
        list->oldest = h->newer;
    list->members--;
}

static void joinList(ebpfMonKeyTable *table, uint32_t at, int raised)
{
    ebpfMonKeyHead *h = getHead(table, at);
    ebpfMonKeyList *list = &table->list[raised];

    h->raised = (uint8_t)raised;
    h->newer = EBPFMON_KEY_NONE;
    h->older = list->newest;
    if (list->newest != EBPFMON_KEY_NONE)
        getHead(table, list->newest)->newer = at;
    else
        list->oldest = at;
    list->newest = at;
    list->members++;
}

static void removeEntry(ebpfMonKeyTable *table, uint32_t at)
{
    ebpfMonKeyHead *h = getHead(table, at);
    uint32_t *link = getBucket(table, h->key);

    while (*link != at)
        link = &getHead(table, *link)->chain;
    *link = h->chain;
    leaveList(table, at);
    h->used = 0;
    h->chain = table->unused;
    table->unused = at;
}

void *ebpfMonKeyTableFind(const ebpfMonKeyTable *table, uint64_t key)
{
    for (uint32_t at = *getBucket(table, key); at != EBPFMON_KEY_NONE; at = getHead(table, at)->chain)
        if (getHead(table, at)->key == key)
            return getHead(table, at);
    return NULL;
}

void *ebpfMonKeyTableGet(ebpfMonKeyTable *table, uint64_t key, uint64_t time)
{
    ebpfMonKeyHead *h = ebpfMonKeyTableFind(table, key);
    uint32_t at, *first;

    if (h) {
        at = getPlace(table, h);
        leaveList(table, at);
        joinList(table, at, h->raised);
    } else {
        if (table->unused == EBPFMON_KEY_NONE) {
            const ebpfMonKeyList *list = &table->list[table->list[1].members > table->number / 4 * 3];

            /* If more keys than entries come in the same order again and again, the oldest entry is always the one
             * that is needed next. If always the oldest were replaced, no key would ever be found. So every other
             * time the newest is replaced. */
            removeEntry(table, table->replaced++ % 2 ? list->newest : list->oldest);
        }
        at = table->unused;
        h = getHead(table, at);
        table->unused = h->chain;
        memset(h, 0, table->size);
        h->key = key;
        h->used = 1;
        first = getBucket(table, key);
        h->chain = *first;
        *first = at;
        joinList(table, at, 0);
    }
    h->touched = time;
    return h;
}

void ebpfMonKeyTableRaise(ebpfMonKeyTable *table, void *entry)
{
    uint32_t at = getPlace(table, entry);

    if (getHead(table, at)->raised)
        return;
    leaveList(table, at);
    joinList(table, at, 1);
}

void ebpfMonKeyTableRemove(ebpfMonKeyTable *table, void *entry)
{
    removeEntry(table, getPlace(table, entry));
}

void ebpfMonKeyTableExpire(ebpfMonKeyTable *table, uint64_t time, uint64_t age)
{
    for (int i = 0; i < 2; i++) {
        uint32_t at;

        while ((at = table->list[i].oldest) != EBPFMON_KEY_NONE && getHead(table, at)->touched + age < time)
            removeEntry(table, at);
    }
}

void *ebpfMonKeyTableGetNext(const ebpfMonKeyTable *table, int raised, const void *entry)
{
    uint32_t at = entry ? ((const ebpfMonKeyHead *)entry)->older : table->list[raised].newest;

    return at == EBPFMON_KEY_NONE ? NULL : getHead(table, at);
}
