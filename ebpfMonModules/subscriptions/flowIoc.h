/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What one IOC sends to its CA clients, and what is in the way of each of them; and what waits in its subscriptions for
 * others. Only the thread of subscriptions.c uses this module.
 */
#ifndef EBPFMON_FLOWIOC_H
#define EBPFMON_FLOWIOC_H

#include "host/tcpSockets.h"
#include "subscriptions/accessRules.h"
#include "subscriptions/eventLists.h"
#include "clients/clients.h"
#include "clients/clientTable.h"
#include "clients/updateCounts.h"

/* What is in the way of a client; the worst comes last. */
typedef enum {
    ebpfMonFlowFine,
    ebpfMonFlowPaused,      /* the client has asked for a pause */
    ebpfMonFlowIocWaits,    /* updates wait in the IOC, and nothing behind them is in the way */
    ebpfMonFlowSlow,        /* the client, or the network, takes bytes, and more slowly than they come */
    ebpfMonFlowClosed,      /* pvAccess: it takes no more updates of this monitor for now */
    ebpfMonFlowNetwork,     /* what was sent is not acknowledged */
    ebpfMonFlowNotRead,     /* the client does not read */
    ebpfMonFlowIocStopped   /* a signal or a debugger has stopped the process of the IOC */
} ebpfMonFlowState;

/* A client. Times are monotonic ns. */
typedef struct {
    char     name[128];     /* user@host, as the client claims */
    char     peer[24];      /* its real address:port */
    char     command[64];   /* its process, if it is on this host; "" */
    pid_t    pid;           /* … 0 */
    struct ebpfMonPeer key;
    ebpfMonFlowState flow;
    uint64_t since;         /* since then it is so, at the latest */
    int      isPva;         /* by pvAccess */
    int      isOfPackets;   /* not in the list of a CA server of an IOC: what the next three say is not known */
    int      isPaused;
    int      waits;         /* an update waits for it in the IOC */
    uint32_t inBuffer;      /* bytes in the send buffer of the IOC */
    int      hasTcp;        /* the kernel's figures of the server's socket are known: "tcp" */
    ebpfMonTcpBytes tcp;
    int      hasPeer;       /* the same of the client's own socket, if it is in the same network namespace: "unread" */
    uint32_t unread;        /* bytes that came and that the client has not read */
    uint64_t toldSince;     /* IOC_EVENTS tells that it is stalled since then; 0: it does not */
    unsigned sum;           /* subscriptions.c's own */
    /* flowIoc.c's own */
    uint64_t at;            /* its struct client */
    uint64_t taken, eaten;  /* what grows when an update is taken from its queues, and when the client reads … */
    uint64_t takenAt, eatenAt, sentAt; /* … and when it did last; when it acknowledged something last */
    uint64_t pausedAt, waitsAt; /* 0: it is not so, as the next */
    uint64_t fullAt;        /* since then the kernel has bytes at each look that it could not send */
    uint64_t seenAt, peerSeenAt; /* its sockets were */
} ebpfMonFlowClient;

typedef struct {
    uint64_t at;            /* its channel_in_use */
    char     pv[EBPFMON_NAME_SIZE]; /* as the client wrote it */
    long     record;        /* index in the catalogue */
    uint32_t subscriptions;
    ebpfMonUpdateCount sent;/* updates 0: not known */
    double   rate;          /* updates per second between the last two looks; NaN: not known */
} ebpfMonFlowChannel;

/* Subscriptions in dbEvent.c, and how their counters move. */
typedef struct {
    ebpfMonEventLists *lists; /* NULL: not known */
    uint64_t *mergedBefore; /* by subscription */
    double   *mergedRate;   /* by subscription, 1/s, since the update before */
    uint64_t updatedAt;     /* 0: never */
    int      hasMoved;      /* something moved in the last update */
} ebpfMonFlowLists;

/* Whose code takes the updates of a subscription of others. */
typedef enum { ebpfMonFlowNobody, ebpfMonFlowQsrv1, ebpfMonFlowQsrv2, ebpfMonFlowInside,
    EBPFMON_FLOW_OWNERS } ebpfMonFlowOwner;

#define EBPFMON_FLOW_FUNCTIONS 16 /* different ones of an IOC; the owner of further ones is not known */

