/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsMutex.h>

#include "common/clock.h"
#include "common/hash.h"
#include "common/shares.h"
#include "common/text.h"
#include "put/gateways.h"
#include "put/joinCircuits.h"
#include "put/valueText.h"

#define SERVERS   32     /* processes whose outer puts are kept … */
#define OUTERS    256    /* … so many of each */
#define CLIENTS   256    /* processes that are clients, by pid */
#define PEOPLE    256    /* clients of chains */
#define HELD_MAX  4096   /* puts of IOCs */
#define IN_A_ROW  4      /* gateways, one behind the other */
#define LEARN     3      /* so many puts tell how a gateway changes names, or the name of a channel */
#define AFFIX     64
#define OLDER     1024   /* channels of older clients: a power of two */
#define PLACES    16384  /* of outer puts by circuit and number: a power of two … */
#define WAYS      8      /* … each in one of so many */
#define IN_VAIN   3      /* so many puts without an inner one, and a server is no gateway, until one is joined */

#define CLOCKS_NS 100000ull       /* two clocks tell when a put came */
#define SENT_NS   10000000000ull  /* a gateway makes a put that wants no reply within this time … */
#define ASKED_NS  600000000000ull /* … and one that wants one */
#define LATE_NS   1000000000ull   /* … or so long after the reply */
#define WAIT_NS   3000000000ull   /* an outer put waits for its inner one, and a link's put for that of its chain … */
#define REFUSED_NS 300000000ull   /* … if it was refused */
#define BLIND_NS  3600000000000ull /* after a connection was given up, whose puts are not seen any more */
#define KEPT_NS   3600000000000ull /* after its last put a gateway of a system user still comes before others */

/* An outer put. */
typedef struct {
    uint64_t          repliedAt; /* monotonic ns; 0: no reply has come */
    uint8_t           isUsed;
    uint8_t           isTaken;   /* its inner put is known */
    uint8_t           isClaimed; /* an inner put may belong to it */
    ebpfMonPacketPut *waiting;   /* not published: its inner put may come … */
    uint64_t          until;     /* … until then */
    ebpfMonPacketPut  p;         /* without data, and not in any list */
    char              pv[128]; /* "channel" without .VAL, modifiers and filters */
    char              text[128];
} outerPut;

typedef struct {
    pid_t     pid;       /* 0: the place is free */
    uid_t     payer;
    uint64_t  usedAt;
    outerPut *outer;     /* OUTERS of them, used in turn */
    unsigned  next;
    uint64_t  lostUpTo;  /* monotonic ns: until then an inner put may be of an outer one that was not seen */
    unsigned  joined;    /* inner puts whose client is known */
    unsigned  inVain;    /* outer puts that have waited for an inner one, and none came */
    char      from[AFFIX], to[AFFIX]; /* names begin with "to" where the client wrote "from" */
    unsigned  learnt;    /* so many puts say so */
    char      learntBy[128]; /* the last of them */
} serverProcess;

/* A channel of a client that is older than the monitor: the PV that its puts became. */
typedef struct {
    uint64_t circuit;
    uint32_t sid;
    unsigned learnt;     /* so many puts say so */
    char     name[128], pv[128]; /* as in innerPut */
} olderChannel;

/* Who made a put. */
typedef struct {
    ebpfMonPutClient client;
    char     gateway[sizeof(((ebpfMonPut *)0)->gateway)];
    unsigned clients; /* as gatewayClients of ebpfMonPut */
    epicsTimeStamp time;
    char     channel[128]; /* as the client wrote it */
    char     text[sizeof(((outerPut *)0)->text)]; /* what it wrote; "": not known to be the same */
    double   number;
    int      isNumber;
    long     count;
} person;

typedef struct heldPut {
    struct heldPut *next;
    uint64_t   since;
    ebpfMonPut put;
} heldPut;

struct ebpfMonGateways {
    ebpfMonPutClients  *clients; /* the caller's */
    ebpfMonGatewayCalls calls;
    int (*isReal)(void *arg, const ebpfMonPacketPut *put); /* with "proofs" */
    void               *proofs;
    epicsMutexId        lock;    /* guards the next eight */
    uint32_t            clientPid[CLIENTS]; /* a newer one takes the place of an older one … */
    pid_t               serverPid[SERVERS];
    uint8_t             isClient[SERVERS];  /* … but a server stays a client */
    heldPut            *first, **last;
    unsigned            held;
    int                 isEnded; /* nobody will publish what is held */
    uint64_t            heldDue; /* monotonic ns */
    /* packet thread only */
    serverProcess       server[SERVERS];
    unsigned            waiting; /* outer puts that are not published */
    uint64_t            outerDue; /* the first of them */
    ebpfMonPacketPut   *ready;   /* whose place was needed */
    uint64_t            lostUpTo;
    olderChannel        older[OLDER];
    uint16_t            place[PLACES]; /* number of an outer put, from 1 on; 0: free */
    struct {
        ebpfMonChainId chain;
        int            isKnown; /* "who" is valid; else it is no put of a gateway */
        person         who;
    } chain[PEOPLE];
    unsigned            nextChain;
};

