/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/shares.h"
#include "host/foreign.h"
#include "host/memory.h"
#include "host/serverSockets.h"
#include "ioc/caServer.h"
#include "ioc/mutexes.h"
#include "ioc/recordLinks.h"
#include "watch/followed.h"
#include "watch/targetDatabase.h"

/* --- a place for an IOC --- */

#define LISTENS_NS  1000000000ull  /* between two looks at the sockets of one whose database was not read; and its
                                    * age */
#define LOOK_MAX    16             /* processes, in one look */
#define PLACE_CHARGE_NS 50000000ull /* a look that takes longer is charged to their users: they have many files open */
#define SOCKETS_MAX 1024

static int isLookDue(const ebpfMonTarget *t, uint64_t now)
{
    return !t->cat && !t->gone && now >= t->followed->database.listensAt && !ebpfMonForeignIsCharged(t->pid);
}

void ebpfMonTargetPlaceFindListening(ebpfMonTargets *targets, uint64_t now)
{
    ebpfMonTarget *list[LOOK_MAX];
    pid_t pids[LOOK_MAX];
    ebpfMonServerSocket *sockets;
    unsigned count = 0;
    int found;
    uint64_t begin = ebpfMonClockMonotonic(), took;

    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(targets); t && count < LOOK_MAX; t = t->next)
        if (isLookDue(t, now)) {
            t->followed->database.listensAt = now + LISTENS_NS + (now - t->foundAt);
            pids[count] = t->pid;
            list[count++] = t;
        }
    if (!count)
        return;
    found = ebpfMonServerSocketsRead(pids, count, count, SOCKETS_MAX, NULL, &sockets);
    took = ebpfMonClockMonotonic() - begin;
    ebpfMonTargetsLock(targets);
    for (unsigned k = 0; k < count; k++) {
        list[k]->listens = 0;
        for (int i = 0; i < found; i++)
            list[k]->listens |= sockets[i].pid == list[k]->pid;
    }
    ebpfMonTargetsUnlock(targets);
    for (unsigned k = 0; k < count && took > PLACE_CHARGE_NS; k++)
        ebpfMonForeignCharge(list[k]->pid, took / count);
    free(sockets);
}

static unsigned countOf(ebpfMonTargets *targets, uid_t user)
{
    unsigned n = 0;

    for (const ebpfMonTarget *t = ebpfMonTargetsGetFirst(targets); t; t = t->next)
        n += t->user == user;
    return n;
}

static int isListening(pid_t pid)
{
    ebpfMonServerSocket *socket;
    int n = ebpfMonServerSocketsRead(&pid, 1, 1, 1, NULL, &socket);

    free(socket);
    return n > 0;
}

/* Nonzero: "a" is more important than "b"; both belong to the same user. */
static int isMissedLess(const ebpfMonTarget *a, const ebpfMonTarget *b)
{
    if (!a->cat != !b->cat)
        return !a->cat;
    if (a->listens != b->listens && !a->cat)
        return !a->listens;
    return a->start != b->start ? a->start > b->start : a->iocId > b->iocId;
}

/* The IOC that loses its place for an IOC of this user: one of the user who has most; system users do not count, unless
 * they have all. If that is this user, the new
 * IOC must listen, and the other one must be of its own and not certainly an IOC. NULL: there is none. */
static ebpfMonTarget *findVictim(ebpfMonTargets *targets, pid_t pid, uid_t user)
{
    unsigned most = user < EBPFMON_SYSTEM_USERS ? 0 : countOf(targets, user) + 1;
    ebpfMonTarget *victim = NULL;
    uid_t of = user;

    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(targets); t; t = t->next)
        if (t->user != of && t->user >= EBPFMON_SYSTEM_USERS && countOf(targets, t->user) > most) {
            most = countOf(targets, t->user);
            of = t->user;
        }
    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(targets); t; t = t->next)
        if (t->user == of && (!victim || isMissedLess(t, victim)))
            victim = t;
    if (of == user && victim && (victim->cat || victim->listens || !isListening(pid)))
        return NULL;
    return victim;
}

