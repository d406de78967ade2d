/* SPDX-License-Identifier: BSD-3-Clause */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "common/text.h"
#include "wire/pvaType.h"
#include "wire/pvaValue.h"

/* --- texts --- */

/* Bytes of a boolean or a number of this type; 0: another type. */
static inline unsigned pvaNumberSize(unsigned code)
{
    switch (code) {
    case pvaBool: case pvaI8: case pvaU8: return 1;
    case pvaI16: case pvaU16: return 2;
    case pvaI32: case pvaU32: case pvaF32: return 4;
    case pvaI64: case pvaU64: case pvaF64: return 8;
    default: return 0;
    }
}

static void putPva(pvaOut *out, const char *text, size_t length)
{
    size_t room = sizeof(out->text) - 1 - out->length;

    if (length > room) {
        length = room;
        out->full = 1;
    }
    memcpy(out->text + out->length, text, length);
    out->length += length;
}

void ebpfMonPvaPuts(pvaOut *out, const char *text)
{
    putPva(out, text, strlen(text));
}

/* zero bytes become blanks: else they would hide the text after them */
static void putPvaRaw(pvaOut *out, const char *text, size_t length)
{
    size_t at = out->length;

    putPva(out, text, length);
    for (; at < out->length; at++) {
        if (!out->text[at]) {
            out->text[at] = ' ';
        }
    }
}

static void putPvaJson(pvaOut *out, const char *text, size_t length)
{
    size_t i;

    putPva(out, "\"", 1);
    for (i = 0; i < length && !out->full; i++) {
        unsigned char c = text[i];

        if (c == '"' || c == '\\') {
            putPva(out, (char[]){ '\\', c }, 2);
        } else if (ebpfMonTextIsControl((char)c)) {
            char escape[8];
            int size = snprintf(escape, sizeof(escape), "\\u%04x", c);

            putPva(out, escape, (size_t)size);
        } else {
            putPva(out, (char *)&c, 1);
        }
    }
    putPva(out, "\"", 1);
}

static void putInteger(pvaOut *out, uint64_t magnitude, int negative)
{
    char digits[21];
    unsigned at = sizeof(digits);

    do {
        digits[--at] = '0' + magnitude % 10;
        magnitude /= 10;
    } while (magnitude);
    if (negative) {
        digits[--at] = '-';
    }
    putPva(out, digits + at, sizeof(digits) - at);
}

/* Adds the shortest text that reads back as the same number. */
static void putFloat(pvaOut *out, double number, int isFloat, int json)
{
    char text[40];
    int digits;

    if (isnan(number) || isinf(number)) {
        const char *name = isnan(number) ? "nan" : number < 0 ? "-inf" : "inf";

        ebpfMonPvaPuts(out, json ? "\"" : "");
        ebpfMonPvaPuts(out, name);
        ebpfMonPvaPuts(out, json ? "\"" : "");
        return;
    }
    if (fabs(number) < 1e6 && number == (int)number && (number != 0 || !signbit(number))) {
        putInteger(out, fabs(number), number < 0);
        return;
    }
    /* Numbers with so many digits, without zeros at the end, always have the shortest text; but not the smallest
     * numbers. */
    digits = fabs(number) < (isFloat ? FLT_MIN : DBL_MIN) ? 1 : isFloat ? 6 : 15;
    for (;; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, number);
        if (digits == (isFloat ? 9 : 17) || (isFloat ? strtof(text, NULL) == (float)number
            : strtod(text, NULL) == number)) {
            break;
        }
    }
    ebpfMonPvaPuts(out, text);
}

/* Adds a boolean or number from a message, and returns it. */
static double putPvaNumber(pvaOut *out, unsigned code, const uint8_t *p, int big, int json)
{
    union { uint32_t u; float f; } single;
    union { uint64_t u; double d; } twice;
    unsigned size = pvaNumberSize(code);
    uint64_t bits = pvaNumber(p, size, big);

    switch (code) {
    case pvaBool:
        ebpfMonPvaPuts(out, bits ? "true" : "false");
        return bits != 0;
    case pvaF32:
        single.u = bits;
        putFloat(out, single.f, 1, json);
        return single.f;
    case pvaF64:
        twice.u = bits;
        putFloat(out, twice.d, 0, json);
        return twice.d;
    case pvaU8: case pvaU16: case pvaU32: case pvaU64:
        putInteger(out, bits, 0);
        return bits;
    default: {
        int64_t value = (int64_t)(bits << (64 - 8 * size)) >> (64 - 8 * size);

        putInteger(out, value < 0 ? -(uint64_t)value : (uint64_t)value, value < 0);
        return value;
    }
    }
}

