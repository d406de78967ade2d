/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pvAccess on one connection (pvAccess Protocol Specification, Protocol Messages). Each message has its own byte order
 * in its flags: all implementations follow these flags, whatever they have agreed on before.
 */
#include "common/hash.h"
#include "wire/pvaChannel.h"
#include "wire/pvaDatagram.h"
#include "wire/pvaRequest.h"
#include "wire/pvaResponse.h"
#include "wire/pvaState.h"
#include "wire/pvaType.h"
#include "wire/pvaValue.h"

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

static int findPvaFrame(void *state, int fromServer, const uint8_t *p, size_t have, ebpfMonFrame *frame)
{
    (void)state;
    /* Decide as early as possible: while a header is searched for, this is called at every byte. */
    if ((have > 0 && p[0] != 0xca) || (have > 1 && (!p[1] || p[1] > VERSION_MAX))) {
        return -1;
    }
    if (have < 4) {
        return 0;
    }
    unsigned flags = p[2], cmd = p[3];
    if ((flags & 0x0e) || !(flags & pvaFlagServer) != !fromServer) {
        return -1;
    }
    if (flags & pvaFlagControl) {
        if (cmd > 4) {
            return -1;
        }
        if (have < PVA_HEADER) {
            return 0;
        }
        frame->total = frame->hashFrom = PVA_HEADER;
        return 1;
    }
    int min = cmd < pvaCommands ? fromServer ? least[cmd].server : least[cmd].client : -1;
    if (min < 0) {
        return -1;
    }
    if (have < PVA_HEADER) {
        return 0;
    }
    size_t size = pvaNumber(p + 4, 4, !!(flags & pvaFlagBig));
    if (size > SIZE_LIMIT || (!(flags & (pvaFlagFirst | pvaFlagLast)) && size < (size_t)min)) {
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
            ebpfMonPvaResponseMessage(pva, msg);
        } else {
            ebpfMonPvaRequestMessage(pva, msg);
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

static void notePvaName(void *state, uint32_t sid, const char *name)
{
    ebpfMonPvaChannelNamed(state, sid, name);
}

const ebpfMonProtocol ebpfMonPvaProtocol = {
    .id = ebpfMonWirePva,
    .headerMax = PVA_HEADER + 4 + 4 + 1 + 5 /* up to the size of the BitSet of a put */,
    .frame = findPvaFrame,
    .open = openPvaState,
    .close = closePvaState,
    .message = readPvaMessage,
    .gap = notePvaGap,
    .name = notePvaName,
    .remind = remindPvaChannels,
    .datagram = ebpfMonPvaDatagram
};
