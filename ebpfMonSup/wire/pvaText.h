/* SPDX-License-Identifier: BSD-3-Clause */
/* Text of bounded length, from numbers and strings as pvAccess sends them. */
#ifndef EBPFMON_PVATEXT_H
#define EBPFMON_PVATEXT_H

#include "wire/pvaType.h"

#define PVA_TEXT 513 /* 512 bytes; what is longer ends in "..." */

typedef struct {
    size_t length;
    int    full;
    char   text[PVA_TEXT];
} pvaOut;

/* Bytes of a bool or number; 0: another type. */
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
void ebpfMonPvaPutRaw(pvaOut *out, const char *text, size_t length);  /* from the wire */
void ebpfMonPvaPutJson(pvaOut *out, const char *text, size_t length); /* in quotes */
/* A bool or number of the wire; returns it. */
double ebpfMonPvaPutNumber(pvaOut *out, unsigned code, const uint8_t *p, int big, int json);

/* Ends the text: what is too long is cut at the end of a character, with "...". */
void ebpfMonPvaOutEnd(pvaOut *out);
/* The text says "?": the value is not known. */
void ebpfMonPvaOutUnknown(pvaOut *out);

#endif
