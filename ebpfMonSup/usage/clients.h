/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef EBPFMON_CLIENTS_H
#define EBPFMON_CLIENTS_H

#include "common/textReport.h"
#include "ioc/caServer.h"
#include "put/putClients.h"
#include "usage/iocConnections.h"
#include "usage/pvaClients.h"
#include "watch/target.h"
#include "wire/wireEvent.h"

/* --- counts of updates ---
 *
 * Counts in packets how many updates, and how many bytes, a CA server has sent for each channel with subscriptions. If
 * the first update came before the monitor read packets, the channel has no count. Any thread; the module has a lock of
 * its own. */

#define EBPFMON_UPDATE_COUNTS 65536 /* channels that are counted. Channels beyond have no count */

typedef struct ebpfMonUpdateCounts ebpfMonUpdateCounts;

typedef struct {
    uint64_t updates, bytes; /* of all subscriptions of the channel; bytes: whole messages with their headers */
    int      isAtLeast;      /* both are lower bounds: packets were lost, so messages may be missing */
} ebpfMonUpdateCount;

ebpfMonUpdateCounts *ebpfMonUpdateCountsNew(void); /* NULL without memory */
void ebpfMonUpdateCountsFree(ebpfMonUpdateCounts *counts);

/* Counts an event of the kind ebpfMonWireValue, if it is an update. An update without memory or room is not counted. */
void ebpfMonUpdateCountsAdd(ebpfMonUpdateCounts *counts, const ebpfMonWireEvent *ev);

/* Finds the count of a channel. "peer": both ends of its circuit; "sid": the server's number of the channel. A count
 * that is found is kept for the next looks. 0, or -1: there is none. */
int ebpfMonUpdateCountsFind(ebpfMonUpdateCounts *counts, const struct ebpfMonPeer *peer, uint32_t sid,
                            ebpfMonUpdateCount *count);

/* Call this at the end of each look: forgets the counts that no look has asked for, three times in a row. */
void ebpfMonUpdateCountsForget(ebpfMonUpdateCounts *counts);

/* --- clients --- */

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
    uint64_t unreadAt;           /* when something came that was not read (monotonic ns); 0: never */
    int      isSeen;             /* the IOC is still watched. Only the looking thread uses this */
} ebpfMonClientIoc;

typedef struct ebpfMonClientTable ebpfMonClientTable;

/* All arguments stay the caller's. NULL without memory. */
ebpfMonClientTable *ebpfMonClientTableNew(ebpfMonTargets *targets, ebpfMonPutClients *clients,
                                          ebpfMonUpdateCounts *counts);
void ebpfMonClientTableFree(ebpfMonClientTable *table);

/* From now on looks also count the connections that are not seen. */
void ebpfMonClientTableSetFollowed(ebpfMonClientTable *table, ebpfMonFollowedCircuits *followed);
/* From now on clients of pvAccess are in the reports, too. */
void ebpfMonClientTableSetPvaClients(ebpfMonClientTable *table, ebpfMonPvaClients *pvaClients);
/* Something came for this IOC that was not read. Any thread. */
void ebpfMonClientTableNoteUnread(ebpfMonClientTable *table, uint32_t iocId);
/* Nonzero: all that clients sent to this IOC in the last minutes was seen. The caller holds the lock. */
int  ebpfMonClientTableSeesAll(const ebpfMonClientIoc *ioc);

/* The lock of the table. Only the lock of the published values may be taken under it. */
void ebpfMonClientTableLock(ebpfMonClientTable *table);
void ebpfMonClientTableUnlock(ebpfMonClientTable *table);

/* The CPU time of the last look (ns). The caller holds the lock. */
uint64_t ebpfMonClientTableGetCost(const ebpfMonClientTable *table);

/* The IOC with this index; NULL: there are not so many. The caller holds the lock, or is the looking thread. */
const ebpfMonClientIoc *ebpfMonClientTableGet(const ebpfMonClientTable *table, unsigned index);

/* --- reports ---
 *
 * Writes the clients as tables for a person, and as published values. All functions take the lock of the client
 * table.
 */

/* Adds the clients of the IOCs with a matching name (command ebpfMonClients). Any thread. */
void ebpfMonClientReportAddClients(ebpfMonTextReport *report, ebpfMonClientTable *table, const char *iocPattern);

/* Adds the channels with a matching PV: the name that the client used, or the record's name (command ebpfMonUsers). Any
 * thread. */
void ebpfMonClientReportAddUsers(ebpfMonTextReport *report, ebpfMonClientTable *table, const char *pvPattern);

/* --- the thread ---
 *
 * The looking thread. A look reads the lists of clients in the CA servers of all watched IOCs. The thread looks every
 * ten seconds, and when another thread requests a look. It reads the memory of other processes; each read has a
 * deadline (host/foreign.h).
 */

typedef struct ebpfMonClientLooker ebpfMonClientLooker;

/* The table stays the caller's. The looking thread calls looked(arg) after each look, without a lock; it may be
 * NULL. NULL without memory. */
ebpfMonClientLooker *ebpfMonClientLookerNew(ebpfMonClientTable *table, void (*looked)(void *arg), void *arg);
void ebpfMonClientLookerFree(ebpfMonClientLooker *looker); /* the thread has ended. NULL does no harm */

/* 0, or -1 without memory. */
int ebpfMonClientLookerStart(ebpfMonClientLooker *looker);
/* As ebpfMonWorkerStop. NULL: 0. */
int ebpfMonClientLookerStop(ebpfMonClientLooker *looker);

/* Requests a look, and waits for its end, but at most "seconds". 0, or -1: the look has not ended. Any thread but
 * the looking thread; of several callers one waits after the other. */
int ebpfMonClientLookerLook(ebpfMonClientLooker *looker, double seconds);

/* Requests a look, and does not wait for it. Any thread. */
void ebpfMonClientLookerRequest(ebpfMonClientLooker *looker);

/* Call this when the patterns of the published clients were changed: the looking thread soon publishes the result of
 * the last look again. Any thread. */
void ebpfMonClientLookerPublish(ebpfMonClientLooker *looker);

#endif
