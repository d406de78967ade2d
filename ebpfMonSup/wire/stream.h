/* SPDX-License-Identifier: BSD-3-Clause */
/* One direction of a TCP connection: bytes in the order of their sequence numbers, each once. */
#ifndef EBPFMON_STREAM_H
#define EBPFMON_STREAM_H

#include "wire/memoryAccount.h"
#include "wire/packet.h"
#include "wire/protocol.h"

/* A segment that waits for an earlier one. */
typedef struct ebpfMonChunk {
    struct ebpfMonChunk *next;
    uint32_t seq;
    uint32_t wire; /* bytes that were sent … */
    uint32_t have; /* … and those of them that are here: the rest was snapped */
    uint64_t time;
    uint8_t  data[];
} ebpfMonChunk;

/* Whom a stream hands over to. Either may clear the stream: no more of it is wanted. */
typedef struct {
    void (*bytes)(ebpfMonCircuit *circuit, int side, uint32_t seq, const uint8_t *p, size_t n, uint64_t time);
    void (*lost)(ebpfMonCircuit *circuit, int side, uint64_t bytes, uint64_t time); /* … that will not come */
} ebpfMonStreamSink;

typedef struct {
    const ebpfMonStreamSink *sink;
    ebpfMonCircuit *circuit; /* for the sink, as is its side */
    int      side;
    ebpfMonMemoryAccount *account;
    int      started;
    uint32_t next;      /* sequence number of the byte that is wanted next */
    ebpfMonChunk *head, *tail; /* in order, without overlap */
    size_t   pending;   /* bytes that they take */
    unsigned chunks;
    uint64_t since;     /* when the wait for "next" began */
    uint64_t lastAt;    /* time of the last bytes that were handed over */
    int      acked;     /* the other side has acknowledged bytes that we have not seen, up to … */
    uint32_t ackTo;
    uint64_t ackSince;
    int      syn, fin;  /* seen, with these sequence numbers */
    uint32_t isn, finSeq;
    unsigned far;       /* segments in a row that are nowhere near */
} ebpfMonStream;

void ebpfMonStreamInit(ebpfMonStream *stream, ebpfMonMemoryAccount *account, const ebpfMonStreamSink *sink,
    ebpfMonCircuit *circuit, int side);
/* Its SYN was seen. */
void ebpfMonStreamStart(ebpfMonStream *stream, uint32_t isn);
void ebpfMonStreamSegment(ebpfMonStream *stream, const ebpfMonSegment *segment, uint64_t time);
/* The other side has seen all before "ack". */
void ebpfMonStreamAck(ebpfMonStream *stream, uint32_t ack, uint64_t time);
/* Gives up waiting for what has been missing for longer than a second at "time", or than a minute if it will be sent again;
 * UINT64_MAX: for all. */
void ebpfMonStreamTick(ebpfMonStream *stream, uint64_t time);
int  ebpfMonStreamEnded(const ebpfMonStream *stream); /* its FIN is reached */
void ebpfMonStreamClear(ebpfMonStream *stream);

#endif
