/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A put through a CA link knows the chain in which the link wrote. This chain knows the put with which it began. So a
 * put leads back to an earlier put; a PV that comes back again and again is in a circle, for certain. An answer of a
 * client to an update is a guess: it may write for another reason.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsMutex.h>

#include "common/clock.h"
#include "common/hash.h"
#include "common/text.h"
#include "model/put.h"
#include "subscriptions/feedback.h"

#define PVS       1024 /* a power of two, as the next one */
#define CHAINS    4096
#define PROBES    8
#define SWAPS     6    /* so often, each within … */
#define SWAP_NS   (60 * EBPFMON_SECOND_NS)
#define WINDOW_NS (5 * EBPFMON_SECOND_NS) /* rates are of this time */
#define RATE_MIN  2.0  /* 1/s: a client that writes less often is left alone */
#define CIRCLES   3    /* a PV that leads back to itself so often … */
#define STEPS     64   /* … in so many steps */
#define TOLD_NS   (3600 * EBPFMON_SECOND_NS)
#define TOLD_MAX  3    /* lines at a time */

enum { kindSwaps, kindCircle, kindAnswer, KINDS };

typedef struct {
    uint64_t key;          /* of the client's connection, or of the link */
    char     name[100], peer[EBPFMON_PEER_SIZE];
    unsigned count;        /* in this window */
    double   rate;         /* of the last window */
} writer;

typedef struct {
    uint64_t hash;         /* of IOC and PV; 0: free */
    char     ioc[EBPFMON_NAME_SIZE], pv[EBPFMON_NAME_SIZE + 8];
    uint64_t at, windowAt; /* of the last put; the window began */
    writer   writer[2];
    int      last;         /* who wrote last … */
    uint64_t value;        /* … and a hash of what */
    unsigned swaps;        /* how often the other one has overwritten it with another value … */
    uint64_t swapsSince, swappedAt;
    uint64_t circleAt;
    char     circle[200];  /* "A (ioc1) → B (ioc2) → A" */
    int      isFirst;      /* … of its PVs */
    uint64_t toldAt[KINDS];
} pvEntry;

typedef struct {
    ebpfMonModuleChain chain, source;
    uint64_t pv;           /* hash of the PV whose put began it */
} chainEntry;

struct ebpfMonFeedback {
    epicsMutexId lock;
    pvEntry    pv[PVS];
    chainEntry chain[CHAINS];
};

ebpfMonFeedback *ebpfMonFeedbackNew(void)
{
    ebpfMonFeedback *f = calloc(1, sizeof(*f));

    if (f)
        f->lock = epicsMutexMustCreate();
    return f;
}

static uint64_t hashText(uint64_t hash, const char *text)
{
    return ebpfMonHashFnv64(hash, text, strlen(text) + 1);
}

static uint64_t hashPv(const char *ioc, const char *pv)
{
    return hashText(hashText(EBPFMON_FNV64_BEGIN, ioc), pv) | 1;
}

/* The place of this PV, or the one that was not written for the longest time. */
static pvEntry *findPlace(ebpfMonFeedback *f, uint64_t hash)
{
    pvEntry *oldest = NULL;

    for (unsigned i = 0; i < PROBES; i++) {
        pvEntry *e = &f->pv[((hash >> 1) + i) % PVS];

        if (e->hash == hash)
            return e;
        if (!oldest || e->at < oldest->at)
            oldest = e;
    }
    return oldest;
}

static const pvEntry *findPv(ebpfMonFeedback *f, uint64_t hash)
{
    const pvEntry *e = findPlace(f, hash);

    return e->hash == hash ? e : NULL;
}

/* --- writers ---------------------------------------------------------------------------------------------------- */

