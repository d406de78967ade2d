/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What records sent through CA links a moment ago. dbCaPutLinkCallback (dbCa.c) runs in the record's own chain and
 * knows the link; the value goes out later, from thread dbCaLink, and arrives as the put of a client that is the IOC.
 * The two are joined by process and channel name. Any thread.
 */
#ifndef EBPFMON_LINKWRITES_H
#define EBPFMON_LINKWRITES_H

#include <stdint.h>
#include "model/put.h"

typedef struct {
    uint32_t pid;      /* 0: free */
    uint64_t at;       /* ns */
    ebpfMonChainId chain;
    char     channel[96];
    char     link[EBPFMON_NAME_SIZE + 8]; /* record.field */
    char     ioc[EBPFMON_NAME_SIZE];
    char     root[EBPFMON_NAME_SIZE];
    char     cause[96];
    char     user[40], host[64]; /* of the client that began it, if one did */
} ebpfMonLinkWrite;

void ebpfMonLinkWritesAdd(const ebpfMonLinkWrite *link);

/* The link that sent to "channel" last, in *link; *others: how many other links of that process did within the last
 * second, so that it may as well have been one of them. Nonzero: there is one. */
int ebpfMonLinkWritesFind(uint32_t pid, const char *channel, uint64_t now, ebpfMonLinkWrite *link, unsigned *others);

/* The same, and what it tells of the put. */
int ebpfMonLinkWritesSetWriter(uint32_t pid, const char *channel, uint64_t now, ebpfMonPut *put);

#endif