/* An inner put, as far as it must agree with the outer one. */
typedef struct {
    const char *name, *pv; /* of the channel, as the gateway wrote it, and of the PV */
    const char *text;
    uint64_t    hash, at;
    double      number;
    int         isNumber, isPva, isPart; /* isPart: of a group, whose value is another one */
} innerPut;

/* The outer puts that may be the one. */
typedef struct {
    outerPut *first;
    unsigned  clients; /* different ones */
    int       isSure;
    int       isNameless; /* "first" was sent through a channel whose name is not known */
} outerMatch;

ebpfMonGateways *ebpfMonGatewaysNew(ebpfMonPutClients *clients, const ebpfMonGatewayCalls *calls)
{
    ebpfMonGateways *g = calloc(1, sizeof(*g));

    if (!g)
        return NULL;
    g->clients = clients;
    g->calls = *calls;
    g->last = &g->first;
    g->heldDue = g->outerDue = UINT64_MAX;
    g->lock = epicsMutexMustCreate();
    return g;
}

void ebpfMonGatewaysFree(ebpfMonGateways *g)
{
    ebpfMonPacketPut *nextReady;
    heldPut *next;

    if (!g)
        return;
    for (unsigned i = 0; i < SERVERS; i++) {
        for (unsigned n = 0; g->server[i].outer && n < OUTERS; n++)
            free(g->server[i].outer[n].waiting);
        free(g->server[i].outer);
    }
    for (heldPut *h = g->first; h; h = next) {
        next = h->next;
        free(h);
    }
    for (ebpfMonPacketPut *put = g->ready; put; put = nextReady) {
        nextReady = put->next;
        free(put);
    }
    epicsMutexDestroy(g->lock);
    free(g);
}

void ebpfMonGatewaysSetProofs(ebpfMonGateways *g, int (*isReal)(void *arg, const ebpfMonPacketPut *put), void *arg)
{
    g->isReal = isReal;
    g->proofs = arg;
}

/* --- processes --- */

static serverProcess *findGatewayProcess(ebpfMonGateways *g, pid_t pid)
{
    for (unsigned i = 0; pid && i < SERVERS; i++)
        if (g->server[i].pid == pid)
            return &g->server[i];
    return NULL;
}

static void forgetWaitingOuter(ebpfMonGateways *g, outerPut *o)
{
    if (!o->waiting)
        return;
    free(o->waiting);
    o->waiting = NULL;
    g->waiting--;
}

/* The outer put loses its place: it is published now, if it waits. */
static void releaseOuterPut(ebpfMonGateways *g, outerPut *o)
{
    if (o->waiting) {
        o->waiting->next = g->ready;
        g->ready = o->waiting;
        o->waiting = NULL;
        g->waiting--;
    }
    o->isUsed = 0;
}

static unsigned countPlaces(const ebpfMonGateways *g, uid_t payer)
{
    unsigned count = 0;

    for (unsigned i = 0; i < SERVERS; i++)
        count += g->server[i].pid && g->server[i].payer == payer;
    return count;
}

static int isKept(const serverProcess *s, uint64_t at)
{
    return s->payer < EBPFMON_SYSTEM_USERS && s->joined && at < s->usedAt + KEPT_NS;
}

/* The place of one more process. If none is free: of the user who has most the one that was used least lately;
 * gateways of system users come last. */
static serverProcess *choosePlace(ebpfMonGateways *g, uid_t payer, uint64_t at)
{
    serverProcess *out = NULL;
    unsigned outHas = 0;

    for (unsigned i = 0; i < SERVERS; i++) {
        serverProcess *s = &g->server[i];
        unsigned has = countPlaces(g, s->payer) + (s->payer == payer);
        int order;

        if (!s->pid)
            return s;
        order = out ? isKept(out, at) - isKept(s, at) : 1;
        if (order > 0 || (order == 0 && (has > outHas || (has == outHas && s->usedAt < out->usedAt)))) {
            out = s;
            outHas = has;
        }
    }
    return out;
}

