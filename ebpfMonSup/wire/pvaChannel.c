/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/pvaChannel.h"

/* --- requests --- */

pvaOp *ebpfMonPvaOpFind(const pvaState *pva, uint32_t ioid)
{
    pvaLink *link = ebpfMonPvaTableFind(&pva->ops, ioid);

    return link ? PVA_OF(link, pvaOp, byId) : NULL;
}

pvaOp *ebpfMonPvaOpMake(pvaState *pva, uint32_t ioid, unsigned cmd)
{
    pvaOp *op = NULL;

    if (pva->ops.count < ebpfMonCircuitLimits(pva->circuit)->channels) {
        op = ebpfMonCircuitAlloc(pva->circuit, sizeof(*op));
    }
    if (op) {
        *op = (pvaOp){ .cmd = cmd };
        if (!ebpfMonPvaTableAdd(pva->circuit, &pva->ops, &op->byId, ioid)) {
            return op;
        }
        ebpfMonCircuitFree(pva->circuit, op, sizeof(*op));
    }
    ebpfMonCircuitStats(pva->circuit)->noMemory++;
    return NULL;
}

void ebpfMonPvaOpFree(pvaState *pva, pvaOp *op)
{
    ebpfMonPvaTableRemove(&pva->ops, &op->byId);
    if (op->back) {
        *op->back = op->next;
        if (op->next) {
            op->next->back = op->back;
        }
    }
    if (op->options) {
        ebpfMonCircuitFree(pva->circuit, op->options, op->optionsSize);
    }
    if (op->choices) {
        ebpfMonCircuitFree(pva->circuit, op->choices, op->choicesSize);
    }
    ebpfMonPvaTypeDrop(&pva->types[1], op->type);
    ebpfMonPvaTypeDrop(&pva->types[1], op->got);
    ebpfMonCircuitFree(pva->circuit, op, sizeof(*op));
}

void ebpfMonPvaOpsFree(pvaState *pva)
{
    unsigned i;

    for (i = 0; i < pva->ops.size; i++) {
        while (pva->ops.bucket[i]) {
            ebpfMonPvaOpFree(pva, PVA_OF(pva->ops.bucket[i], pvaOp, byId));
        }
    }
    ebpfMonPvaTableFree(pva->circuit, &pva->ops);
}

void ebpfMonPvaOpsGap(pvaState *pva)
{
    unsigned i;
    pvaLink *link;

    for (i = 0; i < pva->ops.size; i++) {
        for (link = pva->ops.bucket[i]; link; link = link->next) {
            pvaOp *op = PVA_OF(link, pvaOp, byId);

            op->waiting = 0;
            op->beforeGap = 1;
        }
    }
}

int ebpfMonPvaCanPut(unsigned cmd)
{
    return cmd == pvaPutCmd || cmd == pvaPutGet || cmd == pvaArrayCmd;
}

/* See ServerPutHandler, ServerPutGetHandler and ServerArrayHandler of pvAccessCPP. */
int ebpfMonPvaDoesPut(unsigned cmd, unsigned sub)
{
    return ebpfMonPvaCanPut(cmd) && !(sub & (pvaInit | pvaSubGet | (cmd != pvaPutCmd ? pvaSubGetPut : 0)
        | (cmd == pvaArrayCmd ? 0x04 : 0)));
}

int ebpfMonPvaPutValue(const uint8_t *p, size_t have, size_t total, size_t *from)
{
    size_t at = PVA_HEADER + 4 + 4 + 1;

    *from = 0;
    if (total < at) {
        return 0;
    }
    if (have < at) {
        return -1;
    }
    if (!ebpfMonPvaDoesPut(p[3], p[at - 1])) {
        return 0;
    }
    if (p[3] != pvaArrayCmd) {
        size_t need = total < at + 5 ? total : at + 5;

        if (have < need) {
            return -1;
        }
        pvaBuf buf = { .p = p, .pos = at, .have = need, .total = total, .big = !!(p[2] & pvaFlagBig) };
        pvaSkip(&buf, pvaSize(&buf));
        if (pvaFailed(&buf)) {
            return 0; /* the function "message" of pva.c finds that, too */
        }
        at = buf.pos;
    }
    *from = at;
    return 0;
}

/* --- channels --- */

