/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pvAccess on one connection (pvAccess Protocol Specification, Protocol Messages). Each message has its own byte order
 * in its flags: all implementations follow these flags, whatever they have agreed on before.
 */
#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "common/hash.h"
#include "wire/protocol.h"
#include "wire/pvaBuf.h"
#include "wire/pvaChannel.h"
#include "wire/pvaState.h"
#include "wire/pvaType.h"
#include "wire/pvaValue.h"

/* --- responses ---
 *
 * Messages of a server that have a request number. */

#define PVA_CHOICES 4096 /* bytes of an enumeration's choices that are kept, at most */

/* Nonzero: the text of a status means that the put was denied. "Put not permitted" is the text of both QSRVs,
 * "Read-only PV" that of SharedPV of pvxs and p4p. Other servers may use other words. */
static int isDenial(const char *text)
{
    static const char *const words[] = { "not permitted", "denied", "permission", "read-only", "read only",
        "not writable", "not writeable", "no write access", "write access", "forbidden", "not allowed",
        "not authorized", "unauthorized" };
    size_t i;

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcasestr(text, words[i])) {
            return 1;
        }
    }
    return 0;
}

/* "text": what a call has returned, or "". */
static void emitReply(pvaState *pva, pvaMsg *msg, pvaOp *op, const pvaStatus *status, const char *text)
{
    ebpfMonWireEvent event = { .kind = ebpfMonWireReply, .status = status->severity, .message = status->text,
        .text = text };

    event.ok = status->severity < 2;
    event.denied = !event.ok && isDenial(status->text);
    if (op) {
        if (op->waiting) {
            event.id = op->put;
            op->waiting--;
        }
        event.options = op->options;
        event.process = op->process;
        if (op->channel) {
            event.name = op->channel->name;
            event.sid = op->channel->bySid.key;
            event.cid = op->channel->hasCid ? op->channel->byCid.key : 0;
        }
    }
    ebpfMonPvaEmit(pva, msg, &event);
}

static void noteReady(pvaState *pva, pvaMsg *msg, uint32_t ioid, pvaOp *op)
{
    pvaType *type = ebpfMonPvaTypeRead(msg->types, &msg->buf);

    if (!op && (ebpfMonPvaCanPut(msg->cmd) || (type && type->variant))) {
        op = ebpfMonPvaOpMake(pva, ioid, msg->cmd);
    }
    if (op && op->cmd == msg->cmd) {
        ebpfMonPvaTypeDrop(msg->types, op->type);
        op->type = ebpfMonPvaTypeKeep(type);
        if (msg->cmd == pvaPutGet) {
            ebpfMonPvaTypeDrop(msg->types, op->got);
            op->got = ebpfMonPvaTypeRead(msg->types, &msg->buf);
        }
        /* its values contain no new descriptions */
        if (!ebpfMonPvaCanPut(msg->cmd) && !(type && type->variant)) {
            if (msg->cmd == pvaMonitor) { /* its updates are counted */
                ebpfMonPvaTypeDrop(msg->types, op->type);
                op->type = NULL;
            } else {
                ebpfMonPvaOpFree(pva, op);
            }
        }
    } else if (msg->cmd == pvaPutGet) {
        ebpfMonPvaTypeDrop(msg->types, ebpfMonPvaTypeRead(msg->types, &msg->buf));
    }
    ebpfMonPvaTypeDrop(msg->types, type);
}

static void keepChoices(pvaState *pva, pvaOp *op, const pvaValue *value)
{
    uint8_t *copy;

    if (!value->choices || value->choicesSize > PVA_CHOICES
        || !(copy = ebpfMonCircuitAlloc(pva->circuit, value->choicesSize))) {
        return;
    }
    memcpy(copy, value->choices, value->choicesSize);
    if (op->choices) {
        ebpfMonCircuitFree(pva->circuit, op->choices, op->choicesSize);
    }
    op->choices = copy;
    op->choicesSize = value->choicesSize;
    op->choicesBig = value->choicesBig;
}

/*
 * A value from the server: reads the type descriptions in it, and keeps the choices for a later put. Of an image
 * (NTNDArray) only the begin is here, and descriptions of its attributes may be in the rest. These have new numbers:
 * pvAccessCPP never gives a number a second meaning (introspectionRegistry.cpp). So the numbers that are known stay,
 * unless this server has been seen to describe one again.
 */
static void readValue(pvaState *pva, pvaMsg *msg, pvaOp *op, const pvaType *type)
{
    pvaValue value = { .types = msg->types, .buf = &msg->buf };
    pvaBits bits;

    if (!op || !type || type->unknown || pvaBitsGet(&msg->buf, &bits)) {
        return;
    }
    ebpfMonPvaChanged(&value, type, &bits);
    if (value.unknown) {
        msg->buf.cut = 1;
    }
    if (ebpfMonPvaCanPut(op->cmd)) {
        keepChoices(pva, op, &value);
    }
    if (!type->variant || !msg->types->redefines) {
        msg->buf.cut = 0;
    }
}

