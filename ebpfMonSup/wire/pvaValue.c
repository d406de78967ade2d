/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include "wire/pvaTypeRead.h"
#include "wire/pvaValue.h"

#define WORK_MAX 100000 /* nodes looked at in one message: null structures of nothing cost a peer few bytes */

static void put(pvaValue *v, const char *text)
{
    if (v->out) {
        ebpfMonPvaPuts(v->out, text);
    }
}

static void one(pvaValue *v, unsigned code, pvaStyle how)
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

static void variant(pvaValue *v, pvaStyle how)
{
    pvaType *type = ebpfMonPvaTypeRead(v->types, v->buf);

    if (!type) {
        if (!pvaFailed(v->buf)) {
            put(v, "null");
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

/* Behind an element's own "it is there" byte. */
static void element(pvaValue *v, const pvaType *type, unsigned node)
{
    if (!pvaGet(v->buf, 1)) {
        if (!pvaFailed(v->buf)) {
            put(v, "null");
        }
    } else if (type->node[node].code == pvaVariant) {
        variant(v, pvaJson);
    } else {
        ebpfMonPvaNode(v, type, node + 1, pvaJson);
    }
}

/* "[1000] 1 2 3 ..." or [1, 2, 3, "... 1000"] */
static void array(pvaValue *v, const pvaType *type, unsigned node, pvaStyle how)
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
            element(v, type, node);
        } else {
            one(v, n->code, pvaJson);
        }
    }
    v->out = out;
    if (how == pvaJson) {
        put(v, "]");
    }
}

static void structure(pvaValue *v, const pvaType *type, unsigned node)
{
    unsigned i, child = node + 1;

    put(v, "{");
    for (i = 0; i < type->node[node].children && !pvaFailed(v->buf); i++, child = type->node[child].next) {
        if (v->out) {
            ebpfMonPvaPuts(v->out, i ? ", " : "");
            ebpfMonPvaPutJson(v->out, pvaName(type, child), strlen(pvaName(type, child)));
            ebpfMonPvaPuts(v->out, ": ");
        }
        ebpfMonPvaNode(v, type, child, pvaJson);
    }
    put(v, "}");
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
        array(v, type, node, how);
    } else if (n->code == pvaStruct) {
        structure(v, type, node);
    } else if (n->code == pvaVariant) {
        variant(v, how);
    } else if (n->code == pvaUnion) {
        size_t selected = pvaSize(v->buf);
        unsigned child = node + 1;

        if (selected == PVA_NULL) {
            put(v, "null");
        } else if (selected >= n->children) {
            v->buf->bad |= !v->buf->cut;
        } else {
            for (; selected; selected--) {
                child = type->node[child].next;
            }
            ebpfMonPvaNode(v, type, child, how);
        }
    } else {
        one(v, n->code, how);
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
        /* Also when it was not understood: the rest is not. */
        buf->cut |= value.unknown;
    }
}

static void copy(pvaBuf *buf, char *to, size_t size)
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
            copy(v->buf, user, userSize);
        } else if (string && !strcmp(pvaName(type, child), "host")) {
            copy(v->buf, host, hostSize);
        } else {
            ebpfMonPvaNode(v, type, child, pvaPlain);
        }
    }
}
