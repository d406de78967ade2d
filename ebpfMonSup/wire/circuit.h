/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A TCP connection (circuit), and the table of all. The side with the lower address and port is number 0, so that
 * packets of both directions have one key. Which side is the server is found out later. For the thread of the wire.
 */
#ifndef EBPFMON_CIRCUIT_H
#define EBPFMON_CIRCUIT_H

#include "wire/stream.h"
#include "wire/tls.h"
#include "wire/wireEvent.h"

/* --- shares of users ---
 *
 * Which open circuit ends if there are too many: each client has a share (common/shares.h has the rule). Who pays for a
 * circuit is asked when one must end, not before. For the thread of the wire. */

typedef struct ebpfMonCircuitShare ebpfMonCircuitShare;

/* The part of a circuit that this module uses. */
typedef struct ebpfMonSharedCircuit {
    struct ebpfMonSharedCircuit *older, *newer; /* in the order in which they were opened, of one who pays */
    ebpfMonCircuitShare *share;                 /* NULL: it is not open */
    const struct ebpfMonPeer *peer;
    struct ebpfMonFirst first;
    void    *circuit;
} ebpfMonSharedCircuit;

/* The open circuits of one who pays. */
struct ebpfMonCircuitShare {
    ebpfMonCircuitShare *next;
    ebpfMonWirePayer payer;
    unsigned count;
    ebpfMonSharedCircuit *newest;
};

/* All of it, zeros at first. */
typedef struct {
    ebpfMonCircuitShare *first, unshared; /* unshared: who pays was not asked yet */
    ebpfMonWireFindPayer findPayer;       /* NULL: one pays for all */
    void    *arg;
} ebpfMonCircuitShares;

/* When no circuit is open any more. */
void ebpfMonCircuitSharesFree(ebpfMonCircuitShares *shares);

/* --- circuits --- */

typedef enum { ebpfMonCircuitNew, ebpfMonCircuitOpen, ebpfMonCircuitForeign } ebpfMonCircuitPhase;

typedef struct {
    uint32_t addr[2];   /* as in struct ebpfMonPeer, as the next two */
    uint16_t port[2];   /* network byte order */
    uint32_t addr6[2][4];
    uint32_t netns;
} ebpfMonCircuitKey;

struct ebpfMonCircuit {
    ebpfMonCircuit *next;              /* the next one of its bucket in byKey */
    ebpfMonCircuit *older, *newer;     /* in order of last use: one list of open circuits, one of the others */
    ebpfMonWire *wire;
    ebpfMonCircuitKey key;
    uint64_t number;                   /* its number for events; 0: it is not open */
    uint64_t last;                     /* time of its last packet */
    ebpfMonCircuitPhase phase;
    int      server;                   /* number of the server's side; -1: not known */
    uint32_t again;                    /* the number of a SYN with the same ports, which was not answered yet, and the
                                        * side that sent it; 0: none */
    int      againSide;
    int      closer;                   /* side that closed it first; -1: none has */
    int      givenUp;                  /* nonzero: ebpfMonCircuitGiveUp */
    int      guessed;                  /* nonzero: the server's side was guessed, because its handshake was not seen */
    unsigned segments;                 /* segments with data, while it is new */
    ebpfMonTlsSide tls[2];             /* … and what they show of a handshake of TLS */
    uint64_t messages;
    const ebpfMonProtocol *protocol;
    void    *state;
    struct ebpfMonPeer peer;
    ebpfMonSharedCircuit shared;
    ebpfMonStream   stream[2];
    ebpfMonAssembly assembly[2];
};

typedef struct {
    ebpfMonCircuit *oldest, *newest;
    unsigned count;
} ebpfMonCircuitList;

typedef struct ebpfMonEndedCircuits ebpfMonEndedCircuits;

struct ebpfMonWire {
    ebpfMonMemoryAccount account;
    ebpfMonCircuitList open, others;
    ebpfMonCircuit **byKey;
    unsigned buckets;                  /* buckets of each table; a power of two */
    uint64_t number;                   /* the last number that a circuit got */
    ebpfMonEndedCircuits *ended;
    ebpfMonCircuitShares shares;
};

int  ebpfMonCircuitSameKey(const ebpfMonCircuitKey *a, const ebpfMonCircuitKey *b);
ebpfMonCircuit *ebpfMonCircuitFind(ebpfMonWire *wire, const ebpfMonCircuitKey *key);
/* Makes a new circuit. If there are too many, another one ends: one that is neither CA nor PVA yet, or else by the rule
 * of circuit.h. NULL: no memory, which is counted. */
ebpfMonCircuit *ebpfMonCircuitMake(ebpfMonWire *wire, const ebpfMonCircuitKey *key, uint64_t time);
/* Notes a packet of the circuit. */
void ebpfMonCircuitUsed(ebpfMonCircuit *circuit, uint64_t time);
/* Opens the circuit: its protocol and its server are known. Emits ebpfMonWireOpened. 0: no memory. */
int  ebpfMonCircuitOpened(ebpfMonCircuit *circuit, const ebpfMonProtocol *protocol, int server, uint64_t time);
/* Reads no more of it until it ends, because one side ("side") has sent urgent data. A server that reads as all of CA
 * and PVA do never gets an urgent byte: Linux takes it out of the stream (tcp_urg(), net/ipv4/tcp_input.c). So every
 * message behind it is somewhere else for us, and bytes may be taken for messages that are none. Emits
 * ebpfMonWireGivenUp. */
void ebpfMonCircuitGiveUp(ebpfMonCircuit *circuit, int side, uint64_t time);
void ebpfMonCircuitDisown(ebpfMonCircuit *circuit, uint64_t time); /* it is neither CA nor PVA */
void ebpfMonCircuitAgain(ebpfMonCircuit *circuit, uint64_t time);  /* its sides were guessed wrong: it is new again */
void ebpfMonCircuitEnd(ebpfMonCircuit *circuit, uint64_t time);    /* closes and frees it; not from a function of a
                                                                    * stream's sink */
/* Sets "peer" to its two ends. "server": number of the server's side. */
void ebpfMonCircuitPeer(const ebpfMonCircuit *circuit, int server, struct ebpfMonPeer *peer);

/* --- circuits that ended ---
 *
 * A connection between two network namespaces of a host has a copy of each packet in both. We may read the end in one
 * namespace before we read anything in the other, so packets of such a connection may still come. And anybody can send
 * packets of it again later, or end a circuit whose connection goes on.
 */

/* The caller frees it with free(). NULL: no memory. */
ebpfMonEndedCircuits *ebpfMonEndedCircuitsNew(void);

/* Notes that "circuit" ended at "time" (ns since 1970). "isOver": because packets showed the end of its connection. */
void ebpfMonEndedCircuitsAdd(ebpfMonEndedCircuits *ended, const ebpfMonCircuit *circuit, int isOver, uint64_t time);

/* Nonzero: a segment that "side" sent is such a copy. */
int ebpfMonEndedCircuitsHas(ebpfMonEndedCircuits *ended, const ebpfMonCircuitKey *key, int side,
    const ebpfMonSegment *segment, uint64_t time);

/* A circuit is met in the middle by this segment. If an ended one with the same ends has shown it already, the circuit
 * begins where that one ended: bytes of a connection are shown once. */
void ebpfMonEndedCircuitsResume(ebpfMonEndedCircuits *ended, ebpfMonCircuit *circuit, int side,
    const ebpfMonSegment *segment);

#endif
