/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection with a RecSync server on behalf of one IOC. It never waits: each call does what can be done now. The
 * thread of recSync.c alone uses it.
 */
#ifndef EBPFMON_RECSYNCLINK_H
#define EBPFMON_RECSYNCLINK_H

#include <netinet/in.h>

#include "inventory/iocInventory.h"
#include "inventory/recSyncMessages.h"

typedef enum {
    ebpfMonRecSyncIdle,       /* no connection */
    ebpfMonRecSyncConnecting,
    ebpfMonRecSyncGreets,     /* waits for the server's greeting */
    ebpfMonRecSyncSends,      /* its records */
    ebpfMonRecSyncDone        /* the server has all, and asks now and then whether the IOC is still there */
} ebpfMonRecSyncState;

typedef struct ebpfMonRecSyncLink {
    struct ebpfMonRecSyncLink *next;
    ebpfMonInventoryIoc ioc;
    ebpfMonRecSyncState state;
    int      file;            /* -1: none */
    double   deadline;        /* monotonic s: in this state no longer than that */
    ebpfMonRecSyncOut out;
    size_t   sent;            /* bytes of "out" */
    ebpfMonRecSyncIn in;
    unsigned records;         /* of the last message "all sent" */
    char     why[160];        /* of the last failure; empty: none */
    int      isSeen;          /* for recSync.c: it is still watched */
} ebpfMonRecSyncLink;

#define EBPFMON_RECSYNC_ANSWER 20.0 /* s that a connection, a greeting, or the next step of sending may take */
#define EBPFMON_RECSYNC_PING   80.0 /* s without a ping: the server is gone. It pings every few seconds */

/* Takes over ioc->cat. NULL without memory. */
ebpfMonRecSyncLink *ebpfMonRecSyncLinkNew(const ebpfMonInventoryIoc *ioc);
void ebpfMonRecSyncLinkFree(ebpfMonRecSyncLink *link);

/* Begins a connection. 0, or -1 with "why". */
int ebpfMonRecSyncLinkConnect(ebpfMonRecSyncLink *link, const struct sockaddr_in *server, uint32_t key, double now);

/* Goes on, as far as it can without waiting. "worker" and "variables" are for the reading of the IOC, which happens here once
 * the server has greeted. 0; -1 with "why": it is closed. */
int ebpfMonRecSyncLinkWork(ebpfMonRecSyncLink *link, ebpfMonWorker *worker, const char *variables, double now);

/* Which events it waits for: those of epoll. */
uint32_t ebpfMonRecSyncLinkGetEvents(const ebpfMonRecSyncLink *link);

/* The server takes it that the IOC is gone. */
void ebpfMonRecSyncLinkClose(ebpfMonRecSyncLink *link, const char *why);

#endif
