/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/pvaOp.h"

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