pvaChannel *ebpfMonPvaChannelBySid(pvaState *pva, uint32_t sid)
{
    pvaLink *link = ebpfMonPvaTableFind(&pva->bySid, sid);

    return link ? PVA_OF(link, pvaChannel, bySid) : NULL;
}

static pvaChannel *findByCid(pvaState *pva, uint32_t cid)
{
    pvaLink *link = ebpfMonPvaTableFind(&pva->byCid, cid);

    return link ? PVA_OF(link, pvaChannel, byCid) : NULL;
}

static pvaChannel *makeChannel(pvaState *pva)
{
    pvaChannel *channel = NULL;

    if (pva->channels < ebpfMonCircuitLimits(pva->circuit)->channels) {
        channel = ebpfMonCircuitAlloc(pva->circuit, sizeof(*channel));
    }
    if (!channel) {
        ebpfMonCircuitStats(pva->circuit)->noMemory++;
        return NULL;
    }
    *channel = (pvaChannel){ .hasSid = 0 };
    pva->channels++;
    ebpfMonCircuitStats(pva->circuit)->channels++;
    return channel;
}

static void freeChannel(pvaState *pva, pvaChannel *channel)
{
    while (channel->ops) {
        ebpfMonPvaOpFree(pva, channel->ops);
    }
    if (channel->hasSid) {
        ebpfMonPvaTableRemove(&pva->bySid, &channel->bySid);
    }
    if (channel->hasCid) {
        ebpfMonPvaTableRemove(&pva->byCid, &channel->byCid);
    }
    if (channel->name) {
        ebpfMonCircuitFree(pva->circuit, channel->name, channel->nameSize);
    }
    ebpfMonCircuitFree(pva->circuit, channel, sizeof(*channel));
    pva->channels--;
    ebpfMonCircuitStats(pva->circuit)->channels--;
}

static int setName(pvaState *pva, pvaChannel *channel, const char *name, size_t length)
{
    length = strnlen(name, length < PVA_NAME ? length : PVA_NAME);
    char *copy = ebpfMonCircuitAlloc(pva->circuit, length + 1);
    if (!copy) {
        ebpfMonCircuitStats(pva->circuit)->noMemory++;
        return -1;
    }
    memcpy(copy, name, length);
    copy[length] = 0;
    if (channel->name) {
        ebpfMonCircuitFree(pva->circuit, channel->name, channel->nameSize);
    }
    channel->name = copy;
    channel->nameSize = length + 1;
    return 0;
}

/* Sets the server's number. Another channel with this number has ended, and we missed that. */
static int setSid(pvaState *pva, pvaChannel *channel, uint32_t sid)
{
    pvaChannel *old = ebpfMonPvaChannelBySid(pva, sid);

    if (old == channel) {
        return 0;
    }
    if (old) {
        freeChannel(pva, old);
    }
    if (channel->hasSid) {
        ebpfMonPvaTableRemove(&pva->bySid, &channel->bySid);
    }
    channel->hasSid = !ebpfMonPvaTableAdd(pva->circuit, &pva->bySid, &channel->bySid, sid);
    return channel->hasSid ? 0 : -1;
}

static void noteRequests(pvaState *pva, pvaMsg *msg)
{
    unsigned count = pvaGet(&msg->buf, 2);

    for (; count && !pvaFailed(&msg->buf); count--) {
        uint32_t cid = pvaGet(&msg->buf, 4);
        size_t length;
        const char *name = pvaString(&msg->buf, &length);

        if (!name) {
            return;
        }
        pvaChannel *channel = findByCid(pva, cid);
        if (channel) {
            freeChannel(pva, channel);
        }
        channel = makeChannel(pva);
        if (!channel) {
            return;
        }
        channel->hasCid = !ebpfMonPvaTableAdd(pva->circuit, &pva->byCid, &channel->byCid, cid);
        if (!channel->hasCid || setName(pva, channel, name, length)) {
            freeChannel(pva, channel);
            return;
        }
    }
}