static serverProcess *useGatewayProcess(ebpfMonGateways *g, pid_t pid, uint64_t at)
{
    serverProcess *s = findGatewayProcess(g, pid);
    outerPut *outer;
    uid_t payer;

    if (!s) {
        payer = g->calls.findPayer(pid);
        s = choosePlace(g, payer, at);
        outer = s->outer ? s->outer : calloc(OUTERS, sizeof(*outer));
        if (!outer)
            return NULL;
        for (unsigned i = 0; i < OUTERS; i++)
            releaseOuterPut(g, &outer[i]);
        *s = (serverProcess){ .pid = pid, .payer = payer, .outer = outer };
        epicsMutexMustLock(g->lock);
        g->serverPid[s - g->server] = pid;
        g->isClient[s - g->server] = g->clientPid[(uint32_t)pid % CLIENTS] == (uint32_t)pid;
        epicsMutexUnlock(g->lock);
    }
    s->usedAt = at;
    return s;
}

/* Nonzero: it is a server, too. Under the lock. */
static int addClient(ebpfMonGateways *g, uint32_t pid)
{
    int isServer = 0;

    g->clientPid[pid % CLIENTS] = pid;
    for (unsigned i = 0; pid && i < SERVERS; i++)
        if (g->serverPid[i] == (pid_t)pid)
            isServer = g->isClient[i] = 1;
    return isServer;
}

void ebpfMonGatewaysAddClient(ebpfMonGateways *g, uint32_t pid)
{
    epicsMutexMustLock(g->lock);
    addClient(g, pid);
    epicsMutexUnlock(g->lock);
}

void ebpfMonGatewaysNoteLost(ebpfMonGateways *g, pid_t pid, int isGivenUp, uint64_t at)
{
    serverProcess *s = findGatewayProcess(g, pid);
    uint64_t *upTo = s ? &s->lostUpTo : &g->lostUpTo, end = at + (isGivenUp ? BLIND_NS : SENT_NS);

    if ((s || !pid) && *upTo < end)
        *upTo = end;
}

/* --- outer puts --- */

static int isOuterUnderWay(const outerPut *o, uint64_t now)
{
    return o->isUsed && !o->isTaken && !o->repliedAt && now < o->p.at + (o->p.replyAsked ? ASKED_NS : SENT_NS);
}

static unsigned findOuterPlace(uint64_t circuit, uint64_t id)
{
    return (unsigned)(ebpfMonHashMix(circuit << 32 ^ id) % PLACES);
}

/* NULL: none, or it has lost its place. */
static outerPut *getOuterAt(ebpfMonGateways *g, unsigned place)
{
    unsigned number = g->place[place % PLACES];
    serverProcess *s = number ? &g->server[(number - 1) / OUTERS] : NULL;

    return s && s->outer[(number - 1) % OUTERS].isUsed ? &s->outer[(number - 1) % OUTERS] : NULL;
}

static outerPut *findOuterPut(ebpfMonGateways *g, uint64_t circuit, uint64_t id)
{
    for (unsigned i = 0; id && i < WAYS; i++) {
        outerPut *o = getOuterAt(g, findOuterPlace(circuit, id) + i);

        if (o && o->p.circuit == circuit && o->p.id == id)
            return o;
    }
    return NULL;
}

static void setOuterPlace(ebpfMonGateways *g, const outerPut *o, unsigned number)
{
    unsigned first = findOuterPlace(o->p.circuit, o->p.id), i = 0;

    while (i + 1 < WAYS && g->place[(first + i) % PLACES] != number && getOuterAt(g, first + i))
        i++;
    g->place[(first + i) % PLACES] = (uint16_t)number;
}

static olderChannel *findOlderChannel(ebpfMonGateways *g, const outerPut *o)
{
    return &g->older[ebpfMonHashMix(o->p.circuit ^ ebpfMonHashMix(o->p.sid)) % OLDER];
}

/* A put through a channel whose name is not known has become this one. */
static void learnChannel(ebpfMonGateways *g, const outerPut *o, const innerPut *inner)
{
    olderChannel *c = findOlderChannel(g, o);

    if (c->circuit != o->p.circuit || c->sid != o->p.sid || strcmp(c->name, inner->name) != 0) {
        *c = (olderChannel){ .circuit = o->p.circuit, .sid = o->p.sid };
        ebpfMonTextCopy(c->name, sizeof(c->name), inner->name);
        ebpfMonTextCopy(c->pv, sizeof(c->pv), inner->pv);
    }
    c->learnt++;
}

