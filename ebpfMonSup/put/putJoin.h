/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A put that is seen in the IOC and on the wire is one put. Both sides name it by its connection and the TCP
 * sequence number of its message. On one connection both see puts in the same order, each with a delay of its own:
 * so each connection has a queue of what the wire told and the inside has not, and the numbers of what the inside
 * published alone. Takes a lock of its own; any thread.
 */
#ifndef EBPFMON_PUTJOIN_H
#define EBPFMON_PUTJOIN_H

#include "ebpfMonEvent.h"
#include "model/put.h"
#include "wire/wire.h"

typedef struct {
    struct ebpfMonPeer peer; /* sport 0: the client's address alone is known */
    uint64_t at;      /* monotonic ns of the put */
    uint32_t seq;
    uint8_t  seqKind; /* enum ebpfMonSeq */
    uint8_t  moved;   /* "peer" is corrected: the wire knows better whose put it is */
} ebpfMonMessageKey;

typedef enum {
    ebpfMonPutJoinAlone, /* nobody looks at the wire of this connection, or it will not tell any more */
    ebpfMonPutJoinWait,  /* the wire has not told of it yet */
    ebpfMonPutJoinFound  /* it has: "put" has what both know, and the key its message */
} ebpfMonPutJoinResult;

/* --- the inside --- */

/* Up to when the wire was looked at (monotonic ns). */
uint64_t ebpfMonPutJoinGetPacketsRead(void);

/* "last": it is published now in any case, and what the wire tells of it later is the same put. */
ebpfMonPutJoinResult ebpfMonPutJoinMatchIoc(ebpfMonMessageKey *key, ebpfMonPut *put, int last);

/* --- the wire --- */

#define EBPFMON_PACKET_PUT_DATA 256

/* What stood in a PV when a put came, as far as somebody had read it. */
typedef struct {
    char   text[96];
    double number;
    int    isNumber;
    int    known;
    long   count;
} ebpfMonOldValue;

/* A put as the wire told it, kept until the inside tells of it too, or cannot any more. */
typedef struct ebpfMonPacketPut {
    struct ebpfMonPacketPut *next;
    uint64_t at;          /* monotonic ns when its packet came to this host */
    uint64_t time;        /* CLOCK_REALTIME ns of its packet */
    uint64_t id;
    uint32_t seq, end, sid;
    uint64_t hash;
    uint32_t count;
    uint32_t have;        /* bytes in data */
    int16_t  dbrType, baseType;
    uint8_t  elementSize, pva, replyAsked, isNumber;
    uint8_t  passed;      /* the IOC served a later message of this connection */
    uint8_t  closed;      /* the connection ended, or is not looked at any more */
    uint8_t  made;        /* the inside told of it: nothing is to be published */
    uint8_t  replied, ok, denied;
    double   number;
    uint32_t status;
    char     user[40], host[64];
    char     channel[128];
    char     message[64];
    struct ebpfMonPeer peer;
    uint32_t iocId;       /* the watched IOC that serves it; 0: none */
    ebpfMonOldValue old;
    uint8_t  data[];      /* elements, or with pva the value as text, terminated */
} ebpfMonPacketPut;

/* Whether the wire is looked at in a network namespace (0: for what is not loopback). */
void ebpfMonPutJoinSetCovered(const uint32_t *netns, unsigned count);
/* All packets that were handed up before "at" (monotonic ns) have been told of. */
void ebpfMonPutJoinSetPacketsRead(uint64_t at);

/* "at": monotonic ns when the packet came. */
void ebpfMonPutJoinAddPacket(const ebpfMonWireEvent *event, uint32_t iocId, const ebpfMonOldValue *old, uint64_t at);
/* Nonzero: to a put that nobody else told of until now; *old: what stood there before it. */
int ebpfMonPutJoinAddReply(const ebpfMonWireEvent *event, ebpfMonOldValue *old);
void ebpfMonPutJoinCloseCircuit(const struct ebpfMonPeer *peer);
/* A channel that was created before we looked has a name now. */
void ebpfMonPutJoinNameChannel(const struct ebpfMonPeer *peer, uint32_t sid, const char *name);

/* Those that nobody else will tell of: in a list, to be published and freed by the caller. */
ebpfMonPacketPut *ebpfMonPutJoinTakeUnmatched(uint64_t now);

/* Puts dropped for want of memory. */
uint64_t ebpfMonPutJoinCountDropped(void);

#endif
