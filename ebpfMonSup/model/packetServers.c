/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include <epicsMutex.h>

#include "common/array.h"
#include "common/hash.h"
#include "common/text.h"
#include "model/packetServers.h"

#define FIRST_ID   0x80000000u /* ids of IOCs count up from 1 */
#define NAME_BYTES 250         /* the longest name of a PV */
#define FIRST_POOL 1024
#define FIRST_SLOT 64

/* Names, one after the other, and where they begin: an open hash table that is never more than half full. */
typedef struct {
    char     *pool;
    size_t    used, room;
    uint32_t *slot;    /* 1 + the begin of the name in "pool"; 0: free */
    size_t    slots;
    unsigned  count;
} nameSet;

typedef struct {
    ebpfMonPacketServer server; /* pid 0: this place is free */
    nameSet names;
} keptServer;

struct ebpfMonPacketServers {
    epicsMutexId lock; /* of all that follows, except the listener */
    keptServer   kept[EBPFMON_PACKET_SERVERS];
    uint32_t     nextId;
    int          wantPvs;
    void       (*changed)(void *arg);
    void        *changedArg;
};

/* --- names
 * ----------------------------------------------------------------------------------------------------------- */

static void freeNames(nameSet *set)
{
    free(set->pool);
    free(set->slot);
    *set = (nameSet){0};
}

/* The place of this name, or the free one where it is to be. */
static uint32_t *findSlot(const nameSet *set, const char *name)
{
    size_t at = ebpfMonHashFnv64(EBPFMON_FNV64_BEGIN, name, strlen(name)) % set->slots;

    while (set->slot[at] && strcmp(set->pool + set->slot[at] - 1, name) != 0)
        at = (at + 1) % set->slots;
    return &set->slot[at];
}

/* Makes room for one more name. -1: no memory. */
static int growSlots(nameSet *set)
{
    nameSet grown = *set;

    if (2 * (set->count + 1u) <= set->slots)
        return 0;
    grown.slots = set->slots ? 2 * set->slots : FIRST_SLOT;
    grown.slot = calloc(grown.slots, sizeof(*grown.slot));
    if (!grown.slot)
        return -1;
    for (size_t i = 0; i < set->slots; i++)
        if (set->slot[i])
            *findSlot(&grown, set->pool + set->slot[i] - 1) = set->slot[i];
    free(set->slot);
    *set = grown;
    return 0;
}

static void addName(nameSet *set, const char *name)
{
    size_t size = strlen(name) + 1;
    uint32_t *slot;

    if (set->count >= EBPFMON_PACKET_PVS || growSlots(set))
        return;
    slot = findSlot(set, name);
    if (*slot || ebpfMonArrayGrow(&set->pool, &set->room, set->used + size, FIRST_POOL, 1))
        return;
    memcpy(set->pool + set->used, name, size);
    *slot = (uint32_t)set->used + 1;
    set->used += size;
    set->count++;
}

/* --- servers
 * --------------------------------------------------------------------------------------------------------- */

ebpfMonPacketServers *ebpfMonPacketServersNew(void)
{
    ebpfMonPacketServers *s = calloc(1, sizeof(*s));

    if (s && !(s->lock = epicsMutexCreate())) {
        free(s);
        return NULL;
    }
    if (s)
        s->nextId = FIRST_ID;
    return s;
}

void ebpfMonPacketServersFree(ebpfMonPacketServers *s)
{
    if (!s)
        return;
    for (int i = 0; i < EBPFMON_PACKET_SERVERS; i++)
        freeNames(&s->kept[i].names);
    epicsMutexDestroy(s->lock);
    free(s);
}

void ebpfMonPacketServersSetListener(ebpfMonPacketServers *s, void (*changed)(void *arg), void *arg)
{
    s->changed = changed;
    s->changedArg = arg;
}

