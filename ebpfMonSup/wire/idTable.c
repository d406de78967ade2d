/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "common/hash.h"
#include "wire/idTable.h"

#define ROOM_MIN 8u

/* The hash uses the address of the table, because a peer chooses the numbers and must not know which of them
 * collide. */
static unsigned getHome(const ebpfMonIdTable *t, uint32_t key)
{
    return (unsigned)ebpfMonHashMix(key ^ (uint64_t)(uintptr_t)t->slot) & (t->room - 1);
}

ebpfMonIdEntry *ebpfMonIdFind(const ebpfMonIdTable *t, uint32_t key)
{
    if (!t->room)
        return NULL;
    for (unsigned i = getHome(t, key); t->slot[i].value; i = (i + 1) & (t->room - 1))
        if (t->slot[i].key == key)
            return &t->slot[i];
    return NULL;
}

static void putEntry(ebpfMonIdTable *t, const ebpfMonIdEntry *entry)
{
    unsigned i = getHome(t, entry->key);

    while (t->slot[i].value)
        i = (i + 1) & (t->room - 1);
    t->slot[i] = *entry;
    t->used++;
}

static int growTable(ebpfMonCircuit *c, ebpfMonIdTable *t)
{
    ebpfMonIdTable old = *t;

    t->room = old.room ? old.room * 2 : ROOM_MIN;
    t->slot = ebpfMonCircuitAlloc(c, t->room * sizeof *t->slot);
    if (!t->slot) {
        *t = old;
        return 0;
    }
    memset(t->slot, 0, t->room * sizeof *t->slot);
    t->used = 0;
    for (unsigned i = 0; i < old.room; i++)
        if (old.slot[i].value)
            putEntry(t, &old.slot[i]);
    ebpfMonIdClear(c, &old);
    return 1;
}

int ebpfMonIdSet(ebpfMonCircuit *c, ebpfMonIdTable *t, unsigned max, uint32_t key, uint64_t value, uint32_t extra)
{
    ebpfMonIdEntry entry = { value, key, extra }, *at = ebpfMonIdFind(t, key);

    if (at) {
        *at = entry;
        return 1;
    }
    if (t->used >= max || (t->used >= t->room / 4 * 3 && !growTable(c, t)))
        return 0;
    putEntry(t, &entry);
    return 1;
}

void ebpfMonIdRemove(ebpfMonIdTable *t, uint32_t key)
{
    ebpfMonIdEntry *at = ebpfMonIdFind(t, key);
    unsigned hole, mask = t->room - 1;

    if (!at)
        return;
    hole = (unsigned)(at - t->slot);
    /* entries after it move up, so that no search ends too early */
    for (unsigned i = (hole + 1) & mask; t->slot[i].value; i = (i + 1) & mask) {
        if (((i - getHome(t, t->slot[i].key)) & mask) >= ((i - hole) & mask)) {
            t->slot[hole] = t->slot[i];
            hole = i;
        }
    }
    t->slot[hole].value = 0;
    t->used--;
}

void ebpfMonIdClear(ebpfMonCircuit *c, ebpfMonIdTable *t)
{
    if (t->slot)
        ebpfMonCircuitFree(c, t->slot, t->room * sizeof *t->slot);
    memset(t, 0, sizeof *t);
}
