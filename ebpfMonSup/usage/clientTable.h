/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which clients the CA servers of the watched IOCs have, as they were at the last look. One thread looks; any thread may
 * ask for what was seen, under the lock.
 */
#ifndef EBPFMON_CLIENTTABLE_H
#define EBPFMON_CLIENTTABLE_H

#include "ioc/caClients.h"
#include "put/putClients.h"
#include "usage/updateCounts.h"
#include "watch/target.h"

/* What we know of a client besides what the server has. */
typedef struct {
    struct ebpfMonPeer peer;  /* with the server's end; sport 0: not found */
    ebpfMonPutClient  who;    /* its process and user, if it is on this host */
    int64_t           bytes;  /* the server sent, since it connected; -1: not known */
} ebpfMonClientFacts;

/* An IOC, as it was at the last look that could read it. */
typedef struct {
    uint32_t id;
    pid_t    pid;
    char     name[EBPFMON_IOCNAME_SIZE];
    uint64_t clientQ;            /* 0: no CA server of EPICS Base is in it */
    ebpfMonCatalogue *cat;       /* one reference */
    ebpfMonCaClients *clients;   /* NULL: it could never be read */
    ebpfMonClientFacts *facts;   /* by client */
    ebpfMonUpdateCount *counts;  /* by use; updates 0: not known. NULL: none is */
    uint64_t readAt;             /* monotonic ns */
    int      isRead;             /* at the last look */
    int      isSeen;             /* it is still watched; the looking thread's own */
} ebpfMonClientIoc;

typedef struct ebpfMonClientTable ebpfMonClientTable;

/* Targets, clients and counts stay the caller's. NULL without memory. */
ebpfMonClientTable *ebpfMonClientTableNew(ebpfMonTargets *targets, ebpfMonPutClients *clients,
                                          ebpfMonUpdateCounts *counts);
void ebpfMonClientTableFree(ebpfMonClientTable *table);

/* Looks at all IOCs that are watched. Calls "sign" (progress) after each. The looking thread. */
void ebpfMonClientTableLook(ebpfMonClientTable *table, void (*sign)(void *arg), void *arg);

/* CPU time that the last look took; ns. Under the lock. */
uint64_t ebpfMonClientTableGetCost(const ebpfMonClientTable *table);

/* The lock of all that was seen; that of the published values may be taken under it, no other. */
void ebpfMonClientTableLock(ebpfMonClientTable *table);
void ebpfMonClientTableUnlock(ebpfMonClientTable *table);

/* The i-th IOC; NULL: there are not so many. Under the lock, or the looking thread. */
const ebpfMonClientIoc *ebpfMonClientTableGet(const ebpfMonClientTable *table, unsigned index);

#endif
