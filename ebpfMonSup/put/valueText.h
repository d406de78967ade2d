/* SPDX-License-Identifier: BSD-3-Clause */
/* Values as people read them: by the type they were sent or kept as, enums and menus by their text. */
#ifndef EBPFMON_VALUETEXT_H
#define EBPFMON_VALUETEXT_H

#include "watch/target.h"

typedef struct {
    const uint8_t *data;
    uint32_t len;       /* bytes of data that we have */
    int      type;      /* dbfType; a string has "size" bytes an element */
    int      size;
    long     count;     /* elements there are; more than we have are shown by their number */
    int      network;   /* big-endian, as on the wire */
} ebpfMonValue;

/* "field" and "precord" give an enum's texts; field may be NULL. Too long ends in "...". */
void ebpfMonValueText(ebpfMonTarget *t, const ebpfMonField *field, uint64_t precord, const ebpfMonValue *v,
                      char *buf, size_t size);

/* Nonzero: it is a single number (an enum's is its index), and *number has it. */
int ebpfMonValueNumber(const ebpfMonValue *v, double *number);

#endif
