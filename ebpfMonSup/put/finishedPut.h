/* SPDX-License-Identifier: BSD-3-Clause */
/* A finished put: no more can become known of it. And the summary of a put that traces keep. */
#ifndef EBPFMON_FINISHEDPUT_H
#define EBPFMON_FINISHEDPUT_H

#include <stdint.h>
#include <sys/types.h>

#include "model/put.h"
#include "ebpfMonEvent.h"

/* The message by which a client sent a put: the circuit and a TCP sequence number, the same on both hosts. */
typedef struct {
    struct ebpfMonPeer peer; /* addr 0: no message. sport 0: only the client's address is known */
    struct ebpfMonPeer outer; /* as in ebpfMonPacketPut */
    struct ebpfMonFirst first; /* of the circuit, if "moved"; else zeros */
    uint64_t at;      /* monotonic ns of the put */
    uint64_t sentAt;  /* … and of its packet, for a CA put; 0: not known */
    uint32_t seq;
    uint32_t seqFrom; /* EBPFMON_SEQ_RECEIVED: the first byte of what the thread received last */
    uint8_t  seqKind; /* enum ebpfMonSeq: what "seq" is */
    uint8_t  moved;   /* the packet showed that the put came through another circuit; "peer" is that one now */
} ebpfMonMessageKey;

/* The members of a put that its trace needs: much less than ebpfMonPut, because many summaries are kept. */
typedef struct {
    char     pv[sizeof(((ebpfMonPut *)0)->pv)];
    char     who[EBPFMON_WHO_SIZE], origin[EBPFMON_ORIGIN_SIZE];
    char     user[40], peer[EBPFMON_PEER_SIZE], server[EBPFMON_PEER_SIZE], command[64];
    uint32_t pid;          /* of the client, if it is on this host and certain */
    char     linkIoc[EBPFMON_NAME_SIZE]; /* it came through a CA link of this IOC … */
    ebpfMonChainId linkChain;            /* … in this chain */
    ebpfMonThrough through;
    ebpfMonMessageKey key;
} ebpfMonPutSummary;

typedef struct {
    uint32_t iocId;  /* with tid and id the event of the put; all 0: it was seen in packets only */
    uint32_t tid;
    uint64_t id;
    ebpfMonPut *put; /* with all its texts; the receiver may change it, and must not keep the pointer */
    const ebpfMonMessageKey *key;
    int isPublished;      /* its packet was published as a put already; this only tells which event it was */
} ebpfMonFinishedPut;

/* Receives each finished put once. Called while no lock is held. */
typedef void (*ebpfMonPutSink)(void *arg, const ebpfMonFinishedPut *finished);

void ebpfMonPutSummaryMake(const ebpfMonPut *put, const ebpfMonMessageKey *key, ebpfMonPutSummary *summary);

/* --- a put from packets ---
 *
 * A put as its packets show it. It is kept until the same put is seen in the IOC, or will not be seen there any
 * more. */

#define EBPFMON_PACKET_PUT_DATA 256 /* bytes of a CA value that are kept */
#define EBPFMON_CLOCKS_NS 1000000   /* the time of a packet is computed by two clocks */

/* The value of a PV before a put, as far as a client wrote or read it and we saw that. */
typedef struct {
    char   text[96];
    double number;
    int    isNumber, isText; /* as in ebpfMonPut */
    int    known; /* 0: nothing was seen, and the other members are not valid */
    long   count;
} ebpfMonOldValue;

typedef struct ebpfMonPacketPut {
    struct ebpfMonPacketPut *next, *before; /* in the queue of its circuit; what was taken out of it is a list by
                                             * "next" */
    struct ebpfMonPacketPut *nextSeq, *nextId; /* of the same bucket (joinCircuits.h) */
    struct ebpfMonJoinCircuit *in;
    uint64_t at;          /* monotonic ns when its packet came to this host */
    uint64_t since;       /* monotonic ns when the last of replied, passed, closed and isPublished was found; else
                           * "at" */
    uint64_t time;        /* CLOCK_REALTIME ns of its packet */
    uint64_t id;          /* these three as in ebpfMonWireEvent */
    uint64_t circuit;
    uint32_t stretch;
    uint32_t seq, end, sid;
    uint64_t hash;
    uint32_t count;
    uint32_t have;        /* bytes in data */
    int16_t  dbrType, baseType;
    uint8_t  elementSize, pva, replyAsked, isNumber;
    uint8_t  isCall;      /* of pvAccess: no event of an IOC tells of it */
    uint8_t  passed;      /* the IOC served a later message of this circuit */
    uint8_t  closed;      /* the circuit ended, or is not watched any more */
    uint8_t  made;        /* members of its PVA group were seen in the IOC: it is published only if the server has
                           * refused it, and … */
    uint8_t  told;        /* … none of these members tells that */
    uint8_t  inside;      /* it came when each put of its IOC was seen inside */
    uint8_t  isPublished; /* it is published, or … */
    uint8_t  isTaken;     /* … it is not decided yet whether it is; the IOC may make it still. In what was taken out:
                           * such a copy is kept */
    uint8_t  isDoubtful;  /* nothing shows that it is a put: it must not be published */
    uint8_t  isUnread;    /* bytes still waited in the socket of its server when it was given up */
    uint8_t  replied, ok, denied, isUnsure; /* the reply, as in ebpfMonWireEvent */
    double   number;
    uint32_t status;
    char     user[40], host[64];
    char     channel[128];
    char     message[64];
    char     returned[128]; /* what a call has returned; "": nothing, or it is not known */
    uint64_t took;        /* ns; of a call, until its reply; 0: not known */
    struct ebpfMonPeer peer;
    struct ebpfMonPeer outer; /* of which that connection is a translation (packetEvents.h); port 0: of none */
    struct ebpfMonFirst first;
    uint32_t iocId;       /* the IOC that serves it; 0: none, or it is not found yet */
    pid_t    pid;         /* the process that serves it; 0: not known */
    ebpfMonOldValue old;
    uint8_t  data[];      /* CA: the elements, big-endian; PVA: the value as text, terminated */
} ebpfMonPacketPut;

#endif
