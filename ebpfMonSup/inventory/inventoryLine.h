/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads a line of an inventory file into pairs: {"type":"ai","info":{"a":"b"},"aliases":["X","Y"]} becomes type = ai,
 * info.a = b, alias X = yes, alias Y = yes. No shared state. */
#ifndef EBPFMON_INVENTORYLINE_H
#define EBPFMON_INVENTORYLINE_H

#include <stddef.h>

#define EBPFMON_LINE_PAIRS 512 /* pairs of a line. The pairs after these are left out */

typedef struct {
    struct {
        char *name, *value; /* malloc'ed, clean (common/text.h) */
    } pair[EBPFMON_LINE_PAIRS];
    unsigned count;
} ebpfMonLine;

/* 0, or -1: the text is not JSON, or there is no memory. The caller frees "line" in both cases. */
int ebpfMonLineParse(const char *text, size_t length, ebpfMonLine *line);
void ebpfMonLineFree(ebpfMonLine *line);

/* The value of a name; "": there is none. */
const char *ebpfMonLineGet(const ebpfMonLine *line, const char *name);

#endif
