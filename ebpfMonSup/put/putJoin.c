/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include <epicsMutex.h>
#include <epicsThread.h>

#include "put/putJoin.h"

#define BUCKETS   1024
#define CIRCUITS  8192   /* connections that put; beyond that the longest silent one is forgotten */
#define PUTS_MAX  65536  /* of all connections, waiting for their other half */
#define DONE_MAX  4096   /* of one connection: numbers of what the inside published alone */
#define COVER_MAX 64

#define SENT_NS   50000000ull    /* an error reply to a plain write comes within this, or not at all */
#define REPLY_NS  10000000000ull /* for a reply that was asked for, where nobody looks inside */
#define MADE_NS   2500000000ull  /* for the inside to tell, once the IOC has served later messages or has replied: it
                                    may wait 2 s for the put's result (pending.c) */
#define CLOSED_NS 10000000000ull /* … once the connection is closed: an IOC that is slow still reads what came before */
#define STUCK_NS  60000000000ull /* … without any sign: it may be hung */
#define NOTIFY_NS 3600000000000ull /* a write-notify waits for its record: a motor moves for minutes (dbNotify.c) */
#define IDLE_NS   60000000000ull /* a connection without puts is forgotten */
#define STALE_NS  100000000ull   /* a put is made after its packet came; the two clocks are not read at one time */
#define OTHERS    256            /* connections that are searched for a put */

/* What the inside published alone. */
typedef struct {
    uint64_t at;
    uint32_t seq;
    uint32_t name;  /* hash of the channel's */
    int      shared;/* it may have been another connection's */
} done;

