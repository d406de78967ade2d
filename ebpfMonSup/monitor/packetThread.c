/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <stdlib.h>
#include <unistd.h>

#include <epicsString.h>
#include <epicsThread.h>
#include <errlog.h>

#include "common/clock.h"
#include "common/worker.h"
#include "export/export.h"
#include "ioc/procNetns.h"
#include "model/losses.h"
#include "model/published.h"
#include "monitor/monitor.h"
#include "probe/kernelLoad.h"
#include "probe/kernelTables.h"
#include "probe/packetSources.h"
#include "watch/connectionOwners.h"
#include "wire/wire.h"

#define POLL_MS      10          /* puts that wait for a reply are looked at this often */
#define REFRESH_NS   2000000000ull
#define STOP_SECONDS 5.0
#define DELAY_MAX    60000000000ull /* from a packet to us */

struct ebpfMonPacketThread {
    ebpfMonMonitor       *m;
    ebpfMonWorker        *worker;
    ebpfMonWire          *wire;
    ebpfMonPacketSources *sources;
    uint64_t passedBefore;     /* packets, when the rate was published last */
    uint64_t missedAt;         /* monotonic ns: when events of the IOCs were found to be lost last */
    uint64_t lostBefore;
};

/* Looks once for all puts that are published next: asking the kernel for each would cost more than the put. */
static void lookMissed(ebpfMonPacketThread *p, uint64_t now)
{
    uint64_t lost[EBPFMON_LOST_KERNEL], sum;

    ebpfMonKernelGetLost(lost);
    sum = lost[EBPFMON_LOST_RING] + lost[EBPFMON_LOST_THREADS] + lost[EBPFMON_LOST_FAULT] +
          ebpfMonLossesGet(ebpfMonLossGone);
    if (sum != p->lostBefore)
        p->missedAt = now;
    p->lostBefore = sum;
}

/* A server that is no IOC of Base, or whose puts are not watched from inside. */
static int isWanted(ebpfMonPacketThread *p, const ebpfMonServer *server)
{
    ebpfMonFilter f;

    if (server->iocId)
        return 1;
    ebpfMonRequestsGetFilter(p->m->watch.requests, &f);
    return !server->off && f.level > ebpfMonLevelOff && epicsStrGlobMatch(server->name, f.ioc);
}

/* When the packet came, by the clock that the inside uses; a stepped wall clock tells nothing. */
static uint64_t findArrival(uint64_t time)
{
    uint64_t wall = ebpfMonClockReal(), age = wall > time ? wall - time : 0;

    return ebpfMonClockMonotonic() - (age < DELAY_MAX ? age : 0);
}

static void addPut(ebpfMonPacketThread *p, const ebpfMonWireEvent *ev, uint32_t iocId)
{
    ebpfMonOldValue old = { .known = 0 };

    if (!iocId) /* else the inside knows it for sure */
        ebpfMonLastValuesExchange(p->m->put.lastValues, ev, &old);
    ebpfMonPutJoinAddPacket(p->m->put.join, ev, iocId, &old, findArrival(ev->time));
}

/* A put to a server that is no watched IOC: perhaps a CA link of a watched IOC sent it. */
static void noteSent(ebpfMonPacketThread *p, const ebpfMonWireEvent *ev, uint64_t at)
{
    struct ebpfMonOwner owner = { .pid = 0 };

    if (!ebpfMonExportWantsSpans() || ev->protocol != ebpfMonWireCa)
        return;
    ebpfMonKernelGetOwner(&ev->peer, &owner);
    if (owner.pid)
        ebpfMonLinkMessagesNotePacket(p->m->trace.linkMessages, owner.pid, ev->name, &ev->peer, ev->seq, at);
}

