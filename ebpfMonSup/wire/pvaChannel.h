/* SPDX-License-Identifier: BSD-3-Clause */
/* The channels of a pvAccess connection, by the numbers that both sides gave them. */
#ifndef EBPFMON_PVACHANNEL_H
#define EBPFMON_PVACHANNEL_H

#include "wire/pvaState.h"

/* --- requests ---
 *
 * A request of a pvAccess connection, from its begin to its end.
 */

typedef struct pvaChannel pvaChannel;

/* A request that was initialised. From then on, messages contain only its number. */
typedef struct pvaOp {
    pvaLink  byId;
    pvaChannel *channel;    /* NULL: we missed its begin */
    struct pvaOp *next, **back;  /* the list of its channel */
    uint8_t  cmd;
    int      process;
    char    *options;       /* its pvRequest as text, or NULL */
    size_t   optionsSize;
    pvaType *type;          /* type of the values that are put or got; NULL: not known */
    pvaType *got;           /* put-get: type of the values that come back */
    unsigned waiting;       /* puts that have no reply yet */
    uint64_t put;           /* number of the put that waits; 0: several puts wait */
    int      last;          /* nonzero: its reply ends the request */
    int      beforeGap;     /* nonzero: messages are missing since it began, so its number may be of another one now */
    uint8_t *choices;       /* choices of the enumeration "value", as they were sent */
    size_t   choicesSize;
    int      choicesBig;
} pvaOp;

/* Finds a request. NULL: there is none. */
pvaOp *ebpfMonPvaOpFind(const pvaState *pva, uint32_t ioid);
/* Makes a request. NULL: no memory, which is counted. */
pvaOp *ebpfMonPvaOpMake(pvaState *pva, uint32_t ioid, unsigned cmd);
void ebpfMonPvaOpFree(pvaState *pva, pvaOp *op);
/* After a gap: replies may be missing, so no reply is given to a put before the gap; and ends of requests. */
void ebpfMonPvaOpsGap(pvaState *pva);
void ebpfMonPvaOpsFree(pvaState *pva);

/* CanPut: nonzero if the command can put. DoesPut: nonzero if this subcommand makes it put. */
int ebpfMonPvaCanPut(unsigned cmd);
int ebpfMonPvaDoesPut(unsigned cmd, unsigned sub);
/* Finds where the value of a put begins in a message; *from 0: it is no put. Returns 0, or -1: it needs more bytes than
 * "have". */
int ebpfMonPvaPutValue(const uint8_t *p, size_t have, size_t total, size_t *from);

/* --- channels --- */

struct pvaChannel {
    pvaLink  bySid, byCid;
    int      hasSid, hasCid;
    size_t   nameSize;
    char    *name;          /* NULL: not known, because the channel was created before we watched */
    pvaOp   *ops;
};

pvaChannel *ebpfMonPvaChannelBySid(pvaState *pva, uint32_t sid);
/* Gives the request to the channel "sid", with which it ends. If we do not know the channel, it is made, without a
 * name. */
void ebpfMonPvaChannelAdopt(pvaState *pva, pvaOp *op, uint32_t sid);
void ebpfMonPvaChannelMessage(pvaState *pva, pvaMsg *msg); /* messages that create or destroy */
/* See ebpfMonWireRemind. */
void ebpfMonPvaChannelsRemind(pvaState *pva, uint64_t time);
void ebpfMonPvaChannelsFree(pvaState *pva);

#endif
