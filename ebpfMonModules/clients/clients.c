/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include <epicsAtomic.h>
#include <epicsThread.h>

#include "clients/clients.h"
#include "common/clock.h"
#include "common/text.h"
#include "model/ops.h"
#include "model/published.h"

#define PERIOD        10.0 /* s */
#define LOOK_SECONDS  5.0
#define START_SECONDS 0.2  /* between two questions whether the IOCs are found */

ebpfMonClients *ebpfMonClientsNew(const ebpfMonModule *module)
{
    ebpfMonClients *c = calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    c->module = module;
    ebpfMonSharedWorkerInit(&c->worker);
    c->asking = epicsMutexMustCreate();
    c->lookDone = epicsEventMustCreate(epicsEventEmpty);
    return c;
}

/* --- the thread ------------------------------------------------------------------------------------------------- */

static void publishLook(ebpfMonClients *c)
{
    ebpfMonClientReportPublish(c->table, &c->shown);
    ebpfMonModuleShow(c->module);
}

static void giveSign(void *worker)
{
    ebpfMonWorkerGiveSign(worker);
}

static void readClients(ebpfMonClients *c, ebpfMonWorker *worker)
{
    int isAsked = epicsAtomicCmpAndSwapIntT(&c->isAsked, 1, 0);

    ebpfMonClientTableLook(c->table, giveSign, worker);
    publishLook(c);
    if (c->sink.looked)
        c->sink.looked(c->sink.arg);
    if (isAsked)
        epicsEventMustTrigger(c->lookDone);
}

/* Nonzero: the monitor has run for a second, so the IOCs of this host are found. Before, there would seem to be no
 * clients. */
static int areIocsFound(void)
{
    int isMeasured = ebpfMonPublishedLock()->isMeasured;

    ebpfMonPublishedUnlock();
    return isMeasured;
}

static void runLooks(ebpfMonWorker *worker, void *arg)
{
    ebpfMonClients *c = arg;
    double next = 0;

    while (!areIocsFound() && !epicsAtomicGetIntT(&c->isAsked) && !ebpfMonWorkerIsStopping(worker))
        ebpfMonWorkerWait(worker, START_SECONDS);
    while (!ebpfMonWorkerIsStopping(worker)) {
        double now = ebpfMonClockSeconds();

        if (now >= next || epicsAtomicGetIntT(&c->isAsked)) {
            readClients(c, worker);
            next = ebpfMonClockSeconds() + PERIOD;
        } else if (ebpfMonWorkerWait(worker, next - now) && !epicsAtomicGetIntT(&c->isAsked)) {
            publishLook(c);
        }
    }
}

int ebpfMonClientsLook(ebpfMonClients *c, double seconds)
{
    int status;

    epicsMutexMustLock(c->asking);
    epicsEventTryWait(c->lookDone); /* clears the event of an earlier look that ended after its caller gave up */
    ebpfMonClientsRequestLook(c);
    status = epicsEventWaitWithTimeout(c->lookDone, seconds) == epicsEventOK ? 0 : -1;
    epicsMutexUnlock(c->asking);
    return status;
}

void ebpfMonClientsRequestLook(ebpfMonClients *c)
{
    epicsAtomicSetIntT(&c->isAsked, 1);
    ebpfMonSharedWorkerWake(&c->worker);
}

/* --- start and end ---------------------------------------------------------------------------------------------- */

static void freeParts(ebpfMonClients *c)
{
    ebpfMonClientTableFree(c->table);
    ebpfMonUpdateCountsFree(c->counts);
    ebpfMonFollowedCircuitsFree(c->followed);
    ebpfMonPacketClientsFree(c->packetClients);
    c->table = NULL;
    c->counts = NULL;
    c->followed = NULL;
    c->packetClients = NULL;
    c->sink = (ebpfMonUseSink){ .arg = NULL };
}

int ebpfMonClientsStart(void *clients, const ebpfMonModuleCore *core)
{
    ebpfMonClients *c = clients;

    freeParts(c); /* of a start that failed */
    c->put = core->put;
    c->counts = ebpfMonUpdateCountsNew();
    c->followed = ebpfMonFollowedCircuitsNew();
    c->packetClients = ebpfMonPacketClientsNew(core->put->clients);
    if (c->counts && c->followed && c->packetClients)
        c->table = ebpfMonClientTableNew(core->targets, core->put->clients, c->counts, c->followed, c->packetClients);
    if (c->table && ebpfMonSharedWorkerSet(&c->worker, ebpfMonWorkerStart("ebpfMonClients", epicsThreadPriorityLow,
                                                                          runLooks, c)) == 0)
        return 0;
    freeParts(c);
    return -1;
}

int ebpfMonClientsStop(void *clients, double seconds)
{
    ebpfMonClients *c = clients;

    return ebpfMonSharedWorkerStop(&c->worker, seconds);
}

/* --- what packets show ------------------------------------------------------------------------------------------ */

/* Notes a read or a subscription, if the filter selects its server. The packet that named its channel may have come
 * before the first one that we saw. */