static void notePvaCreated(pvaState *pva, pvaMsg *msg)
{
    uint32_t cid = pvaGet(&msg->buf, 4), sid = pvaGet(&msg->buf, 4);
    pvaStatus status;
    int ok = ebpfMonPvaStatusGet(&msg->buf, &status);
    pvaChannel *channel = findByCid(pva, cid);

    if (pvaFailed(&msg->buf)) {
        return;
    }
    if (!ok) {
        if (channel) {
            ebpfMonPvaEmit(pva, msg, &(ebpfMonWireEvent){ .kind = ebpfMonWireRefused, .cid = cid,
                .name = channel->name, .status = status.severity, .message = status.text });
            freeChannel(pva, channel);
        }
        return;
    }
    if (channel && setSid(pva, channel, sid)) {
        freeChannel(pva, channel);
        channel = NULL;
    } else if (!channel && (channel = ebpfMonPvaChannelBySid(pva, sid))) {
        /* we missed the request: the channel that had this number before has ended */
        freeChannel(pva, channel);
        channel = NULL;
    }
    ebpfMonPvaEmit(pva, msg, &(ebpfMonWireEvent){ .kind = ebpfMonWireChannel, .cid = cid, .sid = sid,
        .name = channel ? channel->name : NULL });
}

static void noteDestroyed(pvaState *pva, pvaMsg *msg)
{
    uint32_t sid = pvaGet(&msg->buf, 4), cid = pvaGet(&msg->buf, 4);
    pvaChannel *channel = ebpfMonPvaChannelBySid(pva, sid);

    /* both sides send this message, and the client may use its number again before the answer comes */
    if (pvaFailed(&msg->buf) || !channel || (channel->hasCid && channel->byCid.key != cid)) {
        return;
    }
    ebpfMonPvaEmit(pva, msg, &(ebpfMonWireEvent){ .kind = ebpfMonWireChannelGone, .cid = cid, .sid = sid,
        .name = channel->name });
    freeChannel(pva, channel);
}

void ebpfMonPvaChannelMessage(pvaState *pva, pvaMsg *msg)
{
    if (msg->cmd == pvaDestroy) {
        noteDestroyed(pva, msg);
    } else if (msg->message->fromServer) {
        notePvaCreated(pva, msg);
    } else {
        noteRequests(pva, msg);
    }
}

/* Finds the channel, or makes it. NULL: no room for it. */
static pvaChannel *getChannel(pvaState *pva, uint32_t sid)
{
    pvaChannel *channel = ebpfMonPvaChannelBySid(pva, sid);

    if (!channel && (channel = makeChannel(pva)) && setSid(pva, channel, sid)) {
        freeChannel(pva, channel);
        channel = NULL;
    }
    return channel;
}

void ebpfMonPvaChannelAdopt(pvaState *pva, pvaOp *op, uint32_t sid)
{
    pvaChannel *channel = getChannel(pva, sid);

    if (!channel) {
        return;
    }
    op->channel = channel;
    op->next = channel->ops;
    op->back = &channel->ops;
    if (op->next) {
        op->next->back = &op->next;
    }
    channel->ops = op;
}

static void remindOf(pvaState *pva, const pvaChannel *channel, uint64_t time)
{
    ebpfMonWireEvent e = { .kind = ebpfMonWireStill, .time = time, .user = pva->user, .host = pva->host,
                           .name = channel->name };

    if (!channel->name) {
        return;
    }
    for (const pvaOp *op = channel->ops; op; op = op->next) {
        e.isUpdate |= op->cmd == pvaMonitor;
    }
    ebpfMonCircuitEmit(pva->circuit, &e);
}

void ebpfMonPvaChannelsRemind(pvaState *pva, uint64_t time)
{
    for (unsigned i = 0; i < pva->bySid.size; i++) {
        for (pvaLink *link = pva->bySid.bucket[i]; link; link = link->next) {
            remindOf(pva, PVA_OF(link, pvaChannel, bySid), time);
        }
    }
}

void ebpfMonPvaChannelsFree(pvaState *pva)
{
    unsigned i;

    for (i = 0; i < pva->bySid.size; i++) {
        while (pva->bySid.bucket[i]) {
            freeChannel(pva, PVA_OF(pva->bySid.bucket[i], pvaChannel, bySid));
        }
    }
    for (i = 0; i < pva->byCid.size; i++) {
        while (pva->byCid.bucket[i]) {
            freeChannel(pva, PVA_OF(pva->byCid.bucket[i], pvaChannel, byCid));
        }
    }
    ebpfMonPvaTableFree(pva->circuit, &pva->bySid);
    ebpfMonPvaTableFree(pva->circuit, &pva->byCid);
}