static void setLearntName(ebpfMonGateways *g, outerPut *o)
{
    const olderChannel *c = findOlderChannel(g, o);

    if (o->p.channel[0] || c->learnt < LEARN || c->circuit != o->p.circuit || c->sid != o->p.sid)
        return;
    memcpy(o->p.channel, c->name, sizeof(o->p.channel));
    memcpy(o->pv, c->pv, sizeof(o->pv));
}

void ebpfMonGatewaysAddPut(ebpfMonGateways *g, const ebpfMonPacketPut *put, const char *pv, const char *text)
{
    serverProcess *s = useGatewayProcess(g, put->pid, put->at);
    outerPut *o;

    if (!s)
        return;
    o = &s->outer[s->next++ % OUTERS];
    if (isOuterUnderWay(o, put->at))
        ebpfMonGatewaysNoteLost(g, put->pid, 0, put->at);
    releaseOuterPut(g, o);
    memset(o, 0, sizeof(*o));
    o->isUsed = 1;
    o->p = *put;
    ebpfMonTextCopy(o->pv, sizeof(o->pv), pv);
    ebpfMonTextCopy(o->text, sizeof(o->text), text);
    setLearntName(g, o);
    setOuterPlace(g, o, (unsigned)((s - g->server) * OUTERS + (o - s->outer)) + 1);
}

static int isOfSameClient(const outerPut *a, const outerPut *b)
{
    return memcmp(&a->p.peer, &b->p.peer, sizeof(a->p.peer)) == 0;
}

/* The inner put of "o" was taken for that of another put of this client, to the same PV, with the same value, which is
 * not answered yet. */
static void exchangeTakenPuts(ebpfMonGateways *g, outerPut *o)
{
    const serverProcess *s = findGatewayProcess(g, o->p.pid);

    for (unsigned n = 0; s && s->joined && n < OUTERS; n++) {
        outerPut *other = &s->outer[n];

        if (!other->isUsed || !other->isTaken || other->repliedAt || !isOfSameClient(o, other) ||
            strcmp(o->p.channel, other->p.channel) != 0 || strcmp(o->text, other->text) != 0 ||
            o->p.hash != other->p.hash)
            continue;
        o->isTaken = 1;
        other->isTaken = 0;
        return;
    }
}

void ebpfMonGatewaysAddReply(ebpfMonGateways *g, const ebpfMonWireEvent *ev, uint64_t at)
{
    outerPut *o = findOuterPut(g, ev->circuit, ev->id);

    if (!o)
        return;
    o->repliedAt = at;
    o->p.replied = 1;
    o->p.ok = !!ev->ok;
    if (o->p.ok && !o->isTaken)
        exchangeTakenPuts(g, o);
}

/* Many servers are clients, too, and no gateways: their puts are not to be late. */
static int mayBeGateway(ebpfMonGateways *g, pid_t pid)
{
    const serverProcess *s = findGatewayProcess(g, pid);
    int isClient;

    if (!s || (!s->joined && s->inVain >= IN_VAIN))
        return 0;
    epicsMutexMustLock(g->lock);
    isClient = g->isClient[s - g->server];
    epicsMutexUnlock(g->lock);
    return isClient;
}

/* Nonzero: the gateway has not refused it. */
static int mayBeMade(const ebpfMonPacketPut *put)
{
    return !put->replied || put->ok;
}

int ebpfMonGatewaysTake(ebpfMonGateways *g, ebpfMonPacketPut *put, uint64_t now)
{
    outerPut *o = findOuterPut(g, put->circuit, put->id);

    if (!o || o->waiting)
        return 0;
    if (o->isTaken || (o->isClaimed && mayBeMade(put))) {
        free(put);
        return 1;
    }
    if (now == UINT64_MAX || !mayBeGateway(g, put->pid))
        return 0;
    o->waiting = put;
    o->until = now + (put->replied && !put->ok ? REFUSED_NS : WAIT_NS);
    if (o->until < g->outerDue)
        g->outerDue = o->until;
    g->waiting++;
    return 1;
}

ebpfMonPacketPut *ebpfMonGatewaysGive(ebpfMonGateways *g, uint64_t now)
{
    ebpfMonPacketPut *put;

    if (!g->ready && g->waiting && now >= g->outerDue) {
        g->outerDue = UINT64_MAX;
        for (unsigned i = 0; i < SERVERS; i++)
            for (unsigned n = 0; g->server[i].outer && n < OUTERS; n++) {
                outerPut *o = &g->server[i].outer[n];

                if (o->waiting && o->until <= now) {
                    g->server[i].inVain++;
                    releaseOuterPut(g, o);
                } else if (o->waiting && o->until < g->outerDue) {
                    g->outerDue = o->until;
                }
            }
    }
    put = g->ready;
    if (put)
        g->ready = put->next;
    return put;
}

