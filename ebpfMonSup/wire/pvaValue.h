/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of pvAccess: written as text for people, or skipped after the descriptions in them were read. */
#ifndef EBPFMON_PVAVALUE_H
#define EBPFMON_PVAVALUE_H

#include "wire/pvaType.h"

/* --- texts ---
 *
 * A text of limited length, from numbers and strings of pvAccess.
 */

#define PVA_TEXT 513 /* 512 bytes and a zero; a longer text ends with "..." */

typedef struct {
    size_t length;
    int    full;
    char   text[PVA_TEXT];
} pvaOut;

void ebpfMonPvaPuts(pvaOut *out, const char *text);

/* Ends the text with a zero. A text that is too long is cut after a whole character, and ends with "...". */
void ebpfMonPvaOutEnd(pvaOut *out);
/* Sets the text to "?": the value is not known. */
void ebpfMonPvaOutUnknown(pvaOut *out);

/* --- values --- */

/* How to read a value in a message, from the position of "buf" on. Values may contain descriptions: "types" is the
 * registry of the message's direction. */
typedef struct {
    pvaTypes *types;
    pvaBuf   *buf;
    pvaOut   *out;        /* NULL: skip the value */
    /* the choices of the enumeration "value", an array of strings as it was sent; NULL: not known. Also a result */
    const uint8_t *choices;
    size_t    choicesSize;
    int       choicesBig;
    /* results */
    uint32_t  count;      /* elements of the value; 1: it is no array */
    int       isNumber;
    double    number;
    int       isValueOnly; /* nonzero: of a structure, only the field "value" was sent */
    int       unknown;    /* nonzero: it has a type with a description that we missed */
    /* used while reading */
    const pvaNode *choicesNode;
    unsigned  depth, work;
} pvaValue;

typedef enum { pvaPlain, pvaJson } pvaStyle;

/* Ends the text of a value that was read. "variant": the value may contain new descriptions. 0: the value is not
 * known. */
int ebpfMonPvaEndText(const pvaValue *value, int variant);

/* Reads a whole value. */
void ebpfMonPvaWhole(pvaValue *value, const pvaType *type);
/* Reads a part of a value: that of a node of its type, which must be known in all its parts. */
void ebpfMonPvaNode(pvaValue *value, const pvaType *type, unsigned node, pvaStyle how);
/* Skips a whole value, and reads the descriptions in it. "type" may be NULL. */
void ebpfMonPvaSkipWhole(pvaTypes *types, pvaBuf *buf, const pvaType *type);
/* Reads the members "user" and "host" of a structure. */
void ebpfMonPvaClaim(pvaValue *value, const pvaType *type, char *user, size_t userSize, char *host, size_t hostSize);

/* --- changed fields ---
 *
 * A value with only the fields that changed, and a BitSet that tells which.
 */

/* Reads the values of the fields with set bits. If the only one is "value", its text is as it is; else it is like {"a":
 * 1}. */
void ebpfMonPvaChanged(pvaValue *value, const pvaType *type, const pvaBits *bits);

/* --- options of a request ---
 *
 * The options of a client's request: its pvRequest.
 */

/* Writes the pvRequest as text: "record[process=true]field(value)". *process is set to nonzero if
 * record._options.process is "true". */
void ebpfMonPvaOptions(pvaValue *value, const pvaType *type, int *process);

#endif
