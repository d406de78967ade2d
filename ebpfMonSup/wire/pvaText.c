/* SPDX-License-Identifier: BSD-3-Clause */
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "common/text.h"
#include "wire/pvaText.h"

void ebpfMonPvaPut(pvaOut *out, const char *text, size_t length)
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
    ebpfMonPvaPut(out, text, strlen(text));
}

/* zero bytes become blanks: else they would hide the text after them */
void ebpfMonPvaPutRaw(pvaOut *out, const char *text, size_t length)
{
    size_t at = out->length;

    ebpfMonPvaPut(out, text, length);
    for (; at < out->length; at++) {
        if (!out->text[at]) {
            out->text[at] = ' ';
        }
    }
}

void ebpfMonPvaPutJson(pvaOut *out, const char *text, size_t length)
{
    size_t i;

    ebpfMonPvaPut(out, "\"", 1);
    for (i = 0; i < length && !out->full; i++) {
        unsigned char c = text[i];

        if (c == '"' || c == '\\') {
            ebpfMonPvaPut(out, (char[]){ '\\', c }, 2);
        } else if (ebpfMonTextIsControl((char)c)) {
            char escape[8];
            int size = snprintf(escape, sizeof(escape), "\\u%04x", c);

            ebpfMonPvaPut(out, escape, (size_t)size);
        } else {
            ebpfMonPvaPut(out, (char *)&c, 1);
        }
    }
    ebpfMonPvaPut(out, "\"", 1);
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
    ebpfMonPvaPut(out, digits + at, sizeof(digits) - at);
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

double ebpfMonPvaPutNumber(pvaOut *out, unsigned code, const uint8_t *p, int big, int json)
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
