/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <cadef.h>

#include "common/clock.h"
#include "common/hash.h"
#include "common/text.h"
#include "host/procNetns.h"
#include "host/tcpSockets.h"
#include "model/filter.h"
#include "model/put.h"
#include "put/packetEvents.h"
#include "put/putDecode.h"
#include "put/valueText.h"
#include "wire/caType.h"
#include "wire/wireEvent.h"

/* --- translated circuits ---
 *
 * Connections whose server's address is translated on this host (DNAT: a published port of a container, a service of
 * Kubernetes). Packets show such a connection twice: the outer one, as the client made it, to an address at which
 * nobody listens; and the inner one, to the server. Whatever translates, it leaves sequence numbers and contents as
 * they are. So the outer one is found when the same message comes in both. Packet thread only. */

#define NOTES   1024
#define PLACES  1024 /* of connections, in each table; a power of two */
#define WAYS    8
#define SAME_NS (2 * EBPFMON_SECOND_NS) /* from the packet outside to that inside: microseconds */

/* A message to a server elsewhere; or to one of this host. */
typedef struct {
    struct ebpfMonPeer  peer;
    struct ebpfMonFirst first;
    pid_t    pid;  /* its process; 0: elsewhere */
    uint64_t at;   /* monotonic ns; 0: none */
    uint64_t hash; /* of its value */
    uint32_t seq, end, name;
    ebpfMonWireProtocol protocol;
    int      isPut;
} message;

typedef struct {
    struct ebpfMonPeer key, other;
    uint64_t serial; /* the newest has the highest; 0: the place is free */
} connection;

typedef struct {
    message  note[NOTES]; /* the newest is before "next" */
    unsigned next;
} messages;

typedef struct {
    messages   outside, inside; /* packets of two namespaces are read one after the other, so either may come first */
    connection byInner[PLACES], byOuter[PLACES];
    uint64_t   serial;
} translatedCircuits;

static message makeMessage(const ebpfMonWireEvent *ev, uint64_t at)
{
    message m = { .peer = ev->peer, .first = ev->first, .at = at, .protocol = ev->protocol };

    m.isPut = ev->kind == ebpfMonWirePut;
    if (m.isPut) {
        m.hash = ev->hash;
        m.seq = ev->seq;
        m.end = ev->end;
        m.name = (uint32_t)ebpfMonHashFnv64(EBPFMON_FNV64_BEGIN, ev->name, strlen(ev->name));
    }
    return m;
}

/* One that begins has nothing but its first sequence numbers. */
static int isSameMessage(const message *a, const message *b)
{
    if (!ebpfMonFirstMayBeSame(&a->first, &b->first))
        return 0;
    if (!a->isPut)
        return !b->isPut && ebpfMonFirstIsKnown(&a->first) && ebpfMonFirstIsKnown(&b->first) &&
               a->protocol == b->protocol;
    return b->isPut && a->seq == b->seq && a->end == b->end && a->hash == b->hash && a->name == b->name &&
           a->protocol == b->protocol;
}

/* A put, or the begin of a circuit. "at": when its packet came, monotonic ns, as the next one. */
static void noteMessage(messages *to, const ebpfMonWireEvent *ev, pid_t pid, uint64_t at)
{
    message *m = &to->note[to->next++ % NOTES];

    *m = makeMessage(ev, at);
    m->pid = pid;
}

/* The same message, which came in another connection a moment ago. NULL: none. */
static const message *findSame(const messages *in, const ebpfMonWireEvent *ev, uint64_t at)
{
    const message m = makeMessage(ev, at);

    for (unsigned i = 1; i <= NOTES; i++) {
        const message *note = &in->note[(in->next - i) % NOTES];

        if (!note->at || at > note->at + SAME_NS)
            return NULL;
        if (note->pid && at > note->at + EBPFMON_CLOCKS_NS)
            continue; /* sent again: the packet outside comes before the one inside */
        if (isSameMessage(note, &m) && memcmp(&note->peer, &ev->peer, sizeof(ev->peer)) != 0)
            return note;
    }
    return NULL;
}

static size_t hashPeer(const struct ebpfMonPeer *p)
{
    return (size_t)ebpfMonHashMix(((uint64_t)p->addr << 32 | p->saddr) ^
                                  ((uint64_t)p->port << 48 | (uint64_t)p->sport << 32 | p->netns)) % PLACES;
}

static connection *findConnection(const connection *table, const struct ebpfMonPeer *key)
{
    size_t h = hashPeer(key);

    for (unsigned i = 0; i < WAYS; i++) {
        connection *c = (connection *)&table[(h + i) % PLACES]; /* some callers change it, others do not */

        if (c->serial && memcmp(&c->key, key, sizeof(*key)) == 0)
            return c;
    }
    return NULL;
}

/* The place of the connection, a free one, or that of the oldest. */
static connection *getPlace(connection *table, const struct ebpfMonPeer *key)
{
    connection *place = findConnection(table, key), *oldest = &table[hashPeer(key)];

    for (unsigned i = 0; i < WAYS && !place; i++) {
        connection *c = &table[(hashPeer(key) + i) % PLACES];

        if (c->serial < oldest->serial)
            oldest = c;
    }
    return place ? place : oldest;
}

