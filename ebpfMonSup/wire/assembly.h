/* SPDX-License-Identifier: BSD-3-Clause */
/* One direction of a connection, between its bytes and its messages: the bytes that wait for the rest of their message,
 * or that may contain the begin of one (messages.c). For the thread of the wire. */
#ifndef EBPFMON_ASSEMBLY_H
#define EBPFMON_ASSEMBLY_H

#include "wire/memoryAccount.h"
#include "wire/protocol.h"

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

#endif
