/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the reassembler knows of a protocol: where its messages end, and what to do with one. It knows no more
 * of CA or PVA than this; a protocol knows nothing of packets.
 */
#ifndef EBPFMON_PROTOCOL_H
#define EBPFMON_PROTOCOL_H

#include "wire/wireEvent.h"

typedef struct ebpfMonCircuit ebpfMonCircuit; /* one TCP connection (circuit.h) */

typedef struct {
    const uint8_t *p;     /* the message from its header on */
    size_t   have;        /* bytes of it that are here: less than total when it was longer than limits.keep */
    size_t   total;
    uint64_t hash;        /* 64-bit FNV-1a of all bytes from "hashFrom" of the frame on; 0: some were never seen */
    uint64_t time;
    uint32_t seq;         /* of p[0] */
    int      fromServer;
} ebpfMonMessage;

typedef struct {
    size_t total;         /* bytes of the message that begins here, its header included */
    size_t hashFrom;      /* where the part begins whose hash is wanted */
    size_t hashTo;        /* … and ends; 0: at the end of the message */
} ebpfMonFrame;

typedef struct ebpfMonProtocol {
    ebpfMonWireProtocol id;
    size_t headerMax;     /* with this many bytes frame() can always say */

    /* What begins at p. 1: "frame" is filled in; 0: more bytes are needed; -1: no message of ours. Must be strict:
     * it is also what finds a header again after a gap, and what tells ours from other connections. May be asked at
     * any byte. "state" may be NULL, and is while a header is searched for and for the first messages of a
     * connection met in the middle: what is asked about then may be anything; else it follows a message. */
    int (*frame)(void *state, int fromServer, const uint8_t *p, size_t have, ebpfMonFrame *frame);

    /* Per-connection state. Memory is to be had by ebpfMonCircuitAlloc. NULL: none to be had. */
    void *(*open)(ebpfMonCircuit *circuit);
    void  (*close)(void *state);
    void  (*message)(void *state, const ebpfMonMessage *message);
    /* Bytes of this direction are missing before the next message; requests may have been among them. */
    void  (*gap)(void *state, int fromServer);
    /* ebpfMonWireName. May be NULL. */
    void  (*name)(void *state, uint32_t sid, const char *name);
    /* A UDP datagram that came to or from one of the protocol's ports, or may be of it by its first byte. Emits
     * searches, answers, beacons. "from_to": addr and port are the sender's, saddr and sport the receiver's. */
    void  (*datagram)(ebpfMonWire *wire, uint64_t time, const struct ebpfMonPeer *from_to, const uint8_t *p, size_t len);
} ebpfMonProtocol;

extern const ebpfMonProtocol ebpfMonCaProtocol;  /* ca.c */
extern const ebpfMonProtocol ebpfMonPvaProtocol; /* pva.c */

/* For protocols. Counted against limits.total; NULL at the limit. "size" of Free is that of Alloc. */
void *ebpfMonCircuitAlloc(ebpfMonCircuit *circuit, size_t size);
void  ebpfMonCircuitFree(ebpfMonCircuit *circuit, void *p, size_t size);
/* Fills in peer, circuit and protocol, and "" for each text that is NULL, and hands the event to the sink; a Found
 * event keeps the server's address and port as far as it has them. For UDP (ebpfMonWireEmit) the texts alone. */
void  ebpfMonCircuitEmit(ebpfMonCircuit *circuit, ebpfMonWireEvent *event);
void  ebpfMonWireEmit(ebpfMonWire *wire, ebpfMonWireEvent *event);
const ebpfMonWireLimits *ebpfMonCircuitLimits(const ebpfMonCircuit *circuit);
ebpfMonWireStats *ebpfMonCircuitStats(ebpfMonCircuit *circuit);

#endif