/* --- joining --- */

/* Nonzero: the gateway makes that inner name of this outer one, by the rule that its puts have told. */
static int isMappedName(const serverProcess *s, const char *outer, const char *inner)
{
    size_t from = strlen(s->from), to = strlen(s->to);

    return s->learnt >= LEARN && strncmp(outer, s->from, from) == 0 && strncmp(inner, s->to, to) == 0 &&
           strcmp(outer + from, inner + to) == 0;
}

static int hasInnerName(const serverProcess *s, const outerPut *o, const innerPut *inner)
{
    return strcmp(o->p.channel, inner->name) == 0 || strcmp(o->pv, inner->pv) == 0 ||
           isMappedName(s, o->p.channel, inner->name) || isMappedName(s, o->pv, inner->pv);
}

/* 1: the values are the same; 0: they are not; -1: not known. */
static int compareInnerValue(const outerPut *o, const innerPut *inner)
{
    size_t length = strlen(o->text);
    char *end;
    int isCut = length > 3 && strcmp(o->text + length - 3, "...") == 0;

    if (o->p.isCall) /* a gateway may describe the arguments in other bytes */
        return strncmp(o->text, inner->text, isCut ? length - 3 : length + 1) != 0 ? 0 : isCut ? -1 : 1;
    if (o->p.hash && o->p.hash == inner->hash && o->p.pva == inner->isPva)
        return 1;
    if (inner->isPart || strcmp(o->text, "?") == 0)
        return -1;
    if (o->p.isNumber && inner->isNumber)
        return ebpfMonJoinIsSameNumber(o->p.number, inner->number);
    if (!isCut && strcmp(o->text, inner->text) == 0)
        return 1;
    if (inner->isNumber && o->text[0] && (strtod(o->text, &end), !*end)) /* a gateway may convert it */
        return strtod(o->text, NULL) == inner->number;
    return o->p.pva == inner->isPva && o->p.hash && inner->hash ? 0 : -1;
}

typedef enum { isOut, isLate, isIn } outerTime;

/* When the inner put was made: while the outer one was under way (isIn), or after its reply (isLate). */
static outerTime judgeOuterTime(const outerPut *o, uint64_t at)
{
    if (!o->isUsed || o->isTaken || o->p.at > at + CLOCKS_NS ||
        at > o->p.at + (o->p.replyAsked ? ASKED_NS : SENT_NS))
        return isOut;
    if (!o->repliedAt || o->repliedAt + CLOCKS_NS >= at)
        return isIn;
    return o->p.ok && at - o->repliedAt < LATE_NS ? isLate : isOut;
}

/* Of several puts of one client the one that was answered first was made first. */
static int isMadeBefore(const outerPut *a, const outerPut *b)
{
    if (a->repliedAt && b->repliedAt)
        return a->repliedAt < b->repliedAt;
    return a->repliedAt || b->repliedAt ? a->repliedAt != 0 : a->p.at < b->p.at;
}

/* The outer puts of this kind that may be the one. Sure: it is this one, or another one of the same client. If none has
 * this name, it may be the only one with this value whose name is not known. */
static void findCandidates(ebpfMonGateways *g, const serverProcess *s, const innerPut *inner, outerTime kind,
                       outerMatch *match)
{
    outerPut *seen[OUTERS], *unnamed = NULL;
    unsigned nameless = 0, equals = 0;
    int isSure = kind == isIn;

    *match = (outerMatch){ .isSure = 0 };
    for (unsigned n = 0; n < OUTERS; n++) {
        outerPut *o = &s->outer[n];
        int same;
        unsigned i = 0;

        if (judgeOuterTime(o, inner->at) != kind || (o->p.channel[0] && !hasInnerName(s, o, inner)) ||
            !(same = compareInnerValue(o, inner)) || !g->isReal(g->proofs, &o->p))
            continue;
        if (!o->p.channel[0]) {
            nameless++;
            equals += same > 0;
            unnamed = same > 0 ? o : unnamed;
            continue;
        }
        isSure &= same > 0;
        if (!match->first || isMadeBefore(o, match->first))
            match->first = o;
        while (i < match->clients && !isOfSameClient(seen[i], o))
            i++;
        if (i == match->clients)
            seen[match->clients++] = o;
    }
    if (match->first) {
        match->clients += nameless;
    } else if (equals == 1 && kind == isIn) {
        match->first = unnamed;
        match->clients = 1;
        match->isNameless = 1;
        return;
    }
    match->isSure = isSure && match->clients == 1 && inner->at > s->lostUpTo && inner->at > g->lostUpTo;
}

