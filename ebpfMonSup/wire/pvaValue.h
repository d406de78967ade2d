/* SPDX-License-Identifier: BSD-3-Clause */
/* pvAccess values as people read them, or skipped for the descriptions in them. */
#ifndef EBPFMON_PVAVALUE_H
#define EBPFMON_PVAVALUE_H

#include "wire/pvaText.h"

#define PVA_SHOW 8   /* elements of an array that are shown */

/* What stands in a message from buf's position on. Values may bring descriptions: "types" is the registry of the
 * direction of the message. */
typedef struct {
    pvaTypes *types;
    pvaBuf   *buf;
    pvaOut   *out;        /* NULL: skip */
    /* Of the enumeration "value", an array of strings as on the wire; NULL: not known. Also a result. */
    const uint8_t *choices;
    size_t    choicesSize;
    int       choicesBig;
    /* results */
    uint32_t  count;      /* elements of the value; 1 when it is no array */
    int       isNumber;
    double    number;
    int       unknown;    /* a type whose description was not seen */
    /* on the way */
    const pvaNode *choicesNode;
    unsigned  depth, work;
} pvaValue;

typedef enum { pvaPlain, pvaJson } pvaStyle;

/* A whole value. */
void ebpfMonPvaWhole(pvaValue *value, const pvaType *type);
/* … that lies within another one: that of a node of its type, all of which is known. */
void ebpfMonPvaNode(pvaValue *value, const pvaType *type, unsigned node, pvaStyle how);
/* A whole value for the descriptions in it alone. NULL does no harm. */
void ebpfMonPvaSkipWhole(pvaTypes *types, pvaBuf *buf, const pvaType *type);
/* The members "user" and "host" of a structure. */
void ebpfMonPvaClaim(pvaValue *value, const pvaType *type, char *user, size_t userSize, char *host, size_t hostSize);

#endif
