/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/pvaChanged.h"

static int hasBit(const pvaBits *bits, unsigned bit, unsigned count)
{
    for (; count; bit++, count--) {
        if (pvaBit(bits, bit)) {
            return 1;
        }
    }
    return 0;
}

/* Nonzero: all changed fields stand before the first part of the type that is not known. This is the usual case for a
 * connection that began before we watched, to a server that numbers its types, as the one of Base does: "value" comes
 * first. */
static int isKnown(const pvaType *type, const pvaBits *bits)
{
    unsigned node = 0, bit;

    if (!type->unknown) {
        return 1;
    }
    if (hasBit(bits, type->sure, bits->size * 8 > type->sure ? bits->size * 8 - type->sure : 0)) {
        return 0;
    }
    for (bit = 0; bit < type->sure; bit++) {
        const pvaNode *n = &type->node[node];

        if (pvaBit(bits, bit) && bit + n->bits > type->sure) {
            return 0;
        }
        node = n->code == pvaStruct && !n->array ? node + 1 : n->next;
    }
    return 1;
}

/* Counts the changed leaves below a node, up to two. An enumeration is one leaf if its index changed. */
static unsigned countLeaves(const pvaType *type, unsigned node, unsigned bit, const pvaBits *bits, int all,
    unsigned *leaf)
{
    const pvaNode *n = &type->node[node];
    unsigned i, found = 0, child = node + 1;

    all |= pvaBit(bits, bit);
    if (n->code != pvaStruct || n->array || (n->isEnum && (all || pvaBit(bits, bit + 1)))) {
        *leaf = node;
        return 1;
    }
    for (i = 0, bit++; i < n->children && found < 2; i++, bit += type->node[child].bits,
        child = type->node[child].next) {
        if (all || hasBit(bits, bit, type->node[child].bits)) {
            found += countLeaves(type, child, bit, bits, all, leaf);
        }
    }
    return found;
}

/* Reads the changed values, which come in the order of the fields. The bit of a structure stands for all of it. */
static void readChanged(pvaValue *v, const pvaType *type, unsigned node, unsigned bit, const pvaBits *bits)
{
    const pvaNode *n = &type->node[node];
    unsigned i, child = node + 1, first = 1;

    if (pvaBit(bits, bit)) {
        ebpfMonPvaNode(v, type, node, pvaJson);
        return;
    }
    if (n->code != pvaStruct || n->array) {
        return;
    }
    if (v->out) {
        ebpfMonPvaPuts(v->out, "{");
    }
    for (i = 0, bit++; i < n->children && !pvaFailed(v->buf); i++, bit += type->node[child].bits,
        child = type->node[child].next) {
        if (!hasBit(bits, bit, type->node[child].bits)) {
            continue;
        }
        if (v->out) {
            ebpfMonPvaPuts(v->out, first ? "" : ", ");
            ebpfMonPvaPutJson(v->out, pvaName(type, child), strlen(pvaName(type, child)));
            ebpfMonPvaPuts(v->out, ": ");
        }
        first = 0;
        readChanged(v, type, child, bit, bits);
    }
    if (v->out) {
        ebpfMonPvaPuts(v->out, "}");
    }
}

/* Writes an enumeration as "2 (Fast)", or as "2" if the choices are not known. */
static void readEnumeration(pvaValue *v, const pvaType *type, unsigned node, int withChoices)
{
    pvaOut *out = v->out;
    size_t length = 0;
    const char *text = NULL;

    ebpfMonPvaNode(v, type, node + 1, pvaPlain);
    if (withChoices) {
        v->out = NULL;
        ebpfMonPvaNode(v, type, node + 2, pvaPlain);
        v->out = out;
    }
    if (!out || !v->isNumber || !v->choices) {
        return;
    }
    pvaBuf choices = { .p = v->choices, .have = v->choicesSize, .total = v->choicesSize, .big = v->choicesBig };
    size_t count = pvaSize(&choices), i;
    if (count == PVA_NULL || v->number < 0 || v->number >= count) {
        return;
    }
    for (i = 0; i <= v->number && !pvaFailed(&choices); i++) {
        text = pvaString(&choices, &length);
    }
    if (text) {
        ebpfMonPvaPuts(out, " (");
        ebpfMonPvaPutRaw(out, text, length);
        ebpfMonPvaPuts(out, ")");
    }
}

void ebpfMonPvaChanged(pvaValue *v, const pvaType *type, const pvaBits *bits)
{
    unsigned i, child = 1, bit = 1, leaf = 0;

    v->count = 1;
    if (!isKnown(type, bits)) {
        v->unknown = 1;
        return;
    }
    if (type->node[0].code != pvaStruct || type->node[0].array) {
        if (pvaBit(bits, 0)) {
            ebpfMonPvaNode(v, type, 0, pvaPlain);
        }
        return;
    }
    for (i = 0; i < type->node[0].children; i++, bit += type->node[child].bits, child = type->node[child].next) {
        if (!strcmp(pvaName(type, child), "value")) {
            break;
        }
    }
    const pvaNode *value = i < type->node[0].children ? &type->node[child] : NULL;
    v->choicesNode = value && value->isEnum ? value + 2 : NULL;
    unsigned found = hasBit(bits, 0, type->node[0].bits) ? countLeaves(type, 0, 0, bits, 0, &leaf) : 0;
    if (found != 1 || !value || leaf != child) {
        v->count = found > 0;
        readChanged(v, type, 0, 0, bits);
        return;
    }
    v->isValueOnly = 1;
    if (value->isEnum) {
        readEnumeration(v, type, child, pvaBit(bits, 0) || pvaBit(bits, bit) || pvaBit(bits, bit + 2));
    } else {
        ebpfMonPvaNode(v, type, child, pvaPlain);
    }
}
