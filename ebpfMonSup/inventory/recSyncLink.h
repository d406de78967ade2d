/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection to a RecSync server for one IOC. No function waits: each call does what is possible now. Only the
 * thread of recSync.c uses this module. Times: s, monotonic.
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
    ebpfMonRecSyncSends,      /* sends its records */
    ebpfMonRecSyncDone        /* all records were sent, and the server sends pings */
} ebpfMonRecSyncState;

typedef struct ebpfMonRecSyncLink {
    struct ebpfMonRecSyncLink *next;
    ebpfMonInventoryIoc ioc;
    ebpfMonRecSyncState state;
    int      file;            /* its socket; -1: none */
    double   deadline;        /* the state must change before this time; Idle: no connection is made before it */
    double   lookAt;          /* when the variables and PVs are compared with those that were sent; 0: not any more, or
                               * not yet sent */
    double   pause;           /* of a server that is not EPICS Base: s until its PVs are looked at again */
    uint64_t variables;       /* a hash of those that were sent */
    ebpfMonRecSyncOut out;
    size_t   sent;            /* bytes of "out" that were sent */
    size_t   upload;          /* bytes at the begin of "out" that are greeting and upload; behind them are pongs */
    ebpfMonRecSyncIn in;
    unsigned records;         /* records that the server has, or gets now */
    char     why[160];        /* why the last connection failed; empty: it did not */
    int      isSeen;          /* the IOC is still watched. Only recSync.c uses this */
    int      isOwn;           /* the IOC has a RecSync client of its own: no connection is made for it */
    int      isUnreadable;    /* the last connection ended because the IOC could not be read */
    double   again;           /* s after which such an IOC is read again. It doubles each time, up to 320 s */
} ebpfMonRecSyncLink;

#define EBPFMON_RECSYNC_ANSWER 20.0 /* s that the server may take for the connection, the greeting, or a part of the
                                     * bytes */
#define EBPFMON_RECSYNC_PING   80.0 /* s without a ping, after which the server counts as gone. It pings every few s */

#define EBPFMON_RECSYNC_SETTLE  2.0 /* s that an IOC gets to open its ports, before the first connection */

/* The link owns the reference of ioc->cat from now on. NULL without memory: the caller keeps it. */
ebpfMonRecSyncLink *ebpfMonRecSyncLinkNew(const ebpfMonInventoryIoc *ioc, double now);
void ebpfMonRecSyncLinkFree(ebpfMonRecSyncLink *link); /* NULL does no harm */

/* Begins a connection. "key": from the announcement of the server. 0, or -1: link->why says what is wrong. */
int ebpfMonRecSyncLinkConnect(ebpfMonRecSyncLink *link, const struct sockaddr_in *server, uint32_t key, double now);

/* Looks whether the IOC has a RecSync client of its own, sets isOwn, and returns it. Such an IOC would be in the server
 * twice. */
int ebpfMonRecSyncLinkLookForClient(ebpfMonRecSyncLink *link);

/* Sends and receives as much as is possible without waiting. After the greeting of the server it reads the IOC,
 * which may take seconds; "worker": the calling thread, for signs of progress; "variables": names of further
 * variables of the environment. 0, or -1: the connection is closed, and link->why says why. If the IOC is the reason,
 * isUnreadable is set, and the deadline is when it is to be tried again. It is closed with 0, too, if the variables or
 * PVs are no longer those that were sent, or the IOC has a client of its own. */
int ebpfMonRecSyncLinkWork(ebpfMonRecSyncLink *link, ebpfMonWorker *worker, const char *variables, double now);

/* The events of epoll for which the link waits. */
uint32_t ebpfMonRecSyncLinkGetEvents(const ebpfMonRecSyncLink *link);

/* Closes the connection; then the server forgets the IOC. "why": the reason, empty if it is no failure. */
void ebpfMonRecSyncLinkClose(ebpfMonRecSyncLink *link, const char *why);

#endif
