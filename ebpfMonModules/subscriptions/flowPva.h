/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What servers of this host send by pvAccess: clients and monitors as packets show them (clients/packetClients.h), and
 * what waits for them in dbEvent.c, where QSRV subscribes. Only the thread of subscriptions.c uses this module.
 */
#ifndef EBPFMON_FLOWPVA_H
#define EBPFMON_FLOWPVA_H

#include "subscriptions/flowIoc.h"
#include "clients/packetClients.h"

/* QSRV's subscription for values to the record of a monitor. */
typedef enum {
    ebpfMonSourceNone,      /* it has none that is known: no record of a watched IOC, a group, or not read yet */
    ebpfMonSourceOwn,       /* this monitor's alone */
    ebpfMonSourceShared,    /* QSRV 1: one for all clients */
    ebpfMonSourceOneOf      /* QSRV 2: one of several for this PV, and which one is not known */
} ebpfMonSourceKind;

typedef struct {
    uint64_t serial;        /* ebpfMonPacketMonitor.serial */
    uint32_t client;        /* index */
    char     name[EBPFMON_CHANNEL_NAME];
    uint32_t queueSize;
    int      isPipelined, isStopped, isAtLeast, isUnsure;
    uint64_t closedAt, stoppedAt, updates, bytes, overruns, unread, updatedAt;
    double   rate;          /* updates per second; NaN: not known yet */
    double   overrunRate;   /* … with values that were left out */
    struct { uint64_t at, updates, overruns; } before; /* of which the rates are */
    ebpfMonFlowIoc *ioc;    /* of its server; NULL: none that is watched */
    ebpfMonSourceKind sourceKind;
    size_t   source;        /* index in ioc->others.lists->sub */
    uint64_t mergedBefore;  /* in a shared one, before it was found; UINT64_MAX: it was not */
    unsigned sharers;       /* monitors of this PV that are known, or subscriptions of QSRV 2 */
} ebpfMonFlowMonitor;

typedef struct {
    ebpfMonFlowClient is;
    uint64_t circuit;
    uint32_t iocId;         /* of the server; 0: no watched IOC */
    pid_t    server;
    char     serverName[EBPFMON_IOCNAME_SIZE];
    char     user[64], host[64];
    unsigned channels, unkept;
    unsigned tries;         /* so often its process was looked for */
    size_t   monitor;       /* its first one; those of a client stand together */
    unsigned monitors;
} ebpfMonFlowPvaClient;

typedef struct {
    ebpfMonPacketClients *from;
    ebpfMonFlowPvaClient *client;
    size_t   clients;
    ebpfMonFlowMonitor *monitor;
    size_t   monitors;
    uint64_t changes;       /* ebpfMonPacketClientsCountChanges of what is here */
    int      isFresh;       /* something is here */
    uint64_t linked;        /* sum of ebpfMonFlowIoc.serial when the sources were found */
    uint64_t readAt;
    int      hasMoved;
    struct flowServer *server; /* processes of the servers */
    unsigned servers;
    size_t   serverRoom;
} ebpfMonFlowPva;

/* Reads the table. Nonzero: clients or monitors came or went. */
int ebpfMonFlowPvaRead(ebpfMonFlowPva *pva, uint64_t now);

/* Finds the sources of the monitors, if something has changed. "changed": as Read has returned; IOCs came or went. */
void ebpfMonFlowPvaLink(ebpfMonFlowPva *pva, ebpfMonFlowIoc *ioc, unsigned iocs, int changed);

/* When the process of its server was stopped; 0: it is not. */
uint64_t ebpfMonFlowPvaGetStopped(const ebpfMonFlowPva *pva, const ebpfMonFlowPvaClient *client);

/* What is in the way of this monitor, and since when: of its client, or of itself. */
ebpfMonFlowState ebpfMonFlowMonitorGetState(const ebpfMonFlowPva *pva, const ebpfMonFlowMonitor *monitor, uint64_t now,
                                            uint64_t *since);

/* What waits and was merged in the IOC. 0, or -1: not known. */
int ebpfMonFlowMonitorGetQueue(const ebpfMonFlowMonitor *monitor, ebpfMonEventSubscription *sub, double *rate);

/* "client does not read since 12 s", "ok, one of QSRV for 3 clients" and so on. */
void ebpfMonFlowMonitorText(const ebpfMonFlowPva *pva, const ebpfMonFlowMonitor *monitor, uint64_t now, char *text,
                            size_t size);

#endif
