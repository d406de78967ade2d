/* SPDX-License-Identifier: BSD-3-Clause */
/* One direction of a connection between its bytes and its messages: what waits for more of a message, or for the
 * beginning of one (messages.c). */
#ifndef EBPFMON_ASSEMBLY_H
#define EBPFMON_ASSEMBLY_H

#include "wire/memoryAccount.h"
#include "wire/protocol.h"

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
    uint64_t time;      /* of the packet with its last byte so far */
    int      holed;     /* not all of them were seen */
    uint64_t skipped;   /* while searching: bytes that were no message */
    unsigned tries;     /* … segments looked at */
    unsigned shortBytes; /* of segments that are shorter than a header, since they made up one */
    int      met;       /* was in step once: what is skipped is a gap */
    uint32_t stretch;   /* how often a beginning was searched for; 0: in step since the connection's first byte */
} ebpfMonAssembly;

/* The buffer is given back; what is known of the direction stays. */
void ebpfMonAssemblyClear(ebpfMonMemoryAccount *account, ebpfMonAssembly *assembly);
/* Appends to the buffer. 0: no memory for it. */
int  ebpfMonAssemblyKeep(ebpfMonMemoryAccount *account, ebpfMonAssembly *assembly, const uint8_t *p, size_t n);
/* Whether a segment of "n" bytes counts as one in which a message could have been seen: a stream may be cut into single
 * bytes. Short ones count once they have the bytes of a header together. */
int  ebpfMonAssemblyCounts(ebpfMonAssembly *assembly, size_t n);
/* The first bytes of a search's buffer. "segAt": where in it the last segment begins. */
void ebpfMonAssemblyForget(ebpfMonAssembly *assembly, size_t n, size_t segAt);
/* A message of which the buffer holds the first bytes. */
void ebpfMonAssemblyFramed(ebpfMonAssembly *assembly, const ebpfMonFrame *frame);
/* The next bytes of that message go by. */
void ebpfMonAssemblyHash(ebpfMonAssembly *assembly, const uint8_t *p, size_t n);
/* … of a message that lies in one piece. */
uint64_t ebpfMonAssemblyHashWhole(const uint8_t *p, const ebpfMonFrame *frame);

#endif
