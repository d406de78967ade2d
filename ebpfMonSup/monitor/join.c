/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include <epicsMutex.h>
#include <epicsThread.h>

#include "monitor/join.h"

#define BUCKETS   1024
#define CIRCUITS  8192   /* connections that put; beyond that the longest silent one is forgotten */
#define PUTS_MAX  65536  /* of all connections, waiting for their other half */
#define DONE_MAX  4096   /* of one connection: numbers of what the inside published alone */
#define COVER_MAX 64

#define SENT_NS   50000000ull    /* an error reply to a plain write comes within this, or not at all */
#define REPLY_NS  10000000000ull /* for a reply that was asked for, where nobody looks inside */
#define MADE_NS   1000000000ull  /* for the inside to tell, once the IOC has served later messages or has replied */
#define STUCK_NS  60000000000ull /* … once it has not: it may be hung */
#define BUSY_NS   3600000000000ull /* … for one with callback while the IOC goes on: it waits for its record */

typedef struct circuit {
    struct circuit *next, *newer, *older; /* in its bucket; by the time of the last put */
    struct ebpfMonPeer peer;
    ebpfMonJoinEntry *first, *last;
    uint32_t *done;                 /* ring of DONE_MAX: sequence numbers, oldest first */
    unsigned  doneFirst, doneCount;
    int       told;                 /* "served" is valid */
    uint32_t  served;               /* the latest message that the inside told of */
    int       overrun;              /* of "done" */
    uint32_t  overrunUpTo;
} circuit;

static epicsMutexId lock;           /* of all that follows */
static circuit *bucket[BUCKETS];
static circuit *newest, *oldest;
static unsigned circuits, waiting;
static uint64_t dropped;
static uint32_t cover[COVER_MAX];
static unsigned covers;

static void init(void *unused)
{
    (void)unused;
    lock = epicsMutexMustCreate();
}

static void take(void)
{
    static epicsThreadOnceId once = EPICS_THREAD_ONCE_INIT;

    epicsThreadOnce(&once, init, NULL);
    epicsMutexMustLock(lock);
}

/* a < b in the sequence space (RFC 9293, 3.4) */
static int before(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}

static unsigned hashOf(const struct ebpfMonPeer *p)
{
    uint32_t h = p->addr * 2654435761u ^ p->saddr * 2246822519u ^ ((uint32_t)p->port << 16 | p->sport) * 3266489917u ^
                 p->netns;

    return (h ^ h >> 15) % BUCKETS;
}

static circuit *find(const struct ebpfMonPeer *peer)
{
    circuit *c = bucket[hashOf(peer)];

    while (c && memcmp(&c->peer, peer, sizeof(*peer)) != 0)
        c = c->next;
    return c;
}

static void unchain(circuit *c)
{
    *(c->newer ? &c->newer->older : &newest) = c->older;
    *(c->older ? &c->older->newer : &oldest) = c->newer;
}

static void chain(circuit *c)
{
    c->newer = NULL;
    c->older = newest;
    *(newest ? &newest->newer : &oldest) = c;
    newest = c;
}

static void forget(circuit *c)
{
    circuit **at = &bucket[hashOf(&c->peer)];

    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    unchain(c);
    while (c->first) {
        ebpfMonJoinEntry *p = c->first;

        c->first = p->next;
        if (!p->made)
            dropped++;
        free(p);
        waiting--;
    }
    free(c->done);
    free(c);
    circuits--;
}

static circuit *get(const struct ebpfMonPeer *peer)
{
    circuit *c = find(peer);

    if (!c) {
        if (circuits >= CIRCUITS)
            forget(oldest);
        c = calloc(1, sizeof(*c));
        if (!c)
            return NULL;
        c->peer = *peer;
        c->next = bucket[hashOf(peer)];
        bucket[hashOf(peer)] = c;
        circuits++;
    } else {
        unchain(c);
    }
    chain(c);
    return c;
}