/*
 * The overrun BitSet ends the message, and behind its length come all bytes up to the last one that is not 0
 * (pvData, BitSet::serialize). So the last byte of the message tells whether a bit is set. Servers on pvxs set none.
 */
static void emitUpdate(pvaState *pva, pvaMsg *msg, const pvaOp *op, uint32_t ioid)
{
    const pvaBuf *b = &msg->buf;
    ebpfMonWireEvent event = { .kind = ebpfMonWireUpdate, .ioid = ioid, .hasOverrun = -1 };

    if (b->have == b->total && b->have) {
        event.hasOverrun = b->p[b->have - 1] != 0;
    }
    if (op && op->channel) {
        event.name = op->channel->name;
        event.sid = op->channel->bySid.key;
        event.cid = op->channel->hasCid ? op->channel->byCid.key : 0;
    }
    ebpfMonPvaEmit(pva, msg, &event);
}

static void emitEnd(pvaState *pva, pvaMsg *msg, const pvaOp *op, uint32_t ioid)
{
    ebpfMonPvaEmit(pva, msg, &(ebpfMonWireEvent){ .kind = ebpfMonWireFlow, .ioid = ioid,
        .name = op && op->channel ? op->channel->name : NULL, .flow = ebpfMonWireFlowEnded });
}

/* A request was refused before a put, or an update, was possible. */
static void noteRefused(pvaState *pva, pvaMsg *msg, pvaOp *op, uint32_t ioid, const pvaStatus *status)
{
    if (ebpfMonPvaCanPut(msg->cmd)) {
        emitReply(pva, msg, op, status, "");
    } else if (msg->cmd == pvaMonitor) {
        emitEnd(pva, msg, op, ioid);
    }
    if (op) {
        ebpfMonPvaOpFree(pva, op);
    }
}

static void readMonitor(pvaState *pva, pvaMsg *msg, pvaOp *op, uint32_t ioid, unsigned sub)
{
    if (!(sub & pvaLastRequest)) {
        emitUpdate(pva, msg, op, ioid);
        readValue(pva, msg, op, op ? op->type : NULL);
        return;
    }
    emitEnd(pva, msg, op, ioid);
    if (op) {
        ebpfMonPvaOpFree(pva, op);
    }
}

/* What a call has returned: its description, and a whole value. "" if it is nothing, or the call failed. */
static void readReturned(pvaMsg *msg, int ok, pvaOut *out)
{
    pvaType *type = ok ? ebpfMonPvaTypeRead(msg->types, &msg->buf) : NULL;
    pvaValue value = { .types = msg->types, .buf = &msg->buf, .out = out };

    out->length = out->full = 0;
    if (type) {
        ebpfMonPvaWhole(&value, type);
        ebpfMonPvaEndText(&value, type->variant);
    } else {
        ebpfMonPvaOutEnd(out);
    }
    ebpfMonPvaTypeDrop(msg->types, type);
}

/* Emits the event of the message, if it has one, and notes what later messages need. */
static void readResponse(pvaState *pva, pvaMsg *msg)
{
    uint32_t ioid = pvaGet(&msg->buf, 4);
    unsigned sub = msg->cmd == pvaGetField ? pvaInit : pvaGet(&msg->buf, 1);
    pvaOp *op = pvaFailed(&msg->buf) ? NULL : ebpfMonPvaOpFind(pva, ioid);
    pvaStatus status = { .severity = 0 };
    pvaOut out;
    int ok = 1;

    if (op && op->cmd != msg->cmd) {
        op = NULL;
    }
    if (msg->cmd != pvaMonitor || (sub & (pvaInit | pvaLastRequest))) {
        ok = ebpfMonPvaStatusGet(&msg->buf, &status);
    }
    if (pvaFailed(&msg->buf)) {
        return;
    }
    if (msg->cmd == pvaGetField) {
        if (ok) {
            ebpfMonPvaTypeDrop(msg->types, ebpfMonPvaTypeRead(msg->types, &msg->buf));
        }
    } else if (sub & pvaInit) {
        if (msg->cmd == pvaProcess || msg->cmd == pvaRpc) {
            return;
        }
        if (ok) {
            noteReady(pva, msg, ioid, op);
        } else {
            noteRefused(pva, msg, op, ioid, &status);
        }
    } else if (msg->cmd == pvaRpc) {
        readReturned(msg, ok, &out);
        emitReply(pva, msg, op, &status, out.text);
        if (op && op->last) {
            ebpfMonPvaOpFree(pva, op);
        }
    } else if (ebpfMonPvaCanPut(msg->cmd) && ebpfMonPvaDoesPut(msg->cmd, sub)) {
        emitReply(pva, msg, op, &status, "");
        if (ok && msg->cmd == pvaPutGet && op && op->got && op->got->variant) {
            readValue(pva, msg, op, op->got);
        }
        if (op && op->last) {
            ebpfMonPvaOpFree(pva, op);
        }
    } else if (msg->cmd == pvaMonitor) {
        readMonitor(pva, msg, op, ioid, sub);
    } else if (ok && op && msg->cmd != pvaArrayCmd) {
        readValue(pva, msg, op, msg->cmd == pvaPutGet && !(sub & pvaSubGetPut) ? op->got : op->type);
    }
}

