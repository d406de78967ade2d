/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "common/clock.h"
#include "common/shares.h"
#include "host/foreign.h"
#include "host/serverSockets.h"
#include "watch/targetPlace.h"

#define LISTENS_NS  1000000000ull  /* between two looks at the sockets of one whose database was not read; and its
                                    * age */
#define LOOK_MAX    16             /* processes, in one look */
#define CHARGE_NS   50000000ull    /* a look that takes longer is charged to their users: they have many files open */
#define SOCKETS_MAX 1024

static int isLookDue(const ebpfMonTarget *t, uint64_t now)
{
    return !t->cat && !t->gone && now >= t->follower.listensAt && !ebpfMonForeignIsCharged(t->pid);
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
            t->follower.listensAt = now + LISTENS_NS + (now - t->follower.foundAt);
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
    for (unsigned k = 0; k < count && took > CHARGE_NS; k++)
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
