/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <epicsEvent.h>
#include <epicsStdio.h>
#include <epicsString.h>
#include <epicsThread.h>
#include <envDefs.h>
#include <errlog.h>

#include "common/clock.h"
#include "model/published.h"
#include "search/searches.h"
#include "watch/requests.h"
#include "put/putJoin.h"
#include "model/losses.h"
#include "watch/connectionOwners.h"
#include "put/servers.h"
#include "put/packetPuts.h"
#include "monitor/packetThread.h"
#include "probe/loader.h"
#include "probe/packets.h"
#include "ioc/procNetns.h"
#include "wire/wire.h"

#define SOURCES     32
#define POLL_MS     10          /* puts that wait for a reply are looked at this often */
#define REFRESH_NS  2000000000ull
#define SECOND_NS   1000000000ull
#define RETRY_NS    30000000000ull
#define DELAY_MAX   60000000000ull /* from a packet to us */

typedef struct {
    uint32_t netns;
    ebpfMonPackets *packets;
} source;

static source sources[SOURCES];
static unsigned sourceCount;
static uint32_t refused[SOURCES]; /* namespaces that could not be opened, tried again every RETRY_NS */
static unsigned refusedCount;
static uint64_t refusedAt;
static ebpfMonWire *wire;
static unsigned ringSize;
static uint32_t reading;          /* namespace of the packets that are being read */
static char trouble[200];
static uint64_t packetsDropped;   /* by sources that are closed */
static volatile int stopping;
static epicsEventId ended;

/* When the inside was found to have missed something last. Looked for before puts are told of, once for all of them:
 * asking the kernel for each would cost more than it. */
static uint64_t missedAt;

static void lookMissed(uint64_t now)
{
    static uint64_t before;
    uint64_t lost[EBPFMON_LOST_KERNEL], sum;

    ebpfMonKernelGetLost(lost);
    sum = lost[EBPFMON_LOST_RING] + lost[EBPFMON_LOST_THREADS] + lost[EBPFMON_LOST_FAULT] + ebpfMonLossesGet(ebpfMonLossGone);
    if (sum != before)
        missedAt = now;
    before = sum;
}

/* A server that is no IOC of Base, or whose puts are not watched from inside. */
static int wanted(const ebpfMonServer *server)
{
    ebpfMonFilter f;

    if (server->iocId)
        return 1;
    ebpfMonRequestsGetFilter(&f);
    return !server->off && f.level > ebpfMonLevelOff && epicsStrGlobMatch(server->name, f.ioc);
}

/* When the packet came, by the clock that the inside uses; a stepped wall clock tells nothing. */
static uint64_t arrival(uint64_t time)
{
    uint64_t wall = ebpfMonClockReal(), age = wall > time ? wall - time : 0;

    return ebpfMonClockMonotonic() - (age < DELAY_MAX ? age : 0);
}

static void put(const ebpfMonWireEvent *ev, uint32_t iocId)
{
    ebpfMonOldValue old = { .known = 0 };

    if (!iocId) /* else the inside knows it for sure */
        ebpfMonPacketPutsTakeOld(ev, &old);
    ebpfMonPutJoinAddPacket(ev, iocId, &old, arrival(ev->time));
}

static void onEvent(void *arg, const ebpfMonWireEvent *ev)
{
    ebpfMonSearchProtocol protocol = ev->protocol == ebpfMonWirePva ? ebpfMonSearchPva : ebpfMonSearchCa;
    ebpfMonSearchHost client = { .addr = ev->peer.addr, .port = ev->peer.port };
    ebpfMonSearchHost serverHost = { .addr = ev->peer.saddr, .port = ev->peer.sport };
    const ebpfMonServer *server;
    ebpfMonOldValue old;

    (void)arg;
    switch (ev->kind) {
    case ebpfMonWirePut:
        server = ebpfMonServersFind(&ev->peer, ebpfMonClockMonotonic());
        /* Without that tracepoint nothing tells which put inside it is: the inside alone tells of those. */
        if (wanted(server) && (!server->iocId || ebpfMonFeature.recvLength))
            put(ev, server->iocId);
        if (!server->iocId)
            ebpfMonPacketPutsNoteSent(ev, arrival(ev->time));
        break;
    case ebpfMonWireReply:
        if (ebpfMonPutJoinAddReply(ev, &old) && !ev->ok)
            ebpfMonPacketPutsRestore(ev, &old);
        break;
    case ebpfMonWireValue:
        server = ebpfMonServersFind(&ev->peer, ebpfMonClockMonotonic());
        if (!server->iocId)
            ebpfMonPacketPutsNoteValue(ev);
        break;
    case ebpfMonWireChannel:
        if (ev->name[0])
            ebpfMonPutJoinNameChannel(&ev->peer, ev->sid, ev->name);
        break;
    case ebpfMonWireClosed:
        ebpfMonPutJoinCloseCircuit(&ev->peer);
        break;
    case ebpfMonWireForeign:
        for (unsigned i = 0; i < sourceCount; i++)
            if (!ev->peer.netns || sources[i].netns == ev->peer.netns)
                ebpfMonPacketsVerdict(sources[i].packets, &ev->peer, 0);
        break;
    case ebpfMonWireSearch:
        ebpfMonSearchAsked(ev->time, protocol, client, ev->cid, ev->name);
        break;
    case ebpfMonWireFound:
        ebpfMonSearchFound(protocol, client, ev->cid, ev->name);
        break;
    case ebpfMonWireBeacon:
        ebpfMonSearchBeacon(ev->time, protocol, serverHost);
        break;
    case ebpfMonWireOpened: /* a server on a port of its own is searched for there, too */
        for (unsigned i = 0; i < sourceCount; i++)
            if (!ev->peer.netns || sources[i].netns == ev->peer.netns)
                ebpfMonPacketsPort(sources[i].packets, ntohs(ev->peer.sport), 1);
        break;
    case ebpfMonWireUser:
    case ebpfMonWireChannelGone:
    case ebpfMonWireGap:
        break; /* counted by the wire itself */
    }
}

