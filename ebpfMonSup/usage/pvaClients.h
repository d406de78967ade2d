/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which clients are connected by pvAccess, and their monitors, as packets show them. A connection whose begin was not
 * seen is there from its first messages on; what it had before has no name. The packet thread adds; any thread may read
 * under the lock.
 */
#ifndef EBPFMON_PVACLIENTS_H
#define EBPFMON_PVACLIENTS_H

#include "common/textReport.h"
#include "put/putClients.h"
#include "put/servers.h"
#include "wire/wireEvent.h"

#define EBPFMON_PVA_MONITORS 65536 /* of all clients; further ones are not kept */
#define EBPFMON_PVA_NAME     128

/* Times are monotonic ns, of when the packet was read. */
typedef struct ebpfMonPvaMonitor {
    struct ebpfMonPvaMonitor *next, **back; /* of its client */
    struct ebpfMonPvaMonitor *nextOfBucket;
    struct ebpfMonPvaClient *client;
    uint64_t serial;        /* never used again */
    uint32_t ioid, sid;
    char     name[EBPFMON_PVA_NAME]; /* of its channel; "": it began before the monitor read packets */
    uint32_t queueSize;     /* that the client has requested; 0: none */
    uint8_t  isPipelined;
    uint8_t  isStopped;     /* by the client */
    uint8_t  isAtLeast;     /* packets of the server were lost: the counts are lower bounds … */
    uint8_t  isUnsure;      /* … of the client: it may be another monitor now */
    uint32_t window;        /* so many updates more the client takes */
    uint64_t closedAt;      /* since then none; 0: some, or it is not pipelined */
    uint64_t stoppedAt;
    uint64_t updates, bytes, updatedAt;
    uint64_t overruns;      /* updates which say that values were left out */
    uint64_t unread;        /* updates of which that was not seen */
} ebpfMonPvaMonitor;

typedef struct ebpfMonPvaClient {
    struct ebpfMonPvaClient *nextOfBucket;
    uint64_t circuit;       /* wireEvent.h */
    struct ebpfMonPeer peer;
    struct ebpfMonFirst first;
    uint64_t openedAt;
    char     user[64], host[64]; /* as it claims; "": not known */
    uint32_t iocId;         /* of the server; 0: no watched IOC */
    pid_t    pid;           /* its process on this host; 0: it is on another one, or the packets do not count */
    char     server[EBPFMON_IOCNAME_SIZE];
    unsigned channels, monitors;
    unsigned unkept;        /* monitors that are not kept: there are too many */
    ebpfMonPvaMonitor *monitor;
} ebpfMonPvaClient;

typedef struct ebpfMonPvaClients ebpfMonPvaClients;

/* "putClients" stay the caller's. NULL without memory. */
ebpfMonPvaClients *ebpfMonPvaClientsNew(ebpfMonPutClients *putClients);
void ebpfMonPvaClientsFree(ebpfMonPvaClients *clients);

/* Adds an event of any kind. */
void ebpfMonPvaClientsAdd(ebpfMonPvaClients *clients, const ebpfMonWireEvent *ev);

/* Finds the servers of new clients, or of all: IOCs came or went. Packet thread. */
void ebpfMonPvaClientsFindServers(ebpfMonPvaClients *clients, ebpfMonServers *servers, int all);

void ebpfMonPvaClientsLock(ebpfMonPvaClients *clients);
void ebpfMonPvaClientsUnlock(ebpfMonPvaClients *clients);

/* The next client after this one (NULL: the first one). NULL: there is none. The caller holds the lock. */
const ebpfMonPvaClient *ebpfMonPvaClientsNext(const ebpfMonPvaClients *clients, const ebpfMonPvaClient *client);

/* The number of clients and monitors that came or went. The caller holds the lock. */
uint64_t ebpfMonPvaClientsCountChanges(const ebpfMonPvaClients *clients);

/* Adds the monitors of PVs that match (command ebpfMonUsers): of watched IOCs, and if the client is a gateway of this
 * host, behind each the monitors that clients of the gateway have of this name. Takes the lock. */
void ebpfMonPvaClientsAddUsers(ebpfMonPvaClients *clients, ebpfMonTextReport *report, const char *pvPattern);

/* Its process, if it is on this host. Without a lock. */
void ebpfMonPvaClientsFindWho(ebpfMonPvaClients *clients, const struct ebpfMonPeer *peer,
                              const struct ebpfMonFirst *first, const char *user, const char *host,
                              ebpfMonPutClient *who);

#endif
