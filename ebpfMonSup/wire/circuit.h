/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A TCP connection, and the table of them. Its two sides are numbered by address and port, the lower one 0, so that
 * both orientations are one connection; which of them is the server is found out.
 */
#ifndef EBPFMON_CIRCUIT_H
#define EBPFMON_CIRCUIT_H

#include "wire/stream.h"

/* One direction's messages (assemble.c). */
typedef struct {
    int      synced;    /* we know where messages begin; else one is searched for */
    int      fresh;     /* buf[0] is the connection's first byte */
    int      atStart;   /* buf[0] began a segment */
    uint8_t *buf;       /* synced: a message that is not complete; else: what could be the beginning of one */
    size_t   have, room;
    uint32_t seq;       /* of buf[0] */
    size_t   total;     /* synced: bytes of the message, 0: its header is not complete */
    size_t   hashFrom, hashTo;
    size_t   done;      /* synced: bytes of it that went by */
    uint64_t hash;
    int      holed;     /* not all of them were seen */
    uint64_t skipped;   /* while searching: bytes that were no message */
    unsigned tries;     /* … segments looked at */
    int      met;       /* was in step once: what is skipped is a gap */
} ebpfMonAssembly;

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

struct ebpfMonWire {
    ebpfMonWireLimits limits;
    ebpfMonWireStats  stats;
    ebpfMonWireSink   sink;
    void    *arg;
    ebpfMonCircuitList open, others;
    ebpfMonCircuit **byKey, **byNumber;
    unsigned buckets;                  /* of each, a power of two */
    uint64_t number;                   /* the last one given */
};

extern const ebpfMonProtocol *const ebpfMonProtocols[]; /* protocols.c */
extern const unsigned ebpfMonProtocolCount;

/* assemble.c */
void ebpfMonAssemblyClear(ebpfMonCircuit *circuit, ebpfMonAssembly *assembly);
/* From the buffer of a search on, once the protocol is known and a header was found at "offset". */
void ebpfMonAssemblyBegin(ebpfMonCircuit *circuit, int side, size_t offset, uint64_t time);
/* 0: no memory for it. */
int  ebpfMonAssemblyKeep(ebpfMonCircuit *circuit, ebpfMonAssembly *assembly, const uint8_t *p, size_t n);
void ebpfMonAssemblyForget(ebpfMonAssembly *assembly, size_t n, size_t segAt);

#define EBPFMON_RETAIN 2048 /* bytes of what may be a message, while searching: bounds what is looked at twice */

/* detect.c */
typedef enum { ebpfMonSearchNone, ebpfMonSearchPerhaps, ebpfMonSearchFound } ebpfMonSearchResult;
/* Where in the buffer a message begins. "segAt": where the last segment does. For Perhaps and None "offset" is where
 * what is still needed begins. "trusted": the protocol is known, or likely. */
ebpfMonSearchResult ebpfMonSearch(const ebpfMonProtocol *protocol, int fromServer, const ebpfMonAssembly *assembly,
    size_t segAt, int trusted, size_t *offset);
/* New bytes of a connection that is nobody's yet. */
void ebpfMonDetect(ebpfMonCircuit *circuit, int side, uint32_t seq, const uint8_t *p, size_t n, uint64_t time);

/* circuit.c */
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

/* wire.c: counted against limits.total. */
void *ebpfMonWireAlloc(ebpfMonWire *wire, size_t size);
void  ebpfMonWireRelease(ebpfMonWire *wire, void *p, size_t size);

#endif
