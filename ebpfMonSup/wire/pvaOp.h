/* SPDX-License-Identifier: BSD-3-Clause */
/* A request of a pvAccess connection, from its making to its end. */
#ifndef EBPFMON_PVAOP_H
#define EBPFMON_PVAOP_H

#include "wire/pvaState.h"

typedef struct pvaChannel pvaChannel;

/* A request that was initialised: from then on only its number is sent. */
typedef struct pvaOp {
    pvaLink  byId;
    pvaChannel *channel;    /* NULL: its beginning was not seen */
    struct pvaOp *next, **back;  /* of its channel */
    uint8_t  cmd;
    int      process;
    char    *options;       /* pvRequest as text, or NULL */
    size_t   optionsSize;
    pvaType *type;          /* of what is put or got; NULL: not known */
    pvaType *got;           /* put-get: of what comes back */
    unsigned waiting;       /* puts without a reply yet */
    uint64_t put;           /* number of the one that waits; 0: more than one does */
    int      last;          /* its reply ends the request */
    uint8_t *choices;       /* of the enumeration "value" */
    size_t   choicesSize;
    int      choicesBig;
} pvaOp;

/* NULL: none. */
pvaOp *ebpfMonPvaOpFind(const pvaState *pva, uint32_t ioid);
/* NULL: no room for it, counted. */
pvaOp *ebpfMonPvaOpMake(pvaState *pva, uint32_t ioid, unsigned cmd);
void ebpfMonPvaOpFree(pvaState *pva, pvaOp *op);
/* Replies may have been among what is missing: none is given to the wrong put. */
void ebpfMonPvaOpsGap(pvaState *pva);
void ebpfMonPvaOpsFree(pvaState *pva);

/* Of the commands those that can put, and of their subcommands the one that does. */
int ebpfMonPvaCanPut(unsigned cmd);
int ebpfMonPvaDoesPut(unsigned cmd, unsigned sub);
/* Where the value of a put begins in a message, 0: it is none; -1: more than "have" bytes are needed to say. */
int ebpfMonPvaPutValue(const uint8_t *p, size_t have, size_t total, size_t *from);

#endif
