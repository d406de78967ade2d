/* SPDX-License-Identifier: BSD-3-Clause */
/* A text of limited length, from numbers and strings of pvAccess. */
#ifndef EBPFMON_PVATEXT_H
#define EBPFMON_PVATEXT_H

#include "wire/pvaType.h"

#define PVA_TEXT 513 /* 512 bytes and a zero; a longer text ends with "..." */

typedef struct {
    size_t length;
    int    full;
    char   text[PVA_TEXT];
} pvaOut;

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

void ebpfMonPvaPut(pvaOut *out, const char *text, size_t length);
void ebpfMonPvaPuts(pvaOut *out, const char *text);
void ebpfMonPvaPutRaw(pvaOut *out, const char *text, size_t length);  /* from a message */
void ebpfMonPvaPutJson(pvaOut *out, const char *text, size_t length); /* in quotes, for JSON */
/* Adds a boolean or number from a message, and returns it. */
double ebpfMonPvaPutNumber(pvaOut *out, unsigned code, const uint8_t *p, int big, int json);

/* Ends the text with a zero. A text that is too long is cut after a whole character, and ends with "...". */
void ebpfMonPvaOutEnd(pvaOut *out);
/* Sets the text to "?": the value is not known. */
void ebpfMonPvaOutUnknown(pvaOut *out);

#endif
