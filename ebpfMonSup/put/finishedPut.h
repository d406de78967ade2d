/* SPDX-License-Identifier: BSD-3-Clause */
/* A finished put: no more can become known of it. And the summary of a put that traces keep. */
#ifndef EBPFMON_FINISHEDPUT_H
#define EBPFMON_FINISHEDPUT_H

#include "ebpfMonEvent.h"
#include "model/put.h"

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

#endif
