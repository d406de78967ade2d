/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include <epicsString.h>
#include <epicsThread.h>

#include "common/clock.h"
#include "common/pace.h"
#include "common/sharedWorker.h"
#include "model/published.h"
#include "monitor/monitor.h"
#include "probe/kernelTables.h"
#include "watch/packetReader.h"

#define REFRESH_NS   2000000000ull
#define STOP_SECONDS 5.0

struct ebpfMonPacketThread {
    ebpfMonMonitor      *m;
    ebpfMonSharedWorker  worker;
    /* the thread's own */
    ebpfMonPacketReader *reader;
    ebpfMonPace          pace;
    uint64_t             refreshed, second; /* monotonic ns: when that was done last */
    size_t               changes;           /* of the targets, when it was refreshed */
};

/* A read or a subscription, of a server that the filter wants. */
static void noteUse(ebpfMonPacketThread *p, const ebpfMonWireEvent *ev)
{
    const ebpfMonServer *server;
    ebpfMonFilter f;

    if (!ebpfMonUseNotesAreWanted(p->m->usage.notes))
        return;
    server = ebpfMonServersFind(p->m->put.servers, &ev->peer, ebpfMonClockMonotonic());
    ebpfMonWatchRoomGetFilter(p->m, &f);
    if (!server->off && f.level > ebpfMonLevelOff && epicsStrGlobMatch(server->name, f.ioc))
        ebpfMonUseSourcesAddPacket(p->m->usage.notes, p->m->usage.table, p->m->put.clients, ev, server->iocId,
                                   server->name);
}

static void onEvent(void *arg, const ebpfMonWireEvent *ev)
{
    ebpfMonPacketThread *p = arg;
    ebpfMonSearchProtocol protocol = ev->protocol == ebpfMonWirePva ? ebpfMonSearchPva : ebpfMonSearchCa;
    ebpfMonSearchHost client = { .addr = ev->peer.addr, .port = ev->peer.port };
    ebpfMonSearchHost serverHost = { .addr = ev->peer.saddr, .port = ev->peer.sport };

    switch (ev->kind) {
    case ebpfMonWireSearch:
        ebpfMonSearchAddQuestion(p->m->search, ev->time, protocol, client, ev->cid, ev->name);
        break;
    case ebpfMonWireFound:
        ebpfMonSearchAddAnswer(p->m->search, protocol, client, ev->cid, ev->name);
        break;
    case ebpfMonWireBeacon:
        ebpfMonSearchAddBeacon(p->m->search, ev->time, protocol, serverHost);
        break;
    case ebpfMonWireRead:
    case ebpfMonWireSubscribe:
        noteUse(p, ev);
        break;
    case ebpfMonWireValue:
        ebpfMonUpdateCountsAdd(p->m->usage.counts, ev);
        ebpfMonPacketEventsAdd(p->m->put.packetEvents, ev);
        break;
    default: /* users, channels and gaps are counted by the wire itself */
        ebpfMonPacketEventsAdd(p->m->put.packetEvents, ev);
        break;
    }
}

static void onCovers(void *arg, const uint32_t *netns, unsigned count)
{
    ebpfMonPacketThread *p = arg;

    ebpfMonPutJoinSetCovered(p->m->put.join, netns, count);
}

static void expectPort(void *arg, uint32_t netns, uint16_t port)
{
    ebpfMonPacketThread *p = arg;

    ebpfMonPacketReaderExpectPort(p->reader, netns, port);
}

static void publish(ebpfMonPacketThread *p, double seconds)
{
    ebpfMonPacketValues values;

    ebpfMonPacketReaderTick(p->reader, seconds, &values);
    values.lost += ebpfMonPutJoinCountDropped(p->m->put.join);
    ebpfMonPublishedLock()->packets = values;
    ebpfMonPublishedUnlock();
}

