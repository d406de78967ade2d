/* SPDX-License-Identifier: BSD-3-Clause */
/* Values as people read them: formatted by their type, states of enums and menus by their text. No state. */
#ifndef EBPFMON_VALUETEXT_H
#define EBPFMON_VALUETEXT_H

#include "watch/target.h"

typedef struct {
    const uint8_t *data;
    uint32_t len;       /* bytes of "data" that we have */
    int      type;      /* dbfType (ioc/catalogue.h) */
    int      size;      /* bytes of one element of type string */
    long     count;     /* elements of the value, perhaps more than we have: those are shown by their number */
    int      network;   /* big-endian, as in a packet */
} ebpfMonValue;

/*
 * Texts of states are in the memory of "t", in the field "field" of the record at "precord". They are read by
 * ebpfMonTargetsGetReads (lateReads.h); in this case it is the event thread that calls, under ebpfMonTargetsLock.
 * Without "t" or "field" (NULL) a state is shown by its number. A text that does not fit is cut and ends in "...". A
 * value that could not be read is "?".
 */
void ebpfMonValueTextFormat(ebpfMonTarget *t, const ebpfMonField *field, uint64_t precord, const ebpfMonValue *v,
                            char *buf, size_t size);

/* Nonzero: the value is a text, or an array of texts. */
int ebpfMonValueTextIsText(const ebpfMonValue *v);

/* Nonzero: the value is a single number (of an enum: its index), and *number has it. */
int ebpfMonValueTextGetNumber(const ebpfMonValue *v, double *number);

#endif