/* "inner" is a translation of "outer". */
static void addTranslated(translatedCircuits *t, const struct ebpfMonPeer *outer, const struct ebpfMonPeer *inner)
{
    t->serial++;
    *getPlace(t->byInner, inner) = (connection){ .key = *inner, .other = *outer, .serial = t->serial };
    *getPlace(t->byOuter, outer) = (connection){ .key = *outer, .other = *inner, .serial = t->serial };
}

/* The outer connection. NULL: this one is no translation, or is forgotten: some hundred are known. */
static const struct ebpfMonPeer *findOuter(const translatedCircuits *t, const struct ebpfMonPeer *inner)
{
    const connection *c = findConnection(t->byInner, inner);

    return c ? &c->other : NULL;
}

/* Nonzero: it is the outer one of such a connection. */
static int isOuterCircuit(const translatedCircuits *t, const struct ebpfMonPeer *peer)
{
    return findConnection(t->byOuter, peer) != NULL;
}

/* The connection has ended: another one may have its addresses and ports. */
static void forgetTranslated(translatedCircuits *t, const struct ebpfMonPeer *peer)
{
    connection *inner = findConnection(t->byInner, peer), *outer = findConnection(t->byOuter, peer);

    if (inner)
        inner->serial = 0;
    if (outer)
        outer->serial = 0;
}

/* --- puts of packets --- */

struct ebpfMonPacketPuts {
    ebpfMonTargets    *targets;    /* these three are the caller's */
    ebpfMonPutClients *clients;
    ebpfMonLinkWrites *linkWrites;
    ebpfMonPutSink     sink;
    void              *arg;
    ebpfMonPut         put;        /* the one that is being finished: too large for the stack */
};

ebpfMonPacketPuts *ebpfMonPacketPutsNew(ebpfMonTargets *targets, ebpfMonPutClients *clients,
                                        ebpfMonLinkWrites *linkWrites, ebpfMonPutSink sink, void *arg)
{
    ebpfMonPacketPuts *puts = calloc(1, sizeof(*puts));

    if (!puts)
        return NULL;
    puts->targets = targets;
    puts->clients = clients;
    puts->linkWrites = linkWrites;
    puts->sink = sink;
    puts->arg = arg;
    return puts;
}

void ebpfMonPacketPutsFree(ebpfMonPacketPuts *puts)
{
    free(puts);
}

static void setPv(ebpfMonTargets *targets, const ebpfMonPacketPut *p, ebpfMonPut *put)
{
    if (!p->channel[0]) {
        snprintf(put->pv, sizeof(put->pv), "sid %u", p->sid);
        return;
    }
    ebpfMonTextCopyBytes(put->pv, sizeof(put->pv), p->channel, ebpfMonPacketTextGetNameLength(p->channel));
    if (p->iocId)
        ebpfMonRecordNameSettle(targets, p->iocId, put->pv, sizeof(put->pv));
    if (strcmp(put->pv, p->channel) != 0)
        ebpfMonTextCopy(put->channel, sizeof(put->channel), p->channel);
}

static void setValues(const ebpfMonPacketPut *p, ebpfMonPut *put)
{
    put->count = (long)p->count;
    put->hash = p->hash;
    put->oldCount = -1;
    if (p->isCall) {
        ebpfMonPacketTextFormatCall((const char *)p->data, put->val, sizeof(put->val));
        ebpfMonTextCopy(put->after, sizeof(put->after), p->returned);
        put->took = p->took;
        put->isText = 1;
    } else if (p->pva) {
        ebpfMonTextCopy(put->val, sizeof(put->val), (const char *)p->data);
        put->isNumber = p->isNumber && ebpfMonPacketTextIsNumber(put->val);
        put->number = p->number;
    } else {
        put->isText = ebpfMonPacketTextFormatCa(p->data, p->have, p->baseType, p->count, put->val, sizeof(put->val),
                                                &put->isNumber, &put->number);
    }
    if (!p->old.known)
        return;
    put->hasOld = 1;
    put->oldIsNumber = p->old.isNumber;
    put->oldIsText = p->old.isText;
    put->oldNumber = p->old.number;
    put->oldCount = p->old.count;
    ebpfMonTextCopy(put->old, sizeof(put->old), p->old.text);
    /* caput sends a text also to a number */
    if (put->oldIsNumber && put->isText && put->count == 1 && put->val[0] && strspn(put->val, "+-.0123456789eE") ==
        strlen(put->val) && ebpfMonPacketTextIsNumber(put->val)) {
        put->isNumber = 1;
        put->isText = 0;
        put->number = strtod(put->val, NULL);
    }
}

static void setAcknowledge(const ebpfMonPacketPut *p, ebpfMonPut *put)
{
    ebpfMonValue sent = {
        .data = p->data, .len = p->have, .type = ebpfMonDbfUshort, .size = 2, .count = 1, .network = 1,
    };

    put->hash = p->hash;
    ebpfMonPutDecodeSetAcknowledge(put, p->dbrType == EBPFMON_CA_PUT_ACKS, &sent);
}

