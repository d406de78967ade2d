/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <stdlib.h>
#include <unistd.h>

#include <epicsThread.h>
#include <errlog.h>

#include "common/clock.h"
#include "common/worker.h"
#include "ioc/procNetns.h"
#include "model/published.h"
#include "monitor/monitor.h"
#include "probe/kernelTables.h"
#include "probe/packetSources.h"
#include "watch/connectionOwners.h"
#include "wire/wire.h"

#define POLL_MS      10          /* puts that wait for a reply are looked at this often */
#define REFRESH_NS   2000000000ull
#define STOP_SECONDS 5.0

struct ebpfMonPacketThread {
    ebpfMonMonitor       *m;
    ebpfMonWorker        *worker;
    ebpfMonWire          *wire;
    ebpfMonPacketSources *sources;
    uint64_t passedBefore;     /* packets, when the rate was published last */
};

static void onEvent(void *arg, const ebpfMonWireEvent *ev)
{
    ebpfMonPacketThread *p = arg;
    ebpfMonSearchProtocol protocol = ev->protocol == ebpfMonWirePva ? ebpfMonSearchPva : ebpfMonSearchCa;
    ebpfMonSearchHost client = { .addr = ev->peer.addr, .port = ev->peer.port };
    ebpfMonSearchHost serverHost = { .addr = ev->peer.saddr, .port = ev->peer.sport };

    switch (ev->kind) {
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
    default: /* users, channels and gaps are counted by the wire itself */
        ebpfMonPacketEventsAdd(p->m->put.packetEvents, ev);
        break;
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
    pid_t pids[EBPFMON_TARGETS_MAX + 1] = { 0 };
    uint32_t netns[EBPFMON_PACKET_SOURCES_MAX];
    ebpfMonNetns *list = NULL;
    size_t n = 1;
    int count;

    pids[0] = getpid();
    ebpfMonTargetsLock(p->m->targets);
    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(p->m->targets); t && n <= EBPFMON_TARGETS_MAX; t = t->next)
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

static void readPackets(ebpfMonPacketThread *p)
{
    uint64_t read;

    ebpfMonPacketSourcesWait(p->sources, POLL_MS);
    ebpfMonPacketEventsNoteLost(p->m->put.packetEvents, ebpfMonClockMonotonic());
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
        ebpfMonPacketEventsPublish(p->m->put.packetEvents, now);
        if (now - second > EBPFMON_SECOND_NS) {
            ebpfMonWireTick(p->wire, ebpfMonClockReal());
            publish(p, (double)(now - second) / 1e9);
            second = now;
        }
    }
    ebpfMonPacketEventsPublish(p->m->put.packetEvents, UINT64_MAX);
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
