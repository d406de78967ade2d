/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include <epicsMutex.h>

#include "ioc/linkTable.h"

#define FIRST_SIZE 64 /* power of two */
#define DELETED    1  /* as a channel's address: no channel is there */

typedef struct {
    uint64_t chan; /* 0: free */
    ebpfMonLinkOwner owner;
} Entry;

struct ebpfMonLinkTable {
    epicsMutexId lock;  /* of all that follows */
    Entry   *entry;     /* open addressing */
    uint32_t size, used; /* used: deleted ones too */
};

ebpfMonLinkTable *ebpfMonLinkTableNew(void)
{
    ebpfMonLinkTable *table = calloc(1, sizeof(*table));

    if (table)
        table->lock = epicsMutexCreate();
    if (!table || !table->lock) {
        free(table);
        return NULL;
    }
    return table;
}

void ebpfMonLinkTableFree(ebpfMonLinkTable *table)
{
    if (!table)
        return;
    epicsMutexDestroy(table->lock);
    free(table->entry);
    free(table);
}

static uint32_t place(const ebpfMonLinkTable *table, uint64_t chan)
{
    return (uint32_t)(chan * 0x9e3779b97f4a7c15ull >> 32) & (table->size - 1);
}

static void put(ebpfMonLinkTable *table, uint64_t chan, ebpfMonLinkOwner owner)
{
    uint32_t i = place(table, chan);

    while (table->entry[i].chan && table->entry[i].chan != chan)
        i = (i + 1) & (table->size - 1);
    if (!table->entry[i].chan)
        table->used++;
    table->entry[i].chan = chan;
    table->entry[i].owner = owner;
}

/* Room for one more, at most half full. 0, or -1 without memory. */
static int grow(ebpfMonLinkTable *table)
{
    Entry *old = table->entry;
    uint32_t n = table->size, live = 0;

    if (table->used * 2 < n)
        return 0;
    for (uint32_t i = 0; i < n; i++)
        live += old[i].chan > DELETED;
    for (table->size = FIRST_SIZE; table->size <= live * 4; table->size *= 2)
        ;
    table->entry = calloc(table->size, sizeof(*table->entry));
    if (!table->entry) {
        table->entry = old;
        table->size = n;
        return table->used + 1 < n ? 0 : -1;
    }
    table->used = 0;
    for (uint32_t i = 0; i < n; i++)
        if (old[i].chan > DELETED)
            put(table, old[i].chan, old[i].owner);
    free(old);
    return 0;
}

void ebpfMonLinkTableClear(ebpfMonLinkTable *table, uint32_t rec)
{
    epicsMutexMustLock(table->lock);
    for (uint32_t i = 0; i < table->size; i++)
        if (table->entry[i].chan > DELETED && (rec == UINT32_MAX || table->entry[i].owner.rec == rec))
            table->entry[i].chan = DELETED;
    epicsMutexUnlock(table->lock);
}

void ebpfMonLinkTableAdd(ebpfMonLinkTable *table, uint64_t chan, ebpfMonLinkOwner owner)
{
    epicsMutexMustLock(table->lock);
    if (chan > DELETED && grow(table) == 0)
        put(table, chan, owner);
    epicsMutexUnlock(table->lock);
}

int ebpfMonLinkTableFind(ebpfMonLinkTable *table, uint64_t chan, ebpfMonLinkOwner *owner)
{
    int found = -1;

    epicsMutexMustLock(table->lock);
    if (table->size && chan > DELETED) {
        uint32_t i = place(table, chan);

        while (table->entry[i].chan && table->entry[i].chan != chan)
            i = (i + 1) & (table->size - 1);
        if (table->entry[i].chan) {
            *owner = table->entry[i].owner;
            found = 0;
        }
    }
    epicsMutexUnlock(table->lock);
    return found;
}