/* A CA server adds the name of the record, or words of its own (send_err of rsrv/camessage.c). */
static void setMessage(const ebpfMonPacketPut *p, ebpfMonPut *put)
{
    size_t record = ebpfMonPutGetRecordLength(put->pv);
    const char *own = strncmp(p->message, put->pv, record) == 0 && !p->message[record] ? "" : p->message;

    if (p->ok || p->pva || own[0])
        ebpfMonTextCopy(put->message, sizeof(put->message), own);
    else
        ebpfMonTextCopy(put->message, sizeof(put->message), ca_message((long)p->status));
}

static void setResult(const ebpfMonPacketPut *p, int missed, ebpfMonPut *put)
{
    if (p->replied && p->ok && p->pva && p->inside && !missed) {
        put->result = ebpfMonPutUnwritten; /* a member of a group without +putorder, a field like display.units */
        setMessage(p, put);
    } else if (p->replied) {
        put->result = p->isUnsure ? ebpfMonPutUnknown :
                      p->ok       ? ebpfMonPutOk :
                      p->denied   ? ebpfMonPutDenied :
                                    ebpfMonPutFailed;
        setMessage(p, put);
    } else if (p->inside) {
        /* The IOC went on with this circuit, or ended, and did not make the put. Only a write-notify may still
         * wait for its record. */
        put->result = missed || (p->replyAsked && !p->pva && !p->closed) ? ebpfMonPutUnknown : ebpfMonPutLost;
    } else {
        put->result = p->replyAsked ? ebpfMonPutUnknown : ebpfMonPutSent;
    }
}

void ebpfMonPacketPutsFinish(ebpfMonPacketPuts *puts, const ebpfMonPacketPut *p, const char *server, int missed)
{
    ebpfMonMessageKey key = { .peer = p->peer, .at = p->at, .seq = p->seq, .seqKind = EBPFMON_SEQ_MESSAGE };
    ebpfMonPut *put = &puts->put;
    ebpfMonFinishedPut finished = { .put = put, .key = &key };
    ebpfMonPutClient client;

    memset(put, 0, sizeof(*put));
    put->time = ebpfMonClockStamp(p->time);
    put->at = p->at;
    put->seen = EBPFMON_SEEN_WIRE;
    put->through = p->pva ? ebpfMonByPva : ebpfMonByCa;
    snprintf(put->ioc, sizeof(put->ioc), "%s", server);
    setPv(puts->targets, p, put);
    if (!p->pva && ebpfMonCaTypeIsAcknowledge(p->dbrType))
        setAcknowledge(p, put);
    else
        setValues(p, put);
    if (p->outer.port)
        ebpfMonPutClientsFindOuter(puts->clients, &p->peer, &p->outer, &p->first, p->user, p->host, &client);
    else
        ebpfMonPutClientsFind(puts->clients, &p->peer, &p->first, p->user, p->host, &client);
    ebpfMonPutClientSet(&client, put);
    if (client.peerPid && !p->pva)
        ebpfMonLinkWritesTakeWriter(puts->linkWrites, client.peerPid, p->channel, p->at, put);
    setResult(p, missed, put);
    put->isPartly = p->made;
    ebpfMonWriterTextComplete(put);
    puts->sink(puts->arg, &finished);
}

/* --- the values that clients read --- */

#define VALUES 8192

typedef struct {
    uint64_t key;          /* hash of server and channel; 0: none */
    uint64_t server;       /* hash of the server */
    uint64_t circuit, put; /* the put that wrote it; put 0: it was read */
    uint64_t fields;       /* as in ebpfMonWireEvent */
    ebpfMonOldValue value;
} lastValue;

struct ebpfMonLastValues {
    lastValue table[VALUES];
};

ebpfMonLastValues *ebpfMonLastValuesNew(void)
{
    return calloc(1, sizeof(ebpfMonLastValues));
}

void ebpfMonLastValuesFree(ebpfMonLastValues *values)
{
    free(values);
}

static uint64_t hashServer(const struct ebpfMonPeer *peer)
{
    return EBPFMON_FNV64_BEGIN ^ peer->saddr ^ (uint64_t)peer->sport << 32 ^ (uint64_t)peer->netns << 16;
}

/* Without ".VAL": both names lead to the same values. With a modifier or a filter, a channel has other values. */
static size_t getLength(const char *channel)
{
    size_t n = strlen(channel);

    return n > 4 && strcmp(channel + n - 4, ".VAL") == 0 ? n - 4 : n;
}

/* 64 bits: two names have the same key with a chance of 10^-19. Then the value of the other would be shown. */
static uint64_t hashChannel(const struct ebpfMonPeer *peer, const char *channel)
{
    uint64_t h = ebpfMonHashFnv64(hashServer(peer), channel, getLength(channel));

    return h ? h : 1;
}

static lastValue *findPlace(ebpfMonLastValues *values, uint64_t key)
{
    return &values->table[(key ^ key >> 32) % VALUES];
}

