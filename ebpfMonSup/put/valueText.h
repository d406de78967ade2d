/* SPDX-License-Identifier: BSD-3-Clause */
/* Values as people read them: formatted by their type, states of enums and menus by their text. No state. */
#ifndef EBPFMON_VALUETEXT_H
#define EBPFMON_VALUETEXT_H

#include <stddef.h>

#include "model/put.h"
#include "watch/target.h"

/* --- writers ---
 *
 * The texts that say who made a put and by which way, made of the members of ebpfMonPut. No state; any thread. */

#define EBPFMON_PUT_BY "put by "

/* "put by U@H": a client's put as the cause of what it starts. */
void ebpfMonWriterTextFormatCause(const char *user, const char *host, int isUnsure, char *buf, size_t size);

/* Sets put->who and put->origin from the other members. */
void ebpfMonWriterTextComplete(ebpfMonPut *put);

/* --- values --- */

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