static void onEvent(void *arg, const ebpfMonWireEvent *ev)
{
    ebpfMonPacketThread *p = arg;
    ebpfMonSearchProtocol protocol = ev->protocol == ebpfMonWirePva ? ebpfMonSearchPva : ebpfMonSearchCa;
    ebpfMonSearchHost client = { .addr = ev->peer.addr, .port = ev->peer.port };
    ebpfMonSearchHost serverHost = { .addr = ev->peer.saddr, .port = ev->peer.sport };
    const ebpfMonServer *server;
    ebpfMonOldValue old;

    switch (ev->kind) {
    case ebpfMonWirePut:
        server = ebpfMonServersFind(p->m->put.servers, &ev->peer, ebpfMonClockMonotonic());
        /* Without that tracepoint a packet cannot be matched with the put in the IOC: then only the IOC's events
         * count. */
        if (isWanted(p, server) && (!server->iocId || ebpfMonFeature.recvLength))
            addPut(p, ev, server->iocId);
        if (!server->iocId)
            noteSent(p, ev, findArrival(ev->time));
        break;
    case ebpfMonWireReply:
        if (ebpfMonPutJoinAddReply(p->m->put.join, ev, &old) && !ev->ok)
            ebpfMonLastValuesRestore(p->m->put.lastValues, ev, &old);
        break;
    case ebpfMonWireValue:
        server = ebpfMonServersFind(p->m->put.servers, &ev->peer, ebpfMonClockMonotonic());
        if (!server->iocId)
            ebpfMonLastValuesSet(p->m->put.lastValues, ev);
        break;
    case ebpfMonWireChannel:
        if (ev->name[0])
            ebpfMonPutJoinNameChannel(p->m->put.join, &ev->peer, ev->sid, ev->name);
        break;
    case ebpfMonWireClosed:
        ebpfMonPutJoinCloseCircuit(p->m->put.join, &ev->peer);
        break;
    case ebpfMonWireForeign:
        ebpfMonPacketSourcesReject(p->sources, &ev->peer);
        break;
    case ebpfMonWireSearch:
        ebpfMonSearchAddQuestion(p->m->search, ev->time, protocol, client, ev->cid, ev->name);
        break;
    case ebpfMonWireFound:
        ebpfMonSearchAddAnswer(p->m->search, protocol, client, ev->cid, ev->name);
        break;
    case ebpfMonWireBeacon:
        ebpfMonSearchAddBeacon(p->m->search, ev->time, protocol, serverHost);
        break;
    case ebpfMonWireOpened: /* a server on a port of its own is searched for there, too */
        ebpfMonPacketSourcesExpectPort(p->sources, ev->peer.netns, ntohs(ev->peer.sport));
        break;
    case ebpfMonWireUser:
    case ebpfMonWireChannelGone:
    case ebpfMonWireGap:
        break; /* counted by the wire itself */
    }
}

static void onPacket(void *arg, uint32_t netns, uint64_t time, const uint8_t *ip, size_t len, size_t wireLen)
{
    ebpfMonPacketThread *p = arg;

    ebpfMonWirePacket(p->wire, time, netns, ip, len, wireLen);
}

static void onOpened(void *arg, pid_t pid, uint32_t netns)
{
    (void)arg;
    ebpfMonConnectionOwnersRead(pid, netns, ebpfMonKernelSetOwner);
}

static void expectPort(void *arg, uint32_t netns, uint16_t port)
{
    ebpfMonPacketThread *p = arg;

    ebpfMonPacketSourcesExpectPort(p->sources, netns, port);
}

/* A source for each network namespace that an IOC lives in, and for our own. */
static void refresh(ebpfMonPacketThread *p, uint64_t now)
{
    pid_t pids[EBPFMON_IOCS_MAX + 1] = { 0 };
    uint32_t netns[EBPFMON_PACKET_SOURCES_MAX];
    ebpfMonNetns *list = NULL;
    size_t n = 1;
    int count;

    pids[0] = getpid();
    ebpfMonTargetsLock(p->m->targets);
    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(p->m->targets); t && n <= EBPFMON_IOCS_MAX; t = t->next)
        if (!t->gone)
            pids[n++] = t->pid;
    ebpfMonTargetsUnlock(p->m->targets);
    count = ebpfMonProcNetnsList(pids, n, &list);
    if (count > EBPFMON_PACKET_SOURCES_MAX)
        count = EBPFMON_PACKET_SOURCES_MAX;
    if (count > 0) {
        /* Before the sources are open: packets will show a put that is made meanwhile, too. */
        for (int i = 0; i < count; i++)
            netns[i] = list[i].netns;
        ebpfMonPutJoinSetCovered(p->m->put.join, netns, (unsigned)count);
        ebpfMonPacketSourcesFollow(p->sources, list, (unsigned)count, now);
    }
    free(list);
    ebpfMonPutJoinSetCovered(p->m->put.join, netns, ebpfMonPacketSourcesList(p->sources, netns));
    ebpfMonServersRefresh(p->m->put.servers, expectPort, p);
}