static void storeValue(lastValue *l, uint64_t key, const ebpfMonWireEvent *ev)
{
    char text[EBPFMON_TEXT_SIZE];

    l->key = key;
    l->server = hashServer(&ev->peer);
    l->circuit = ev->circuit;
    l->put = ev->kind == ebpfMonWirePut ? ev->id : 0;
    l->fields = ev->fields;
    l->value.known = 1;
    l->value.count = (long)ev->count;
    l->value.isText = 0; /* texts of PVA arrays have quotes */
    if (ev->protocol == ebpfMonWirePva) {
        l->value.isNumber = ev->isNumber && ebpfMonPacketTextIsNumber(ev->text);
        l->value.number = ev->number;
        ebpfMonTextCopy(l->value.text, sizeof(l->value.text), ev->text);
        return;
    }
    l->value.isText = ebpfMonPacketTextFormatCa(
        ev->data, (uint32_t)(ev->have < EBPFMON_PACKET_PUT_DATA ? ev->have : EBPFMON_PACKET_PUT_DATA), ev->baseType,
        ev->count, text, sizeof(text), &l->value.isNumber, &l->value.number);
    ebpfMonTextCopy(l->value.text, sizeof(l->value.text), text);
}

void ebpfMonLastValuesSet(ebpfMonLastValues *values, const ebpfMonWireEvent *ev)
{
    lastValue *l;
    uint64_t key;

    if (!ev->name[0] || !ev->data || (ev->isPartial && !ev->isUpdate))
        return;
    key = hashChannel(&ev->peer, ev->name);
    l = findPlace(values, key);
    if (!ev->isPartial)
        storeValue(l, key, ev);
    else if (l->key == key)
        l->value.known = 0; /* it has changed since it was seen whole, perhaps */
}

/* Nonzero: it is the value of the fields that this put writes. What is known of other fields tells nothing. */
static int isOfFields(const lastValue *l, const ebpfMonWireEvent *ev)
{
    return l->fields == ev->fields && (ev->fields || ev->protocol == ebpfMonWireCa);
}

void ebpfMonLastValuesExchange(ebpfMonLastValues *values, const ebpfMonWireEvent *ev, ebpfMonOldValue *old)
{
    uint64_t key = hashChannel(&ev->peer, ev->name);
    lastValue *l = findPlace(values, key);

    old->known = 0;
    if (!ev->name[0])
        return;
    if (l->key == key && l->value.known && isOfFields(l, ev))
        *old = l->value;
    storeValue(l, key, ev);
}

void ebpfMonLastValuesForgetServer(ebpfMonLastValues *values, const struct ebpfMonPeer *peer)
{
    uint64_t server = hashServer(peer);

    for (unsigned i = 0; i < VALUES; i++)
        if (values->table[i].server == server)
            values->table[i].key = 0;
}

void ebpfMonLastValuesRestore(ebpfMonLastValues *values, const ebpfMonWireEvent *reply, const ebpfMonOldValue *old)
{
    uint64_t key = hashChannel(&reply->peer, reply->name);
    lastValue *l = findPlace(values, key);

    if (l->key == key && l->put == reply->id && l->circuit == reply->circuit) {
        l->value = *old;
        l->put = 0;
    }
}

/* --- values as text --- */

void ebpfMonPacketTextFormatCall(const char *arguments, char *buf, size_t size)
{
    char text[sizeof(((ebpfMonPut *)0)->val) + 8];

    snprintf(text, sizeof(text), "call %s", arguments);
    ebpfMonTextCopy(buf, size, text);
}

int ebpfMonPacketTextFormatCa(const uint8_t *data, uint32_t have, int baseType, uint32_t count, char *buf, size_t size,
                              int *isNumber, double *number)
{
    ebpfMonValue v = {
        .data = data, .len = have, .type = ebpfMonPutDecodeCaType(baseType), .size = 40, .count = count, .network = 1,
    };

    if (baseType < 0) {
        *isNumber = 0;
        snprintf(buf, size, "?");
        return 0;
    }
    *isNumber = v.type != ebpfMonDbfEnum && ebpfMonValueTextGetNumber(&v, number);
    ebpfMonValueTextFormat(NULL, NULL, 0, &v, buf, size);
    return ebpfMonValueTextIsText(&v);
}

int ebpfMonPacketTextIsNumber(const char *text)
{
    char *end;

    strtod(text, &end);
    return text[0] && !*end;
}

size_t ebpfMonPacketTextGetNameLength(const char *channel)
{
    const char *dot = strchr(channel, '.'), *field = dot ? dot + 1 : NULL;
    size_t n = strlen(channel);

    if (field && !memchr(field, '.', strcspn(field, "{["))) /* else it is no name of Base */
        n = (size_t)(field - channel) + strcspn(field, "{[$");
    if (n > 1 && channel[n - 1] == '.')
        return n - 1;
    return n > 4 && strncmp(channel + n - 4, ".VAL", 4) == 0 ? n - 4 : n;
}

/* --- events --- */

#define DELAY_MAX   60000000000ull /* from a packet to us */
#define LATE_MAX    256            /* puts that wait until their socket has them … */
#define LATE_OF_ONE 32             /* … of one circuit */
#define LATE_NS     (2 * EBPFMON_SECOND_NS) /* … for so long */
#define LATE_LOOK_NS 250000000ull  /* … and the kernel is asked so often */
#define ASK_NS      100000000ull   /* the kernel is not asked for sockets more often than that */