void ebpfMonPvaOutEnd(pvaOut *out)
{
    if (out->full) {
        size_t at = sizeof(out->text) - 1 - 3;

        while (at && ((unsigned char)out->text[at] & 0xc0) == 0x80) {
            at--;
        }
        memcpy(out->text + at, "...", 3);
        out->length = at + 3;
    }
    out->text[out->length] = 0;
}

void ebpfMonPvaOutUnknown(pvaOut *out)
{
    *out = (pvaOut){ .text = "?", .length = 1 };
}

/* --- values --- */

#define PVA_SHOW 8   /* elements of an array that are written */

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
            (how == pvaJson ? putPvaJson : putPvaRaw)(v->out, text, length);
        }
        return;
    }
    const uint8_t *p = pvaTake(v->buf, pvaNumberSize(code));
    if (p && v->out) {
        double number = putPvaNumber(v->out, code, p, v->buf->big, how == pvaJson);

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
            snprintf(head, sizeof(head), "[%zu]", count);
            ebpfMonPvaPuts(out, head);
        } else {
            ebpfMonPvaPuts(out, "[");
        }
    }
    for (i = 0; i < count && !pvaFailed(v->buf); i++) {
        if (i == PVA_SHOW && out) {
            char tail[24];

            snprintf(tail, sizeof(tail), how == pvaPlain ? " ..." : ", \"... %zu\"", count);
            ebpfMonPvaPuts(out, tail);
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
            putPvaJson(v->out, pvaName(type, child), strlen(pvaName(type, child)));
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

/* --- changed fields --- */

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
            putPvaJson(v->out, pvaName(type, child), strlen(pvaName(type, child)));
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
        putPvaRaw(out, text, length);
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

/* --- options of a request --- */

/* Writes {process: "true", …} as [process=true,…]. */
static void writeOptions(pvaValue *v, const pvaType *type, unsigned node, int *process)
{
    unsigned i, child = node + 1;

    ebpfMonPvaPuts(v->out, "[");
    for (i = 0; i < type->node[node].children && !pvaFailed(v->buf); i++, child = type->node[child].next) {
        ebpfMonPvaPuts(v->out, i ? "," : "");
        ebpfMonPvaPuts(v->out, pvaName(type, child));
        ebpfMonPvaPuts(v->out, "=");
        size_t at = v->out->length;
        ebpfMonPvaNode(v, type, child, pvaPlain);
        if (process && !strcmp(pvaName(type, child), "process")) {
            *process = v->out->length == at + 4 && !memcmp(v->out->text + at, "true", 4);
        }
    }
    ebpfMonPvaPuts(v->out, "]");
}

/* Writes value,alarm{severity} between the brackets "open" and "close". Of "record", only its options are written. */
static void writeFields(pvaValue *v, const pvaType *type, unsigned node, const char *open, const char *close,
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
            writeOptions(v, type, child, process);
            continue;
        }
        ebpfMonPvaPuts(v->out, !first ? "," : opened ? "" : open);
        opened = 1;
        first = 0;
        ebpfMonPvaPuts(v->out, pvaName(type, child));
        if (isStruct) {
            writeFields(v, type, child, "{", "}", NULL);
        } else {
            ebpfMonPvaPuts(v->out, "=");
            ebpfMonPvaNode(v, type, child, pvaPlain);
        }
    }
    if (opened) {
        ebpfMonPvaPuts(v->out, close);
    }
}

int ebpfMonPvaEndText(const pvaValue *v, int variant)
{
    int isKnown = !v->buf->bad && !v->unknown && (!v->buf->cut || v->out->length);

    if (!isKnown) {
        ebpfMonPvaOutUnknown(v->out);
        v->buf->cut |= v->unknown;
    } else if (v->buf->cut) {
        pvaOut *out = v->out;

        if (out->length < 3 || memcmp(out->text + out->length - 3, "...", 3)) {
            ebpfMonPvaPuts(out, out->text[out->length - 1] == ' ' ? "..." : " ...");
        }
        v->buf->cut = variant;
    }
    ebpfMonPvaOutEnd(v->out);
    return isKnown;
}

void ebpfMonPvaOptions(pvaValue *v, const pvaType *type, int *process)
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
            writeFields(v, type, child, "{", "}", process);
        } else if (isStruct) {
            writeFields(v, type, child, "(", ")", NULL);
        } else {
            ebpfMonPvaPuts(v->out, "=");
            ebpfMonPvaNode(v, type, child, pvaPlain);
        }
    }
    v->out = out;
    putPva(out, rest.text, rest.length);
    out->full |= rest.full;
}
