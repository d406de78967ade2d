/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <epicsStdio.h>
#include <epicsString.h>
#include <epicsThread.h>
#include <envDefs.h>
#include <errlog.h>

#include "common/clock.h"
#include "common/worker.h"
#include "model/published.h"
#include "search/search.h"
#include "watch/requests.h"
#include "model/losses.h"
#include "watch/connectionOwners.h"
#include "export/export.h"
#include "monitor/monitor.h"
#include "probe/kernelLoad.h"
#include "probe/kernelTables.h"
#include "probe/packets.h"
#include "ioc/procNetns.h"
#include "wire/wire.h"

#define SOURCES     32
#define POLL_MS     10          /* puts that wait for a reply are looked at this often */
#define REFRESH_NS  2000000000ull
#define STOP_SECONDS 5.0
#define RETRY_NS    30000000000ull
#define DELAY_MAX   60000000000ull /* from a packet to us */

typedef struct {
    uint32_t netns;
    ebpfMonPackets *packets;
} source;

struct ebpfMonPacketThread {
    ebpfMonMonitor *m;
    ebpfMonWorker  *worker;
    ebpfMonWire    *wire;
    unsigned ringBytes;
    source   sources[SOURCES];
    unsigned sourceCount;
    uint32_t refused[SOURCES]; /* namespaces that could not be opened, tried again every RETRY_NS */
    unsigned refusedCount;
    uint64_t refusedAt;
    uint32_t reading;          /* namespace of the packets that are being read */
    char     trouble[200];
    uint64_t packetsDropped;   /* by sources that are closed */
    uint64_t packetsBefore;    /* that had passed when the rate was published last */
    uint64_t missedAt;         /* monotonic ns: when events of the IOCs were found to be lost last */
    uint64_t lostBefore;
};

/* Looks once for all puts that are published next: asking the kernel for each would cost more than the put. */
static void lookMissed(ebpfMonPacketThread *p, uint64_t now)
{
    uint64_t lost[EBPFMON_LOST_KERNEL], sum;

    ebpfMonKernelGetLost(lost);
    sum = lost[EBPFMON_LOST_RING] + lost[EBPFMON_LOST_THREADS] + lost[EBPFMON_LOST_FAULT] + ebpfMonLossesGet(ebpfMonLossGone);
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
        /* Without that tracepoint nothing tells which put inside it is: the inside alone tells of those. */
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
        for (unsigned i = 0; i < p->sourceCount; i++)
            if (!ev->peer.netns || p->sources[i].netns == ev->peer.netns)
                ebpfMonPacketsVerdict(p->sources[i].packets, &ev->peer, 0);
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
        for (unsigned i = 0; i < p->sourceCount; i++)
            if (!ev->peer.netns || p->sources[i].netns == ev->peer.netns)
                ebpfMonPacketsPort(p->sources[i].packets, ntohs(ev->peer.sport), 1);
        break;
    case ebpfMonWireUser:
    case ebpfMonWireChannelGone:
    case ebpfMonWireGap:
        break; /* counted by the wire itself */
    }
}

static void onPacket(void *arg, uint64_t time, const uint8_t *ip, size_t len, size_t wireLen)
{
    ebpfMonPacketThread *p = arg;

    ebpfMonWirePacket(p->wire, time, p->reading, ip, len, wireLen);
}

static void closeSource(ebpfMonPacketThread *p, unsigned i)
{
    ebpfMonPacketsStats s;

    ebpfMonPacketsStat(p->sources[i].packets, &s);
    p->packetsDropped += s.dropped;
    ebpfMonPacketsClose(p->sources[i].packets);
    p->sources[i] = p->sources[--p->sourceCount];
}

/* A port of Channel Access from the environment. Base sets no default for some, and reading those prints an error
 * (envGetInetPortConfigParam; rsrv/caservertask.c asks first, too). */
static unsigned short readPort(const ENV_PARAM *param, unsigned short otherwise)
{
    return envGetConfigParamPtr(param) ? envGetInetPortConfigParam(param, otherwise) : otherwise;
}

/* Where a site has its searches and beacons: as for any other IOC, our own environment tells. */
static void expectOurs(ebpfMonPackets *packets)
{
    unsigned short server = readPort(&EPICS_CA_SERVER_PORT, 5064), repeater = readPort(&EPICS_CA_REPEATER_PORT, 5065);

    ebpfMonPacketsPort(packets, server, 1);
    ebpfMonPacketsPort(packets, readPort(&EPICS_CAS_SERVER_PORT, server), 1);
    ebpfMonPacketsPort(packets, repeater, 1);
    ebpfMonPacketsPort(packets, readPort(&EPICS_CAS_BEACON_PORT, repeater), 1);
}

static void openSource(ebpfMonPacketThread *p, pid_t pid, uint32_t netns)
{
    char why[sizeof(p->trouble)];

    for (unsigned i = 0; i < p->refusedCount; i++)
        if (p->refused[i] == netns)
            return;
    if (p->sourceCount == SOURCES)
        return;
    p->sources[p->sourceCount].packets = ebpfMonPacketsOpen(pid, p->ringBytes, why, sizeof(why));
    if (p->sources[p->sourceCount].packets) {
        expectOurs(p->sources[p->sourceCount].packets);
        p->sources[p->sourceCount++].netns = netns;
        if (pid && netns != ebpfMonProcNetns(getpid()))
            ebpfMonConnectionOwnersRead(pid, netns, ebpfMonKernelSetOwner);
        return;
    }
    if (p->refusedCount < SOURCES)
        p->refused[p->refusedCount++] = netns;
    if (strcmp(why, p->trouble) != 0)
        errlogSevPrintf(errlogMinor, "ebpfMon: puts, searches and beacons on the wire are not seen: %s\n", why);
    snprintf(p->trouble, sizeof(p->trouble), "%s", why);
}