static int findWriter(pvEntry *e, const ebpfMonPut *put)
{
    int isLink = put->link[0] != 0;
    uint64_t key = isLink ? hashText(hashText(EBPFMON_FNV64_BEGIN, put->linkIoc), put->link)
                          : hashText(EBPFMON_FNV64_BEGIN, put->peer);
    writer *w;
    int i = e->writer[0].key == key ? 0 : e->writer[1].key == key ? 1 : -1;

    if (i >= 0)
        return i;
    i = !e->writer[0].key ? 0 : !e->writer[1].key ? 1 : !e->last;
    w = &e->writer[i];
    *w = (writer){ .key = key };
    e->swaps = 0;
    if (isLink)
        snprintf(w->name, sizeof(w->name), "link %s%s%.20s", put->link, put->linkIoc[0] ? " of " : "", put->linkIoc);
    else
        ebpfMonTextCopy(w->name, sizeof(w->name), put->who);
    if (!isLink)
        snprintf(w->peer, sizeof(w->peer), "%s", put->peer);
    return i;
}

static void addWrite(pvEntry *e, const ebpfMonPut *put)
{
    uint64_t value = put->hash ? put->hash : hashText(EBPFMON_FNV64_BEGIN, put->val);
    int who = findWriter(e, put);

    if (put->at - e->windowAt >= WINDOW_NS) {
        for (int i = 0; i < 2; i++) {
            e->writer[i].rate = 1e9 * e->writer[i].count / (double)(put->at - e->windowAt);
            e->writer[i].count = 0;
        }
        e->windowAt = put->at;
    }
    e->writer[who].count++;
    if (put->at - e->swappedAt > SWAP_NS)
        e->swaps = 0;
    if (e->at && who != e->last && value != e->value) {
        if (!e->swaps++)
            e->swapsSince = put->at;
        e->swappedAt = put->at;
    }
    e->last = who;
    e->value = value;
    e->at = put->at;
}

/* --- circles ---------------------------------------------------------------------------------------------------- */

static chainEntry *getChain(ebpfMonFeedback *f, const ebpfMonModuleChain *chain)
{
    return &f->chain[ebpfMonHashInteger(chain->begin + chain->thread) % CHAINS];
}

/* Goes back from the put to those that led to it. */
static void findCircle(ebpfMonFeedback *f, pvEntry *e, const ebpfMonModulePut *put)
{
    ebpfMonModuleChain at = put->source;
    uint64_t way[STEPS];
    unsigned length = 0, circles = 0, steps = 0;

    for (; at.begin && steps < STEPS && circles < CIRCLES; steps++) {
        const chainEntry *c = getChain(f, &at);

        if (c->chain.begin != at.begin || c->chain.thread != at.thread)
            return;
        if (!circles)
            way[length++] = c->pv;
        circles += c->pv == e->hash;
        at = c->source;
    }
    if (circles < CIRCLES)
        return;
    e->circleAt = put->at;
    e->circle[0] = 0;
    e->isFirst = 1;
    for (unsigned i = length; i-- > 0;) { /* the oldest is this PV */
        const pvEntry *p = findPv(f, way[i]);

        e->isFirst &= way[i] >= e->hash;
        ebpfMonTextAdd(e->circle, sizeof(e->circle), "%s (%s) → ", p ? p->pv : "?", p ? p->ioc : "?");
    }
    ebpfMonTextAdd(e->circle, sizeof(e->circle), "%s", e->pv);
}

void ebpfMonFeedbackAddPut(ebpfMonFeedback *f, const ebpfMonModulePut *put)
{
    const ebpfMonPut *p = put->context;
    uint64_t hash = hashPv(put->ioc, put->pv);
    pvEntry *e;

    /* what an IOC writes within itself belongs to its database */
    if (put->hasFailed || ebpfMonPutIsInner(p) || (!p->peer[0] && !p->link[0]))
        return;
    epicsMutexMustLock(f->lock);
    e = findPlace(f, hash);
    if (e->hash != hash) {
        *e = (pvEntry){ .hash = hash, .windowAt = put->at };
        snprintf(e->ioc, sizeof(e->ioc), "%s", put->ioc);
        snprintf(e->pv, sizeof(e->pv), "%s", put->pv);
    }
    addWrite(e, p);
    if (put->chain.begin)
        *getChain(f, &put->chain) = (chainEntry){ put->chain, put->source, hash };
    if (p->through == ebpfMonByCaLink)
        findCircle(f, e, put);
    epicsMutexUnlock(f->lock);
}