static void removePut(circuit *c, ebpfMonJoinEntry *prev, ebpfMonJoinEntry *p)
{
    if (prev)
        prev->next = p->next;
    else
        c->first = p->next;
    if (c->last == p)
        c->last = prev;
    waiting--;
}

void ebpfMonJoinCover(const uint32_t *netns, unsigned count)
{
    take();
    covers = count < COVER_MAX ? count : COVER_MAX;
    memcpy(cover, netns, covers * sizeof(*netns));
    epicsMutexUnlock(lock);
}

static int covered(const struct ebpfMonPeer *peer)
{
    for (unsigned i = 0; i < covers; i++)
        if (!peer->netns || cover[i] == peer->netns)
            return 1;
    return 0;
}

/* Whether a channel of this name writes to this PV: RECORD, RECORD.FIELD, with modifiers and filters. One that was
 * created before we looked may be any. */
static int names(const char *channel, const ebpfMonPut *put)
{
    size_t n = strcspn(channel, ".{["), m = strcspn(put->pv, ".");

    return !channel[0] || (n == m && strncmp(channel, put->pv, n) == 0) || strcmp(channel, put->channel) == 0;
}

/* What the wire knows and the inside does not. */
static void merge(const ebpfMonJoinEntry *p, ebpfMonPut *put)
{
    put->seen |= EBPFMON_SEEN_WIRE;
    put->hash = p->hash;
    if (!put->channel[0] && strcmp(p->channel, put->pv) != 0)
        snprintf(put->channel, sizeof(put->channel), "%s", p->channel);
    if (p->pva) { /* the inside knows a PVA client's connection alone */
        if (p->user[0])
            snprintf(put->user, sizeof(put->user), "%s", p->user);
        if (p->host[0])
            snprintf(put->host, sizeof(put->host), "%s", p->host);
    }
    if (put->result == ebpfMonPutUnknown && p->replied) {
        put->result = p->ok ? ebpfMonPutOk : p->denied ? ebpfMonPutDenied : ebpfMonPutFailed;
        snprintf(put->message, sizeof(put->message), "%s", p->message);
    }
}

static void served(circuit *c, uint32_t seq)
{
    if (!c->told || before(c->served, seq))
        c->served = seq;
    c->told = 1;
}

static void noteDone(const ebpfMonJoinKey *key)
{
    circuit *c = get(&key->peer);

    if (c && !c->done)
        c->done = malloc(DONE_MAX * sizeof(*c->done));
    if (!c || !c->done)
        return;
    if (c->doneCount == DONE_MAX) {
        c->overrun = 1;
        c->overrunUpTo = c->done[c->doneFirst];
        c->doneFirst = (c->doneFirst + 1) % DONE_MAX;
        c->doneCount--;
    }
    c->done[(c->doneFirst + c->doneCount++) % DONE_MAX] = key->seq;
    served(c, key->seq);
}

/* What the wire told of this put, in "c"; *before: the one in front of it. *past: the wire is beyond it. */
static ebpfMonJoinEntry *match(const circuit *c, const ebpfMonJoinKey *key, const ebpfMonPut *put,
                               ebpfMonJoinEntry **prev, int *past)
{
    *prev = NULL;
    for (ebpfMonJoinEntry *p = c->first; p; *prev = p, p = p->next)
        switch (key->seqKind) {
        case EBPFMON_SEQ_MESSAGE:
            if (p->seq == key->seq)
                return p;
            if (before(key->seq, p->seq)) {
                *past = 1;
                return NULL;
            }
            break;
        case EBPFMON_SEQ_RECEIVED:
            if (before(key->seq, p->end))
                return NULL;
            if (names(p->channel, put))
                return p;
            break;
        default: /* a write-notify that waited for its record: neither thread nor message are the client's now */
            if (p->replyAsked && names(p->channel, put))
                return p;
            break;
        }
    return NULL;
}

