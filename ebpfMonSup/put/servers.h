/* SPDX-License-Identifier: BSD-3-Clause */
/* Which process a server's address belongs to. Wire thread only. */
#ifndef EBPFMON_SERVERS_H
#define EBPFMON_SERVERS_H

#include "ebpfMonEvent.h"
#include "watch/target.h"

typedef struct {
    uint32_t iocId;  /* of an IOC that is watched from inside; 0: none */
    int      off;    /* an IOC that the filter does not want */
    char     name[EBPFMON_IOCNAME_SIZE]; /* of a local process; else ADDRESS:PORT */
} ebpfMonServer;

/* "peer": a connection, its netns the namespace's inode. Valid until the next call. */
const ebpfMonServer *ebpfMonServersFind(const struct ebpfMonPeer *peer, uint64_t now);

/* Whether an IOC may have made a put of that time (monotonic ns) while its probes were not all there; or, with "slow",
 * may make it yet, for it still runs. */
int ebpfMonServersMayHaveMissed(uint32_t iocId, uint64_t at, int slow);

/* Looks again: IOCs came or went, or are watched otherwise. "port": called for every port that an IOC listens on. */
void ebpfMonServersRefresh(void (*port)(void *arg, uint32_t netns, uint16_t port), void *arg);

#endif