/* --- requests ---
 *
 * Messages of a client that have a request number. Puts, calls, gets and the begins of monitors become events. Other
 * requests are read only as far as needed to know which numbers will stand for which type descriptions. */

static void initRequest(pvaState *pva, pvaMsg *msg, uint32_t sid, uint32_t ioid)
{
    pvaOp *op = ebpfMonPvaOpFind(pva, ioid);
    pvaType *type = ebpfMonPvaTypeRead(msg->types, &msg->buf);

    if (op) {
        ebpfMonPvaOpFree(pva, op);
    }
    op = ebpfMonPvaCanPut(msg->cmd) || msg->cmd == pvaRpc || msg->cmd == pvaGetCmd || msg->cmd == pvaMonitor
        ? ebpfMonPvaOpMake(pva, ioid, msg->cmd) : NULL;
    if (op) {
        ebpfMonPvaChannelAdopt(pva, op, sid);
    }
    if (!op || (!ebpfMonPvaCanPut(msg->cmd) && msg->cmd != pvaMonitor)) {
        ebpfMonPvaSkipWhole(msg->types, &msg->buf, type);
    } else if (type) {
        pvaOut out = { .length = 0 };
        pvaValue value = { .types = msg->types, .buf = &msg->buf, .out = &out };

        ebpfMonPvaOptions(&value, type, &op->process);
        if (value.unknown || pvaFailed(&msg->buf)) {
            ebpfMonPvaOutUnknown(&out);
            op->process = 0;
        }
        ebpfMonPvaOutEnd(&out);
        op->optionsSize = out.length + 1;
        op->options = ebpfMonCircuitAlloc(pva->circuit, op->optionsSize);
        if (op->options) {
            memcpy(op->options, out.text, op->optionsSize);
        }
    }
    ebpfMonPvaTypeDrop(msg->types, type);
}

/* The bits count the fields of the structure that the request has chosen. 0: that request was not seen. */
static uint64_t hashFields(const pvaOp *op, const pvaBits *bits)
{
    uint64_t hash = EBPFMON_FNV64_BEGIN;

    if (!op->options || strcmp(op->options, "?") == 0) {
        return 0;
    }
    for (unsigned bit = 0; bit < op->type->node[0].bits; bit++) {
        if (pvaBit(bits, bit)) {
            hash = ebpfMonHashFnv64(hash, &bit, sizeof(bit));
        }
    }
    return ebpfMonHashFnv64(hash, op->options, strlen(op->options)) | 2;
}

/* Ends the text of a value that was read. "variant": the value may contain new descriptions. */
static void endText(const pvaValue *value, int variant, ebpfMonWireEvent *event)
{
    int isKnown = ebpfMonPvaEndText(value, variant);

    event->count = isKnown ? value->count : 0;
    event->isNumber = isKnown && value->isNumber;
    event->number = value->number;
    if (!isKnown) {
        event->fields = 0;
    }
}

/* The arguments of a call: their description, and a whole value. */
static void decodeArguments(pvaMsg *msg, pvaOut *out, ebpfMonWireEvent *event)
{
    pvaType *type = ebpfMonPvaTypeRead(msg->types, &msg->buf);
    pvaValue value = { .types = msg->types, .buf = &msg->buf, .out = out, .unknown = !type };

    if (type) {
        ebpfMonPvaWhole(&value, type);
    }
    endText(&value, type && type->variant, event);
    event->isNumber = 0;
    ebpfMonPvaTypeDrop(msg->types, type);
}

static void decodeValue(pvaMsg *msg, const pvaOp *op, pvaOut *out, ebpfMonWireEvent *event)
{
    pvaValue value = { .types = msg->types, .buf = &msg->buf, .out = out, .choices = op->choices,
        .choicesSize = op->choicesSize, .choicesBig = op->choicesBig };
    pvaBits bits;

    if (msg->cmd == pvaArrayCmd) {
        pvaSize(&msg->buf); /* offset */
        pvaSize(&msg->buf); /* stride */
        ebpfMonPvaWhole(&value, op->type);
        event->fields = 1;
    } else if (!pvaBitsGet(&msg->buf, &bits)) {
        ebpfMonPvaChanged(&value, op->type, &bits);
        event->fields = value.isValueOnly ? 1 : hashFields(op, &bits);
    }
    endText(&value, op->type->variant, event);
}