/* A PVA group, or a name that we cannot match: one put on the wire, several inside. It stays for the others. */
static ebpfMonJoinEntry *group(const circuit *c, const ebpfMonJoinKey *key)
{
    ebpfMonJoinEntry *p = key->seqKind == EBPFMON_SEQ_RECEIVED ? c->first : NULL;

    while (p && !(p->pva && !before(key->seq, p->end)))
        p = p->next;
    return p;
}

ebpfMonJoinResult ebpfMonJoinInside(const ebpfMonJoinKey *key, ebpfMonPut *put, int last)
{
    ebpfMonJoinResult result = key->seqKind == EBPFMON_SEQ_NONE ? ebpfMonJoinAlone : ebpfMonJoinWait;
    ebpfMonJoinEntry *p = NULL, *prev;
    int past = 0;
    circuit *c;

    if (!put->peer[0] || put->through == ebpfMonByLink || !key->peer.addr)
        return ebpfMonJoinAlone; /* caused by a client's put, but none itself */
    take();
    if (!covered(&key->peer)) {
        epicsMutexUnlock(lock);
        return ebpfMonJoinAlone;
    }
    c = find(&key->peer);
    if (c && (p = match(c, key, put, &prev, &past))) {
        merge(p, put);
        removePut(c, prev, p);
        free(p);
    } else if (c && (p = group(c, key))) {
        merge(p, put);
        p->made = 1;
    }
    if (p)
        result = ebpfMonJoinFound;
    else if (past)
        result = ebpfMonJoinAlone;
    if (c && result != ebpfMonJoinWait && key->seqKind == EBPFMON_SEQ_MESSAGE)
        served(c, key->seq);
    if (last && result == ebpfMonJoinWait)
        noteDone(key);
    epicsMutexUnlock(lock);
    return result;
}

/* The inside published it already: forget its number, and those before it. For PVA the inside knows where what it had
 * received ended. */
static int wasDone(circuit *c, const ebpfMonWireEvent *ev)
{
    if (c->overrun && !before(c->overrunUpTo, ev->seq))
        return 1;
    while (c->doneCount) {
        uint32_t seq = c->done[c->doneFirst];

        if (ev->protocol == ebpfMonWirePva ? before(seq, ev->end) : before(seq, ev->seq)) {
            c->doneFirst = (c->doneFirst + 1) % DONE_MAX;
            c->doneCount--;
            continue;
        }
        if (ev->protocol == ebpfMonWireCa && seq != ev->seq)
            return 0;
        c->doneFirst = (c->doneFirst + 1) % DONE_MAX;
        c->doneCount--;
        return 1;
    }
    return 0;
}

void ebpfMonJoinPut(const ebpfMonWireEvent *ev, uint32_t iocId, const ebpfMonOld *old, uint64_t now, uint64_t lost)
{
    const void *data = ev->protocol == ebpfMonWirePva ? (const void *)ev->text : ev->data;
    size_t have = ev->protocol == ebpfMonWirePva ? strlen(ev->text) + 1 : ev->have;
    ebpfMonJoinEntry *p;
    circuit *c;

    if (ev->protocol == ebpfMonWireCa && have > EBPFMON_JOIN_DATA)
        have = EBPFMON_JOIN_DATA;
    p = malloc(sizeof(*p) + have);
    take();
    c = p && waiting < PUTS_MAX ? get(&ev->peer) : NULL;
    if (!c || wasDone(c, ev)) {
        dropped += !c;
        epicsMutexUnlock(lock);
        free(p);
        return;
    }
    memset(p, 0, sizeof(*p));
    p->at = now;
    p->time = ev->time;
    p->id = ev->id;
    p->seq = ev->seq;
    p->end = ev->end;
    p->sid = ev->sid;
    p->hash = ev->hash;
    p->count = ev->count;
    p->have = (uint32_t)have;
    p->dbrType = (int16_t)ev->dbrType;
    p->baseType = (int16_t)ev->baseType;
    p->elementSize = (uint8_t)ev->elementSize;
    p->pva = ev->protocol == ebpfMonWirePva;
    p->replyAsked = !!ev->replyAsked;
    p->isNumber = !!ev->isNumber;
    p->number = ev->number;
    p->peer = ev->peer;
    p->iocId = iocId;
    p->old = *old;
    p->lost = lost;
    ebpfMonTextCopy(p->user, sizeof(p->user), ev->user);
    ebpfMonTextCopy(p->host, sizeof(p->host), ev->host);
    ebpfMonTextCopy(p->channel, sizeof(p->channel), ev->name);
    memcpy(p->data, data, have);
    if (c->last)
        c->last->next = p;
    else
        c->first = p;
    c->last = p;
    waiting++;
    epicsMutexUnlock(lock);
}

