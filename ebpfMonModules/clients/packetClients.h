/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which clients are connected by pvAccess, their channels and monitors, as packets show them; and the same of Channel
 * Access to servers that are no IOCs. (An IOC's CA clients are read in its memory: clientTable.h.) A connection whose
 * begin was not seen is there from its first messages on; what it had before has no name. The packet thread adds; any
 * thread may read under the lock.
 */
#ifndef EBPFMON_PACKETCLIENTS_H
#define EBPFMON_PACKETCLIENTS_H

#include "common/textReport.h"
#include "put/putClients.h"
#include "put/servers.h"
#include "wire/wireEvent.h"

#define EBPFMON_CLIENT_MONITORS 65536 /* of all clients; further ones are not kept */
#define EBPFMON_CLIENT_CHANNELS 65536 /* whose names are kept */
#define EBPFMON_CHANNEL_NAME    128

/* Times are monotonic ns, of when the packet was read. */
typedef struct ebpfMonPacketMonitor {
    struct ebpfMonPacketMonitor *next, **back; /* of its client */
    struct ebpfMonPacketMonitor *nextOfBucket;
    struct ebpfMonPacketClient *client;
    uint64_t serial;        /* never used again */
    uint32_t ioid, sid;
    char     name[EBPFMON_CHANNEL_NAME]; /* of its channel; "": it began before the monitor read packets */
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
} ebpfMonPacketMonitor;

typedef struct ebpfMonPacketChannel {
    struct ebpfMonPacketChannel *next, **back; /* of its client */
    struct ebpfMonPacketChannel *nextOfBucket, *nextOfName;
    struct ebpfMonPacketClient *client;
    uint32_t sid;
    uint64_t mark;          /* packetClients.c's own */
    char     name[];
} ebpfMonPacketChannel;

typedef struct ebpfMonPacketClient {
    struct ebpfMonPacketClient *nextOfBucket;
    ebpfMonWireProtocol protocol;
    uint64_t circuit;       /* wireEvent.h */
    struct ebpfMonPeer peer;
    struct ebpfMonFirst first;
    uint64_t openedAt;
    int      isWhole;       /* its begin was seen; 0: it is older than openedAt, and may have more channels */
    char     user[64], host[64]; /* as it claims; "": not known */
    uint32_t iocId;         /* of the server; 0: no watched IOC */
    pid_t    pid;           /* its process on this host; 0: it is on another one, or the packets do not count */
    pid_t    gateway;       /* the same if it may be a gateway: no IOC, and in a namespace of the host */
    char     server[EBPFMON_IOCNAME_SIZE];
    unsigned channels, monitors;
    unsigned unkept;        /* monitors that are not kept: there are too many */
    ebpfMonPacketMonitor *monitor;
    ebpfMonPacketChannel *channel; /* those whose names are known */
    uint64_t mark;          /* packetClients.c's own */
} ebpfMonPacketClient;

/* Who is behind a gateway: clients that have a channel of this name to it. */
typedef struct {
    unsigned clients;
    unsigned unknown;       /* clients of it whose connection was not seen from its begin: they may have others */
    struct ebpfMonPeer peer; /* of the newest one; as the next three */
    struct ebpfMonFirst first;
    char     user[64], host[64];
} ebpfMonPacketBehind;

typedef struct ebpfMonPacketClients ebpfMonPacketClients;

/* "putClients" stay the caller's. NULL without memory. */
ebpfMonPacketClients *ebpfMonPacketClientsNew(ebpfMonPutClients *putClients);
void ebpfMonPacketClientsFree(ebpfMonPacketClients *clients);

/* Adds an event of any kind. "server": of a connection that is opened; NULL: not known yet. Of CA do not give the
 * opening of those to watched IOCs, or to other hosts. */
void ebpfMonPacketClientsAdd(ebpfMonPacketClients *clients, const ebpfMonWireEvent *ev, const ebpfMonServer *server);

/* Finds the servers of new clients, or of all: IOCs came or went. Packet thread. */
void ebpfMonPacketClientsFindServers(ebpfMonPacketClients *clients, ebpfMonServers *servers, int all);

void ebpfMonPacketClientsLock(ebpfMonPacketClients *clients);
void ebpfMonPacketClientsUnlock(ebpfMonPacketClients *clients);

/* The next client after this one (NULL: the first one). NULL: there is none. The caller holds the lock. */
const ebpfMonPacketClient *ebpfMonPacketClientsNext(const ebpfMonPacketClients *clients,
                                                    const ebpfMonPacketClient *client);

/* The number of clients and monitors that came or went. The caller holds the lock. */
uint64_t ebpfMonPacketClientsCountChanges(const ebpfMonPacketClients *clients);

/* A channel of CA to an IOC, by a process of this host. */
typedef struct {
    char  name[EBPFMON_CHANNEL_NAME];
    pid_t pid;
    char  command[64];
} ebpfMonPacketCaUser;

/* Adds the channels and monitors of PVs that match (command ebpfMonUsers): of watched IOCs, and if the client is a
 * gateway of this host, behind each those that clients of the gateway have of this name. "ca": further channels which
 * may be a gateway's; the caller has added them. Takes the lock. */
void ebpfMonPacketClientsAddUsers(ebpfMonPacketClients *clients, ebpfMonTextReport *report, const char *pvPattern,
                                  const ebpfMonPacketCaUser *ca, size_t cas);

/* Nonzero: packets have shown that this client has a channel of this name. Takes the lock. */
int ebpfMonPacketClientsHas(ebpfMonPacketClients *clients, const struct ebpfMonPeer *peer, const char *name);
/* Nonzero: a client of a server that is no IOC has a channel of this name. Takes the lock. */
int ebpfMonPacketClientsHasBehind(ebpfMonPacketClients *clients, const char *name);
/* Who is behind process "gateway". Takes the lock. */
void ebpfMonPacketClientsFindBehind(ebpfMonPacketClients *clients, pid_t gateway, const char *name,
                                    ebpfMonPacketBehind *behind);
/* The users of a channel of "client", as one text: "anna@shop caget[12]", or of a gateway those behind it: "anna@shop
 * caget[12] and 2 more through gateway pvagw[4711]", the newest by name. "identity" changes if they are others. Returns
 * how many clients are behind; 0: it is no gateway, or not known. "clients" may be NULL. Without a lock. */
unsigned ebpfMonPacketClientsFormatUsers(ebpfMonPacketClients *clients, const ebpfMonPutClient *client,
                                         const char *name, char *text, size_t size, uint64_t *identity);

/* Its process, if it is on this host. Without a lock. */
void ebpfMonPacketClientsFindWho(ebpfMonPacketClients *clients, const struct ebpfMonPeer *peer,
                                 const struct ebpfMonFirst *first, const char *user, const char *host,
                                 ebpfMonPutClient *who);

#endif
