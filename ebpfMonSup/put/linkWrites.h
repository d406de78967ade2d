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
 * A process made "put" on "channel" at "now" (monotonic ns): if a CA link of that process wrote to this channel within
 * the last minute, sets link, IOC, root, cause and origin of "put" to those of the newest such link. If other links of
 * the process wrote there within a second of it, the cause says so. Nonzero: there is such a link.
 */
int ebpfMonLinkWritesSetWriter(ebpfMonLinkWrites *writes, uint32_t pid, const char *channel, uint64_t now,
                               ebpfMonPut *put);

#endif