/* An inner put whose name no outer put has. If only one may have been under way with this value, it may show how the
 * gateway changes the begin of names. */
static void learnNameChange(ebpfMonGateways *g, serverProcess *s, const innerPut *inner)
{
    const outerPut *found = NULL;
    size_t a, b;

    for (unsigned n = 0; n < OUTERS; n++) {
        const outerPut *o = &s->outer[n];

        if (judgeOuterTime(o, inner->at) != isIn || !compareInnerValue(o, inner))
            continue;
        if (found)
            return;
        found = o;
    }
    if (!found || compareInnerValue(found, inner) != 1 || !g->isReal(g->proofs, &found->p))
        return;
    a = strlen(found->p.channel);
    b = strlen(inner->name);
    while (a && b && found->p.channel[a - 1] == inner->name[b - 1]) {
        a--;
        b--;
    }
    if (!found->p.channel[a] || a >= AFFIX || b >= AFFIX || strcmp(s->learntBy, found->p.channel) == 0)
        return;
    if (s->learnt >= LEARN)
        return;
    if (strncmp(s->from, found->p.channel, a) != 0 || s->from[a] || strncmp(s->to, inner->name, b) != 0 || s->to[b]) {
        s->learnt = 0;
        snprintf(s->from, sizeof(s->from), "%.*s", (int)a, found->p.channel);
        snprintf(s->to, sizeof(s->to), "%.*s", (int)b, inner->name);
    }
    s->learnt++;
    ebpfMonTextCopy(s->learntBy, sizeof(s->learntBy), found->p.channel);
}

/* Adds the next one on the way from the client to the IOC. */
static void addGatewayName(const char *name, person *who)
{
    char text[2 * sizeof(who->gateway)];

    snprintf(text, sizeof(text), "%s%s%s", who->gateway, who->gateway[0] ? ", " : "", name);
    ebpfMonTextCopy(who->gateway, sizeof(who->gateway), text);
}

static void claimOuter(ebpfMonGateways *g, outerPut *o)
{
    o->isClaimed = 1;
    if (o->waiting && mayBeMade(o->waiting))
        forgetWaitingOuter(g, o);
}

static void claimCandidates(ebpfMonGateways *g, const serverProcess *s, const innerPut *inner, outerTime kind)
{
    for (unsigned n = 0; n < OUTERS; n++) {
        outerPut *o = &s->outer[n];

        if (judgeOuterTime(o, inner->at) != kind || !hasInnerName(s, o, inner) || !compareInnerValue(o, inner))
            continue;
        claimOuter(g, o);
    }
}

/* The value of a put that a server refuses is not known, if the gateway's connection is older than the monitor. */
static void noteValue(const outerPut *o, const innerPut *inner, person *who)
{
    int isSame = o->p.hash && o->p.hash == inner->hash && o->p.pva == inner->isPva;

    if (!isSame || who->text[0] || strcmp(o->text, "?") == 0)
        return;
    memcpy(who->text, o->text, sizeof(who->text));
    who->number = o->p.number;
    who->isNumber = o->p.isNumber;
    who->count = (long)o->p.count;
}