static void expectPort(void *arg, uint32_t netns, uint16_t port)
{
    ebpfMonPacketThread *p = arg;

    for (unsigned i = 0; i < p->sourceCount; i++)
        if (p->sources[i].netns == netns)
            ebpfMonPacketsPort(p->sources[i].packets, port, 1);
}

/* A source for every network namespace that an IOC lives in, and for our own. */
static void refresh(ebpfMonPacketThread *p, uint64_t now)
{
    pid_t pids[EBPFMON_IOCS_MAX + 1] = { 0 };
    ebpfMonNetns *list = NULL;
    uint32_t netns[SOURCES];
    size_t n = 1;
    int count;

    pids[0] = getpid();
    ebpfMonTargetsLock(p->m->targets);
    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(p->m->targets); t && n <= EBPFMON_IOCS_MAX; t = t->next)
        if (!t->gone)
            pids[n++] = t->pid;
    ebpfMonTargetsUnlock(p->m->targets);
    if (now - p->refusedAt > RETRY_NS) {
        p->refusedAt = now;
        p->refusedCount = 0;
    }
    count = ebpfMonProcNetnsList(pids, n, &list);
    for (unsigned i = 0; count >= 0 && i < p->sourceCount; i++) {
        int k = 0;

        while (k < count && list[k].netns != p->sources[i].netns)
            k++;
        if (k == count)
            closeSource(p, i--);
    }
    /* Covered before it is listened to: of a put that is made meanwhile the wire tells, too. */
    for (int k = 0; k < count && k < SOURCES; k++)
        netns[k] = list[k].netns;
    if (count > 0)
        ebpfMonPutJoinSetCovered(p->m->put.join, netns, count < SOURCES ? (unsigned)count : SOURCES);
    for (int k = 0; k < count; k++) {
        unsigned i = 0;

        while (i < p->sourceCount && p->sources[i].netns != list[k].netns)
            i++;
        if (i == p->sourceCount)
            openSource(p, list[k].pid == pids[0] ? 0 : list[k].pid, list[k].netns);
    }
    free(list);
    if (!p->refusedCount)
        p->trouble[0] = 0;
    for (unsigned i = 0; i < p->sourceCount; i++)
        netns[i] = p->sources[i].netns;
    ebpfMonPutJoinSetCovered(p->m->put.join, netns, p->sourceCount);
    ebpfMonServersRefresh(p->m->put.servers, expectPort, p);
}

static void publish(ebpfMonPacketThread *p, double seconds)
{
    const ebpfMonWireStats *w = ebpfMonWireStat(p->wire);
    uint64_t seen = 0, dropped = p->packetsDropped;
    ebpfMonPublished *published;

    for (unsigned i = 0; i < p->sourceCount; i++) {
        ebpfMonPacketsStats s;

        ebpfMonPacketsStat(p->sources[i].packets, &s);
        seen += s.passed;
        dropped += s.dropped;
    }
    published = ebpfMonPublishedLock();
    published->packets.state = !p->sourceCount || p->refusedCount ? ebpfMonWireTrouble : ebpfMonWireOn;
    /* fewer than before: a source was closed */
    published->packets.rate = seen >= p->packetsBefore ? (double)(seen - p->packetsBefore) / seconds : 0;
    published->packets.gaps = w->gaps;
    published->packets.lost = dropped + w->gaps + w->noMemory + ebpfMonPutJoinCountDropped(p->m->put.join);
    published->packets.circuits = w->circuits;
    ebpfMonPublishedUnlock();
    p->packetsBefore = seen;
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
        ebpfMonPacketPutsFinish(puts->packetPuts, list, ebpfMonServersFind(puts->servers, &list->peer, now)->name, missed);
        free(list);
    }
}

static void readPackets(ebpfMonPacketThread *p)
{
    struct pollfd fd[SOURCES];
    uint64_t read;

    for (unsigned i = 0; i < p->sourceCount; i++)
        fd[i] = (struct pollfd){ .fd = ebpfMonPacketsFd(p->sources[i].packets), .events = POLLIN };
    poll(fd, p->sourceCount, POLL_MS);
    lookMissed(p, ebpfMonClockMonotonic());
    read = ebpfMonClockMonotonic();
    for (unsigned i = 0; i < p->sourceCount; i++) {
        p->reading = p->sources[i].netns;
        ebpfMonPacketsPoll(p->sources[i].packets, 0, onPacket, p);
    }
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
    while (p->sourceCount)
        closeSource(p, 0);
}

ebpfMonPacketThread *ebpfMonPacketThreadStart(ebpfMonMonitor *m, unsigned ringBytes)
{
    ebpfMonPacketThread *p = calloc(1, sizeof(*p));

    if (p) {
        p->m = m;
        p->ringBytes = ringBytes;
        p->wire = ebpfMonWireNew(NULL, onEvent, p);
    }
    if (p && p->wire)
        p->worker = ebpfMonWorkerStart("ebpfMonPacket", epicsThreadPriorityLow, runPacketThread, p);
    if (p && p->worker)
        return p;
    errlogSevPrintf(errlogMajor, "ebpfMon: no memory to read packets. Free some, then start again\n");
    if (p && p->wire)
        ebpfMonWireFree(p->wire);
    free(p);
    return NULL;
}

int ebpfMonPacketThreadStop(ebpfMonPacketThread *p)
{
    if (!p)
        return 0;
    if (ebpfMonWorkerStop(&p->worker, STOP_SECONDS))
        return -1;
    ebpfMonWireFree(p->wire);
    free(p);
    return 0;
}
