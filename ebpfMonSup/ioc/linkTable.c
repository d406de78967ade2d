/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include <epicsMutex.h>

#include "common/array.h"
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
    Entry   *name;      /* by the field that is named, in no order: they are few */
    size_t   names, nameRoom;
    int      lacksNames; /* there was no memory */
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
    free(table->name);
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
    else if (addr >> 63 && (table->entry[i].owner.rec != owner.rec || table->entry[i].owner.field != owner.field))
        owner.rec = EBPFMON_SEVERAL_LINKS;
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

static void addNamed(ebpfMonLinkTable *table, uint64_t field, ebpfMonLinkOwner owner)
{
    if (ebpfMonArrayGrow(&table->name, &table->nameRoom, table->names + 1, 16, sizeof(*table->name)))
        table->lacksNames = 1;
    else
        table->name[table->names++] = (Entry){ field, owner };
}

/* Both under the lock. */
static void exchangeAll(ebpfMonLinkTable *table, ebpfMonLinkTable *from)
{
    ebpfMonLinkTable was = *table;

    *table = *from;
    *from = was;
    from->lock = table->lock;
    table->lock = was.lock;
}

static void replaceOne(ebpfMonLinkTable *table, uint32_t rec, const ebpfMonLinkTable *from)
{
    size_t kept = 0;

    for (size_t i = 0; i < table->names; i++)
        if (table->name[i].owner.rec != rec)
            table->name[kept++] = table->name[i];
    table->names = kept;
    for (size_t i = 0; i < from->names; i++)
        addNamed(table, from->name[i].addr, from->name[i].owner);
    table->lacksNames |= from->lacksNames;
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

void ebpfMonLinkTableAddName(ebpfMonLinkTable *table, uint64_t field, ebpfMonLinkOwner owner)
{
    epicsMutexMustLock(table->lock);
    addNamed(table, field, owner);
    epicsMutexUnlock(table->lock);
}

uint32_t ebpfMonLinkTableFindNames(ebpfMonLinkTable *table, uint64_t field, ebpfMonLinkOwner *owner, uint32_t max)
{
    uint32_t found = 0;

    epicsMutexMustLock(table->lock);
    for (size_t i = 0; i < table->names; i++)
        if (table->name[i].addr == field && found++ < max)
            owner[found - 1] = table->name[i].owner;
    if (table->lacksNames)
        found = UINT32_MAX;
    epicsMutexUnlock(table->lock);
    return found;
}
