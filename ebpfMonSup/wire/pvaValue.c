/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include "wire/pvaTypeRead.h"
#include "wire/pvaValue.h"

#define WORK_MAX 100000 /* nodes that are read in one message, at most: null structures without members cost a peer
                         * few bytes */

static void addText(pvaValue *v, const char *text)
{
    if (v->out) {
        ebpfMonPvaPuts(v->out, text);
    }
}

static void readOne(pvaValue *v, unsigned code, pvaStyle how)
{
    if (code == pvaText) {
        size_t length;
        const char *text = pvaString(v->buf, &length);

        if (text && v->out) {
            (how == pvaJson ? ebpfMonPvaPutJson : ebpfMonPvaPutRaw)(v->out, text, length);
        }
        return;
    }
    const uint8_t *p = pvaTake(v->buf, pvaNumberSize(code));
    if (p && v->out) {
        double number = ebpfMonPvaPutNumber(v->out, code, p, v->buf->big, how == pvaJson);

        if (how == pvaPlain) {
            v->isNumber = 1;
            v->number = number;
        }
    }
}

static void readVariant(pvaValue *v, pvaStyle how)
{
    pvaType *type = ebpfMonPvaTypeRead(v->types, v->buf);

    if (!type) {
        if (!pvaFailed(v->buf)) {
            addText(v, "null");
        }
        return;
    }
    v->work += type->count;
    if (type->unknown) {
        v->unknown = 1;
        v->buf->cut = 1;
    } else {
        ebpfMonPvaNode(v, type, 0, how);
    }
    ebpfMonPvaTypeDrop(v->types, type);
}

/* Reads an element. The byte before it says whether it is there. */
static void readElement(pvaValue *v, const pvaType *type, unsigned node)
{
    if (!pvaGet(v->buf, 1)) {
        if (!pvaFailed(v->buf)) {
            addText(v, "null");
        }
    } else if (type->node[node].code == pvaVariant) {
        readVariant(v, pvaJson);
    } else {
        ebpfMonPvaNode(v, type, node + 1, pvaJson);
    }
}

/* Writes an array as "[1000] 1 2 3 ..." or as [1, 2, 3, "... 1000"]. */
static void readArray(pvaValue *v, const pvaType *type, unsigned node, pvaStyle how)
{
    const pvaNode *n = &type->node[node];
    unsigned size = pvaNumberSize(n->code);
    size_t count = n->array == pvaFixed ? n->size : pvaSize(v->buf), i;
    pvaOut *out = v->out;

    if (count == PVA_NULL) {
        count = 0;
    }
    if (pvaFailed(v->buf) || count > pvaLeft(v->buf) / (size ? size : 1)) {
        v->buf->bad |= !v->buf->cut;
        return;
    }
    if (out) {
        char head[16];

        if (how == pvaPlain) {
            v->count = count;
            ebpfMonPvaPut(out, head, snprintf(head, sizeof(head), "[%zu]", count));
        } else {
            ebpfMonPvaPuts(out, "[");
        }
    }
    for (i = 0; i < count && !pvaFailed(v->buf); i++) {
        if (i == PVA_SHOW && out) {
            char tail[24];

            ebpfMonPvaPut(out, tail, snprintf(tail, sizeof(tail), how == pvaPlain ? " ..." : ", \"... %zu\"", count));
        }
        if (i >= PVA_SHOW || !out) {
            v->out = NULL;
            if (size) {
                pvaSkip(v->buf, (count - i) * size);
                break;
            }
        } else {
            ebpfMonPvaPuts(out, how == pvaPlain ? " " : i ? ", " : "");
        }
        if (n->code >= pvaStruct) {
            readElement(v, type, node);
        } else {
            readOne(v, n->code, pvaJson);
        }
    }
    v->out = out;
    if (how == pvaJson) {
        addText(v, "]");
    }
}

static void readStructure(pvaValue *v, const pvaType *type, unsigned node)
{
    unsigned i, child = node + 1;

    addText(v, "{");
    for (i = 0; i < type->node[node].children && !pvaFailed(v->buf); i++, child = type->node[child].next) {
        if (v->out) {
            ebpfMonPvaPuts(v->out, i ? ", " : "");
            ebpfMonPvaPutJson(v->out, pvaName(type, child), strlen(pvaName(type, child)));
            ebpfMonPvaPuts(v->out, ": ");
        }
        ebpfMonPvaNode(v, type, child, pvaJson);
    }
    addText(v, "}");
}

void ebpfMonPvaNode(pvaValue *v, const pvaType *type, unsigned node, pvaStyle how)
{
    const pvaNode *n = &type->node[node];
    size_t from = v->buf->pos;

    if (v->depth >= 2 * PVA_DEPTH || v->work >= WORK_MAX) {
        v->buf->cut = 1;
    }
    if (pvaFailed(v->buf)) {
        return;
    }
    v->depth++;
    v->work++;
    if (n->array) {
        readArray(v, type, node, how);
    } else if (n->code == pvaStruct) {
        readStructure(v, type, node);
    } else if (n->code == pvaVariant) {
        readVariant(v, how);
    } else if (n->code == pvaUnion) {
        size_t selected = pvaSize(v->buf);
        unsigned child = node + 1;

        if (selected == PVA_NULL) {
            addText(v, "null");
        } else if (selected >= n->children) {
            v->buf->bad |= !v->buf->cut;
        } else {
            v->work += (unsigned)selected; /* members that are passed */
            for (; selected; selected--) {
                child = type->node[child].next;
            }
            ebpfMonPvaNode(v, type, child, how);
        }
    } else {
        readOne(v, n->code, how);
    }
    v->depth--;
    if (n == v->choicesNode && !pvaFailed(v->buf) && v->buf->pos <= v->buf->have) {
        v->choices = v->buf->p + from;
        v->choicesSize = v->buf->pos - from;
        v->choicesBig = v->buf->big;
    }
}

void ebpfMonPvaWhole(pvaValue *v, const pvaType *type)
{
    v->count = 1;
    if (type->unknown) {
        v->unknown = 1;
        return;
    }
    ebpfMonPvaNode(v, type, 0, pvaPlain);
}

void ebpfMonPvaSkipWhole(pvaTypes *types, pvaBuf *buf, const pvaType *type)
{
    pvaValue value = { .types = types, .buf = buf };

    if (type && type->variant) {
        ebpfMonPvaWhole(&value, type);
        /* if its type is not known, the rest of the message cannot be read */
        buf->cut |= value.unknown;
    }
}

static void copyString(pvaBuf *buf, char *to, size_t size)
{
    size_t length;
    const char *text = pvaString(buf, &length);

    if (text) {
        length = strnlen(text, length < size - 1 ? length : size - 1);
        memcpy(to, text, length);
        to[length] = 0;
    }
}

void ebpfMonPvaClaim(pvaValue *v, const pvaType *type, char *user, size_t userSize, char *host, size_t hostSize)
{
    unsigned i, child = 1;

    if (type->unknown || type->node[0].code != pvaStruct || type->node[0].array) {
        return;
    }
    for (i = 0; i < type->node[0].children && !pvaFailed(v->buf); i++, child = type->node[child].next) {
        int string = type->node[child].code == pvaText && !type->node[child].array;

        if (string && !strcmp(pvaName(type, child), "user")) {
            copyString(v->buf, user, userSize);
        } else if (string && !strcmp(pvaName(type, child), "host")) {
            copyString(v->buf, host, hostSize);
        } else {
            ebpfMonPvaNode(v, type, child, pvaPlain);
        }
    }
}