int ebpfMonJoinReply(const ebpfMonWireEvent *ev, ebpfMonOld *old)
{
    ebpfMonJoinEntry *p;
    circuit *c;
    int found;

    take();
    c = ev->id ? find(&ev->peer) : NULL;
    for (p = c ? c->first : NULL; p && p->id != ev->id; p = p->next)
        ;
    if (p) {
        p->replied = 1;
        p->ok = !!ev->ok;
        p->denied = !!ev->denied;
        p->status = ev->status;
        ebpfMonTextCopy(p->message, sizeof(p->message), ev->message ? ev->message : "");
        *old = p->old;
    }
    found = p != NULL;
    epicsMutexUnlock(lock);
    return found;
}

void ebpfMonJoinClosed(const struct ebpfMonPeer *peer)
{
    circuit *c;

    take();
    c = find(peer);
    for (ebpfMonJoinEntry *p = c ? c->first : NULL; p; p = p->next)
        p->passed = 1;
    if (c && !c->first)
        forget(c);
    epicsMutexUnlock(lock);
}

void ebpfMonJoinNamed(const struct ebpfMonPeer *peer, uint32_t sid, const char *name)
{
    circuit *c;

    take();
    c = find(peer);
    for (ebpfMonJoinEntry *p = c ? c->first : NULL; p; p = p->next)
        if (!p->channel[0] && p->sid == sid)
            ebpfMonTextCopy(p->channel, sizeof(p->channel), name);
    epicsMutexUnlock(lock);
}

/* Nobody else will tell of it. */
static int isAlone(const circuit *c, const ebpfMonJoinEntry *p, uint64_t age)
{
    if (!p->iocId && !c->told)
        return p->replied || age >= (p->replyAsked ? REPLY_NS : SENT_NS) || p->passed;
    if (p->replied && !p->ok)
        return age >= SENT_NS * 2; /* the inside sees some refusals too, and knows more */
    if (p->replied || p->passed)
        return age >= MADE_NS;
    if (c->told && before(p->seq, c->served))
        return age >= (p->replyAsked ? BUSY_NS : MADE_NS);
    return age >= STUCK_NS;
}

ebpfMonJoinEntry *ebpfMonJoinAloneOnes(uint64_t now)
{
    ebpfMonJoinEntry *list = NULL, **end = &list;

    take();
    for (circuit *c = newest; c; c = c->older) {
        ebpfMonJoinEntry *p = c->first, *prev = NULL, *next;

        for (; p; p = next) {
            next = p->next;
            if (!isAlone(c, p, now - p->at)) {
                /* A plain write keeps those behind it back, for that is not long: so they stay in order. A
                 * write-notify may be answered in an hour. */
                if (!p->iocId && !c->told && !p->replyAsked)
                    break;
                prev = p;
                continue;
            }
            if (c->told && before(p->seq, c->served))
                p->passed = 1;
            removePut(c, prev, p);
            p->next = NULL;
            if (p->made) {
                free(p);
                continue;
            }
            *end = p;
            end = &p->next;
        }
    }
    epicsMutexUnlock(lock);
    return list;
}

uint64_t ebpfMonJoinDropped(void)
{
    uint64_t n;

    take();
    n = dropped;
    epicsMutexUnlock(lock);
    return n;
}
