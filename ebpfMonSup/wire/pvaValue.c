/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include "wire/pvaValue.h"

#define WORK_MAX 100000 /* nodes looked at in one message: null structures of nothing cost a peer few bytes */

typedef enum { plain, json } style;

static void whole(pvaValue *v, const pvaType *type, unsigned node, style how);

static void put(pvaValue *v, const char *text)
{
    if (v->out) {
        ebpfMonPvaPuts(v->out, text);
    }
}

static void one(pvaValue *v, unsigned code, style how)
{
    if (code == pvaText) {
        size_t length;
        const char *text = pvaString(v->buf, &length);

        if (text && v->out) {
            (how == json ? ebpfMonPvaPutJson : ebpfMonPvaPutRaw)(v->out, text, length);
        }
        return;
    }
    const uint8_t *p = pvaTake(v->buf, pvaNumberSize(code));
    if (p && v->out) {
        double number = ebpfMonPvaPutNumber(v->out, code, p, v->buf->big, how == json);

        if (how == plain) {
            v->isNumber = 1;
            v->number = number;
        }
    }
}

static void variant(pvaValue *v, style how)
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
        whole(v, type, 0, how);
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
        variant(v, json);
    } else {
        whole(v, type, node + 1, json);
    }
}

/* "[1000] 1 2 3 ..." or [1, 2, 3, "... 1000"] */
static void array(pvaValue *v, const pvaType *type, unsigned node, style how)
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

        if (how == plain) {
            v->count = count;
            ebpfMonPvaPut(out, head, snprintf(head, sizeof(head), "[%zu]", count));
        } else {
            ebpfMonPvaPuts(out, "[");
        }
    }
    for (i = 0; i < count && !pvaFailed(v->buf); i++) {
        if (i == PVA_SHOW && out) {
            char tail[24];

            ebpfMonPvaPut(out, tail, snprintf(tail, sizeof(tail), how == plain ? " ..." : ", \"... %zu\"", count));
        }
        if (i >= PVA_SHOW || !out) {
            v->out = NULL;
            if (size) {
                pvaSkip(v->buf, (count - i) * size);
                break;
            }
        } else {
            ebpfMonPvaPuts(out, how == plain ? " " : i ? ", " : "");
        }
        if (n->code >= pvaStruct) {
            element(v, type, node);
        } else {
            one(v, n->code, json);
        }
    }
    v->out = out;
    if (how == json) {
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
        whole(v, type, child, json);
    }
    put(v, "}");
}

static void whole(pvaValue *v, const pvaType *type, unsigned node, style how)
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
            whole(v, type, child, how);
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
    whole(v, type, 0, plain);
}

static int anyBit(const pvaBits *bits, unsigned bit, unsigned count)
{
    for (; count; bit++, count--) {
        if (pvaBit(bits, bit)) {
            return 1;
        }
    }
    return 0;
}

/* All that changed stands before the first part of the type that is not known. Of servers that number their types,
 * as Base's does, that is the usual case in a connection met in the middle: "value" comes first. */
static int known(const pvaType *type, const pvaBits *bits)
{
    unsigned node = 0, bit;

    if (!type->unknown) {
        return 1;
    }
    if (anyBit(bits, type->sure, bits->size * 8 > type->sure ? bits->size * 8 - type->sure : 0)) {
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

/* The changed leaves below a node, until there are two. An enumeration whose index changed is one. */
static unsigned leaves(const pvaType *type, unsigned node, unsigned bit, const pvaBits *bits, int all, unsigned *leaf)
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
        if (all || anyBit(bits, bit, type->node[child].bits)) {
            found += leaves(type, child, bit, bits, all, leaf);
        }
    }
    return found;
}

/* Values follow in the order of the fields; a set bit of a structure stands for all of it. */
static void changed(pvaValue *v, const pvaType *type, unsigned node, unsigned bit, const pvaBits *bits)
{
    const pvaNode *n = &type->node[node];
    unsigned i, child = node + 1, first = 1;

    if (pvaBit(bits, bit)) {
        whole(v, type, node, json);
        return;
    }
    if (n->code != pvaStruct || n->array) {
        return;
    }
    put(v, "{");
    for (i = 0, bit++; i < n->children && !pvaFailed(v->buf); i++, bit += type->node[child].bits,
        child = type->node[child].next) {
        if (!anyBit(bits, bit, type->node[child].bits)) {
            continue;
        }
        if (v->out) {
            ebpfMonPvaPuts(v->out, first ? "" : ", ");
            ebpfMonPvaPutJson(v->out, pvaName(type, child), strlen(pvaName(type, child)));
            ebpfMonPvaPuts(v->out, ": ");
        }
        first = 0;
        changed(v, type, child, bit, bits);
    }
    put(v, "}");
}

