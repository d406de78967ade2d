/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which records wrote through CA links a moment ago.
 *
 * A record writes in its own chain, where dbCaPutLinkCallback (dbCa.c) is called and the link is known. The value goes
 * out later, from thread dbCaLink, and arrives as the put of a client that is an IOC. The process and the name of the
 * channel tell that both are the same. All functions: any thread.
 */
#ifndef EBPFMON_LINKWRITES_H
#define EBPFMON_LINKWRITES_H

#include <stdint.h>
#include "model/put.h"

typedef struct {
    uint32_t pid;      /* of the IOC that wrote; 0: none */
    uint64_t at;       /* monotonic ns */
    ebpfMonChainId chain; /* the chain in which it wrote; if this chain completes an asynchronous record, the chain that
                           * began it */
    ebpfMonChainId step;  /* the chain in which it wrote; iocId 0: not known */
    char     channel[96]; /* the channel to which the link leads, as the database has it */
    char     link[EBPFMON_NAME_SIZE + 8]; /* RECORD.FIELD of the link */
    char     ioc[EBPFMON_NAME_SIZE];
    char     root[EBPFMON_NAME_SIZE];
    char     cause[96];
} ebpfMonLinkWrite;

typedef struct ebpfMonLinkWrites ebpfMonLinkWrites;

ebpfMonLinkWrites *ebpfMonLinkWritesNew(void); /* NULL without memory */
void ebpfMonLinkWritesFree(ebpfMonLinkWrites *writes);

void ebpfMonLinkWritesAdd(ebpfMonLinkWrites *writes, const ebpfMonLinkWrite *write);

/*
 * A process made "put" on "channel", and the IOC began to make it at "at" (monotonic ns): if CA links of that process
 * wrote to this channel within the minute before, sets link, IOC, root, cause and origin of "put" to those of the last
 * such write. If other links of the process wrote there within a second of it, the cause says so. Nonzero: there is
 * such a write.
 */
int ebpfMonLinkWritesSetWriter(ebpfMonLinkWrites *writes, uint32_t pid, const char *channel, uint64_t at,
                               ebpfMonPut *put);

/*
 * The same if it is known when the message of the put was sent (monotonic ns), which may be long before the IOC makes
 * the put: finds the write that this message carried. Each write is carried by one message: 0 if another message
 * carried the last one. Another call for the same message has the same result. If the link has written so often since
 * then that the write is forgotten, the chain, root and cause are not known.
 */
int ebpfMonLinkWritesTakeWriter(ebpfMonLinkWrites *writes, uint32_t pid, const char *channel, uint64_t sentAt,
                                ebpfMonPut *put);

/* The packet shows when the put was sent, and so which write of a CA link it carries. The thread of the IOC may have
 * waited for the lock set since, while the link wrote again. If the link wrote nothing that another packet did not
 * carry, something else in that process sent the put. */
void ebpfMonLinkWritesCorrect(ebpfMonLinkWrites *writes, ebpfMonPut *put, uint64_t sentAt);

#endif