int ebpfMonTargetPlaceFind(ebpfMonTargets *targets, pid_t pid, uid_t user, ebpfMonTarget **victim)
{
    unsigned count = 0;

    for (const ebpfMonTarget *t = ebpfMonTargetsGetFirst(targets); t; t = t->next)
        count++;
    *victim = count < EBPFMON_TARGETS_MAX ? NULL : findVictim(targets, pid, user);
    return count < EBPFMON_TARGETS_MAX || *victim ? 0 : -1;
}

/* --- structs without a description --- */

/* Nonzero: the layout fits to the records, and to the functions of this IOC. */
static int isPossible(const ebpfMonTarget *t, const ebpfMonCatalogue *cat, const ebpfMonBaseRelease *base)
{
    const int hasChannels = !(t->image.core->oldNames & (1u << ebpfMonFnProcessNotify)); /* EPICS 3.14: dbPutNotify */

    return ebpfMonBaseReleaseIsAlike(base, cat->base) && base->has.channels == hasChannels;
}

void ebpfMonTargetLayoutsChoose(const ebpfMonTarget *t, ebpfMonCatalogue *cat)
{
    ebpfMonMem *mem = t->followed->mem;
    const ebpfMonBaseRelease *base, *first = NULL, *found = NULL;
    const char *odd;

    ebpfMonMemFlush(mem); /* its budget of bytes and time begins anew: the database may have used it up */
    for (unsigned i = 0; !found && (base = ebpfMonBaseReleaseGet(i)) != NULL; i++) {
        if (!isPossible(t, cat, base))
            continue;
        if (!first)
            first = base;
        if (ebpfMonMutexesAreKnown(mem, cat, base) >= 0 &&
            ebpfMonCaServerIsKnown(mem, cat, base, t->image.clientQ, &odd) >= 0)
            found = base;
    }
    if (found || first)
        cat->base = found ? found : first;
    ebpfMonMemFlush(mem);
}

void ebpfMonTargetLayoutsRead(ebpfMonTarget *t)
{
    ebpfMonTargetLayoutsChoose(t, t->cat);
    t->followed->odd.locks = !ebpfMonLockSetsAreKnown(t->followed->mem, t->cat);
    t->followed->probes.hasLists = ebpfMonScanListsAreKnown(t->followed->mem, t->cat);
    ebpfMonMemFlush(t->followed->mem);
}

static int lookAtServer(ebpfMonTarget *t)
{
    int known;

    ebpfMonMemFlush(t->followed->mem);
    known = ebpfMonCaServerIsKnown(t->followed->mem, t->cat, t->cat->base, t->image.clientQ, &t->followed->odd.member);
    ebpfMonMemFlush(t->followed->mem);
    return known;
}

int ebpfMonTargetLayoutsLookAtServer(ebpfMonTarget *t)
{
    const ebpfMonBaseRelease *before;
    int known;

    if (t->followed->odd.isServerKnown || t->followed->odd.server >= EBPFMON_ODD_SERVER ||
        !t->followed->life.isPrepared)
        return 0;
    before = t->cat->base;
    known = lookAtServer(t);
    if (known < 0) {
        ebpfMonTargetLayoutsChoose(t, t->cat);
        known = lookAtServer(t);
    }
    t->followed->odd.isServerKnown = known > 0;
    t->followed->odd.server = known < 0 ? t->followed->odd.server + 1 : 0;
    return t->followed->odd.server == EBPFMON_ODD_SERVER || t->cat->base != before;
}

/* --- when it is read --- */

#define LOOK_NS     500000000ull   /* between two looks for new records while it starts, at least … */
#define LOOK_OFF_NS 30000000000ull /* … and at level off, once it runs */
#define READ_SHARE  20             /* to read databases takes a twentieth of the time at most */
#define CHARGE_NS   100000000ull   /* a reading that failed after this is charged to the user */
#define RESERVE_BYTES (64ull << 20) /* memory that is kept for queues, clients and packets: no IOC is watched with it */
#define RECORD_BYTES  2048          /* what one record takes, at most (documentation/use/limits.md) */
#define SHORT_NS      2000000000ull /* between two looks whether there is memory again */

/* "nodes": counted before. One that is added while this reads makes the next look read again. 0: it was read, or is the
 * one that we have. -1: it cannot be read. */