static void notePut(pvaState *pva, pvaMsg *msg, uint32_t sid, uint32_t ioid, int last)
{
    ebpfMonWireEvent event = { .kind = ebpfMonWirePut, .id = ++pva->puts, .replyAsked = 1, .text = "?",
        .isCall = msg->cmd == pvaRpc, .hash = msg->cmd == pvaRpc ? 0 : msg->hash };
    pvaOp *op = ebpfMonPvaOpFind(pva, ioid);
    pvaOut out;
    const pvaChannel *channel;

    out.length = out.full = 0;
    if (op && op->channel && op->channel->bySid.key != sid && !op->beforeGap) {
        /* the request decides: pvxs does not look at the channel (serverget.cpp), pvAccessCPP refuses the put */
        sid = op->channel->bySid.key;
    } else if (op && op->channel && op->channel->bySid.key != sid) {
        /* what we know of this number belongs to another request */
        ebpfMonPvaOpFree(pva, op);
        op = NULL;
    }
    event.sid = sid;
    if (!op) {
        op = ebpfMonPvaOpMake(pva, ioid, msg->cmd);
    }
    if (op && !op->channel) {
        ebpfMonPvaChannelAdopt(pva, op, sid);
    }
    channel = op ? op->channel : ebpfMonPvaChannelBySid(pva, sid);
    if (channel) {
        event.name = channel->name;
        event.cid = channel->hasCid ? channel->byCid.key : 0;
    }
    if (op) {
        event.options = op->options;
        event.process = op->process;
        if (op->type && op->cmd == msg->cmd) {
            decodeValue(msg, op, &out, &event);
            event.text = out.text;
        }
        op->put = op->waiting++ ? 0 : event.id; /* if two wait, we do not know to which of them a reply belongs */
        op->last = last;
    }
    if (event.isCall) {
        decodeArguments(msg, &out, &event);
        event.text = out.text;
    }
    ebpfMonPvaEmit(pva, msg, &event);
}

/* Emits the event of a get, or of the begin of a monitor. */
static void emitUse(pvaState *pva, pvaMsg *msg, uint32_t sid, uint32_t ioid, ebpfMonWireEvent *event)
{
    const pvaOp *op = ebpfMonPvaOpFind(pva, ioid);
    const pvaChannel *channel = op && op->channel ? op->channel : ebpfMonPvaChannelBySid(pva, sid);

    event->sid = sid;
    event->ioid = ioid;
    if (channel) {
        event->name = channel->name;
        event->cid = channel->hasCid ? channel->byCid.key : 0;
    }
    if (op) {
        event->options = op->options;
    }
    ebpfMonPvaEmit(pva, msg, event);
}

/* The number of updates that a client takes stands behind the request, or the number of the monitor
 * (ServerMonitorHandler of pvAccessCPP). */
static uint32_t readTaken(pvaMsg *msg, unsigned sub)
{
    uint32_t taken = sub & pvaPipeline ? pvaGet(&msg->buf, 4) : 0;

    return pvaFailed(&msg->buf) ? 0 : taken;
}

static void beginMonitor(pvaState *pva, pvaMsg *msg, uint32_t sid, uint32_t ioid, unsigned sub)
{
    ebpfMonWireEvent event = { .kind = ebpfMonWireSubscribe, .isPipelined = (sub & pvaPipeline) != 0 };

    event.taken = readTaken(msg, sub);
    emitUse(pva, msg, sid, ioid, &event);
}

static void controlMonitor(pvaState *pva, pvaMsg *msg, uint32_t sid, uint32_t ioid, unsigned sub)
{
    ebpfMonWireEvent event = { .kind = ebpfMonWireFlow };
    pvaOp *op = ebpfMonPvaOpFind(pva, ioid);

    event.flow = sub & pvaLastRequest ? ebpfMonWireFlowEnded : !(sub & pvaSubStart) ? ebpfMonWireFlowTaken :
                 sub & pvaSubGet ? ebpfMonWireFlowStarted : ebpfMonWireFlowStopped;
    event.taken = readTaken(msg, sub);
    emitUse(pva, msg, sid, ioid, &event);
    if (op && (sub & pvaLastRequest)) {
        ebpfMonPvaOpFree(pva, op);
    }
}

/* Emits the event of the message, if it has one, and notes what later messages need. */
static void readRequest(pvaState *pva, pvaMsg *msg)
{
    uint32_t sid = pvaGet(&msg->buf, 4), ioid = pvaGet(&msg->buf, 4);
    pvaOp *op;

    if (msg->cmd == pvaDestroyRequest || msg->cmd == pvaCancel) {
        op = pvaFailed(&msg->buf) ? NULL : ebpfMonPvaOpFind(pva, ioid);
        if (op && msg->cmd == pvaCancel) {
            op->waiting = 0;
        } else if (op) {
            if (op->cmd == pvaMonitor) {
                emitUse(pva, msg, sid, ioid, &(ebpfMonWireEvent){ .kind = ebpfMonWireFlow,
                    .flow = ebpfMonWireFlowEnded });
            }
            ebpfMonPvaOpFree(pva, op);
        }
        return;
    }
    if (msg->cmd == pvaGetField) {
        return;
    }
    unsigned sub = pvaGet(&msg->buf, 1);
    if (pvaFailed(&msg->buf)) {
        return;
    }
    if (sub & pvaInit) {
        initRequest(pva, msg, sid, ioid);
        if (msg->cmd == pvaMonitor) {
            beginMonitor(pva, msg, sid, ioid, sub);
        }
    } else if (msg->cmd == pvaMonitor) {
        controlMonitor(pva, msg, sid, ioid, sub);
    } else if (msg->cmd == pvaGetCmd) {
        emitUse(pva, msg, sid, ioid, &(ebpfMonWireEvent){ .kind = ebpfMonWireRead });
    } else if (ebpfMonPvaDoesPut(msg->cmd, sub) || msg->cmd == pvaRpc) {
        notePut(pva, msg, sid, ioid, sub & pvaLastRequest);
    }
}

