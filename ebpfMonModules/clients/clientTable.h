/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef EBPFMON_CLIENTTABLE_H
#define EBPFMON_CLIENTTABLE_H

#include "clients/caClients.h"
#include "clients/iocConnections.h"
#include "clients/packetClients.h"
#include "clients/updateCounts.h"
#include "common/textReport.h"
#include "put/putClients.h"
#include "watch/target.h"

#define EBPFMON_WATCH_GAP 60 /* s. A shorter time without watching does not count as a gap of what is known of uses */

/* --- the table ---
 *
 * The clients that the CA servers of the watched IOCs had at the last look. Only the looking thread (below)
 * changes the table. Any thread may read it under its lock.
 */

/* What the monitor knows of a client, in addition to what the server knows. */
typedef struct {
    struct ebpfMonPeer peer;  /* both ends of its connection; sport 0: the server's end was not found */
    ebpfMonPutClient  who;    /* its process and user, if it is on this host */
    int64_t           bytes;  /* bytes that the server has sent to it on this connection; -1: not known */
} ebpfMonClientFacts;

/* The clients of one IOC, from the last look at which they could be read. */
typedef struct {
    uint32_t id;
    pid_t    pid;
    char     name[EBPFMON_IOCNAME_SIZE];
    uint64_t clientQ;            /* address of its list of clients; 0: it has no CA server of EPICS Base */
    ebpfMonCatalogue *cat;       /* the table holds one reference */
    ebpfMonCaClients *clients;   /* NULL: could not be read yet */
    ebpfMonClientFacts *facts;   /* one for each client */
    ebpfMonUpdateCount *counts;  /* one for each use; updates 0: not known. NULL: none is known */
    uint64_t readAt;             /* when they were read (monotonic ns) */
    int      isRead;             /* the last look could read them */
    unsigned unseen, unseenBefore; /* connections that are not seen, at the last look and the one before */
    int      isCounted;          /* … these are valid */
    uint64_t pvxs;               /* pvxsServer.h; 0: none, or not looked for yet */
    int      isPvxsSought;
    ebpfMonHiddenClients *hidden; /* its clients that only its memory shows, as over TLS; NULL: none is known */
    uint64_t unreadAt;           /* when something came that was not read (monotonic ns); 0: never */
    int      isSeen;             /* the IOC is still watched. Only the looking thread uses this */
} ebpfMonClientIoc;

typedef struct ebpfMonClientTable ebpfMonClientTable;

/* All arguments stay the caller's; the last two may be NULL: then connections that are not seen, and clients that
 * packets show, are left out. NULL without memory. */
ebpfMonClientTable *ebpfMonClientTableNew(ebpfMonTargets *targets, ebpfMonPutClients *clients,
                                          ebpfMonUpdateCounts *counts, ebpfMonFollowedCircuits *followed,
                                          ebpfMonPacketClients *packetClients);
void ebpfMonClientTableFree(ebpfMonClientTable *table);

/* From now on looks also count the connections that are not seen. */
void ebpfMonClientTableCountUnseen(ebpfMonClientTable *table);
/* Something came for this IOC that was not read. Any thread. */
void ebpfMonClientTableNoteUnread(ebpfMonClientTable *table, uint32_t iocId);
/* Nonzero: the table misses nothing that clients sent to this IOC in the last minutes. The caller holds the lock. */
int  ebpfMonClientTableIsComplete(const ebpfMonClientIoc *ioc);

/* The name of channel "sid" of this connection, if the last look found it in the memory of pvxs and packets had not
 * shown the begin of the connection. 0, or -1. Any thread. */
int  ebpfMonClientTableFindChannel(ebpfMonClientTable *table, const struct ebpfMonPeer *peer, uint32_t sid, char *name,
                                   size_t size);

/* Makes a look: reads the clients of all watched IOCs. Calls sign(arg) after each IOC as a sign of progress. If an
 * IOC cannot be read, its last list stays. The looking thread, without a lock. */
void ebpfMonClientTableLook(ebpfMonClientTable *table, void (*sign)(void *arg), void *arg);

/* The lock of the table. Only those of the published values and of packetClients.h may be taken under it. */
void ebpfMonClientTableLock(ebpfMonClientTable *table);
void ebpfMonClientTableUnlock(ebpfMonClientTable *table);

/* The CPU time of the last look (ns). The caller holds the lock. */
uint64_t ebpfMonClientTableGetCost(const ebpfMonClientTable *table);

/* The IOC with this index; NULL: there are not so many. The caller holds the lock, or is the looking thread. */
const ebpfMonClientIoc *ebpfMonClientTableGet(const ebpfMonClientTable *table, unsigned index);

/* What the table was made with. Any thread. */
ebpfMonPutClients    *ebpfMonClientTableGetPutClients(const ebpfMonClientTable *table);
ebpfMonPacketClients *ebpfMonClientTableGetPackets(const ebpfMonClientTable *table); /* NULL: there are none */

#endif
