/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsEvent.h>
#include <epicsMutex.h>
#include <epicsThread.h>

#include "common/clock.h"
#include "common/text.h"
#include "common/worker.h"
#include "put/userNames.h"

#define SETS 64 /* of uids */
#define WAYS 4
#define NAME_SIZE 40
#define REFRESH_NS (60 * EBPFMON_SECOND_NS)
#define IDLE_SECONDS 3600.0 /* the worker is woken when there is something to do */

typedef struct {
    uid_t    uid;
    int      isUsed;     /* this place has a uid */
    int      isWanted;   /* the worker is to ask for it */
    int      isKnown;    /* "name" is valid */
    uint64_t askedAt;    /* monotonic ns: when somebody wanted it first */
    uint64_t readAt;     /* monotonic ns: when "name" was read */
    uint64_t usedAt;
    char     name[NAME_SIZE];
} userEntry;

/* A thread that waits for a name. The struct lies on its stack. */
typedef struct waiter {
    struct waiter *next;
    epicsEventId   event;
} waiter;

struct ebpfMonUserNames {
    ebpfMonUserNameReader read; /* fixed, as the next two */
    uint64_t       deadline;  /* ns */
    ebpfMonWorker *worker;
    epicsMutexId   lock;      /* guards what follows */
    userEntry      table[SETS][WAYS];
    waiter        *waiters;
    uint64_t       busySince; /* monotonic ns: the name service was called; 0: it has answered */
};

static userEntry *findEntry(ebpfMonUserNames *names, uid_t uid)
{
    userEntry *set = names->table[uid % SETS];

    for (unsigned i = 0; i < WAYS; i++)
        if (set[i].isUsed && set[i].uid == uid)
            return &set[i];
    return NULL;
}

static userEntry *addEntry(ebpfMonUserNames *names, uid_t uid, uint64_t now)
{
    userEntry *set = names->table[uid % SETS], *oldest = &set[0];

    for (unsigned i = 1; i < WAYS; i++)
        if (set[i].usedAt < oldest->usedAt)
            oldest = &set[i];
    *oldest = (userEntry){ .uid = uid, .isUsed = 1, .isWanted = 1, .askedAt = now, .usedAt = now };
    return oldest;
}

/* The uid that waits longest; 0: none is wanted. */
static int takeWanted(ebpfMonUserNames *names, uid_t *uid)
{
    userEntry *first = NULL;

    epicsMutexMustLock(names->lock);
    for (unsigned i = 0; i < SETS * WAYS; i++) {
        userEntry *e = &names->table[i / WAYS][i % WAYS];

        if (e->isWanted && (!first || e->askedAt < first->askedAt))
            first = e;
    }
    if (first) {
        first->isWanted = 0;
        *uid = first->uid;
        names->busySince = ebpfMonClockMonotonic();
    }
    epicsMutexUnlock(names->lock);
    return first != NULL;
}

static void storeName(ebpfMonUserNames *names, uid_t uid, int hasName, const char *name)
{
    userEntry *e;

    epicsMutexMustLock(names->lock);
    names->busySince = 0;
    e = findEntry(names, uid);
    if (e) { /* else another uid took its place meanwhile */
        if (hasName || !e->isKnown) /* a name service that is down for a while takes no name away */
            ebpfMonTextCopy(e->name, sizeof(e->name), name);
        e->isKnown = 1;
        e->readAt = ebpfMonClockMonotonic();
    }
    for (waiter *w = names->waiters; w; w = w->next)
        epicsEventMustTrigger(w->event);
    epicsMutexUnlock(names->lock);
}

static void runUserNames(ebpfMonWorker *worker, void *arg)
{
    ebpfMonUserNames *names = arg;
    char name[NAME_SIZE];
    uid_t uid;

    ebpfMonWorkerWaitsForOthers(worker); /* the name service */
    while (!ebpfMonWorkerIsStopping(worker)) {
        if (takeWanted(names, &uid))
            storeName(names, uid, names->read(uid, name, sizeof(name)) == 0, name);
        else
            ebpfMonWorkerWait(worker, IDLE_SECONDS);
    }
}

ebpfMonUserNames *ebpfMonUserNamesNew(ebpfMonUserNameReader read, double deadline)
{
    ebpfMonUserNames *names = calloc(1, sizeof(*names));

    if (!names)
        return NULL;
    names->read = read;
    names->deadline = (uint64_t)(deadline * 1e9);
    names->lock = epicsMutexMustCreate();
    names->worker = ebpfMonWorkerStart("ebpfMonUsers", epicsThreadPriorityLow, runUserNames, names);
    if (!names->worker) {
        epicsMutexDestroy(names->lock);
        free(names);
        return NULL;
    }
    return names;
}

int ebpfMonUserNamesFree(ebpfMonUserNames *names, double seconds)
{
    if (!names)
        return 0;
    if (ebpfMonWorkerStop(&names->worker, seconds))
        return -1;
    epicsMutexDestroy(names->lock);
    free(names);
    return 0;
}

static uint64_t subtractTime(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* How long it is worth to wait for this name, ns: not longer than until the name service is found to hang. */
static uint64_t findPatience(const ebpfMonUserNames *names, const userEntry *e, uint64_t now)
{
    uint64_t own = subtractTime(names->deadline, now - e->askedAt);
    uint64_t service = names->busySince ? subtractTime(names->deadline, now - names->busySince) : own;

    return own < service ? own : service;
}

/* The lock is held, and is held again at the return. */
static void waitForAnswer(ebpfMonUserNames *names, uint64_t patience)
{
    waiter self = { .next = names->waiters, .event = epicsEventMustCreate(epicsEventEmpty) }, **at = &names->waiters;

    names->waiters = &self;
    epicsMutexUnlock(names->lock);
    epicsEventWaitWithTimeout(self.event, (double)patience / 1e9);
    epicsMutexMustLock(names->lock);
    while (*at != &self)
        at = &(*at)->next;
    *at = self.next;
    epicsEventDestroy(self.event);
}

int ebpfMonUserNamesFind(ebpfMonUserNames *names, uid_t uid, char *buf, size_t size)
{
    uint64_t now, patience;
    userEntry *e;
    int isKnown;

    epicsMutexMustLock(names->lock);
    now = ebpfMonClockMonotonic(); /* not before: a name that came meanwhile would be newer than now */
    e = findEntry(names, uid);
    if (!e) {
        e = addEntry(names, uid, now);
        ebpfMonWorkerWake(names->worker);
    } else if (e->isKnown && !e->isWanted && now - e->readAt >= REFRESH_NS) {
        e->isWanted = 1;
        e->askedAt = now;
        ebpfMonWorkerWake(names->worker);
    }
    e->usedAt = now;
    while (e && !e->isKnown && (patience = findPatience(names, e, ebpfMonClockMonotonic()))) {
        waitForAnswer(names, patience);
        e = findEntry(names, uid); /* another thread may have put another uid there */
    }
    isKnown = e && e->isKnown;
    if (isKnown)
        snprintf(buf, size, "%s", e->name);
    else
        snprintf(buf, size, "%u", (unsigned)uid);
    epicsMutexUnlock(names->lock);
    return isKnown;
}