/* --- words ------------------------------------------------------------------------------------------------------ */

/* Nonzero: it is so now. Of kindAnswer, "who": the writer. */
static int isGoingOn(const pvEntry *e, int kind, int who, uint64_t now)
{
    double rate = kind == kindAnswer ? e->writer[who].rate : e->writer[0].rate + e->writer[1].rate;

    if (kind == kindSwaps)
        return e->hash && e->swaps >= SWAPS && now < e->swappedAt + SWAP_NS;
    if (!e->hash || now >= e->at + 2 * WINDOW_NS)
        return 0;
    return kind == kindCircle ? e->circleAt && now < e->circleAt + 2 * WINDOW_NS && rate > 0
                              : e->writer[who].peer[0] && rate >= RATE_MIN;
}

static void describe(const pvEntry *e, int kind, int who, char *text, size_t size)
{
    if (kind == kindSwaps)
        snprintf(text, size, "%.60s and %.60s overwrite each other in turn, %u times in %.0f s", e->writer[0].name,
                 e->writer[1].name, e->swaps, ceil((double)(e->swappedAt - e->swapsSince) / 1e9));
    else if (kind == kindCircle)
        snprintf(text, size, "links through CA write in a circle, %.3g/s: %s", e->writer[0].rate + e->writer[1].rate,
                 e->circle);
    else
        snprintf(text, size, "%.60s (%s) writes %.3g/s, and has subscribed to it: perhaps it answers its own writes",
                 e->writer[who].name, e->writer[who].peer, e->writer[who].rate);
}

void ebpfMonFeedbackTell(ebpfMonFeedback *f, ebpfMonFeedbackIsSubscribed isSubscribed, void *arg)
{
    uint64_t now = ebpfMonClockMonotonic(); /* puts may be later */
    unsigned told = 0;
    pvEntry e;

    for (unsigned i = 0; i < PVS; i++)
        for (int kind = 0; kind < KINDS && told < TOLD_MAX; kind++)
            for (int who = 0; who < (kind == kindAnswer ? 2 : 1); who++) {
                char text[320], line[EBPFMON_MODULE_EVENT] = "";

                epicsMutexMustLock(f->lock);
                e = f->pv[i];
                epicsMutexUnlock(f->lock);
                if ((e.toldAt[kind] && now - e.toldAt[kind] < TOLD_NS) || !isGoingOn(&e, kind, who, now) ||
                    (kind == kindAnswer && !isSubscribed(arg, e.ioc, e.pv, e.writer[who].peer)))
                    continue;
                epicsMutexMustLock(f->lock);
                if (f->pv[i].hash == e.hash)
                    f->pv[i].toldAt[kind] = now;
                epicsMutexUnlock(f->lock);
                if (kind == kindCircle && !e.isFirst)
                    continue; /* another PV of the circle is told of */
                describe(&e, kind, who, text, sizeof(text));
                ebpfMonTextAdd(line, sizeof(line), "IOC %s: %s: %s", e.ioc, e.pv, text);
                ebpfMonModuleAddEvent(line);
                told++;
            }
}

void ebpfMonFeedbackAddText(ebpfMonFeedback *f, const char *ioc, const char *pv, char *text, size_t size)
{
    const pvEntry *found;
    pvEntry e = { .hash = 0 };
    char one[320];

    epicsMutexMustLock(f->lock);
    found = findPv(f, hashPv(ioc, pv));
    if (found)
        e = *found;
    epicsMutexUnlock(f->lock);
    for (int kind = 0; kind < KINDS; kind++)
        for (int who = 0; who < (kind == kindAnswer ? 2 : 1); who++)
            if ((kind == kindSwaps || e.toldAt[kind]) && isGoingOn(&e, kind, who, ebpfMonClockMonotonic())) {
                describe(&e, kind, who, one, sizeof(one));
                ebpfMonTextAdd(text, size, "; %s", one);
            }
}