struct ebpfMonPacketEvents {
    ebpfMonPutJoin          *join;     /* these five are the caller's */
    ebpfMonServers          *servers;
    ebpfMonPacketPuts       *puts;
    ebpfMonGateways         *gateways;
    ebpfMonAudits           *audits;
    ebpfMonPacketEventCalls  calls;
    int                      canJoin;
    ebpfMonLastValues       *lastValues;
    translatedCircuits       translated;
    ebpfMonRealCircuits     *realCircuits;
    uint64_t                 lost;     /* events of IOCs, when they were counted last */
    uint64_t                 lostAt;   /* monotonic ns: when there were more than before */
    uint64_t                 packetsLost, packetsLostAt; /* the same, but packets */
    uint64_t                 askedAt;  /* monotonic ns: when the kernel was asked for a socket */
    ebpfMonPacketPut        *late;     /* puts that are judged again, in their order */
    uint64_t                 lateAt;   /* … monotonic ns: when */
};

/* A put to a gateway. Who has a namespace of his own writes the packets of any client there, and passes them on. */
static int isRealPut(void *arg, const ebpfMonPacketPut *p)
{
    const ebpfMonPacketEvents *e = arg;

    return ebpfMonProcIsOurNetns(p->pid, p->peer.netns) &&
           ebpfMonRealCircuitsJudge(e->realCircuits, p) == ebpfMonRealYes;
}

ebpfMonPacketEvents *ebpfMonPacketEventsNew(ebpfMonPutJoin *join, ebpfMonServers *servers, ebpfMonPacketPuts *puts,
                                            ebpfMonGateways *gateways, ebpfMonAudits *audits,
                                            const ebpfMonPacketEventCalls *calls, int canJoin)
{
    ebpfMonPacketEvents *e = calloc(1, sizeof(*e));

    if (!e)
        return NULL;
    e->join = join;
    e->servers = servers;
    e->puts = puts;
    e->gateways = gateways;
    e->audits = audits;
    e->calls = *calls;
    e->canJoin = canJoin;
    e->lastValues = ebpfMonLastValuesNew();
    e->realCircuits = ebpfMonRealCircuitsNew(calls->findReceived);
    ebpfMonGatewaysSetProofs(gateways, isRealPut, e);
    if (e->lastValues && e->realCircuits)
        return e;
    ebpfMonPacketEventsFree(e);
    return NULL;
}

void ebpfMonPacketEventsFree(ebpfMonPacketEvents *e)
{
    if (!e)
        return;
    for (ebpfMonPacketPut *p = e->late, *next; p; p = next) {
        next = p->next;
        free(p);
    }
    ebpfMonLastValuesFree(e->lastValues);
    ebpfMonRealCircuitsFree(e->realCircuits);
    free(e);
}

/* Nonzero: the server is not an IOC of Base, or its puts are not seen in the IOC. */
static int isWanted(ebpfMonPacketEvents *e, const ebpfMonServer *server)
{
    ebpfMonFilter f;

    e->calls.getFilter(e->calls.arg, &f);
    return !server->off && f.level > ebpfMonLevelOff && ebpfMonPatternMatchesIoc(f.ioc, server->name);
}

/* When the packet came, by the monotonic clock of the IOC's events, because the wall clock may be set. */
static uint64_t findArrival(uint64_t time)
{
    uint64_t now = ebpfMonClockMonotonic(), wall = now + ebpfMonClockUnixOffset(), age = wall > time ? wall - time : 0;

    return now - (age < DELAY_MAX ? age : 0);
}

static const ebpfMonServer *findServer(ebpfMonPacketEvents *e, const ebpfMonWireEvent *ev)
{
    return ebpfMonServersFind(e->servers, &ev->peer, ebpfMonClockMonotonic());
}

/* Nonzero: the client is in another namespace whose packets are read, too. A server that is in neither is on another
 * host: there the packet was seen first. */
static int isForwarded(ebpfMonPacketEvents *e, const ebpfMonWireEvent *ev, const ebpfMonServer *server)
{
    uint32_t pid, netns = server->netns == ev->peer.netns ? 0 : e->calls.findClient(e->calls.arg, ev, &pid);

    return netns && netns != ev->peer.netns &&
           ebpfMonServersGetCovered(e->servers, netns) <= findArrival(ev->time) + EBPFMON_CLOCKS_NS;
}

static void setOuter(ebpfMonPacketEvents *e, const struct ebpfMonPeer *inner, const struct ebpfMonPeer *outer)
{
    addTranslated(&e->translated, outer, inner);
    /* it forgets circuits that had no put for a minute */
    ebpfMonPutJoinSetOuter(e->join, inner, outer, ebpfMonClockMonotonic());
}

