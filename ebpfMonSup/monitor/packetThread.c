/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include <epicsThread.h>
#include <errlog.h>

#include "common/clock.h"
#include "common/worker.h"
#include "model/published.h"
#include "monitor/monitor.h"
#include "probe/kernelTables.h"
#include "watch/packetReader.h"

#define POLL_MS      10          /* puts that wait for a reply are looked at this often */
#define REFRESH_NS   2000000000ull
#define STOP_SECONDS 5.0

struct ebpfMonPacketThread {
    ebpfMonMonitor      *m;
    ebpfMonWorker       *worker;
    ebpfMonPacketReader *reader;
};

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

static void readPackets(ebpfMonPacketThread *p)
{
    uint64_t read;

    ebpfMonPacketReaderWait(p->reader, POLL_MS);
    ebpfMonPacketEventsNoteLost(p->m->put.packetEvents, ebpfMonClockMonotonic());
    read = ebpfMonClockMonotonic();
    ebpfMonPacketReaderRead(p->reader);
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
            ebpfMonPacketReaderFollow(p->reader, now);
            ebpfMonServersRefresh(p->m->put.servers, expectPort, p);
        }
        readPackets(p);
        now = ebpfMonClockMonotonic();
        ebpfMonPacketEventsPublish(p->m->put.packetEvents, now);
        if (now - second > EBPFMON_SECOND_NS) {
            publish(p, (double)(now - second) / 1e9);
            second = now;
        }
    }
    ebpfMonPacketEventsPublish(p->m->put.packetEvents, UINT64_MAX);
}

static void freePacketThread(ebpfMonPacketThread *p)
{
    ebpfMonPacketReaderFree(p->reader);
    free(p);
}

ebpfMonPacketThread *ebpfMonPacketThreadStart(ebpfMonMonitor *m, unsigned ringBytes)
{
    ebpfMonPacketThread *p = calloc(1, sizeof(*p));
    const ebpfMonPacketReaderSink sink = {
        .event = onEvent, .covers = onCovers, .setOwner = ebpfMonKernelSetOwner, .arg = p,
    };

    if (p) {
        p->m = m;
        p->reader = ebpfMonPacketReaderNew(m->targets, ringBytes, &sink);
    }
    if (p && p->reader)
        p->worker = ebpfMonWorkerStart("ebpfMonPacket", epicsThreadPriorityMedium, runPacketThread, p);
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