/* --- datagrams ---
 *
 * Searches, answers and beacons, in datagrams and in messages of a connection. See pvAccess Protocol Specification:
 * CMD_SEARCH, CMD_SEARCH_RESPONSE, CMD_BEACON, CMD_ORIGIN_TAG. */

/* Searches and answers, which also come over TCP. "buf" is the message after its header; "emit" gets an event for each
 * name or number. */
typedef void (*pvaEmitter)(void *arg, ebpfMonWireEvent *event);
void ebpfMonPvaSearchMessage(pvaBuf *buf, const struct ebpfMonPeer *from_to, pvaEmitter emit, void *arg);
void ebpfMonPvaFoundMessage(pvaBuf *buf, const struct ebpfMonPeer *from_to, pvaEmitter emit, void *arg);

/* Reads an address of 16 bytes and a port. Without an address (0.0.0.0, ::) *addr and addr6 stay as they are: the
 * sender's. */
static uint16_t readAddress(pvaBuf *buf, uint32_t *addr, uint32_t addr6[4])
{
    const uint8_t *p = pvaTake(buf, 16);
    uint32_t read6[4] = { 0 };

    if (p)
        memcpy(read6, p, 16);
    if (*(const uint8_t *)&read6[3] && (ebpfMonIsMapped(read6) || !(read6[0] | read6[1] | read6[2]))) {
        *addr = read6[3]; /* not ::1: nobody is in 0/8 */
        memset(addr6, 0, 16);
    } else if (ebpfMonIsIPv6(read6) && !ebpfMonIsMapped(read6)) {
        *addr = ebpfMonShortAddress(read6);
        memcpy(addr6, read6, 16);
    }
    return htons(pvaGet(buf, 2));
}

static ebpfMonWireEvent makeEvent(ebpfMonWireKind kind, const struct ebpfMonPeer *peer)
{
    return (ebpfMonWireEvent){ .kind = kind, .protocol = ebpfMonWirePva, .peer = *peer, .user = "", .host = "",
        .name = "", .options = "", .text = "", .message = "" };
}

void ebpfMonPvaSearchMessage(pvaBuf *buf, const struct ebpfMonPeer *from_to, pvaEmitter emit, void *arg)
{
    ebpfMonWireEvent search = makeEvent(ebpfMonWireSearch, from_to);
    uint16_t port;
    size_t protocols, length, i;

    pvaSkip(buf, 4 + 1 + 3);
    port = readAddress(buf, &search.peer.addr, search.peer.addr6);
    protocols = pvaSize(buf);
    for (i = 0; protocols != PVA_NULL && i < protocols && !pvaFailed(buf); i++) {
        pvaString(buf, &length);
    }
    unsigned count = pvaGet(buf, 2);
    if (pvaFailed(buf)) {
        return;
    }
    if (port) {
        search.peer.port = port;
    }
    for (; count; count--) {
        char name[PVA_NAME + 1];
        uint32_t cid = pvaGet(buf, 4);
        const char *text = pvaString(buf, &length);

        if (!text) {
            return;
        }
        length = strnlen(text, length < PVA_NAME ? length : PVA_NAME);
        memcpy(name, text, length);
        name[length] = 0;
        search.name = name;
        search.cid = cid;
        emit(arg, &search);
    }
}

void ebpfMonPvaFoundMessage(pvaBuf *buf, const struct ebpfMonPeer *from_to, pvaEmitter emit, void *arg)
{
    /* An answer goes the other way: its sender is the server, or another process that answers for it. */
    struct ebpfMonPeer peer = ebpfMonPeerSwap(from_to);
    ebpfMonWireEvent found = makeEvent(ebpfMonWireFound, &peer);
    size_t length;

    pvaSkip(buf, 12 + 4);
    found.peer.sport = readAddress(buf, &found.peer.saddr, found.peer.saddr6);
    pvaString(buf, &length);
    int hasFound = pvaGet(buf, 1) != 0;
    unsigned count = pvaGet(buf, 2);
    if (pvaFailed(buf) || !hasFound) {
        return;
    }
    for (; count; count--) {
        found.cid = pvaGet(buf, 4);
        if (pvaFailed(buf)) {
            return;
        }
        emit(arg, &found);
    }
}

static void emitPvaBeacon(pvaBuf *buf, const struct ebpfMonPeer *from_to, pvaEmitter emit, void *arg)
{
    struct ebpfMonPeer peer = *from_to;

    peer.saddr = from_to->addr; /* addr and port stay the sender's */
    memcpy(peer.saddr6, from_to->addr6, sizeof peer.saddr6);
    pvaSkip(buf, 12 + 1 + 1 + 2);
    peer.sport = readAddress(buf, &peer.saddr, peer.saddr6);
    if (pvaFailed(buf)) {
        return;
    }
    ebpfMonWireEvent alive = makeEvent(ebpfMonWireBeacon, &peer);
    emit(arg, &alive);
}