static void onPacket(void *arg, uint64_t time, const uint8_t *ip, size_t len, size_t wireLen)
{
    (void)arg;
    ebpfMonWirePacket(wire, time, reading, ip, len, wireLen);
}

static void closeSource(unsigned i)
{
    ebpfMonPacketsStats s;

    ebpfMonPacketsStat(sources[i].packets, &s);
    packetsDropped += s.dropped;
    ebpfMonPacketsClose(sources[i].packets);
    sources[i] = sources[--sourceCount];
}

/* Where a site has its searches and beacons: as for any other IOC, our own environment tells. */
static void expectOurs(ebpfMonPackets *packets)
{
    unsigned short server = envGetInetPortConfigParam(&EPICS_CA_SERVER_PORT, 5064);
    unsigned short repeater = envGetInetPortConfigParam(&EPICS_CA_REPEATER_PORT, 5065);

    ebpfMonPacketsPort(packets, server, 1);
    ebpfMonPacketsPort(packets, envGetInetPortConfigParam(&EPICS_CAS_SERVER_PORT, server), 1);
    ebpfMonPacketsPort(packets, repeater, 1);
    ebpfMonPacketsPort(packets, envGetInetPortConfigParam(&EPICS_CAS_BEACON_PORT, repeater), 1);
}

static void openSource(pid_t pid, uint32_t netns)
{
    char why[sizeof(trouble)];

    for (unsigned i = 0; i < refusedCount; i++)
        if (refused[i] == netns)
            return;
    if (sourceCount == SOURCES)
        return;
    sources[sourceCount].packets = ebpfMonPacketsOpen(pid, ringSize, why, sizeof(why));
    if (sources[sourceCount].packets) {
        expectOurs(sources[sourceCount].packets);
        sources[sourceCount++].netns = netns;
        if (pid && netns != ebpfMonProcNetns(getpid()))
            ebpfMonConnectionOwnersRead(pid, netns);
        return;
    }
    if (refusedCount < SOURCES)
        refused[refusedCount++] = netns;
    if (strcmp(why, trouble) != 0)
        errlogSevPrintf(errlogMinor, "ebpfMon: puts, searches and beacons on the wire are not seen: %s\n", why);
    snprintf(trouble, sizeof(trouble), "%s", why);
}

static void expectPort(void *arg, uint32_t netns, uint16_t port)
{
    (void)arg;
    for (unsigned i = 0; i < sourceCount; i++)
        if (sources[i].netns == netns)
            ebpfMonPacketsPort(sources[i].packets, port, 1);
}

/* A source for every network namespace that an IOC lives in, and for our own. */
static void refresh(uint64_t now)
{
    pid_t pids[EBPFMON_IOCS_MAX + 1] = { 0 };
    ebpfMonNetns *list = NULL;
    uint32_t netns[SOURCES];
    size_t n = 1;
    int count;

    pids[0] = getpid();
    ebpfMonTargetsLock(ebpfMonTheTargets);
    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(ebpfMonTheTargets); t && n <= EBPFMON_IOCS_MAX; t = t->next)
        if (!t->gone)
            pids[n++] = t->pid;
    ebpfMonTargetsUnlock(ebpfMonTheTargets);
    if (now - refusedAt > RETRY_NS) {
        refusedAt = now;
        refusedCount = 0;
    }
    count = ebpfMonProcNetnsList(pids, n, &list);
    for (unsigned i = 0; count >= 0 && i < sourceCount; i++) {
        int k = 0;

        while (k < count && list[k].netns != sources[i].netns)
            k++;
        if (k == count)
            closeSource(i--);
    }
    /* Covered before it is listened to: of a put that is made meanwhile the wire tells, too. */
    for (int k = 0; k < count && k < SOURCES; k++)
        netns[k] = list[k].netns;
    if (count > 0)
        ebpfMonPutJoinSetCovered(netns, count < SOURCES ? (unsigned)count : SOURCES);
    for (int k = 0; k < count; k++) {
        unsigned i = 0;

        while (i < sourceCount && sources[i].netns != list[k].netns)
            i++;
        if (i == sourceCount)
            openSource(list[k].pid == pids[0] ? 0 : list[k].pid, list[k].netns);
    }
    free(list);
    if (!refusedCount)
        trouble[0] = 0;
    for (unsigned i = 0; i < sourceCount; i++)
        netns[i] = sources[i].netns;
    ebpfMonPutJoinSetCovered(netns, sourceCount);
    ebpfMonServersRefresh(expectPort, NULL);
}