typedef struct {
    uint32_t id;            /* ebpfMonTarget.iocId */
    pid_t    pid;
    char     name[EBPFMON_IOCNAME_SIZE];
    uint64_t readAt;        /* ebpfMonClientIoc.readAt of the look that was taken over; 0: none */
    char     why[160];      /* why its subscriptions are not known; "": they are, or not yet */
    ebpfMonCatalogue *cat;  /* it holds one reference */
    ebpfMonFlowLists ca;
    ebpfMonFlowClient *client; /* as in "ca" */
    unsigned clients;
    ebpfMonFlowChannel *channel; /* those with subscriptions */
    size_t   channels;
    ebpfMonFlowLists others; /* of those who are no CA clients */
    uint64_t othersNext;    /* not read again before */
    struct { uint64_t at; ebpfMonFlowOwner owner; } function[EBPFMON_FLOW_FUNCTIONS];
    unsigned functions;
    uint64_t serial;        /* grows when "others" are read */
    int      isRead;        /* the last update was possible */
    int      hasMoved;      /* … and something moved */
    uint64_t stoppedAt;     /* its process is stopped since then, or before; 0: it is not */
    int      isChanged;     /* something came or went since the lists were read */
    int      isSeen;        /* subscriptions.c's own, as the next */
    ebpfMonAccessState access;
} ebpfMonFlowIoc;

/* --- a look at the clients --- */

/* What a look at the clients has found, copied under the lock of its table. */
typedef struct {
    uint32_t id;            /* 0: nothing was copied */
    pid_t    pid;
    char     name[EBPFMON_IOCNAME_SIZE];
    const ebpfMonBaseRelease *base;
    ebpfMonCatalogue *cat;
    uint64_t clientQ, readAt;
    uint64_t *at;           /* of each client */
    ebpfMonFlowClient *client;
    unsigned clients;
    ebpfMonFlowChannel *channel;
    ebpfMonEventChannel *place; /* of each channel */
    size_t   channels;
} ebpfMonFlowLook;

/* The caller holds the lock of the table. Without memory look->id stays 0. */
void ebpfMonFlowLookCopy(ebpfMonFlowLook *look, const ebpfMonClientIoc *from);

/* Takes the look over, and frees what it does not keep. If clients and channels are the same as before, only the rates
 * are new; else reads the lists from the memory of the IOC. Nonzero: the clients are others than before. */
int ebpfMonFlowIocTake(ebpfMonFlowIoc *ioc, ebpfMonFlowLook *look);

void ebpfMonFlowIocClear(ebpfMonFlowIoc *ioc);

/* Reads the subscriptions of others: so often that it takes 0.1 % of a core at most. */
void ebpfMonFlowIocTakeOthers(ebpfMonFlowIoc *ioc);

/* Whose subscription it is: one of ioc->others. */
ebpfMonFlowOwner ebpfMonFlowIocGetOwner(const ebpfMonFlowIoc *ioc, const ebpfMonEventSubscription *sub);

/* How many of others get updates of this record, in all and by owner. "ioc" NULL: none. */
unsigned ebpfMonFlowIocCountOthers(const ebpfMonFlowIoc *ioc, long record, unsigned count[EBPFMON_FLOW_OWNERS]);

/* What QSRV 1 has subscribed to for clients whose monitors are not seen. QSRV 2 has a list of its clients, which says
 * more (clients/pvxsServer.h). */
void ebpfMonFlowIocTellUses(const ebpfMonFlowIoc *ioc, const ebpfMonUseSink *sink);

/* --- each second --- */

/* Reads the counters. Nonzero: clients or channels came or went, so a look at the clients should come soon. */
int ebpfMonFlowIocUpdate(ebpfMonFlowIoc *ioc, uint64_t now);

/* Finds the clients by their connections. */
typedef struct {
    struct flowKey *key;
    size_t   keys, room;
    int      isOld;         /* clients have changed since it was made */
    uint64_t now;
    uint32_t netns;
} ebpfMonFlowKeys;

/* Begin, add each client of each server, end. */
void ebpfMonFlowKeysBegin(ebpfMonFlowKeys *keys);
void ebpfMonFlowKeysAdd(ebpfMonFlowKeys *keys, pid_t server, ebpfMonFlowClient *client);
void ebpfMonFlowKeysEnd(ebpfMonFlowKeys *keys);
/* Reads the sockets of each network namespace in which there are clients, once. */
void ebpfMonFlowKeysReadSockets(ebpfMonFlowKeys *keys, uint64_t now);

/* Sets flow and since. "stoppedAt": as ebpfMonFlowIoc.stoppedAt. */
void ebpfMonFlowJudge(uint64_t stoppedAt, ebpfMonFlowClient *client, uint64_t now);

/* Nonzero: something is on its way to the client, or does not move, so that its sockets should be looked at. */
int ebpfMonFlowNeedsSockets(const ebpfMonFlowClient *client);

/* Nonzero: something waits for the client, and it, or the network to it, does not take it. */
int ebpfMonFlowIsStalled(const ebpfMonFlowClient *client);

/* "client does not read since 12 s" and so on; of ebpfMonFlowFine "ok". */
void ebpfMonFlowText(const ebpfMonFlowClient *client, char *text, size_t size);

/* Nonzero: this text names the client: a part of user@host, of its address:port or of its command, or its process id or
 * port. */
int ebpfMonFlowIsNamed(const ebpfMonFlowClient *client, const char *text);
int ebpfMonFlowIsText(const char *text, const char *name, const char *peer, const char *command, pid_t pid);

#endif