/* Nonzero: the packets are of the outer side of a translated connection, so they are copies. */
static int isOuter(ebpfMonPacketEvents *e, const ebpfMonWireEvent *ev, const ebpfMonServer *server)
{
    uint64_t now = findArrival(ev->time); /* however long it takes to find the servers */
    translatedCircuits *t = &e->translated;
    const struct ebpfMonPeer *outer;
    const message *same;

    if ((server->isElsewhere && now + EBPFMON_CLOCKS_NS >= server->elsewhereSince) || isOuterCircuit(t, &ev->peer))
        return 1;
    outer = server->pid ? findOuter(t, &ev->peer) : NULL;
    if (outer) {
        setOuter(e, &ev->peer, outer);
        return 0;
    }
    same = findSame(server->pid ? &t->outside : &t->inside, ev, now);
    if (!same)
        noteMessage(server->pid ? &t->inside : &t->outside, ev, server->pid, now);
    else if (!ebpfMonProcIsOurNetns(server->pid ? server->pid : same->pid, (server->pid ? ev->peer : same->peer).netns))
        return 0;
    else if (server->pid)
        setOuter(e, &ev->peer, &same->peer);
    else
        setOuter(e, &same->peer, &ev->peer);
    return same && !server->pid;
}

int ebpfMonPacketEventsIsOuter(ebpfMonPacketEvents *e, const struct ebpfMonPeer *peer)
{
    return isOuterCircuit(&e->translated, peer);
}

/* A put to a server that may be a gateway. */
static void addOuterPut(ebpfMonPacketEvents *e, const ebpfMonWireEvent *ev, pid_t pid, uint64_t at)
{
    const struct ebpfMonPeer *outer = findOuter(&e->translated, &ev->peer);
    char text[128], pv[128];
    ebpfMonPacketPut p = {
        .at = at, .time = ev->time, .id = ev->id, .circuit = ev->circuit, .seq = ev->seq, .end = ev->end,
        .hash = ev->hash, .pva = ev->protocol == ebpfMonWirePva, .replyAsked = !!ev->replyAsked, .peer = ev->peer,
        .first = ev->first, .pid = pid, .sid = ev->sid, .count = ev->count, .number = ev->number,
        .isCall = !!ev->isCall,
    };
    int isNumber = ev->isNumber && ebpfMonPacketTextIsNumber(ev->text);

    if (outer)
        p.outer = *outer;
    ebpfMonTextCopy(p.user, sizeof(p.user), ev->user);
    ebpfMonTextCopy(p.host, sizeof(p.host), ev->host);
    ebpfMonTextCopy(p.channel, sizeof(p.channel), ev->name);
    ebpfMonTextCopyBytes(pv, sizeof(pv), ev->name, ebpfMonPacketTextGetNameLength(ev->name));
    if (p.isCall)
        ebpfMonPacketTextFormatCall(ev->text, text, sizeof(text));
    else if (p.pva)
        ebpfMonTextCopy(text, sizeof(text), ev->text);
    else
        ebpfMonPacketTextFormatCa(ev->data, (uint32_t)ev->have, ev->baseType, ev->count, text, sizeof(text), &isNumber,
                                  &p.number);
    p.isNumber = !!isNumber;
    ebpfMonGatewaysAddPut(e->gateways, &p, pv, text);
}

/* A connection to a port at which nobody expects a server yet is seen from its first data on. If the kernel knows a
 * connection with these first numbers, it is this one. */
static void addBegin(ebpfMonPacketEvents *e, ebpfMonWireEvent *ev)
{
    if (!ebpfMonFirstIsKnown(&ev->first) && ebpfMonFirstIsKnown(&ev->begun) && e->calls.hasBegun &&
        e->calls.hasBegun(e->calls.arg, &ev->peer, &ev->begun))
        ev->first = ev->begun;
}

/* A put that no IOC tells of. "isCopy": isForwarded. */
static void addPacketPut(ebpfMonPacketEvents *e, const ebpfMonWireEvent *ev, const ebpfMonServer *server, int isCopy)
{
    ebpfMonOldValue old = { .known = 0 };
    int isShown = isWanted(e, server) && (server->pid || !isCopy);
    uint64_t at = findArrival(ev->time);

    if (isShown || server->pid)
        ebpfMonRealCircuitsNote(e->realCircuits, ev->circuit, &ev->peer, &ev->first, server->pid, ev->seq, 0);
    if (server->pid && !server->iocId)
        addOuterPut(e, ev, server->pid, at);
    if (isShown) {
        if (!ev->isCall && (ev->protocol != ebpfMonWireCa || !ebpfMonCaTypeIsAcknowledge(ev->dbrType)))
            ebpfMonLastValuesExchange(e->lastValues, ev, &old);
        ebpfMonPutJoinAddPacket(e->join, ev, ev->isCall ? 0 : server->iocId, server->pid, &old, at);
    }
    if (!isCopy)
        e->calls.putElsewhere(e->calls.arg, ev, at);
}

static void addPut(ebpfMonPacketEvents *e, const ebpfMonWireEvent *ev)
{
    const ebpfMonServer *server = findServer(e, ev);
    uint64_t at = findArrival(ev->time);
    ebpfMonOldValue old = { .known = 0 }; /* the inside knows it for sure */
    ebpfMonWireEvent begun;
    int isCopy;

    if (isOuter(e, ev, server))
        return;
    isCopy = isForwarded(e, ev, server);
    if (server->isSeen && !ev->isCall) {
        if (e->canJoin)
            ebpfMonPutJoinAddPacket(e->join, ev, server->iocId, server->pid, &old, at);
        return;
    }
    begun = *ev;
    addBegin(e, &begun);
    addPacketPut(e, &begun, server, isCopy);
}