static void noteUse(ebpfMonClients *c, const ebpfMonWireEvent *ev)
{
    const ebpfMonMonitorOps *monitor = ebpfMonOpsGet()->monitor;
    const ebpfMonServer *server;
    ebpfMonWireEvent named = *ev;
    ebpfMonFilter f;
    char name[256];

    if (!c->sink.packet)
        return;
    server = ebpfMonServersFind(c->put->servers, &ev->peer, ebpfMonClockMonotonic());
    monitor->getFilter(monitor->arg, &f);
    if (server->off || server->isElsewhere || f.level <= ebpfMonLevelOff ||
        !ebpfMonPatternMatchesIoc(f.ioc, server->name) || ebpfMonPacketEventsIsOuter(c->put->packetEvents, &ev->peer))
        return;
    if (ev->protocol == ebpfMonWirePva && ev->sid && !ev->name[0] && !ebpfMonFirstIsKnown(&ev->first) &&
        ebpfMonClientTableFindChannel(c->table, &ev->peer, ev->sid, name, sizeof(name)) == 0)
        named.name = name;
    c->sink.packet(c->sink.arg, &named, server->iocId, server->name);
}

/* Of CA, only clients of a process of this host that is no watched IOC: perhaps it is a gateway. */
static void addOpened(ebpfMonClients *c, const ebpfMonWireEvent *opened)
{
    const ebpfMonServer *server = ebpfMonServersFind(c->put->servers, &opened->peer, ebpfMonClockMonotonic());

    if (opened->protocol == ebpfMonWirePva ||
        (!server->iocId && server->pid && !server->off && !server->isElsewhere))
        ebpfMonPacketClientsAdd(c->packetClients, opened, server);
}

/* Notes what came for an IOC and was not read. Of a connection whose begin was not seen the server may be either
 * end. */
static void noteUnread(ebpfMonClients *c, const ebpfMonWireEvent *ev)
{
    int isConnection = ev->kind == ebpfMonWireForeign || ev->kind == ebpfMonWireUnread;
    struct ebpfMonPeer swapped = ebpfMonPeerSwap(&ev->peer);

    if (!c->sink.packet || (!isConnection && ev->kind != ebpfMonWireGap && ev->kind != ebpfMonWireGivenUp))
        return;
    for (int i = 0; i < 1 + isConnection; i++) {
        const ebpfMonServer *server = ebpfMonServersFindKnown(c->put->servers, i ? &swapped : &ev->peer);

        if (server)
            ebpfMonClientTableNoteUnread(c->table, server->iocId);
    }
}

void ebpfMonClientsAddMessage(void *clients, const ebpfMonWireEvent *ev)
{
    ebpfMonClients *c = clients;

    if (!ev || ev->kind == ebpfMonWireSearch || ev->kind == ebpfMonWireFound || ev->kind == ebpfMonWireBeacon)
        return;
    ebpfMonFollowedCircuitsAdd(c->followed, ev);
    if (ev->kind == ebpfMonWireOpened)
        addOpened(c, ev);
    else
        ebpfMonPacketClientsAdd(c->packetClients, ev, NULL);
    noteUnread(c, ev);
    if (ev->kind == ebpfMonWireRead || ev->kind == ebpfMonWireSubscribe || ev->kind == ebpfMonWireStill ||
        (ev->kind == ebpfMonWireChannel && ev->protocol == ebpfMonWirePva))
        noteUse(c, ev);
    if (ev->kind == ebpfMonWireValue)
        ebpfMonUpdateCountsAdd(c->counts, ev);
}

void ebpfMonClientsFindServers(void *clients, int haveChanged)
{
    ebpfMonClients *c = clients;

    ebpfMonPacketClientsFindServers(c->packetClients, c->put->servers, haveChanged);
}

int ebpfMonClientsFindChannel(void *clients, const struct ebpfMonPeer *peer, unsigned sid, char *name, size_t size)
{
    ebpfMonClients *c = clients;

    return ebpfMonClientTableFindChannel(c->table, peer, sid, name, size);
}

/* --- what operators ask ----------------------------------------------------------------------------------------- */

void ebpfMonClientsSelect(ebpfMonClients *c, const char *iocPattern, const char *pvPattern)
{
    ebpfMonModuleLock();
    if (iocPattern)
        ebpfMonTextCopy(c->shown.iocPattern, sizeof(c->shown.iocPattern), iocPattern);
    if (pvPattern)
        ebpfMonTextCopy(c->shown.pvPattern, sizeof(c->shown.pvPattern), pvPattern);
    ebpfMonModuleUnlock();
    if (c->module->isStarted)
        ebpfMonSharedWorkerWake(&c->worker); /* it publishes the last look again */
}

static void requestLook(ebpfMonClients *c, ebpfMonTextReport *report)
{
    if (ebpfMonClientsLook(c, LOOK_SECONDS))
        ebpfMonTextReportAdd(report, "Reading the clients takes longer than %.0f s. The last complete list:\n",
                             LOOK_SECONDS);
}

void ebpfMonClientsAddClients(ebpfMonClients *c, ebpfMonTextReport *report, const char *iocPattern)
{
    requestLook(c, report);
    ebpfMonClientReportAddClients(report, c->table, iocPattern);
}

void ebpfMonClientsAddUsers(ebpfMonClients *c, ebpfMonTextReport *report, const char *pvPattern)
{
    requestLook(c, report);
    ebpfMonClientReportAddUsers(report, c->table, pvPattern);
}