typedef struct { ebpfMonWire *wire; uint64_t time; } toWire;

static void emitToWire(void *arg, ebpfMonWireEvent *ev)
{
    toWire *to = arg;

    ev->time = to->time;
    ebpfMonWireEmit(to->wire, ev);
}

/* Emits the searches, answers and beacons of a datagram. "from_to": see ebpfMonProtocol.datagram. */
static void readPvaDatagram(ebpfMonWire *wire, uint64_t time, const struct ebpfMonPeer *from_to, const uint8_t *p,
                        size_t len)
{
    toWire to = { .wire = wire, .time = time };

    while (len >= PVA_HEADER && p[0] == 0xca && p[1]) {
        int control = p[2] & pvaFlagControl, big = !!(p[2] & pvaFlagBig);
        size_t size = control ? 0 : pvaNumber(p + 4, 4, big);

        if (size > len - PVA_HEADER) {
            return;
        }
        pvaBuf buf = { .p = p + PVA_HEADER, .have = size, .total = size, .big = big };
        if (!control && p[3] == pvaOriginTag) {
            /* we saw the rest already when it came to this host; now a server passes it on to the other servers */
            return;
        }
        if (!control && p[3] == pvaSearch) {
            ebpfMonPvaSearchMessage(&buf, from_to, emitToWire, &to);
        } else if (!control && p[3] == pvaFound) {
            ebpfMonPvaFoundMessage(&buf, from_to, emitToWire, &to);
        } else if (!control && p[3] == pvaBeacon) {
            emitPvaBeacon(&buf, from_to, emitToWire, &to);
        }
        p += PVA_HEADER + size;
        len -= PVA_HEADER + size;
    }
}

/* --- messages of a circuit --- */

#define SIZE_LIMIT (64 * 1024 * 1024)
#define VERSION_MAX 15

/* The least number of bytes after the header in a message of a command, from the client and from the server. -1: that
 * side does not send it over TCP. */
static const struct { int8_t client, server; } least[pvaCommands] = {
    [pvaBeacon] = { -1, -1 }, [pvaValidation] = { 9, 7 }, [pvaEcho] = { 0, 0 }, [pvaSearch] = { 29, -1 },
    [pvaFound] = { -1, 38 }, [pvaAuthNZ] = { 1, 1 }, [pvaAclChange] = { -1, 4 }, [pvaCreate] = { 2, 9 },
    [pvaDestroy] = { 8, 8 }, [pvaValidated] = { -1, 1 }, [pvaGetCmd] = { 9, 6 }, [pvaPutCmd] = { 9, 6 },
    [pvaPutGet] = { 9, 6 }, [pvaMonitor] = { 9, 5 }, [pvaArrayCmd] = { 9, 6 }, [pvaDestroyRequest] = { 8, -1 },
    [pvaProcess] = { 9, 6 }, [pvaGetField] = { 9, 5 }, [pvaMessage] = { -1, 6 }, [pvaMultiple] = { -1, 0 },
    [pvaRpc] = { 9, 6 }, [pvaCancel] = { 8, -1 }, [pvaOriginTag] = { -1, -1 }
};

/* While a header is searched for, "state" is NULL, and only what usual clients send is one. Else what pvxs takes: it
 * does not look at versions, bits and commands that do not exist (src/conn.cpp). */
static int findPvaFrame(void *state, int fromServer, const uint8_t *p, size_t have, ebpfMonFrame *frame)
{
    /* Decide as early as possible: while a header is searched for, this is called at every byte. */
    if ((have > 0 && p[0] != 0xca) || (have > 1 && (!p[1] || (!state && p[1] > VERSION_MAX)))) {
        return -1;
    }
    if (have < 4) {
        return 0;
    }
    unsigned flags = p[2], cmd = p[3];
    if ((!state && (flags & 0x0e)) || !(flags & pvaFlagServer) != !fromServer) {
        return -1;
    }
    if (flags & pvaFlagControl) {
        if (!state && cmd > 4) {
            return -1;
        }
        if (have < PVA_HEADER) {
            return 0;
        }
        frame->total = frame->hashFrom = PVA_HEADER;
        return 1;
    }
    int min = cmd < pvaCommands ? fromServer ? least[cmd].server : least[cmd].client : -1;
    if (!state && min < 0) {
        return -1;
    }
    if (have < PVA_HEADER) {
        return 0;
    }
    size_t size = pvaNumber(p + 4, 4, !!(flags & pvaFlagBig));
    if (size > SIZE_LIMIT || (!(flags & (pvaFlagFirst | pvaFlagLast)) && (int64_t)size < min)) {
        return -1;
    }
    frame->total = frame->hashFrom = PVA_HEADER + size;
    if (!fromServer && (cmd == pvaPutCmd || cmd == pvaPutGet || cmd == pvaArrayCmd)) {
        size_t from = 0;

        if (flags & pvaFlagLast) {
            from = PVA_HEADER; /* continues with the value */
        } else if (ebpfMonPvaPutValue(p, have, frame->total, &from)) {
            return 0;
        }
        if (from) {
            frame->hashFrom = from;
        }
    }
    return 1;
}

