/* SPDX-License-Identifier: BSD-3-Clause */
/* One direction of a TCP connection: puts its bytes in the order of their sequence numbers, each of them once. For the
 * thread of the wire. */
#ifndef EBPFMON_STREAM_H
#define EBPFMON_STREAM_H

#include "wire/memoryAccount.h"
#include "wire/packet.h"
#include "wire/protocol.h"

/* A segment, or a part of one, that waits for an earlier one. */
typedef struct ebpfMonChunk {
    struct ebpfMonChunk *next;
    uint32_t seq;
    uint32_t wire; /* bytes that were sent … */
    uint32_t have; /* … and those of them that we have: the packet was cut */
    uint64_t time;
    uint8_t  data[];
} ebpfMonChunk;

/* What receives the bytes of a stream. Both functions may clear the stream, if they want no more of it. */
typedef struct {
    void (*bytes)(ebpfMonCircuit *circuit, int side, uint32_t seq, const uint8_t *p, size_t n, uint64_t time);
    void (*lost)(ebpfMonCircuit *circuit, int side, uint64_t bytes, uint64_t time); /* these bytes will not come */
} ebpfMonStreamSink;

typedef struct {
    const ebpfMonStreamSink *sink;
    ebpfMonCircuit *circuit; /* passed to the sink, as "side" is */
    int      side;
    ebpfMonMemoryAccount *account;
    int      started;
    uint64_t sureFrom;  /* from this time on we get all its packets; 0: its SYN was seen */
    uint32_t next;      /* sequence number of the next byte */
    ebpfMonChunk *head, *tail; /* segments that wait, in order, without overlap */
    size_t   pending;   /* bytes that these segments take */
    unsigned chunks;
    uint64_t since;     /* time at which the wait for "next" began */
    uint64_t lastAt;    /* time of the last bytes that were passed on */
    int      acked;     /* nonzero: the other side has acknowledged bytes that we have not seen, up to ackTo */
    uint32_t ackTo;
    uint64_t ackSince;
    int      syn, fin;  /* nonzero: SYN, FIN were seen, with the next two sequence numbers */
    uint32_t isn, finSeq;
    unsigned far;       /* segments in a row that are too far away */
    uint32_t peerAck;   /* the last number that the other side has acknowledged */
    int      ackedFar;  /* nonzero: that one is too far away, too */
} ebpfMonStream;

void ebpfMonStreamInit(ebpfMonStream *stream, ebpfMonMemoryAccount *account, const ebpfMonStreamSink *sink,
    ebpfMonCircuit *circuit, int side);
/* Its SYN was seen, with this sequence number. */
void ebpfMonStreamStart(ebpfMonStream *stream, uint32_t isn);
/* It was followed up to "next" before. "isn": that of its SYN; NULL: not seen. */
void ebpfMonStreamResume(ebpfMonStream *stream, const uint32_t *isn, uint32_t next);
/* Takes a segment with its data, which it copies if they must wait. */
void ebpfMonStreamSegment(ebpfMonStream *stream, const ebpfMonSegment *segment, uint64_t time);
/* The other side has acknowledged all bytes before "ack". */
void ebpfMonStreamAck(ebpfMonStream *stream, uint32_t ack, uint64_t time);
/* Gives up bytes that have been missing at "time" for longer than a second; or for a minute, if they will be sent
 * again by all that we know. UINT64_MAX: gives up all missing bytes. */
void ebpfMonStreamTick(ebpfMonStream *stream, uint64_t time);
/* Nonzero: a segment with this sequence number may be one of this direction. */
int  ebpfMonStreamIsNear(const ebpfMonStream *stream, uint32_t seq);
/* Nonzero: the receiver takes a RST with this sequence number for real: the one that it awaits (RFC 5961, 3.2). */
int  ebpfMonStreamIsReset(const ebpfMonStream *stream, uint32_t seq);
int  ebpfMonStreamEnded(const ebpfMonStream *stream); /* nonzero: all bytes before its FIN have come */
void ebpfMonStreamClear(ebpfMonStream *stream);

#endif