static int readCatalogue(ebpfMonTargets *targets, ebpfMonRecordTables *tables, ebpfMonTarget *t, long nodes,
                         char why[EBPFMON_NOTE_SIZE])
{
    ebpfMonCatalogue *cat, *old = t->cat;

    ebpfMonMemFlush(t->followed->mem);
    ebpfMonMemAllowPause(t->followed->mem, 1);
    cat = ebpfMonCatalogueRead(t->followed->mem, t->image.pdbbase, why, EBPFMON_NOTE_SIZE);
    ebpfMonMemAllowPause(t->followed->mem, 0);
    if (!cat) {
        if (ebpfMonMemIsOver(t->followed->mem))
            snprintf(why, EBPFMON_NOTE_SIZE,
                     "its database takes more memory or time to read than its size explains: set aside");
        return -1;
    }
    ebpfMonTargetLayoutsChoose(t, cat);
    if (old && ebpfMonCatalogueHasSameRecords(cat, old)) { /* aliases came (dbCreateAlias): all counts go on */
        ebpfMonTargetsLock(targets);
        ebpfMonRecordLinksTakeOver(cat, old);
        t->cat = cat;
        ebpfMonTargetsUnlock(targets);
    } else {
        if (old)
            ebpfMonRecordTablesRemove(tables, t);
        ebpfMonTargetsLock(targets);
        t->cat = cat;
        ebpfMonTargetsUnlock(targets);
        ebpfMonRecordTablesAddArrays(tables, t);
    }
    t->followed->database.nodes = nodes;
    if (!old)
        ebpfMonForeignTrust(t->pid);
    ebpfMonCatalogueRelease(old);
    return 0;
}

/* Without this reserve our own server, queues and logs would fail, and the kernel might kill this process. */
static int hasMemory(long nodes)
{
    return ebpfMonOwnMemoryLeft() >= RESERVE_BYTES + (uint64_t)nodes * RECORD_BYTES;
}

/* Nobody asked for more than its name, and it has one. */
static int isLeftAlone(const ebpfMonTarget *t)
{
    return t->running && t->wantedLevel == ebpfMonLevelOff;
}

/* The time that a look at it takes, without the time that this thread waits for a CPU, or looks at others meanwhile. */
static uint64_t findTimeSpent(const ebpfMonTarget *t)
{
    return ebpfMonClockThreadCpu() + ebpfMonMemGetWaited(t->followed->mem) - ebpfMonMemGetPaused(t->followed->mem);
}

int ebpfMonTargetDatabaseLook(ebpfMonTargets *targets, ebpfMonRecordTables *tables, ebpfMonTarget *t, long most,
                              uint64_t now, char why[EBPFMON_NOTE_SIZE])
{
    uint64_t begin = findTimeSpent(t), took, pause = (now - t->foundAt) / 10, least;
    long nodes;
    int rc = 0;

    why[0] = 0;
    t->followed->database.isShort = 0;
    ebpfMonMemFlush(t->followed->mem);
    nodes = ebpfMonCatalogueCountNodes(t->followed->mem, t->image.pdbbase);
    if (most && nodes > most) {
        ebpfMonMemFlush(t->followed->mem);
        return -1;
    }
    if (!t->cat || (nodes > 0 && nodes != t->followed->database.nodes)) {
        t->followed->database.isShort = nodes >= 0 && !hasMemory(nodes);
        rc = t->followed->database.isShort ? -1 : readCatalogue(targets, tables, t, nodes, why);
    }
    if (t->followed->database.isShort) {
        snprintf(why, EBPFMON_NOTE_SIZE,
                 "not watched: too little memory is left for its %ld records. Raise the limit (MemoryMax, "
                 "ulimit -v), or watch fewer IOCs",
                 nodes);
        pause = SHORT_NS;
    }
    ebpfMonMemFlush(t->followed->mem);
    took = findTimeSpent(t) - begin;
    now = ebpfMonClockMonotonic();
    if (rc && took > CHARGE_NS)
        ebpfMonForeignCharge(t->pid, took);
    if (pause < READ_SHARE * took)
        pause = READ_SHARE * took;
    least = !t->cat ? 0 : isLeftAlone(t) ? LOOK_OFF_NS : LOOK_NS;
    t->followed->database.readAt = now + (pause < least ? least : pause);
    return rc;
}
