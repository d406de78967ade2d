/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts, calls, gets and the begins of monitors become events. Other requests are read only as far as needed to know
 * which numbers will stand for which type descriptions.
 */
#include "common/hash.h"
#include "wire/pvaChannel.h"
#include "wire/pvaRequest.h"
#include "wire/pvaType.h"
#include "wire/pvaValue.h"

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
static void endText(pvaMsg *msg, const pvaValue *value, int variant, pvaOut *out, ebpfMonWireEvent *event)
{
    event->count = value->count;
    event->isNumber = value->isNumber;
    event->number = value->number;
    if (msg->buf.bad || value->unknown || (msg->buf.cut && !out->length)) {
        ebpfMonPvaOutUnknown(out);
        event->fields = 0;
        event->isNumber = 0;
        event->count = 0;
        msg->buf.cut |= value->unknown;
    } else if (msg->buf.cut) {
        if (out->length < 3 || memcmp(out->text + out->length - 3, "...", 3)) {
            ebpfMonPvaPuts(out, out->text[out->length - 1] == ' ' ? "..." : " ...");
        }
        msg->buf.cut = variant;
    }
    ebpfMonPvaOutEnd(out);
}

/* The arguments of a call: their description, and a whole value. */
static void decodeArguments(pvaMsg *msg, pvaOut *out, ebpfMonWireEvent *event)
{
    pvaType *type = ebpfMonPvaTypeRead(msg->types, &msg->buf);
    pvaValue value = { .types = msg->types, .buf = &msg->buf, .out = out, .unknown = !type };

    if (type) {
        ebpfMonPvaWhole(&value, type);
    }
    endText(msg, &value, type && type->variant, out, event);
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
    endText(msg, &value, op->type->variant, out, event);
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

void ebpfMonPvaRequestMessage(pvaState *pva, pvaMsg *msg)
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
