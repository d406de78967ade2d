/* SPDX-License-Identifier: BSD-3-Clause */
/* One direction of a TCP connection: puts its bytes in the order of their sequence numbers, each of them once. For the
 * thread of the wire. */
#ifndef EBPFMON_STREAM_H
#define EBPFMON_STREAM_H

#include "wire/packet.h"
#include "wire/protocol.h"
#include "wire/wireEvent.h"

/* --- memory of all streams ---
 *
 * The limits, the memory, the counts and the sink of a wire. All modules of this room use it. For the thread of the
 * wire. */

typedef struct {
    ebpfMonWireLimits limits;
    ebpfMonWireStats  stats;
    uint64_t          lossAt; /* see ebpfMonWireSetLossAt (wire.h) */
    ebpfMonWireSink   sink;
    void    *arg;
} ebpfMonMemoryAccount;

/* Begins with all counts 0. If "limits" is NULL or a member 0, the default applies. */
void ebpfMonMemoryAccountStart(ebpfMonMemoryAccount *account, const ebpfMonWireLimits *limits, ebpfMonWireSink sink,
    void *arg);
/* The sink gets no more events. */
void ebpfMonMemoryAccountMute(ebpfMonMemoryAccount *account);

/* Memory that counts against limits.total. Alloc: NULL at the limit. Free: "size" must be that of Alloc; "p" may be
 * NULL. */
void *ebpfMonMemoryAccountAlloc(ebpfMonMemoryAccount *account, size_t size);
void  ebpfMonMemoryAccountFree(ebpfMonMemoryAccount *account, void *p, size_t size);

/* Gives the event to the sink. Texts that are NULL become "". */
void  ebpfMonMemoryAccountEmit(ebpfMonMemoryAccount *account, ebpfMonWireEvent *event);

/* --- bytes between segments and messages ---
 *
 * The bytes of one direction that wait for the rest of their message, or that may contain the begin of one
 * (wire.c). For the thread of the wire. */

typedef struct {
    int      synced;    /* nonzero: we know where messages begin; 0: we search for a begin */
    int      fresh;     /* nonzero: buf[0] is the first byte of this direction */
    int      atStart;   /* nonzero: buf[0] is the first byte of a segment */
    uint8_t *buf;       /* synced: the message that is not complete yet; else the bytes in which a message may begin */
    size_t   have, room;
    uint32_t seq;       /* TCP sequence number of buf[0] */
    size_t   total;     /* synced: bytes of the whole message; 0: its header is not complete */
    size_t   hashFrom, hashTo;
    size_t   done;      /* synced: bytes of it that have come */
    uint64_t hash;
    uint64_t time;      /* time of the packet with its last byte so far */
    int      holed;     /* nonzero: some of these bytes were not seen */
    uint64_t skipped;   /* while we search: bytes that belong to no message */
    unsigned tries;     /* while we search: segments in which we have searched */
    unsigned shortBytes; /* bytes of segments that are shorter than a header, since they last made up a header */
    int      met;       /* nonzero: it was synced before, so the skipped bytes are a gap */
    uint32_t stretch;   /* how often the begin of a message was searched for; 0: every message was followed from the
                         * first byte of the connection */
} ebpfMonAssembly;

/* Frees the buffer. What we know of the direction stays. */
void ebpfMonAssemblyClear(ebpfMonMemoryAccount *account, ebpfMonAssembly *assembly);
/* Appends "n" bytes to the buffer. 0: no memory. */
int  ebpfMonAssemblyKeep(ebpfMonMemoryAccount *account, ebpfMonAssembly *assembly, const uint8_t *p, size_t n);
/* Nonzero: a segment of "n" bytes counts as one in which a message could be seen. A stream may be cut into single
 * bytes, so short segments count when they together have as many bytes as a header. */
int  ebpfMonAssemblyCounts(ebpfMonAssembly *assembly, size_t n);
/* Drops the first "n" bytes of the buffer while we search. "segAt": where in the buffer the last segment begins. */
void ebpfMonAssemblyForget(ebpfMonAssembly *assembly, size_t n, size_t segAt);
/* Begins a message. Its first bytes are in the buffer. */
void ebpfMonAssemblyFramed(ebpfMonAssembly *assembly, const ebpfMonFrame *frame);
/* Adds the next bytes of that message to its hash. */
void ebpfMonAssemblyHash(ebpfMonAssembly *assembly, const uint8_t *p, size_t n);
/* The hash of a message that is in one piece. */
uint64_t ebpfMonAssemblyHashWhole(const uint8_t *p, const ebpfMonFrame *frame);

/* --- the stream --- */

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
    uint32_t begun;     /* … of the first one that was seen */
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