/* All that is to be done with what has come, and with what is due. Returns how many packets came. */
static unsigned readPackets(ebpfMonPacketThread *p)
{
    uint64_t now = ebpfMonClockMonotonic();
    unsigned n;
    int isWhole;

    ebpfMonPacketEventsNoteLost(p->m->put.packetEvents, now);
    n = ebpfMonPacketReaderRead(p->reader, &isWhole);
    if (isWhole)
        ebpfMonPutJoinSetPacketsRead(p->m->put.join, now);
    ebpfMonPacketEventsPublish(p->m->put.packetEvents, ebpfMonClockMonotonic());
    return n + !isWhole; /* what keeps us from reading all will be done at once */
}

/* What is done from time to time. */
static void refresh(ebpfMonPacketThread *p)
{
    size_t changes = ebpfMonTargetsCountChanges(p->m->targets);
    uint64_t now = ebpfMonClockMonotonic();

    if (now >= p->refreshed + REFRESH_NS || changes != p->changes) {
        p->changes = changes;
        p->refreshed = now;
        ebpfMonPacketReaderFollow(p->reader, now);
        ebpfMonServersRefresh(p->m->put.servers, expectPort, p);
    }
    if (now >= p->second + EBPFMON_SECOND_NS) {
        publish(p, (double)(now - p->second) / 1e9);
        p->second = now;
    }
}

/* ns until something is due. */
static uint64_t findWait(ebpfMonPacketThread *p)
{
    uint64_t now = ebpfMonClockMonotonic(), due = ebpfMonPutJoinGetDue(p->m->put.join), wait;

    if (p->second + EBPFMON_SECOND_NS < due)
        due = p->second + EBPFMON_SECOND_NS;
    wait = due > now ? due - now : 0;
    return wait < EBPFMON_PACE_FIRST_NS ? EBPFMON_PACE_FIRST_NS : wait;
}

static void runPacketThread(ebpfMonWorker *worker, void *arg)
{
    ebpfMonPacketThread *p = arg;
    ebpfMonPacketSources *sources = ebpfMonPacketReaderGetSources(p->reader);
    int file = ebpfMonPacketSourcesFile(sources);

    p->refreshed = 0;
    p->second = ebpfMonClockMonotonic();
    while (!ebpfMonWorkerIsStopping(worker)) {
        uint64_t next, wait;

        refresh(p);
        next = ebpfMonPaceNext(&p->pace, readPackets(p) > 0);
        wait = findWait(p);
        if (next)
            ebpfMonWorkerWaitFile(worker, file, next < wait ? next : wait);
        else if (ebpfMonPacketSourcesBeginSleep(sources))
            ebpfMonWorkerWaitFile(worker, file, wait);
        if (!next)
            ebpfMonPacketSourcesEndSleep(sources);
    }
    ebpfMonPacketEventsPublish(p->m->put.packetEvents, UINT64_MAX);
}

ebpfMonPacketThread *ebpfMonPacketThreadNew(ebpfMonMonitor *m, unsigned ringBytes)
{
    ebpfMonPacketThread *p = calloc(1, sizeof(*p));
    const ebpfMonPacketReaderSink sink = {
        .event = onEvent, .covers = onCovers, .setOwner = ebpfMonKernelSetOwner, .arg = p,
    };

    if (!p)
        return NULL;
    p->m = m;
    p->reader = ebpfMonPacketReaderNew(m->targets, ringBytes, &sink);
    if (!p->reader) {
        free(p);
        return NULL;
    }
    ebpfMonSharedWorkerInit(&p->worker);
    return p;
}

void ebpfMonPacketThreadFree(ebpfMonPacketThread *p)
{
    if (!p)
        return;
    ebpfMonPacketReaderFree(p->reader);
    ebpfMonSharedWorkerDestroy(&p->worker);
    free(p);
}

int ebpfMonPacketThreadStart(ebpfMonPacketThread *p)
{
    return ebpfMonSharedWorkerSet(&p->worker, ebpfMonWorkerStartForFiles("ebpfMonPacket", epicsThreadPriorityMedium,
                                                                         runPacketThread, p));
}

void ebpfMonPacketThreadWake(ebpfMonPacketThread *p)
{
    if (p)
        ebpfMonSharedWorkerWake(&p->worker);
}

int ebpfMonPacketThreadStop(ebpfMonPacketThread *p)
{
    return p ? ebpfMonSharedWorkerStop(&p->worker, STOP_SECONDS) : 0;
}