/* "2 (Fast)", or "2" when the choices are not known. */
static void enumeration(pvaValue *v, const pvaType *type, unsigned node, int withChoices)
{
    pvaOut *out = v->out;
    size_t length = 0;
    const char *text = NULL;

    one(v, pvaI32, plain);
    if (withChoices) {
        v->out = NULL;
        whole(v, type, node + 2, plain);
        v->out = out;
    }
    if (!out || !v->isNumber || !v->choices) {
        return;
    }
    pvaBuf known = { .p = v->choices, .have = v->choicesSize, .total = v->choicesSize, .big = v->choicesBig };
    size_t count = pvaSize(&known), i;
    if (count == PVA_NULL || v->number < 0 || v->number >= count) {
        return;
    }
    for (i = 0; i <= v->number && !pvaFailed(&known); i++) {
        text = pvaString(&known, &length);
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
    if (!known(type, bits)) {
        v->unknown = 1;
        return;
    }
    if (type->node[0].code != pvaStruct || type->node[0].array) {
        if (pvaBit(bits, 0)) {
            whole(v, type, 0, plain);
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
    unsigned found = anyBit(bits, 0, type->node[0].bits) ? leaves(type, 0, 0, bits, 0, &leaf) : 0;
    if (found != 1 || !value || leaf != child) {
        v->count = found > 0;
        changed(v, type, 0, 0, bits);
    } else if (value->isEnum) {
        enumeration(v, type, child, pvaBit(bits, 0) || pvaBit(bits, bit) || pvaBit(bits, bit + 2));
    } else {
        whole(v, type, child, plain);
    }
}

/* {process: "true", …} as process=true,… */
static void options(pvaValue *v, const pvaType *type, unsigned node, int *process)
{
    unsigned i, child = node + 1;

    ebpfMonPvaPuts(v->out, "[");
    for (i = 0; i < type->node[node].children && !pvaFailed(v->buf); i++, child = type->node[child].next) {
        ebpfMonPvaPuts(v->out, i ? "," : "");
        ebpfMonPvaPuts(v->out, pvaName(type, child));
        ebpfMonPvaPuts(v->out, "=");
        size_t at = v->out->length;
        whole(v, type, child, plain);
        if (process && !strcmp(pvaName(type, child), "process")) {
            *process = v->out->length == at + 4 && !memcmp(v->out->text + at, "true", 4);
        }
    }
    ebpfMonPvaPuts(v->out, "]");
}

/* value,alarm{severity} in the brackets given; of "record" its options alone. */
static void fields(pvaValue *v, const pvaType *type, unsigned node, const char *open, const char *close,
    int *process)
{
    unsigned i, child = node + 1;
    int opened = !strcmp(open, "(");

    if (opened) {
        ebpfMonPvaPuts(v->out, open);
    }
    int first = 1;
    for (i = 0; i < type->node[node].children && !pvaFailed(v->buf); i++, child = type->node[child].next) {
        const pvaNode *n = &type->node[child];
        int isStruct = n->code == pvaStruct && !n->array;

        if (isStruct && !strcmp(pvaName(type, child), "_options")) {
            options(v, type, child, process);
            continue;
        }
        ebpfMonPvaPuts(v->out, !first ? "," : opened ? "" : open);
        opened = 1;
        first = 0;
        ebpfMonPvaPuts(v->out, pvaName(type, child));
        if (isStruct) {
            fields(v, type, child, "{", "}", NULL);
        } else {
            ebpfMonPvaPuts(v->out, "=");
            whole(v, type, child, plain);
        }
    }
    if (opened) {
        ebpfMonPvaPuts(v->out, close);
    }
}

void ebpfMonPvaRequest(pvaValue *v, const pvaType *type, int *process)
{
    pvaOut *out = v->out, rest;
    unsigned i, child = 1;

    if (type->unknown || type->node[0].code != pvaStruct || type->node[0].array) {
        v->unknown = 1;
        return;
    }
    rest.length = rest.full = 0;
    for (i = 0; i < type->node[0].children && !pvaFailed(v->buf); i++, child = type->node[child].next) {
        const char *name = pvaName(type, child);
        int isStruct = type->node[child].code == pvaStruct && !type->node[child].array;
        int record = isStruct && !strcmp(name, "record");

        v->out = record ? out : &rest;
        ebpfMonPvaPuts(v->out, name);
        if (record) {
            fields(v, type, child, "{", "}", process);
        } else if (isStruct) {
            fields(v, type, child, "(", ")", NULL);
        } else {
            ebpfMonPvaPuts(v->out, "=");
            whole(v, type, child, plain);
        }
    }
    v->out = out;
    ebpfMonPvaPut(out, rest.text, rest.length);
    out->full |= rest.full;
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
            whole(v, type, child, plain);
        }
    }
}