typedef struct circuit {
    struct circuit *next, *newer, *older; /* in its bucket; by the time of the last put */
    struct ebpfMonPeer peer;
    ebpfMonPacketPut *first, *last;
    uint64_t  used;                 /* monotonic ns of its last put */
    done     *done;                 /* in the order of their publication */
    unsigned  doneSize, doneCount;
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
static uint64_t looked;
static uint64_t lastShared;         /* when such a number was noted last */
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

/* By the client's address alone, for that may be all that is known. */
static unsigned hashOf(const struct ebpfMonPeer *p)
{
    uint32_t h = p->addr * 2654435761u ^ p->port * 3266489917u;

    return (h ^ h >> 15) % BUCKETS;
}

static int same(const struct ebpfMonPeer *a, const struct ebpfMonPeer *part)
{
    return a->addr == part->addr && a->port == part->port &&
           (!part->sport || (a->saddr == part->saddr && a->sport == part->sport && a->netns == part->netns));
}

static circuit *find(const struct ebpfMonPeer *peer)
{
    circuit *c = bucket[hashOf(peer)];

    while (c && !same(&c->peer, peer))
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
        ebpfMonPacketPut *p = c->first;

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

static circuit *get(const struct ebpfMonPeer *peer, uint64_t now)
{
    circuit *c = find(peer);

    while (oldest && oldest != c && !oldest->first && now > oldest->used && now - oldest->used > IDLE_NS)
        forget(oldest);
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
    c->used = now;
    return c;
}

static void removePut(circuit *c, ebpfMonPacketPut *prev, ebpfMonPacketPut *p)
{
    if (prev)
        prev->next = p->next;
    else
        c->first = p->next;
    if (c->last == p)
        c->last = prev;
    waiting--;
}

void ebpfMonPutJoinSetCovered(const uint32_t *netns, unsigned count)
{
    take();
    covers = count < COVER_MAX ? count : COVER_MAX;
    memcpy(cover, netns, covers * sizeof(*netns));
    epicsMutexUnlock(lock);
}

void ebpfMonPutJoinSetPacketsRead(uint64_t at)
{
    take();
    looked = at;
    epicsMutexUnlock(lock);
}

uint64_t ebpfMonPutJoinGetPacketsRead(void)
{
    uint64_t at;

    take();
    at = looked;
    epicsMutexUnlock(lock);
    return at;
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
static void merge(const ebpfMonPacketPut *p, ebpfMonPut *put)
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

/* FNV-1a of the record's name that a channel begins with. */
static uint32_t nameHash(const char *channel)
{
    size_t n = strcspn(channel, ".{[");
    uint32_t h = 2166136261u;

    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)channel[i]) * 16777619u;
    return h;
}

static void served(circuit *c, uint32_t seq)
{
    if (!c->told || before(c->served, seq))
        c->served = seq;
    c->told = 1;
}

static int isReceived(const ebpfMonMessageKey *key)
{
    return key->seqKind == EBPFMON_SEQ_RECEIVED || key->seqKind == EBPFMON_SEQ_SHARED;
}

static void dropDone(circuit *c, unsigned i)
{
    memmove(&c->done[i], &c->done[i + 1], (--c->doneCount - i) * sizeof(*c->done));
}

static void noteDone(const ebpfMonMessageKey *key, const ebpfMonPut *put)
{
    circuit *c = key->peer.sport ? get(&key->peer, key->at) : NULL;

    if (c && c->doneCount == c->doneSize && c->doneSize < DONE_MAX) {
        unsigned size = c->doneSize ? 4 * c->doneSize : 16;
        done *more = realloc(c->done, size * sizeof(*more));

        if (more) {
            c->done = more;
            c->doneSize = size;
        }
    }
    if (!c || !c->doneSize)
        return;
    if (c->doneCount == c->doneSize) {
        c->overrun = 1;
        c->overrunUpTo = c->done[0].seq;
        dropDone(c, 0);
    }
    c->done[c->doneCount++] = (done){
        .at = key->at, .seq = key->seq, .name = nameHash(put->channel[0] ? put->channel : put->pv),
        .shared = key->seqKind == EBPFMON_SEQ_SHARED,
    };
    if (key->seqKind == EBPFMON_SEQ_SHARED && key->at > lastShared)
        lastShared = key->at;
    if (key->seqKind == EBPFMON_SEQ_MESSAGE) /* else there may be more messages before this number */
        served(c, key->seq);
}

/* Several clients of one thread may put to the same PV, but seldom the same number. */
static int sameValue(const ebpfMonPacketPut *p, const ebpfMonPut *put)
{
    return !p->isNumber || !put->isNumber || p->number == put->number || (float)p->number == (float)put->number;
}

/* What the wire told of this put, in "c"; *prev: the one in front of it. *past: the wire is beyond it. The name counts in
 * any case: what a put sets going may write too, in the same thread and before the put is done. */
static ebpfMonPacketPut *match(const circuit *c, const ebpfMonMessageKey *key, const ebpfMonPut *put,
                               ebpfMonPacketPut **prev, int *past)
{
    *prev = NULL;
    for (ebpfMonPacketPut *p = c->first; p; *prev = p, p = p->next) {
        if (key->seqKind == EBPFMON_SEQ_MESSAGE) {
            if (p->seq == key->seq && names(p->channel, put))
                return p;
            if (!p->closed && before(key->seq, p->seq)) {
                *past = 1;
                return NULL;
            }
        } else if (isReceived(key)) {
            if (!p->closed && before(key->seq, p->end))
                return NULL;
            if (p->pva && !before(key->seq, p->end) && names(p->channel, put) &&
                (key->seqKind != EBPFMON_SEQ_SHARED || sameValue(p, put)))
                return p;
        } else if (p->replyAsked && names(p->channel, put)) {
            /* a write-notify that waited for its record: neither thread nor message are the client's now */
            return p;
        }
    }
    return NULL;
}

/* A PVA group: one put on the wire, several inside. It stays for the others. What was received may go on behind it, with
 * another put of which the wire has not told yet; so that is only believed in the end. */
static ebpfMonPacketPut *group(const circuit *c, const ebpfMonMessageKey *key, int last)
{
    ebpfMonPacketPut *found = NULL;

    if (!isReceived(key) || (key->seqKind == EBPFMON_SEQ_SHARED && !last))
        return NULL;
    for (ebpfMonPacketPut *p = c->first; p; p = p->next)
        if (p->pva && (p->end == key->seq || (last && before(p->end, key->seq))))
            found = p;
    return found;
}

/* A thread that serves several connections may receive from all of them before it serves the first (libevent's
 * BEV_OPT_DEFER_CALLBACKS, which pvxs uses): then the last receive was another client's. The one connection of this
 * server with a put to this very PV. */
static circuit *another(const ebpfMonMessageKey *key, const ebpfMonPut *put, ebpfMonPacketPut **entry,
                        ebpfMonPacketPut **prev)
{
    circuit *found = NULL;
    unsigned n = 0;

    for (circuit *c = newest; c && n < OTHERS; c = c->older, n++) {
        ebpfMonPacketPut *p = c->first, *in = NULL;

        if (c->peer.saddr != key->peer.saddr || c->peer.sport != key->peer.sport || c->peer.netns != key->peer.netns ||
            same(&c->peer, &key->peer))
            continue;
        for (; p && !(p->pva && !p->made && p->channel[0] && p->at <= key->at + STALE_NS && names(p->channel, put) &&
                      sameValue(p, put));
             p = p->next)
            in = p;
        if (!p)
            continue;
        if (found)
            return NULL;
        found = c;
        *entry = p;
        *prev = in;
    }
    return found;
}

ebpfMonPutJoinResult ebpfMonPutJoinMatchIoc(ebpfMonMessageKey *key, ebpfMonPut *put, int last)
{
    ebpfMonPutJoinResult result = key->seqKind == EBPFMON_SEQ_NONE ? ebpfMonPutJoinAlone : ebpfMonPutJoinWait;
    ebpfMonPacketPut *p = NULL, *prev;
    int past = 0;
    circuit *c, *other;

    if (!put->peer[0] || put->through == ebpfMonByLink || !key->peer.addr)
        return ebpfMonPutJoinAlone; /* caused by a client's put, but none itself */
    take();
    if (!covered(&key->peer)) {
        epicsMutexUnlock(lock);
        return ebpfMonPutJoinAlone;
    }
    c = find(&key->peer);
    if (c && !(p = match(c, key, put, &prev, &past)) && last && key->seqKind == EBPFMON_SEQ_SHARED &&
        (other = another(key, put, &p, &prev)))
        c = other;
    if (p) {
        key->moved = memcmp(&key->peer, &c->peer, sizeof(c->peer)) != 0;
        key->peer = c->peer;
        if (key->moved && p->pva)
            put->user[0] = put->host[0] = 0; /* another client's */
        merge(p, put);
        if (key->seqKind != EBPFMON_SEQ_NONE && !p->closed)
            served(c, p->seq);
        key->seq = p->seq;
        key->seqKind = EBPFMON_SEQ_MESSAGE;
        removePut(c, prev, p);
        free(p);
        result = ebpfMonPutJoinFound;
    } else if (c && (p = group(c, key, last))) {
        merge(p, put);
        p->made = 1;
        result = ebpfMonPutJoinFound;
    } else if (past) {
        served(c, key->seq);
        result = ebpfMonPutJoinAlone;
    }
    if (last && result == ebpfMonPutJoinWait)
        noteDone(key, put);
    epicsMutexUnlock(lock);
    return result;
}

/* The inside published it already: forget its number. What the inside made before this packet came is of another put, or
 * of an earlier connection from the same port. For PVA the inside knows where what it had received ended; of a group it
 * told several times, by other names. */
static int wasDone(circuit *c, const ebpfMonWireEvent *ev, uint64_t at)
{
    int pva = ev->protocol == ebpfMonWirePva, isGroup = 0;
    uint32_t name = nameHash(ev->name);
    unsigned kept = 0;

    if (c->overrun && !before(c->overrunUpTo, ev->seq))
        return 1;
    c->overrun = 0;
    for (unsigned i = 0; i < c->doneCount; i++)
        if (c->done[i].at + STALE_NS >= at && !before(c->done[i].seq, pva ? ev->end : ev->seq))
            c->done[kept++] = c->done[i];
    c->doneCount = kept;
    for (unsigned i = 0; i < c->doneCount; i++)
        if ((pva || c->done[i].seq == ev->seq) && (!ev->name[0] || c->done[i].name == name)) {
            dropDone(c, i);
            return 1;
        }
    for (unsigned i = pva ? c->doneCount : 0; i-- > 0;) {
        if (c->done[i].seq != ev->end)
            continue;
        dropDone(c, i);
        isGroup = 1;
    }
    return isGroup;
}

/* The inside published it as another connection's of the same thread. */
static int wasDoneElsewhere(const ebpfMonWireEvent *ev, uint64_t at)
{
    uint32_t name = nameHash(ev->name);
    unsigned n = 0;

    if (ev->protocol != ebpfMonWirePva || lastShared + STALE_NS < at)
        return 0;
    for (circuit *c = newest; c && n < OTHERS; c = c->older, n++) {
        if (c->peer.saddr != ev->peer.saddr || c->peer.sport != ev->peer.sport || c->peer.netns != ev->peer.netns)
            continue;
        for (unsigned i = 0; i < c->doneCount; i++)
            if (c->done[i].shared && c->done[i].name == name && c->done[i].at + STALE_NS >= at) {
                dropDone(c, i);
                return 1;
            }
    }
    return 0;
}

void ebpfMonPutJoinAddPacket(const ebpfMonWireEvent *ev, uint32_t iocId, const ebpfMonOldValue *old, uint64_t at)
{
    const void *data = ev->protocol == ebpfMonWirePva ? (const void *)ev->text : ev->data;
    size_t have = ev->protocol == ebpfMonWirePva ? strlen(ev->text) + 1 : ev->have;
    ebpfMonPacketPut *p;
    circuit *c;

    if (ev->protocol == ebpfMonWireCa && have > EBPFMON_PACKET_PUT_DATA)
        have = EBPFMON_PACKET_PUT_DATA;
    p = malloc(sizeof(*p) + have);
    take();
    c = p && waiting < PUTS_MAX ? get(&ev->peer, at) : NULL;
    if (!c || wasDone(c, ev, at) || wasDoneElsewhere(ev, at)) {
        dropped += !c;
        epicsMutexUnlock(lock);
        free(p);
        return;
    }
    memset(p, 0, sizeof(*p));
    p->at = at;
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

int ebpfMonPutJoinAddReply(const ebpfMonWireEvent *ev, ebpfMonOldValue *old)
{
    ebpfMonPacketPut *p;
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

void ebpfMonPutJoinCloseCircuit(const struct ebpfMonPeer *peer)
{
    circuit *c;

    take();
    c = find(peer);
    for (ebpfMonPacketPut *p = c ? c->first : NULL; p; p = p->next) {
        p->passed = p->passed || (!p->closed && c->told && before(p->seq, c->served));
        p->closed = 1;
    }
    if (c) { /* the next connection from this port counts anew */
        c->told = c->overrun = 0;
        if (!c->first && !c->doneCount)
            forget(c);
    }
    epicsMutexUnlock(lock);
}

void ebpfMonPutJoinNameChannel(const struct ebpfMonPeer *peer, uint32_t sid, const char *name)
{
    circuit *c;

    take();
    c = find(peer);
    for (ebpfMonPacketPut *p = c ? c->first : NULL; p; p = p->next)
        if (!p->channel[0] && p->sid == sid)
            ebpfMonTextCopy(p->channel, sizeof(p->channel), name);
    epicsMutexUnlock(lock);
}

/* Nobody else will tell of it. */
static int isAlone(const circuit *c, ebpfMonPacketPut *p, uint64_t age)
{
    if (!p->closed && c->told && before(p->seq, c->served))
        p->passed = 1;
    if (!p->iocId && !c->told)
        return p->replied || age >= (p->replyAsked ? REPLY_NS : SENT_NS) || p->closed;
    if (p->replied && !p->ok)
        return age >= SENT_NS * 2; /* the inside sees some refusals too, and knows more */
    if (p->replied || (p->passed && (!p->replyAsked || p->pva)))
        return age >= MADE_NS;
    if (p->closed)
        return age >= CLOSED_NS;
    return age >= (p->passed ? NOTIFY_NS : STUCK_NS);
}

ebpfMonPacketPut *ebpfMonPutJoinTakeUnmatched(uint64_t now)
{
    ebpfMonPacketPut *list = NULL, **end = &list;

    take();
    for (circuit *c = waiting ? newest : NULL; c; c = c->older) {
        ebpfMonPacketPut *p = c->first, *prev = NULL, *next;

        for (; p; p = next) {
            next = p->next;
            if (!isAlone(c, p, now > p->at ? now - p->at : 0)) {
                /* A plain write keeps those behind it back, for that is not long: so they stay in order. A
                 * write-notify may be answered in an hour. */
                if (!p->iocId && !c->told && !p->replyAsked)
                    break;
                prev = p;
                continue;
            }
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

uint64_t ebpfMonPutJoinCountDropped(void)
{
    uint64_t n;

    take();
    n = dropped;
    epicsMutexUnlock(lock);
    return n;
}