/* The client's answer: how it authenticates itself, and with the method "ca" the user and host that it claims. It may
 * come again. */
static void noteValidation(pvaState *pva, pvaMsg *msg)
{
    pvaValue value = { .types = msg->types, .buf = &msg->buf };
    char user[sizeof(pva->user)] = "", host[sizeof(pva->host)] = "";
    size_t length;

    pvaSkip(&msg->buf, 4 + 2 + 2);
    const char *method = pvaString(&msg->buf, &length);
    if (method && length == 9 && !memcmp(method, "anonymous", 9)) {
        strcpy(user, "anonymous");
    }
    if (method && pvaLeft(&msg->buf)) {
        pvaType *type = ebpfMonPvaTypeRead(msg->types, &msg->buf);

        if (type) {
            ebpfMonPvaClaim(&value, type, user, sizeof(user), host, sizeof(host));
        }
        ebpfMonPvaTypeDrop(msg->types, type);
    }
    if (pvaFailed(&msg->buf)) {
        return;
    }
    memcpy(pva->user, user, sizeof(user));
    memcpy(pva->host, host, sizeof(host));
    ebpfMonPvaEmit(pva, msg, &(ebpfMonWireEvent){ .kind = ebpfMonWireUser });
}

/* Reads the message only for the type descriptions in it. */
static void readAuthNZ(pvaMsg *msg)
{
    pvaValue value = { .types = msg->types, .buf = &msg->buf };
    pvaType *type = ebpfMonPvaTypeRead(msg->types, &msg->buf);

    if (type && type->variant) {
        ebpfMonPvaWhole(&value, type);
    }
    ebpfMonPvaTypeDrop(msg->types, type);
}

typedef struct { pvaState *pva; const pvaMsg *msg; } toCircuit;

static void emitToCircuit(void *arg, ebpfMonWireEvent *event)
{
    toCircuit *to = arg;

    ebpfMonPvaEmit(to->pva, to->msg, event);
}

static void handleWhole(pvaState *pva, pvaMsg *msg)
{
    toCircuit to = { pva, msg };

    switch (msg->cmd) {
    case pvaValidation:
        if (!msg->message->fromServer) {
            noteValidation(pva, msg);
        }
        break;
    case pvaAuthNZ:
        readAuthNZ(msg);
        break;
    case pvaSearch:
        ebpfMonPvaSearchMessage(&msg->buf, &(struct ebpfMonPeer){ .addr = 0 }, emitToCircuit, &to);
        break;
    case pvaFound:
        ebpfMonPvaFoundMessage(&msg->buf, &(struct ebpfMonPeer){ .addr = 0 }, emitToCircuit, &to);
        break;
    case pvaCreate:
    case pvaDestroy:
        ebpfMonPvaChannelMessage(pva, msg);
        break;
    case pvaGetCmd: case pvaPutCmd: case pvaPutGet: case pvaMonitor: case pvaArrayCmd: case pvaProcess:
    case pvaGetField: case pvaRpc: case pvaDestroyRequest: case pvaCancel:
        if (msg->message->fromServer) {
            readResponse(pva, msg);
        } else {
            readRequest(pva, msg);
        }
        break;
    default:
        break;
    }
    if (msg->buf.bad) {
        ebpfMonCircuitStats(pva->circuit)->malformed++;
    }
    if (pvaFailed(&msg->buf)) {
        /* the rest may have given numbers a new meaning */
        ebpfMonPvaTypesForget(msg->types);
    }
}

static void freePieces(pvaState *pva, pvaPieces *pieces)
{
    if (pieces->p) {
        ebpfMonCircuitFree(pva->circuit, pieces->p, pieces->room);
    }
    *pieces = (pvaPieces){ .open = 0 };
}

static void addPiece(pvaState *pva, pvaPieces *pieces, const uint8_t *p, size_t size)
{
    size_t keep = ebpfMonCircuitLimits(pva->circuit)->keep, room = pieces->room ? pieces->room : 4096;

    /* no hole is allowed: if something is left out, everything after it is, too */
    if (pieces->have != pieces->total) {
        return;
    }
    if (pieces->have + size > keep) {
        size = keep > pieces->have ? keep - pieces->have : 0;
    }
    while (room < pieces->have + size) {
        room *= 2;
    }
    if (room != pieces->room) {
        uint8_t *wider = ebpfMonCircuitAlloc(pva->circuit, room);

        if (!wider) {
            ebpfMonCircuitStats(pva->circuit)->noMemory++;
            return;
        }
        if (pieces->p) {
            memcpy(wider, pieces->p, pieces->have);
            ebpfMonCircuitFree(pva->circuit, pieces->p, pieces->room);
        }
        pieces->p = wider;
        pieces->room = room;
    }
    memcpy(pieces->p + pieces->have, p, size);
    pieces->have += size;
}

