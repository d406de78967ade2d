/* SPDX-License-Identifier: BSD-3-Clause */
/* One pvAccess connection: what its two ends have agreed on so far. Private to the pva*.c files. */
#ifndef EBPFMON_PVA_H
#define EBPFMON_PVA_H

#include "wire/pvaTable.h"
#include "wire/pvaValue.h"

#define PVA_HEADER 8
#define PVA_NAME   500 /* of a channel: MAX_CHANNEL_NAME_LENGTH of pvAccessCPP */
#define PVA_CHOICES 4096 /* bytes of an enumeration's choices that are remembered */

enum { pvaFlagControl = 0x01, pvaFlagFirst = 0x10, pvaFlagLast = 0x20, pvaFlagServer = 0x40, pvaFlagBig = 0x80 };
enum {
    pvaBeacon, pvaValidation, pvaEcho, pvaSearch, pvaFound, pvaAuthNZ, pvaAclChange, pvaCreate, pvaDestroy,
    pvaValidated, pvaGetCmd, pvaPutCmd, pvaPutGet, pvaMonitor, pvaArrayCmd, pvaDestroyRequest, pvaProcess,
    pvaGetField, pvaMessage, pvaMultiple, pvaRpc, pvaCancel, pvaOriginTag, pvaCommands
};
enum { pvaInit = 0x08, pvaLastRequest = 0x10, pvaSubGet = 0x40, pvaSubGetPut = 0x80 };

typedef struct pvaOp pvaOp;

typedef struct pvaChannel {
    pvaLink  bySid, byCid;
    int      hasSid, hasCid;
    size_t   nameSize;
    char    *name;          /* NULL: created before we looked */
    pvaOp   *ops;
} pvaChannel;

/* A request that was made ready: from then on only its number is sent. */
struct pvaOp {
    pvaLink  byId;
    pvaChannel *channel;    /* NULL: its beginning was not seen */
    pvaOp   *next, **back;  /* of its channel */
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
};

/* A long message comes in pieces. */
typedef struct {
    int      open;
    uint8_t *p;             /* as if it were one message, header included */
    size_t   room, have, total;
    uint64_t hash;
    uint32_t seq;
} pvaPieces;

typedef struct {
    ebpfMonCircuit *circuit;
    char       user[64], host[128];
    size_t     typeBytes;
    pvaTypes   types[2];    /* of what the client, the server sends */
    pvaPieces  pieces[2];
    pvaTable   bySid, byCid, ops;
    unsigned   channels;
    uint64_t   puts;
} pvaState;

/* A message that is whole. */
typedef struct {
    const ebpfMonMessage *message;
    uint8_t  cmd;
    uint32_t seq, end;
    uint64_t hash;
    pvaTypes *types;        /* of its direction */
    pvaBuf   buf;           /* behind the header */
} pvaMsg;

typedef struct { uint32_t severity; char text[256]; } pvaStatus;

/* pva.c */
void ebpfMonPvaEmit(pvaState *pva, const pvaMsg *msg, ebpfMonWireEvent *event);
/* Nonzero: the request went well. */
int ebpfMonPvaStatusGet(pvaBuf *buf, pvaStatus *status);

/* pvaChannel.c */
pvaChannel *ebpfMonPvaChannelBySid(pvaState *pva, uint32_t sid);
pvaChannel *ebpfMonPvaChannelOfSid(pvaState *pva, uint32_t sid); /* makes it, without a name; NULL at the limit */
void ebpfMonPvaChannelFree(pvaState *pva, pvaChannel *channel);
void ebpfMonPvaChannelMessage(pvaState *pva, pvaMsg *msg); /* create, destroy */
void ebpfMonPvaChannelNamed(pvaState *pva, uint32_t sid, const char *name);
void ebpfMonPvaChannelsFree(pvaState *pva);

/* pvaOp.c */
void ebpfMonPvaOpMessage(pvaState *pva, pvaMsg *msg);      /* all that has a request number */
void ebpfMonPvaOpFree(pvaState *pva, pvaOp *op);
void ebpfMonPvaOpsGap(pvaState *pva);
void ebpfMonPvaOpsFree(pvaState *pva);
/* Where the value of a put begins in a message, 0: it is none; -1: more than "have" bytes are needed to say. */
int ebpfMonPvaPutValue(const uint8_t *p, size_t have, size_t total, size_t *from);

/* ebpfMonPvaDatagram.c */
void ebpfMonPvaDatagram(ebpfMonWire *wire, uint64_t time, const struct ebpfMonPeer *from_to,
    const uint8_t *p, size_t len);
/* Search and answer; they go by TCP too. "emit" gets each name or number. */
typedef void (*pvaEmitter)(void *arg, ebpfMonWireEvent *event);
void ebpfMonPvaSearchMessage(pvaBuf *buf, const struct ebpfMonPeer *from_to, pvaEmitter emit, void *arg);
void ebpfMonPvaFoundMessage(pvaBuf *buf, const struct ebpfMonPeer *from_to, pvaEmitter emit, void *arg);

#endif
