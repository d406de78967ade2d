/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests. Only puts are told of; of the others just as much is read as is needed to know which numbers stand for
 * which type descriptions from then on.
 */
#include <strings.h>
#include "wire/pva.h"

static int isPut(unsigned cmd)
{
    return cmd == pvaPutCmd || cmd == pvaPutGet || cmd == pvaArrayCmd;
}

/* Of the subcommands of a put request the one that puts. (ServerPutHandler, ServerPutGetHandler, ServerArrayHandler
 * of pvAccessCPP) */
static int doesPut(unsigned cmd, unsigned sub)
{
    return isPut(cmd) && !(sub & (pvaInit | pvaSubGet | (cmd != pvaPutCmd ? pvaSubGetPut : 0)
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
    if (!doesPut(p[3], p[at - 1])) {
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
            return 0; /* message() will find that out */
        }
        at = buf.pos;
    }
    *from = at;
    return 0;
}

static pvaOp *find(pvaState *pva, uint32_t ioid)
{
    pvaLink *link = ebpfMonPvaTableFind(&pva->ops, ioid);

    return link ? PVA_OF(link, pvaOp, byId) : NULL;
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

/* Replies may have been among what is missing: none is given to the wrong put. */
void ebpfMonPvaOpsGap(pvaState *pva)
{
    unsigned i;
    pvaLink *link;

    for (i = 0; i < pva->ops.size; i++) {
        for (link = pva->ops.bucket[i]; link; link = link->next) {
            PVA_OF(link, pvaOp, byId)->waiting = 0;
        }
    }
}

static pvaOp *make(pvaState *pva, uint32_t ioid, unsigned cmd)
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

/* Belongs to the channel, and ends with it. A channel from before we looked gets an entry without a name. */
static void attach(pvaState *pva, pvaOp *op, uint32_t sid)
{
    pvaChannel *channel = ebpfMonPvaChannelOfSid(pva, sid);

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

/* Reads a value for the descriptions in it. */
static void skipWhole(pvaMsg *msg, const pvaType *type)
{
    pvaValue value = { .types = msg->types, .buf = &msg->buf };

    if (type && type->variant) {
        ebpfMonPvaWhole(&value, type);
        /* Also when it was not understood: the rest is not. */
        msg->buf.cut |= value.unknown;
    }
}

static void init(pvaState *pva, pvaMsg *msg, uint32_t sid, uint32_t ioid)
{
    pvaOp *op = find(pva, ioid);
    pvaType *type = ebpfMonPvaTypeRead(msg->types, &msg->buf);

    if (op) {
        ebpfMonPvaOpFree(pva, op);
    }
    op = isPut(msg->cmd) || msg->cmd == pvaGetCmd || msg->cmd == pvaMonitor ? make(pva, ioid, msg->cmd) : NULL;
    if (op) {
        attach(pva, op, sid);
    }
    if (!op || !isPut(msg->cmd)) {
        skipWhole(msg, type);
    } else if (type) {
        pvaOut out = { .length = 0 };
        pvaValue value = { .types = msg->types, .buf = &msg->buf, .out = &out };

        ebpfMonPvaRequest(&value, type, &op->process);
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

static void decode(pvaMsg *msg, const pvaOp *op, pvaOut *out, ebpfMonWireEvent *event)
{
    pvaValue value = { .types = msg->types, .buf = &msg->buf, .out = out, .choices = op->choices,
        .choicesSize = op->choicesSize, .choicesBig = op->choicesBig };
    pvaBits bits;

    if (msg->cmd == pvaArrayCmd) {
        pvaSize(&msg->buf); /* offset */
        pvaSize(&msg->buf); /* stride */
        ebpfMonPvaWhole(&value, op->type);
    } else if (!pvaBitsGet(&msg->buf, &bits)) {
        ebpfMonPvaChanged(&value, op->type, &bits);
    }
    if (msg->buf.bad || value.unknown || (msg->buf.cut && !out->length)) {
        ebpfMonPvaOutUnknown(out);
        value.isNumber = 0;
        value.count = 0;
        msg->buf.cut |= value.unknown;
    } else if (msg->buf.cut) {
        if (out->length < 3 || memcmp(out->text + out->length - 3, "...", 3)) {
            ebpfMonPvaPuts(out, out->text[out->length - 1] == ' ' ? "..." : " ...");
        }
        msg->buf.cut = op->type->variant;
    }
    ebpfMonPvaOutEnd(out);
    event->count = value.count;
    event->isNumber = value.isNumber;
    event->number = value.number;
}

static void put(pvaState *pva, pvaMsg *msg, uint32_t sid, uint32_t ioid, int last)
{
    ebpfMonWireEvent event = { .kind = ebpfMonWirePut, .sid = sid, .id = ++pva->puts, .replyAsked = 1,
        .text = "?", .hash = msg->hash };
    pvaOp *op = find(pva, ioid);
    pvaOut out;
    const pvaChannel *channel;

    if (op && op->channel && op->channel->bySid.key != sid) {
        /* What we know of this number is not of this request. */
        ebpfMonPvaOpFree(pva, op);
        op = NULL;
    }
    if (!op) {
        op = make(pva, ioid, msg->cmd);
    }
    if (op && !op->channel) {
        attach(pva, op, sid);
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
            out.length = out.full = 0;
            decode(msg, op, &out, &event);
            event.text = out.text;
        }
        op->put = op->waiting++ ? 0 : event.id; /* two under way: whose a reply is cannot be told */
        op->last = last;
    }
    ebpfMonPvaEmit(pva, msg, &event);
}

static void request(pvaState *pva, pvaMsg *msg)
{
    uint32_t sid = pvaGet(&msg->buf, 4), ioid = pvaGet(&msg->buf, 4);
    pvaOp *op;

    if (msg->cmd == pvaDestroyRequest || msg->cmd == pvaCancel) {
        op = pvaFailed(&msg->buf) ? NULL : find(pva, ioid);
        if (op && msg->cmd == pvaCancel) {
            op->waiting = 0;
        } else if (op) {
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
        init(pva, msg, sid, ioid);
    } else if (doesPut(msg->cmd, sub)) {
        put(pva, msg, sid, ioid, sub & pvaLastRequest);
    } else if (msg->cmd == pvaRpc) {
        pvaType *type = ebpfMonPvaTypeRead(msg->types, &msg->buf);

        skipWhole(msg, type);
        ebpfMonPvaTypeDrop(msg->types, type);
    }
}

/* "Put not permitted" is what both QSRV say, "Read-only PV" SharedPV of pvxs and p4p. Servers may use other words. */
static int denies(const char *text)
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

static void reply(pvaState *pva, pvaMsg *msg, pvaOp *op, const pvaStatus *status)
{
    ebpfMonWireEvent event = { .kind = ebpfMonWireReply, .status = status->severity, .message = status->text };

    event.ok = status->severity < 2;
    event.denied = !event.ok && denies(status->text);
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

static void ready(pvaState *pva, pvaMsg *msg, uint32_t ioid, pvaOp *op)
{
    pvaType *type = ebpfMonPvaTypeRead(msg->types, &msg->buf);

    if (!op && (isPut(msg->cmd) || (type && type->variant))) {
        op = make(pva, ioid, msg->cmd);
    }
    if (op && op->cmd == msg->cmd) {
        ebpfMonPvaTypeDrop(msg->types, op->type);
        op->type = ebpfMonPvaTypeKeep(type);
        if (msg->cmd == pvaPutGet) {
            ebpfMonPvaTypeDrop(msg->types, op->got);
            op->got = ebpfMonPvaTypeRead(msg->types, &msg->buf);
        }
        /* Its values describe nothing new. */
        if (!isPut(msg->cmd) && !(type && type->variant)) {
            ebpfMonPvaOpFree(pva, op);
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

/* A value that the server sends: what it describes, and which choices there are for a later put. */
static void got(pvaState *pva, pvaMsg *msg, pvaOp *op, const pvaType *type)
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
    if (isPut(op->cmd)) {
        keepChoices(pva, op, &value);
        if (!type->variant) {
            msg->buf.cut = 0;
        }
    }
}

static void response(pvaState *pva, pvaMsg *msg)
{
    uint32_t ioid = pvaGet(&msg->buf, 4);
    unsigned sub = msg->cmd == pvaGetField ? pvaInit : pvaGet(&msg->buf, 1);
    pvaOp *op = pvaFailed(&msg->buf) ? NULL : find(pva, ioid);
    pvaStatus status = { .severity = 0 };
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
            ready(pva, msg, ioid, op);
        } else {
            if (isPut(msg->cmd)) {
                reply(pva, msg, op, &status); /* refused before it could put */
            }
            if (op) {
                ebpfMonPvaOpFree(pva, op);
            }
        }
    } else if (msg->cmd == pvaRpc) {
        if (ok) {
            pvaType *type = ebpfMonPvaTypeRead(msg->types, &msg->buf);

            skipWhole(msg, type);
            ebpfMonPvaTypeDrop(msg->types, type);
        }
    } else if (isPut(msg->cmd) && doesPut(msg->cmd, sub)) {
        reply(pva, msg, op, &status);
        if (ok && msg->cmd == pvaPutGet && op && op->got && op->got->variant) {
            got(pva, msg, op, op->got);
        }
        if (op && op->last) {
            ebpfMonPvaOpFree(pva, op);
        }
    } else if (ok && op && msg->cmd != pvaArrayCmd && (msg->cmd != pvaMonitor || !(sub & pvaLastRequest))) {
        got(pva, msg, op, msg->cmd == pvaPutGet && !(sub & pvaSubGetPut) ? op->got : op->type);
    }
}

void ebpfMonPvaOpMessage(pvaState *pva, pvaMsg *msg)
{
    switch (msg->cmd) {
    case pvaGetCmd: case pvaPutCmd: case pvaPutGet: case pvaMonitor: case pvaArrayCmd: case pvaProcess:
    case pvaGetField: case pvaRpc: case pvaDestroyRequest: case pvaCancel:
        if (msg->message->fromServer) {
            response(pva, msg);
        } else {
            request(pva, msg);
        }
        break;
    default:
        break;
    }
}