static void addCircuit(ebpfMonPacketEvents *e, const ebpfMonWireEvent *ev)
{
    const ebpfMonServer *server = findServer(e, ev);

    if (!isOuter(e, ev, server) && server->isSeen)
        ebpfMonRealCircuitsNote(e->realCircuits, ev->circuit, &ev->peer, &ev->first, server->pid, ev->begun.seq[0], 1);
}

/* A server that creates channels as a client may be a gateway. */
static void noteClient(ebpfMonPacketEvents *e, const ebpfMonWireEvent *ev)
{
    uint32_t pid = 0;

    e->calls.findClient(e->calls.arg, ev, &pid);
    if (pid)
        ebpfMonGatewaysAddClient(e->gateways, pid);
}

static void noteLost(ebpfMonPacketEvents *e, const ebpfMonWireEvent *ev, int isGivenUp)
{
    pid_t pid = ev->fromServer ? 0 : findServer(e, ev)->pid;

    if (pid)
        ebpfMonGatewaysNoteLost(e->gateways, pid, isGivenUp, findArrival(ev->time));
}

void ebpfMonPacketEventsAdd(ebpfMonPacketEvents *e, const ebpfMonWireEvent *ev)
{
    ebpfMonOldValue old;

    switch (ev->kind) {
    case ebpfMonWireOpened:
        addCircuit(e, ev);
        break;
    case ebpfMonWirePut:
        addPut(e, ev);
        break;
    case ebpfMonWireReply:
        ebpfMonGatewaysAddReply(e->gateways, ev, findArrival(ev->time));
        if (!ev->ok && (!ev->id || ev->isUnsure)) /* one of several puts was refused */
            ebpfMonLastValuesForgetServer(e->lastValues, &ev->peer);
        if (ebpfMonPutJoinAddReply(e->join, ev, &old, findArrival(ev->time)) && !ev->ok && !ev->isUnsure)
            ebpfMonLastValuesRestore(e->lastValues, ev, &old);
        break;
    case ebpfMonWireValue:
        if (!findServer(e, ev)->isSeen)
            ebpfMonLastValuesSet(e->lastValues, ev);
        break;
    case ebpfMonWireChannel:
        noteClient(e, ev);
        if (ev->name[0])
            ebpfMonPutJoinNameChannel(e->join, &ev->peer, ev->sid, ev->name);
        break;
    case ebpfMonWireClosed:
        if (ev->fromServer) /* else one client left */
            ebpfMonLastValuesForgetServer(e->lastValues, &ev->peer);
        ebpfMonPutJoinCloseCircuit(e->join, &ev->peer, findArrival(ev->time));
        forgetTranslated(&e->translated, &ev->peer);
        break;
    case ebpfMonWireCrowded: /* ebpfMonWireClosed comes next, but the connection goes on: answers may come */
        e->packetsLostAt = findArrival(ev->time);
        noteLost(e, ev, 1);
        break;
    case ebpfMonWireGap:
        noteLost(e, ev, 0);
        break;
    case ebpfMonWireForeign: /* what this client writes is not known */
        if (ev->isTls)
            noteLost(e, ev, 1);
        break;
    case ebpfMonWireGivenUp: /* … from now on */
        noteLost(e, ev, 1);
        ebpfMonLastValuesForgetServer(e->lastValues, &ev->peer);
        ebpfMonPutJoinCloseCircuit(e->join, &ev->peer, findArrival(ev->time));
        break;
    default:
        break;
    }
}

void ebpfMonPacketEventsNoteLost(ebpfMonPacketEvents *e, uint64_t now)
{
    uint64_t lost = e->calls.countLost(e->calls.arg);

    if (lost != e->lost)
        e->lostAt = now;
    e->lost = lost;
}

void ebpfMonPacketEventsNotePacketsLost(ebpfMonPacketEvents *e, uint64_t count, uint64_t now)
{
    if (count != e->packetsLost) {
        e->packetsLostAt = now;
        ebpfMonGatewaysNoteLost(e->gateways, 0, 0, now);
    }
    e->packetsLost = count;
}

/* Whether the IOC may have made the put and we did not see it; "isSlow": or may still make it later. */
static int mayBeMissed(ebpfMonPacketEvents *e, const ebpfMonPacketPut *p, int isSlow)
{
    return !p->inside || p->isUnread || e->lostAt >= p->at || (isSlow && ebpfMonServersIsRunning(e->servers, p->iocId));
}

/* Nonzero: the answer to the put, for example a refusal, may be in a packet that is lost. */
static int mayBeAnswered(const ebpfMonPacketEvents *e, const ebpfMonPacketPut *p)
{
    return p->replyAsked && !p->replied && e->packetsLostAt >= p->at;
}

/* Not PVA: there, the result of such a put is ebpfMonPutUnwritten. */
static void auditPut(ebpfMonPacketEvents *e, const ebpfMonPacketPut *p)
{
    if (p->replied && p->ok && !p->pva && !mayBeMissed(e, p, 0))
        ebpfMonAuditsAdd(e->audits, ebpfMonAuditPutNotInside, 1, p->channel);
}