/* Adds a piece of a message. Nonzero: it was the last one, and "joined" is the whole message. */
static int joinPiece(pvaState *pva, pvaPieces *pieces, const ebpfMonMessage *m, ebpfMonMessage *joined)
{
    int first = !(m->p[2] & pvaFlagLast), last = !(m->p[2] & pvaFlagFirst);

    if (first) {
        freePieces(pva, pieces);
        pieces->open = 1;
        pieces->hash = m->hash;
        pieces->seq = m->seq;
        addPiece(pva, pieces, m->p, m->have);
        pieces->total = m->total;
    } else if (pieces->open && pieces->have >= PVA_HEADER && pieces->p[3] == m->p[3]) {
        if (!pieces->hash || !m->hash) {
            pieces->hash = 0; /* some bytes were not seen */
        } else if (m->have == m->total) {
            pieces->hash = ebpfMonHashFnv64(pieces->hash, m->p + PVA_HEADER, m->have - PVA_HEADER);
        } else {
            /* not all of its bytes are kept, so its own hash is added instead */
            pieces->hash = ebpfMonHashFnv64(pieces->hash, &m->hash, sizeof(m->hash));
        }
        addPiece(pva, pieces, m->p + PVA_HEADER, m->have - PVA_HEADER);
        pieces->total += m->total - PVA_HEADER;
    } else {
        /* an empty last piece after a whole message is allowed: AbstractCodec::processReadNormal of pvAccessCPP */
        if (m->total > PVA_HEADER && pieces->open) {
            ebpfMonCircuitStats(pva->circuit)->malformed++;
        }
        freePieces(pva, pieces);
        return 0;
    }
    if (!last) {
        return 0;
    }
    *joined = *m;
    joined->p = pieces->p;
    joined->have = pieces->have;
    joined->total = pieces->total;
    joined->hash = pieces->hash;
    joined->seq = pieces->seq;
    return joined->have >= PVA_HEADER;
}

static void readPvaMessage(void *state, const ebpfMonMessage *m)
{
    pvaState *pva = state;
    pvaPieces *pieces = &pva->pieces[m->fromServer != 0];
    ebpfMonMessage joined;
    uint32_t end = m->seq + (uint32_t)m->total;

    if (m->have < PVA_HEADER || m->total < m->have || m->p[0] != 0xca || (m->p[2] & pvaFlagControl)) {
        return;
    }
    if (m->p[2] & (pvaFlagFirst | pvaFlagLast)) {
        if (!joinPiece(pva, pieces, m, &joined)) {
            return;
        }
        m = &joined;
    }
    pvaMsg msg = { .message = m, .cmd = m->p[3], .seq = m->seq, .end = end, .hash = m->hash,
        .types = &pva->types[m->fromServer != 0], .buf = { .p = m->p + PVA_HEADER, .have = m->have - PVA_HEADER,
            .total = m->total - PVA_HEADER, .big = !!(m->p[2] & pvaFlagBig) } };
    handleWhole(pva, &msg);
    if (m == &joined) {
        freePieces(pva, pieces);
    }
}

static void *openPvaState(ebpfMonCircuit *circuit)
{
    pvaState *pva = ebpfMonCircuitAlloc(circuit, sizeof(*pva));

    if (pva) {
        memset(pva, 0, sizeof(*pva));
        pva->circuit = circuit;
        ebpfMonPvaTypesInit(&pva->types[0], circuit, &pva->typeBytes);
        ebpfMonPvaTypesInit(&pva->types[1], circuit, &pva->typeBytes);
    }
    return pva;
}

static void closePvaState(void *state)
{
    pvaState *pva = state;
    int i;

    ebpfMonPvaChannelsFree(pva);
    ebpfMonPvaOpsFree(pva);
    for (i = 0; i < 2; i++) {
        ebpfMonPvaTypesForget(&pva->types[i]);
        freePieces(pva, &pva->pieces[i]);
    }
    ebpfMonCircuitFree(pva->circuit, pva, sizeof(*pva));
}

static void notePvaGap(void *state, int fromServer)
{
    pvaState *pva = state;

    ebpfMonPvaTypesForget(&pva->types[fromServer != 0]);
    freePieces(pva, &pva->pieces[fromServer != 0]);
    ebpfMonPvaOpsGap(pva);
}

static void remindPvaChannels(void *state, uint64_t time)
{
    ebpfMonPvaChannelsRemind(state, time);
}

const ebpfMonProtocol ebpfMonPvaProtocol = {
    .id = ebpfMonWirePva,
    .headerMax = PVA_HEADER + 4 + 4 + 1 + 5 /* up to the size of the BitSet of a put */,
    .frame = findPvaFrame,
    .open = openPvaState,
    .close = closePvaState,
    .message = readPvaMessage,
    .gap = notePvaGap,
    .remind = remindPvaChannels,
    .datagram = readPvaDatagram
};