static void publish(ebpfMonPacketThread *p, double seconds)
{
    const ebpfMonWireStats *w = ebpfMonWireStat(p->wire);
    ebpfMonPacketSourcesState state;
    ebpfMonPublished *published;

    ebpfMonPacketSourcesGetState(p->sources, &state);
    published = ebpfMonPublishedLock();
    published->packets.state = !state.count || state.trouble ? ebpfMonWireTrouble : ebpfMonWireOn;
    /* fewer than before: a source was closed */
    published->packets.rate = state.passed >= p->passedBefore ? (double)(state.passed - p->passedBefore) / seconds : 0;
    published->packets.gaps = w->gaps;
    published->packets.lost = state.dropped + w->gaps + w->noMemory + ebpfMonPutJoinCountDropped(p->m->put.join);
    published->packets.circuits = w->circuits;
    ebpfMonPublishedUnlock();
    p->passedBefore = state.passed;
}

static void publishPuts(ebpfMonPacketThread *p, uint64_t now)
{
    const ebpfMonPutRoom *puts = &p->m->put;
    ebpfMonPacketPut *list = ebpfMonPutJoinTakeUnmatched(puts->join, now), *next;
    int missed;

    if (list)
        lookMissed(p, now);
    for (; list; list = next) {
        next = list->next;
        missed = now == UINT64_MAX || p->missedAt >= list->at ||
                 (list->iocId && ebpfMonServersMayHaveMissed(puts->servers, list->iocId, list->at, !list->passed));
        ebpfMonPacketPutsFinish(puts->packetPuts, list, ebpfMonServersFind(puts->servers, &list->peer, now)->name,
                                missed);
        free(list);
    }
}

static void readPackets(ebpfMonPacketThread *p)
{
    uint64_t read;

    ebpfMonPacketSourcesWait(p->sources, POLL_MS);
    lookMissed(p, ebpfMonClockMonotonic());
    read = ebpfMonClockMonotonic();
    ebpfMonPacketSourcesRead(p->sources);
    ebpfMonPutJoinSetPacketsRead(p->m->put.join, read);
}

static void runPacketThread(ebpfMonWorker *worker, void *arg)
{
    ebpfMonPacketThread *p = arg;
    uint64_t refreshed = 0, second = ebpfMonClockMonotonic();
    size_t changes = 0;

    while (!ebpfMonWorkerIsStopping(worker)) {
        uint64_t now = ebpfMonClockMonotonic();

        if (!refreshed || now - refreshed > REFRESH_NS || changes != ebpfMonTargetsCountChanges(p->m->targets)) {
            changes = ebpfMonTargetsCountChanges(p->m->targets);
            refreshed = now;
            refresh(p, now);
        }
        readPackets(p);
        now = ebpfMonClockMonotonic();
        publishPuts(p, now);
        if (now - second > EBPFMON_SECOND_NS) {
            ebpfMonWireTick(p->wire, ebpfMonClockReal());
            publish(p, (double)(now - second) / 1e9);
            second = now;
        }
    }
    publishPuts(p, UINT64_MAX);
}

static void freePacketThread(ebpfMonPacketThread *p)
{
    ebpfMonWireFree(p->wire);
    ebpfMonPacketSourcesFree(p->sources);
    free(p);
}

ebpfMonPacketThread *ebpfMonPacketThreadStart(ebpfMonMonitor *m, unsigned ringBytes)
{
    ebpfMonPacketThread *p = calloc(1, sizeof(*p));
    const ebpfMonPacketSourcesSink sink = { .packet = onPacket, .opened = onOpened, .arg = p };

    if (p) {
        p->m = m;
        p->wire = ebpfMonWireNew(NULL, onEvent, p);
        p->sources = ebpfMonPacketSourcesNew(ringBytes, &sink);
    }
    if (p && p->wire && p->sources)
        p->worker = ebpfMonWorkerStart("ebpfMonPacket", epicsThreadPriorityLow, runPacketThread, p);
    if (p && p->worker)
        return p;
    errlogSevPrintf(errlogMajor, "ebpfMon: no memory to read packets. Free some, then start again\n");
    if (p)
        freePacketThread(p);
    return NULL;
}

int ebpfMonPacketThreadStop(ebpfMonPacketThread **thread)
{
    ebpfMonPacketThread *p = *thread;

    if (!p)
        return 0;
    if (ebpfMonWorkerStop(&p->worker, STOP_SECONDS))
        return -1;
    freePacketThread(p);
    *thread = NULL;
    return 0;
}