/* Asks if the server of one circuit has read what came. Nonzero: it has, so puts of this circuit may be published. */
static int askServer(ebpfMonPacketEvents *e, uint64_t now)
{
    struct ebpfMonPeer peer;
    uint32_t iocId;
    int isRead;

    if (now - e->askedAt < ASK_NS || !ebpfMonPutJoinGetAsked(e->join, now, &peer, &iocId))
        return 0;
    e->askedAt = now;
    isRead = !ebpfMonServersHasUnread(e->servers, iocId, &peer);
    ebpfMonPutJoinSetRead(e->join, &peer, isRead, now);
    return isRead;
}

/* Frees it. */
static void publishJudged(ebpfMonPacketEvents *e, ebpfMonPacketPut *p, ebpfMonReal real, uint64_t now)
{
    const ebpfMonServer *server;
    char name[sizeof(server->name)];

    if (real != ebpfMonRealYes)
        e->calls.countDropped(e->calls.arg, real);
    if (!ebpfMonPutJoinSettleTaken(e->join, p, real == ebpfMonRealYes)) {
        free(p);
        return;
    }
    if (now != UINT64_MAX) /* at the end nobody waits for the IOC */
        auditPut(e, p);
    server = ebpfMonServersFind(e->servers, &p->peer, now);
    if (p->iocId || p->pid == server->pid)
        memcpy(name, server->name, sizeof(name));
    else /* another server has its port meanwhile */
        ebpfMonPeerTextEnd(p->peer.saddr, p->peer.saddr6, p->peer.sport, name, sizeof(name));
    ebpfMonPacketPutsFinish(e->puts, p, name,
                            now == UINT64_MAX || mayBeAnswered(e, p) || mayBeMissed(e, p, !p->passed && !p->replied));
    free(p);
}

/* Adds it behind the others, if there is room. They are few, because whoever sees packets can send some that are ahead
 * of their connection. 0: there is no room. */
static int addLate(ebpfMonPacketEvents *e, ebpfMonPacketPut *p)
{
    ebpfMonPacketPut **end = &e->late;
    unsigned all = 0, same = 0;

    for (; *end; end = &(*end)->next, all++)
        same += (*end)->circuit == p->circuit;
    if (all >= LATE_MAX || same >= LATE_OF_ONE)
        return 0;
    p->next = NULL;
    *end = p;
    return 1;
}

/* Nonzero: an earlier put of this circuit waits, so this one does, too. */
static int isBehindLate(const ebpfMonPacketEvents *e, const ebpfMonPacketPut *p)
{
    const ebpfMonPacketPut *late = e->late;

    while (late && late->circuit != p->circuit)
        late = late->next;
    return late != NULL;
}

/* A packet is seen before its socket has it. While a thread has locked the socket and does not run, the socket does not
 * get it, nor a RST (sk_add_backlog(), net/sock.h). "since": monotonic ns when it was judged first. Frees it, or lets
 * it wait. */
static void publishOne(ebpfMonPacketEvents *e, ebpfMonPacketPut *p, uint64_t since, uint64_t now)
{
    ebpfMonReal real = p->inside && !e->calls.isServed(e->calls.arg, p) ? ebpfMonRealNo :
                       p->isDoubtful                                    ? ebpfMonRealDoubtful :
                       isBehindLate(e, p)                               ? ebpfMonRealLater :
                                                                          ebpfMonRealCircuitsJudge(e->realCircuits, p);

    if (real == ebpfMonRealLater && now != UINT64_MAX && now - since < LATE_NS) {
        p->since = since;
        if (addLate(e, p)) {
            e->lateAt = e->lateAt > now ? e->lateAt : now + LATE_LOOK_NS;
            return;
        }
    }
    publishJudged(e, p, real, now);
}

static void publishLate(ebpfMonPacketEvents *e, uint64_t now)
{
    ebpfMonPacketPut *list = e->late, *next;

    if (now < e->lateAt)
        return;
    e->late = NULL;
    for (; list; list = next) {
        next = list->next;
        publishOne(e, list, list->since, now);
    }
}

uint64_t ebpfMonPacketEventsGetDue(const ebpfMonPacketEvents *e)
{
    return e->late ? e->lateAt : UINT64_MAX;
}

static void publishUnmatched(ebpfMonPacketEvents *e, uint64_t now)
{
    ebpfMonPacketPut *list = ebpfMonPutJoinTakeUnmatched(e->join, now), *next;

    if (list) /* once for all of them: asking the kernel for each would cost more than the put */
        ebpfMonPacketEventsNoteLost(e, now);
    for (; list; list = next) {
        next = list->next;
        if (!ebpfMonGatewaysTake(e->gateways, list, now))
            publishOne(e, list, now, now);
    }
    while ((next = ebpfMonGatewaysGive(e->gateways, now)))
        publishOne(e, next, now, now);
}

void ebpfMonPacketEventsPublish(ebpfMonPacketEvents *e, uint64_t now)
{
    publishLate(e, now);
    publishUnmatched(e, now);
    if (now != UINT64_MAX && askServer(e, now))
        publishUnmatched(e, now);
}
