/* SPDX-License-Identifier: BSD-3-Clause */
#include <strings.h>
#include "wire/pvaChannel.h"
#include "wire/pvaResponse.h"
#include "wire/pvaType.h"
#include "wire/pvaValue.h"

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

static void emitReply(pvaState *pva, pvaMsg *msg, pvaOp *op, const pvaStatus *status)
{
    ebpfMonWireEvent event = { .kind = ebpfMonWireReply, .status = status->severity, .message = status->text };

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
        emitReply(pva, msg, op, status);
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

void ebpfMonPvaResponseMessage(pvaState *pva, pvaMsg *msg)
{
    uint32_t ioid = pvaGet(&msg->buf, 4);
    unsigned sub = msg->cmd == pvaGetField ? pvaInit : pvaGet(&msg->buf, 1);
    pvaOp *op = pvaFailed(&msg->buf) ? NULL : ebpfMonPvaOpFind(pva, ioid);
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
            noteReady(pva, msg, ioid, op);
        } else {
            noteRefused(pva, msg, op, ioid, &status);
        }
    } else if (msg->cmd == pvaRpc) {
        emitReply(pva, msg, op, &status);
        if (op && op->last) {
            ebpfMonPvaOpFree(pva, op);
        }
        if (ok) {
            pvaType *type = ebpfMonPvaTypeRead(msg->types, &msg->buf);

            ebpfMonPvaSkipWhole(msg->types, &msg->buf, type);
            ebpfMonPvaTypeDrop(msg->types, type);
        }
    } else if (ebpfMonPvaCanPut(msg->cmd) && ebpfMonPvaDoesPut(msg->cmd, sub)) {
        emitReply(pva, msg, op, &status);
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
