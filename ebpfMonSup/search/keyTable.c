/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "search/keyTable.h"

static ebpfMonKeyHead *head(const ebpfMonKeyTable *table, uint32_t at)
{
    return (ebpfMonKeyHead *)(void *)(table->entries + at * table->size);
}

static uint32_t placeOf(const ebpfMonKeyTable *table, const void *entry)
{
    return (uint32_t)((size_t)((const char *)entry - table->entries) / table->size);
}

uint64_t ebpfMonKeyMix(uint64_t v)
{
    /* The finalizer of MurmurHash3 (Appleby, public domain): two rounds of shift and multiply. */
    v = (v ^ v >> 33) * 0xff51afd7ed558ccdu;
    v = (v ^ v >> 33) * 0xc4ceb9fe1a85ec53u;
    return v ^ v >> 33;
}

static uint32_t *bucket(const ebpfMonKeyTable *table, uint64_t key)
{
    return &table->buckets[ebpfMonKeyMix(key ^ table->seed) & (table->number - 1)];
}

void ebpfMonKeyInit(ebpfMonKeyTable *table, void *entries, size_t size, uint32_t number, uint32_t *buckets,
                    uint64_t seed)
{
    memset(table, 0, sizeof(*table));
    table->entries = entries;
    table->size = size;
    table->number = number;
    table->buckets = buckets;
    table->seed = seed;
    for (uint32_t i = 0; i < number; i++) {
        head(table, i)->used = 0;
        head(table, i)->chain = i + 1 < number ? i + 1 : EBPFMON_KEY_NONE;
        buckets[i] = EBPFMON_KEY_NONE;
    }
    for (int i = 0; i < 2; i++)
        table->list[i].newest = table->list[i].oldest = EBPFMON_KEY_NONE;
}

static void listOut(ebpfMonKeyTable *table, uint32_t at)
{
    ebpfMonKeyHead *h = head(table, at);
    ebpfMonKeyList *list = &table->list[h->raised];

    if (h->newer != EBPFMON_KEY_NONE)
        head(table, h->newer)->older = h->older;
    else
        list->newest = h->older;
    if (h->older != EBPFMON_KEY_NONE)
        head(table, h->older)->newer = h->newer;
    else
        list->oldest = h->newer;
    list->members--;
}

static void listIn(ebpfMonKeyTable *table, uint32_t at, int raised)
{
    ebpfMonKeyHead *h = head(table, at);
    ebpfMonKeyList *list = &table->list[raised];

    h->raised = (uint8_t)raised;
    h->newer = EBPFMON_KEY_NONE;
    h->older = list->newest;
    if (list->newest != EBPFMON_KEY_NONE)
        head(table, list->newest)->newer = at;
    else
        list->oldest = at;
    list->newest = at;
    list->members++;
}

static void drop(ebpfMonKeyTable *table, uint32_t at)
{
    ebpfMonKeyHead *h = head(table, at);
    uint32_t *link = bucket(table, h->key);

    while (*link != at)
        link = &head(table, *link)->chain;
    *link = h->chain;
    listOut(table, at);
    h->used = 0;
    h->chain = table->unused;
    table->unused = at;
}

void *ebpfMonKeyFind(const ebpfMonKeyTable *table, uint64_t key)
{
    for (uint32_t at = *bucket(table, key); at != EBPFMON_KEY_NONE; at = head(table, at)->chain)
        if (head(table, at)->key == key)
            return head(table, at);
    return NULL;
}

void *ebpfMonKeyGet(ebpfMonKeyTable *table, uint64_t key, uint64_t time)
{
    ebpfMonKeyHead *h = ebpfMonKeyFind(table, key);
    uint32_t at, *first;

    if (h) {
        at = placeOf(table, h);
        listOut(table, at);
        listIn(table, at, h->raised);
    } else {
        if (table->unused == EBPFMON_KEY_NONE) {
            const ebpfMonKeyList *list = &table->list[table->list[1].members > table->number / 4 * 3];

            /* When more keys come round and round than there is room for, the oldest is always the next to
             * come: none would ever stay. So every other time it is the newest that goes. */
            drop(table, table->replaced++ % 2 ? list->newest : list->oldest);
        }
        at = table->unused;
        h = head(table, at);
        table->unused = h->chain;
        memset(h, 0, table->size);
        h->key = key;
        h->used = 1;
        first = bucket(table, key);
        h->chain = *first;
        *first = at;
        listIn(table, at, 0);
    }
    h->touched = time;
    return h;
}

void ebpfMonKeyRaise(ebpfMonKeyTable *table, void *entry)
{
    uint32_t at = placeOf(table, entry);

    if (head(table, at)->raised)
        return;
    listOut(table, at);
    listIn(table, at, 1);
}

void ebpfMonKeyDrop(ebpfMonKeyTable *table, void *entry)
{
    drop(table, placeOf(table, entry));
}

void ebpfMonKeyExpire(ebpfMonKeyTable *table, uint64_t time, uint64_t age)
{
    for (int i = 0; i < 2; i++) {
        uint32_t at;

        while ((at = table->list[i].oldest) != EBPFMON_KEY_NONE && head(table, at)->touched + age < time)
            drop(table, at);
    }
}

void *ebpfMonKeyNext(const ebpfMonKeyTable *table, int raised, const void *entry)
{
    uint32_t at = entry ? ((const ebpfMonKeyHead *)entry)->older : table->list[raised].newest;

    return at == EBPFMON_KEY_NONE ? NULL : head(table, at);
}
