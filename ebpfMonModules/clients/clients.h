/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who is connected to which server of this host, and to which PVs. This file makes the parts of the module and connects
 * them. A use of a PV is seen in a packet or, every ten seconds, in the list of clients of a server. Another module may
 * keep uses (ebpfMonModules/uses).
 */
#ifndef EBPFMON_CLIENTS_H
#define EBPFMON_CLIENTS_H

#include <epicsEvent.h>
#include <epicsMutex.h>

#include "clients/clientReport.h"
#include "clients/clientTable.h"
#include "clients/iocConnections.h"
#include "clients/packetClients.h"
#include "clients/updateCounts.h"
#include "common/worker.h"
#include "ebpfMonModule.h"
#include "put/putRoom.h"

/* Where uses go: the module that keeps them. Members NULL: there is none. */
typedef struct {
    void (*looked)(void *arg); /* the clients of all servers were read. Looking thread, without a lock */
    /* A read, a subscription, a channel of pvAccess that was created or is still open. "server": the name of the
     * server; "iocId": its number, 0: it is no watched IOC. Packet thread. */
    void (*packet)(void *arg, const ebpfMonWireEvent *ev, uint32_t iocId, const char *server);
    /* QSRV 1 has subscribed to "name", and no packet says for whom: a client older than the monitor, or a group. Thread
     * of the subscriptions. */
    void (*subscribed)(void *arg, const char *server, const char *name);
    void *arg;
} ebpfMonUseSink;

/* All members but "shown" and the sink have locks of their own. */
typedef struct ebpfMonClients {
    const ebpfMonModule *module;
    ebpfMonClientValues  shown;    /* under the lock of the published values */
    /* From the start on. */
    const ebpfMonPutRoom *put;     /* the core's */
    ebpfMonUseSink       sink;     /* set before the threads of the core start */
    ebpfMonUpdateCounts *counts;   /* values that servers sent to clients */
    ebpfMonFollowedCircuits *followed;
    ebpfMonPacketClients *packetClients;
    ebpfMonClientTable  *table;
    /* The looking thread reads the lists of clients every ten seconds, and when another thread asks. It reads the
     * memory of other processes; each read has a deadline (host/foreign.h). */
    ebpfMonSharedWorker worker;
    epicsMutexId asking;           /* held by the thread that waits for a look */
    epicsEventId lookDone;         /* wakes this thread */
    int          isAsked;          /* atomic: a look is requested */
} ebpfMonClients;

/* The clients of this process. Base calls registrars in the order of their names, so this module starts before those
 * that need it, and ends after them. NULL: it does not run, and a message tells so; "module" is who needs it. */
ebpfMonClients *ebpfMonClientsGet(const char *module);
/* What is published now. NULL: there is no such module. Under the lock of the published values. */
const ebpfMonClientValues *ebpfMonClientsGetValues(void);

/* There is one in a process, never freed: a shell command may still use it. NULL without memory. */
ebpfMonClients *ebpfMonClientsNew(const ebpfMonModule *module);
/* As start, stop, message, servers and findChannel of ebpfMonModule. */
int  ebpfMonClientsStart(void *clients, const ebpfMonModuleCore *core);
int  ebpfMonClientsStop(void *clients, double seconds);
void ebpfMonClientsAddMessage(void *clients, const ebpfMonWireEvent *message);
void ebpfMonClientsFindServers(void *clients, int haveChanged);
int  ebpfMonClientsFindChannel(void *clients, const struct ebpfMonPeer *peer, unsigned sid, char *name, size_t size);

/* Requests a look, and waits for its end, but at most "seconds". 0, or -1: the look has not ended. Any thread but
 * the looking thread; of several callers one waits after the other. RequestLook does not wait. */
int  ebpfMonClientsLook(ebpfMonClients *clients, double seconds);
void ebpfMonClientsRequestLook(ebpfMonClients *clients);

/* Selects the clients that are published: patterns of IOCs and of PVs. NULL: as before; empty: all. Any thread. */
void ebpfMonClientsSelect(ebpfMonClients *clients, const char *iocPattern, const char *pvPattern);

/* Add to the report the clients of the IOCs that match, or the channels to PVs that match. They request a look
 * first. If the look takes more than 5 s, they show the result of the last one, and the report says so. Any thread,
 * without a lock, after the start. */

void ebpfMonClientsAddClients(ebpfMonClients *clients, ebpfMonTextReport *report, const char *iocPattern);
void ebpfMonClientsAddUsers(ebpfMonClients *clients, ebpfMonTextReport *report, const char *pvPattern);

#endif
