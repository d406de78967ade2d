/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A TCP connection, and the table of them. Its two sides are numbered by address and port, the lower one 0, so that
 * both orientations are one connection; which of them is the server is found out.
 */
#ifndef EBPFMON_CIRCUIT_H
#define EBPFMON_CIRCUIT_H

#include "wire/assembly.h"
#include "wire/stream.h"

typedef enum { ebpfMonCircuitNew, ebpfMonCircuitOpen, ebpfMonCircuitForeign } ebpfMonCircuitPhase;

typedef struct {
    uint32_t addr[2];
    uint16_t port[2];   /* network byte order */
    uint32_t netns;
} ebpfMonCircuitKey;

struct ebpfMonCircuit {
    ebpfMonCircuit *next;              /* of its place in the table */
    ebpfMonCircuit *older, *newer;     /* by last use: one list of the open ones, one of the others */
    ebpfMonWire *wire;
    ebpfMonCircuitKey key;
    uint64_t number;                   /* 0: not opened */
    ebpfMonCircuit *nextNumber;
    uint64_t last;                     /* time of the last packet */
    ebpfMonCircuitPhase phase;
    int      server;                   /* side, -1: not known */
    int      closer;                   /* side that closed it first, -1: none yet */
    int      guessed;                  /* … without its handshake */
    unsigned segments;                 /* with data, while new */
    uint64_t messages;
    const ebpfMonProtocol *protocol;
    void    *state;
    struct ebpfMonPeer peer;
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
    ebpfMonCircuit **byKey, **byNumber;
    unsigned buckets;                  /* of each, a power of two */
    uint64_t number;                   /* the last one given */
    ebpfMonEndedCircuits *ended;
};

int  ebpfMonCircuitSameKey(const ebpfMonCircuitKey *a, const ebpfMonCircuitKey *b);
ebpfMonCircuit *ebpfMonCircuitFind(ebpfMonWire *wire, const ebpfMonCircuitKey *key);
ebpfMonCircuit *ebpfMonCircuitByNumber(ebpfMonWire *wire, uint64_t number);
ebpfMonCircuit *ebpfMonCircuitMake(ebpfMonWire *wire, const ebpfMonCircuitKey *key, uint64_t time);
void ebpfMonCircuitUsed(ebpfMonCircuit *circuit, uint64_t time);
/* 0: no memory for it. */
int  ebpfMonCircuitOpened(ebpfMonCircuit *circuit, const ebpfMonProtocol *protocol, int server, uint64_t time);
void ebpfMonCircuitDisown(ebpfMonCircuit *circuit, uint64_t time); /* it is foreign */
void ebpfMonCircuitAgain(ebpfMonCircuit *circuit, uint64_t time);  /* it is new again: roles were guessed wrong */
void ebpfMonCircuitEnd(ebpfMonCircuit *circuit, uint64_t time);    /* and free it; not within a call of a stream */
void ebpfMonCircuitPeer(const ebpfMonCircuit *circuit, int server, struct ebpfMonPeer *peer);

#endif
