/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the other modules know of a protocol: where its messages end, and what to do with a message. Only ca*.c and
 * pva*.c know more about CA and PVA; they know nothing of packets.
 */
#ifndef EBPFMON_PROTOCOL_H
#define EBPFMON_PROTOCOL_H

#include "wire/wireEvent.h"

typedef struct ebpfMonCircuit ebpfMonCircuit; /* a TCP connection (circuit.h) */

typedef struct {
    const uint8_t *p;     /* the message from its header on */
    size_t   have;        /* bytes of it that we have; fewer than "total" if it is longer than limits.keep */
    size_t   total;
    uint64_t hash;        /* 64-bit FNV-1a of its bytes from hashFrom to hashTo of the frame; 0: some were not seen */
    uint64_t time;
    uint32_t seq;         /* TCP sequence number of p[0] */
    int      fromServer;
} ebpfMonMessage;

typedef struct {
    size_t total;         /* bytes of the message, with its header */
    size_t hashFrom;      /* begin of the part to be hashed */
    size_t hashTo;        /* … and its end; 0: the end of the message */
} ebpfMonFrame;

typedef struct ebpfMonProtocol {
    ebpfMonWireProtocol id;
    size_t headerMax;     /* with so many bytes frame() can always decide */

    /* Finds the message that begins at "p". 1: "frame" is set; 0: it needs more bytes; -1: this is no message of the
     * protocol. It must be strict, because it also finds a header after a gap, and tells our protocols from others. It
     * may be called at any byte. "state" is NULL while a header is searched for, and for the first messages of a
     * connection that began before we watched: then the bytes may be anything. Otherwise they follow a message. */
    int (*frame)(void *state, int fromServer, const uint8_t *p, size_t have, ebpfMonFrame *frame);

    /* The state of a connection. Its memory comes from ebpfMonCircuitAlloc. NULL: no memory. */
    void *(*open)(ebpfMonCircuit *circuit);
    void  (*close)(void *state);
    void  (*message)(void *state, const ebpfMonMessage *message);
    /* Bytes of this direction are missing before the next message. They may have contained requests. */
    void  (*gap)(void *state, int fromServer);
    /* See ebpfMonWireRemind. May be NULL. */
    void  (*remind)(void *state, uint64_t time);
    /* A UDP datagram from or to a port of the protocol, or one with a matching first byte. Emits searches, answers and
     * beacons. "from_to": addr and port are those of the sender, saddr and sport those of the receiver. */
    void (*datagram)(ebpfMonWire *wire, uint64_t time, const struct ebpfMonPeer *from_to, const uint8_t *p, size_t len);
} ebpfMonProtocol;

extern const ebpfMonProtocol ebpfMonCaProtocol;  /* ca.c */
extern const ebpfMonProtocol ebpfMonPvaProtocol; /* pva.c */

/* Memory for protocols, which counts against limits.total. Alloc: NULL at the limit. Free: "size" must be that of
 * Alloc. */
void *ebpfMonCircuitAlloc(ebpfMonCircuit *circuit, size_t size);
void  ebpfMonCircuitFree(ebpfMonCircuit *circuit, void *p, size_t size);
/* Give an event to the sink. Texts that are NULL become "". ebpfMonCircuitEmit also sets peer, circuit, protocol and
 * stretch; in a Found event, the address and port of the server stay if they are set. ebpfMonWireEmit is for UDP. */
void  ebpfMonCircuitEmit(ebpfMonCircuit *circuit, ebpfMonWireEvent *event);
void  ebpfMonWireEmit(ebpfMonWire *wire, ebpfMonWireEvent *event);
const ebpfMonWireLimits *ebpfMonCircuitLimits(const ebpfMonCircuit *circuit);
ebpfMonWireStats *ebpfMonCircuitStats(ebpfMonCircuit *circuit);

#endif
