/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include <epicsMutex.h>

#include "common/hash.h"
#include "ioc/linkTable.h"

#define FIRST_SIZE 64 /* power of two */
#define DELETED    1  /* as an address: no DBADDR is there */

typedef struct {
    uint64_t addr; /* 0: free */
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

static uint32_t findPlace(const ebpfMonLinkTable *table, uint64_t addr)
{
    return (uint32_t)(ebpfMonHashInteger(addr) >> 32) & (table->size - 1);
}

static void setEntry(ebpfMonLinkTable *table, uint64_t addr, ebpfMonLinkOwner owner)
{
    uint32_t i = findPlace(table, addr);

    while (table->entry[i].addr && table->entry[i].addr != addr)
        i = (i + 1) & (table->size - 1);
    if (!table->entry[i].addr)
        table->used++;
    table->entry[i].addr = addr;
    table->entry[i].owner = owner;
}

/* Room for one more, at most half full. 0, or -1 without memory. */
static int makeRoom(ebpfMonLinkTable *table)
{
    Entry *old = table->entry;
    uint32_t n = table->size, live = 0;

    if (table->used * 2 < n)
        return 0;
    for (uint32_t i = 0; i < n; i++)
        live += old[i].addr > DELETED;
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
        if (old[i].addr > DELETED)
            setEntry(table, old[i].addr, old[i].owner);
    free(old);
    return 0;
}

void ebpfMonLinkTableAdd(ebpfMonLinkTable *table, uint64_t addr, ebpfMonLinkOwner owner)
{
    epicsMutexMustLock(table->lock);
    if (addr > DELETED && makeRoom(table) == 0)
        setEntry(table, addr, owner);
    epicsMutexUnlock(table->lock);
}

/* Both under the lock. */
static void exchangeAll(ebpfMonLinkTable *table, ebpfMonLinkTable *from)
{
    Entry *entry = table->entry;
    uint32_t size = table->size, used = table->used;

    table->entry = from->entry;
    table->size = from->size;
    table->used = from->used;
    from->entry = entry;
    from->size = size;
    from->used = used;
}

static void replaceOne(ebpfMonLinkTable *table, uint32_t rec, const ebpfMonLinkTable *from)
{
    for (uint32_t i = 0; i < table->size; i++)
        if (table->entry[i].addr > DELETED && table->entry[i].owner.rec == rec)
            table->entry[i].addr = DELETED;
    for (uint32_t i = 0; i < from->size; i++)
        if (from->entry[i].addr > DELETED && makeRoom(table) == 0)
            setEntry(table, from->entry[i].addr, from->entry[i].owner);
}

void ebpfMonLinkTableReplace(ebpfMonLinkTable *table, uint32_t rec, ebpfMonLinkTable *from)
{
    epicsMutexMustLock(table->lock);
    if (rec == UINT32_MAX)
        exchangeAll(table, from);
    else
        replaceOne(table, rec, from);
    epicsMutexUnlock(table->lock);
}

int ebpfMonLinkTableFind(ebpfMonLinkTable *table, uint64_t addr, ebpfMonLinkOwner *owner)
{
    int found = -1;

    epicsMutexMustLock(table->lock);
    if (table->size && addr > DELETED) {
        uint32_t i = findPlace(table, addr);

        while (table->entry[i].addr && table->entry[i].addr != addr)
            i = (i + 1) & (table->size - 1);
        if (table->entry[i].addr) {
            *owner = table->entry[i].owner;
            found = 0;
        }
    }
    epicsMutexUnlock(table->lock);
    return found;
}