void ebpfMonPacketServersWantPvs(ebpfMonPacketServers *s, int want)
{
    epicsMutexMustLock(s->lock);
    s->wantPvs = want;
    for (int i = 0; i < EBPFMON_PACKET_SERVERS && !want; i++)
        freeNames(&s->kept[i].names);
    epicsMutexUnlock(s->lock);
}

/* The place of this server; it may be a new one. NULL: there is no room. */
static keptServer *getServer(ebpfMonPacketServers *s, pid_t pid, uint64_t start)
{
    keptServer *room = NULL;

    for (keptServer *k = s->kept; k < s->kept + EBPFMON_PACKET_SERVERS; k++) {
        if (k->server.pid == pid && k->server.start == start)
            return k;
        if (!k->server.pid && !room)
            room = k;
    }
    if (room)
        room->server = (ebpfMonPacketServer){ .pid = pid, .start = start, .id = s->nextId++ };
    return room;
}

void ebpfMonPacketServersAddPv(ebpfMonPacketServers *s, pid_t pid, uint64_t start, const char *pv)
{
    keptServer *k;

    if (!pv[0] || strlen(pv) > NAME_BYTES || !ebpfMonTextIsClean(pv))
        return;
    epicsMutexMustLock(s->lock);
    k = s->wantPvs ? getServer(s, pid, start) : NULL;
    if (k)
        addName(&k->names, pv);
    epicsMutexUnlock(s->lock);
}

static int isInList(const ebpfMonPacketServer *list, unsigned count, const ebpfMonPacketServer *server)
{
    for (unsigned i = 0; i < count; i++)
        if (list[i].pid == server->pid && list[i].start == server->start)
            return 1;
    return 0;
}

/* Nonzero: what others see of the servers has changed. */
static int setServer(ebpfMonPacketServers *s, const ebpfMonPacketServer *server)
{
    keptServer *k = getServer(s, server->pid, server->start);
    ebpfMonPacketServer before;

    if (!k)
        return 0;
    before = k->server;
    k->server = *server;
    k->server.id = before.id;
    return before.isListed != server->isListed ||
           (server->isListed && (before.caPort != server->caPort || before.pvaPort != server->pvaPort));
}

void ebpfMonPacketServersSetList(ebpfMonPacketServers *s, const ebpfMonPacketServer *list, unsigned count)
{
    int isNew = 0;

    epicsMutexMustLock(s->lock);
    for (keptServer *k = s->kept; k < s->kept + EBPFMON_PACKET_SERVERS; k++)
        if (k->server.pid && !isInList(list, count, &k->server)) {
            isNew |= k->server.isListed;
            freeNames(&k->names);
            k->server = (ebpfMonPacketServer){0};
        }
    for (unsigned i = 0; i < count; i++)
        isNew |= setServer(s, &list[i]);
    epicsMutexUnlock(s->lock);
    if (isNew && s->changed)
        s->changed(s->changedArg);
}

unsigned ebpfMonPacketServersCopy(ebpfMonPacketServers *s, ebpfMonPacketServer *list)
{
    unsigned n = 0;

    epicsMutexMustLock(s->lock);
    for (const keptServer *k = s->kept; k < s->kept + EBPFMON_PACKET_SERVERS; k++)
        if (k->server.isListed) {
            list[n] = k->server;
            list[n++].pvs = k->names.count;
        }
    epicsMutexUnlock(s->lock);
    return n;
}

char *ebpfMonPacketServersCopyPvs(ebpfMonPacketServers *s, uint32_t id, unsigned *count)
{
    char *copy = NULL;

    *count = 0;
    epicsMutexMustLock(s->lock);
    for (const keptServer *k = s->kept; k < s->kept + EBPFMON_PACKET_SERVERS; k++)
        if (k->server.isListed && k->server.id == id && k->names.used && (copy = malloc(k->names.used))) {
            memcpy(copy, k->names.pool, k->names.used);
            *count = k->names.count;
        }
    epicsMutexUnlock(s->lock);
    return copy;
}