/* Sets who is behind "gateway", the client of an inner put. Nonzero: it is a gateway, and *who is set. */
static int findPersonBehind(ebpfMonGateways *g, const ebpfMonPutClient *gateway, const innerPut *inner, unsigned depth,
                      person *who)
{
    serverProcess *s = findGatewayProcess(g, (pid_t)gateway->peerPid);
    outerTime kind = isIn;
    char name[64];
    outerMatch match;
    outerPut *o;

    if (!s || depth == IN_A_ROW)
        return 0;
    ebpfMonPutClientNameProcess(gateway, name, sizeof(name));
    findCandidates(g, s, inner, isIn, &match);
    if (!match.first)
        findCandidates(g, s, inner, kind = isLate, &match);
    o = match.first;
    if (!o)
        learnNameChange(g, s, inner);
    if (!o && !s->joined) /* as far as is known it writes by itself */
        return 0;
    who->client = *gateway;
    who->clients = match.clients;
    if (o)
        noteValue(o, inner, who);
    if (match.clients == 1) {
        const innerPut next = {
            .name = match.isNameless ? inner->name : o->p.channel, .pv = match.isNameless ? inner->pv : o->pv,
            .text = o->text, .hash = o->p.hash, .at = o->p.at,
            .number = o->p.number, .isNumber = o->p.isNumber, .isPva = o->p.pva,
        };
        ebpfMonPutClient client;

        if (o->p.outer.port)
            ebpfMonPutClientsFindOuter(g->clients, &o->p.peer, &o->p.outer, &o->p.first, o->p.user, o->p.host, &client);
        else
            ebpfMonPutClientsFind(g->clients, &o->p.peer, &o->p.first, o->p.user, o->p.host, &client);
        ebpfMonGatewaysAddClient(g, client.peerPid); /* its channels may be older than we are */
        if (!findPersonBehind(g, &client, &next, depth + 1, who)) {
            who->client = client;
            who->time = ebpfMonClockStamp(o->p.time);
            ebpfMonTextCopy(who->channel, sizeof(who->channel), o->p.channel);
        }
    }
    who->client.isUnsure |= !match.isSure;
    if (match.isSure) {
        s->joined++;
        o->isTaken = !inner->isPart;
        o->isClaimed = 1;
        forgetWaitingOuter(g, o);
    } else if (match.isNameless) {
        claimOuter(g, o);
        if (inner->at > s->lostUpTo && inner->at > g->lostUpTo)
            learnChannel(g, o, inner);
    } else if (o) {
        claimCandidates(g, s, inner, kind);
    }
    addGatewayName(name, who);
    return 1;
}

static void setPutPerson(const person *who, ebpfMonPut *put)
{
    char server[sizeof(put->server)], published[sizeof(put->published)];

    memcpy(server, put->server, sizeof(server));
    memcpy(published, put->published, sizeof(published));
    ebpfMonPutClientSet(&who->client, put);
    memcpy(put->gateway, who->gateway, sizeof(put->gateway));
    put->gatewayClients = who->clients;
    put->gatewayTime = who->time;
    memcpy(put->gatewayServer, put->server, sizeof(put->gatewayServer));
    if (ebpfMonPutIsAnonymous(put))
        put->gatewayServer[0] = 0;
    memcpy(put->server, server, sizeof(server)); /* of the IOC: "peer" and this are not one connection any more */
    memcpy(put->published, published, sizeof(published));
    if (who->text[0] && strcmp(put->val, "?") == 0) {
        ebpfMonTextCopy(put->val, sizeof(put->val), who->text);
        put->number = who->number;
        put->isNumber = who->isNumber;
        put->count = who->count;
    }
    if (strncmp(put->cause, EBPFMON_PUT_BY, sizeof(EBPFMON_PUT_BY) - 1) == 0)
        ebpfMonWriterTextFormatCause(put->user, put->host, put->isUnsure, put->cause, sizeof(put->cause));
    if (who->channel[0] && !ebpfMonPutIsInner(put) && strcmp(who->channel, put->pv) != 0 &&
        strcmp(who->channel, put->group) != 0)
        memcpy(put->channel, who->channel, sizeof(put->channel));
    ebpfMonWriterTextComplete(put);
}

static void getPutClient(const ebpfMonPut *put, ebpfMonPutClient *client)
{
    memset(client, 0, sizeof(*client));
    memcpy(client->peer, put->peer, sizeof(client->peer));
    memcpy(client->server, put->server, sizeof(client->server));
    memcpy(client->published, put->published, sizeof(client->published));
    memcpy(client->user, put->user, sizeof(client->user));
    memcpy(client->host, put->host, sizeof(client->host));
    memcpy(client->realUser, put->realUser, sizeof(client->realUser));
    memcpy(client->command, put->command, sizeof(client->command));
    memcpy(client->container, put->container, sizeof(client->container));
    client->peerPid = put->peerPid;
    client->peerUid = put->peerUid;
}

/* What a link writes because of a client's put has the client of that put. Nonzero: done. */
static int setClientOfChain(ebpfMonGateways *g, int isLast, ebpfMonPut *put)
{
    const serverProcess *s = findGatewayProcess(g, (pid_t)put->peerPid);
    person who;

    for (unsigned i = 0; put->source.iocId && i < PEOPLE; i++) {
        if (!ebpfMonChainIdIsSame(&g->chain[i].chain, &put->source))
            continue;
        if (g->chain[i].isKnown)
            setPutPerson(&g->chain[i].who, put);
        return 1;
    }
    if (!isLast && put->source.iocId)
        return 0;
    if (s && s->joined) {
        memset(&who, 0, sizeof(who));
        getPutClient(put, &who.client);
        who.client.isUnsure = 1;
        ebpfMonPutClientNameProcess(&who.client, who.gateway, sizeof(who.gateway));
        setPutPerson(&who, put);
    }
    return 1;
}

