/* SPDX-License-Identifier: BSD-3-Clause */
/* A line of an inventory file as pairs: {"type":"ai","info":{"a":"b"},"aliases":["X","Y"]} is type = ai, info.a = b,
 * alias X = yes, alias Y = yes. One thread at a time. */
#ifndef EBPFMON_INVENTORYLINE_H
#define EBPFMON_INVENTORYLINE_H

#include <stddef.h>

#define EBPFMON_LINE_PAIRS 512 /* of a line; those behind are left out */

typedef struct {
    struct {
        char *name, *value; /* malloc'ed, clean (common/text.h) */
    } pair[EBPFMON_LINE_PAIRS];
    unsigned count;
} ebpfMonLine;

/* 0, or -1: it is no JSON, or there is no memory. Free it in any case. */
int ebpfMonLineParse(const char *text, size_t length, ebpfMonLine *line);
void ebpfMonLineFree(ebpfMonLine *line);

/* The value of a name; "": there is none. */
const char *ebpfMonLineGet(const ebpfMonLine *line, const char *name);

#endif