static void publish(double seconds)
{
    static uint64_t before;
    const ebpfMonWireStats *w = ebpfMonWireStat(wire);
    uint64_t seen = 0, dropped = packetsDropped;
    ebpfMonPublished *published;

    for (unsigned i = 0; i < sourceCount; i++) {
        ebpfMonPacketsStats s;

        ebpfMonPacketsStat(sources[i].packets, &s);
        seen += s.passed;
        dropped += s.dropped;
    }
    published = ebpfMonPublishedLock();
    published->wireState = !sourceCount || refusedCount ? ebpfMonWireTrouble : ebpfMonWireOn;
    published->wireRate = seen >= before ? (double)(seen - before) / seconds : 0; /* a source may have been closed */
    published->wireGaps = w->gaps;
    published->wireLost = dropped + w->gaps + w->noMemory + ebpfMonPutJoinCountDropped();
    published->wireCircuits = w->circuits;
    ebpfMonPublishedUnlock();
    before = seen;
}

static void publishPuts(uint64_t now)
{
    ebpfMonPacketPut *list = ebpfMonPutJoinTakeUnmatched(now), *next;
    int missed;

    if (list)
        lookMissed(now);
    for (; list; list = next) {
        next = list->next;
        missed = now == UINT64_MAX || missedAt >= list->at ||
                 (list->iocId && ebpfMonServersMayHaveMissed(list->iocId, list->at, !list->passed));
        ebpfMonPacketPutsPublish(list, ebpfMonServersFind(&list->peer, now)->name, missed);
        free(list);
    }
}

static void wireThread(void *arg)
{
    uint64_t refreshed = 0, second = ebpfMonClockMonotonic();
    size_t changes = 0;

    (void)arg;
    while (!stopping) {
        struct pollfd fd[SOURCES];
        uint64_t now = ebpfMonClockMonotonic(), looked;

        if (!refreshed || now - refreshed > REFRESH_NS || changes != ebpfMonTargetsCountChanges(ebpfMonTheTargets)) {
            changes = ebpfMonTargetsCountChanges(ebpfMonTheTargets);
            refreshed = now;
            refresh(now);
        }
        for (unsigned i = 0; i < sourceCount; i++)
            fd[i] = (struct pollfd){ .fd = ebpfMonPacketsFd(sources[i].packets), .events = POLLIN };
        poll(fd, sourceCount, POLL_MS);
        lookMissed(now);
        looked = ebpfMonClockMonotonic();
        for (unsigned i = 0; i < sourceCount; i++) {
            reading = sources[i].netns;
            ebpfMonPacketsPoll(sources[i].packets, 0, onPacket, NULL);
        }
        ebpfMonPutJoinSetPacketsRead(looked);
        now = ebpfMonClockMonotonic();
        publishPuts(now);
        if (now - second > SECOND_NS) {
            ebpfMonWireTick(wire, ebpfMonClockReal());
            publish((double)(now - second) / 1e9);
            second = now;
        }
    }
    publishPuts(UINT64_MAX);
    while (sourceCount)
        closeSource(0);
    ebpfMonWireFree(wire);
    epicsEventMustTrigger(ended);
}

void ebpfMonPacketThreadStart(unsigned ringBytes)
{
    ringSize = ringBytes;
    wire = ebpfMonWireNew(NULL, onEvent, NULL);
    if (!wire) {
        errlogSevPrintf(errlogMajor, "ebpfMon: no memory for puts on the wire\n");
        return;
    }
    ended = epicsEventMustCreate(epicsEventEmpty);
    epicsThreadMustCreate("ebpfMonWire", epicsThreadPriorityLow, epicsThreadGetStackSize(epicsThreadStackBig),
                          wireThread, NULL);
}

void ebpfMonPacketThreadStop(void)
{
    if (!ended)
        return;
    stopping = 1;
    epicsEventWaitWithTimeout(ended, 5.0);
}