/* Nonzero: done. 0: the put that began its chain is not there yet. */
static int setGatewayClient(ebpfMonGateways *g, int isLast, ebpfMonPut *put)
{
    const innerPut inner = {
        .name = put->group[0] ? put->group : put->channel[0] ? put->channel : put->pv, .pv = put->pv,
        .text = put->val, .hash = put->hash, .at = put->at, .number = put->number, .isNumber = put->isNumber,
        .isPva = put->through == ebpfMonByPva, .isPart = put->group[0] != 0,
    };
    ebpfMonPutClient client;
    person who;
    int isKnown;

    if (put->isUnsure)
        return 1;
    if (ebpfMonPutIsInner(put))
        return setClientOfChain(g, isLast, put);
    memset(&who, 0, sizeof(who));
    getPutClient(put, &client);
    isKnown = findPersonBehind(g, &client, &inner, 0, &who);
    if (isKnown)
        setPutPerson(&who, put);
    if (put->chain.iocId) {
        unsigned i = g->nextChain++ % PEOPLE;

        g->chain[i].chain = put->chain;
        g->chain[i].isKnown = isKnown;
        g->chain[i].who = who;
    }
    return 1;
}

void ebpfMonGatewaysSetClient(ebpfMonGateways *g, ebpfMonPut *put)
{
    if (!put->peerPid)
        return;
    ebpfMonGatewaysAddClient(g, put->peerPid);
    setGatewayClient(g, 1, put);
}

/* --- puts of IOCs that wait for the packet thread --- */

int ebpfMonGatewaysHold(ebpfMonGateways *g, const ebpfMonPut *put)
{
    heldPut *h = NULL;

    if (!put->peerPid)
        return 0;
    epicsMutexMustLock(g->lock);
    if (addClient(g, put->peerPid) && !g->isEnded && g->held < HELD_MAX && (h = malloc(sizeof(*h)))) {
        h->next = NULL;
        h->since = ebpfMonClockMonotonic();
        h->put = *put;
        *g->last = h;
        g->last = &h->next;
        g->held++;
    }
    epicsMutexUnlock(g->lock);
    if (h)
        g->calls.wake(g->calls.arg);
    return h != NULL;
}

/* Puts back those that wait, before any that came meanwhile. */
static void keepHeldPuts(ebpfMonGateways *g, heldPut *list, heldPut **end, unsigned count, uint64_t due)
{
    epicsMutexMustLock(g->lock);
    if (list) {
        *end = g->first;
        if (!g->first)
            g->last = end;
        g->first = list;
    }
    g->held += count;
    g->heldDue = due;
    epicsMutexUnlock(g->lock);
}

void ebpfMonGatewaysPublish(ebpfMonGateways *g, uint64_t read, uint64_t now)
{
    heldPut *list, *next, *kept = NULL, **end = &kept;
    unsigned count = 0;
    uint64_t due = UINT64_MAX;

    epicsMutexMustLock(g->lock);
    g->isEnded = now == UINT64_MAX;
    list = g->first;
    g->first = NULL;
    g->last = &g->first;
    g->held = 0;
    g->heldDue = UINT64_MAX;
    epicsMutexUnlock(g->lock);
    for (; list; list = next) {
        int isLast = now >= list->since + WAIT_NS;

        next = list->next;
        if (isLast && read < list->put.at)
            ebpfMonGatewaysNoteLost(g, 0, 0, list->put.at);
        if ((isLast || read >= list->put.at) && setGatewayClient(g, isLast, &list->put)) {
            g->calls.publish(g->calls.arg, &list->put);
            free(list);
            continue;
        }
        if (list->since + WAIT_NS < due)
            due = list->since + WAIT_NS;
        list->next = NULL;
        *end = list;
        end = &list->next;
        count++;
    }
    keepHeldPuts(g, kept, end, count, due);
}

uint64_t ebpfMonGatewaysGetDue(ebpfMonGateways *g)
{
    uint64_t due;

    epicsMutexMustLock(g->lock);
    due = g->heldDue;
    epicsMutexUnlock(g->lock);
    return g->waiting && g->outerDue < due ? g->outerDue : due;
}
