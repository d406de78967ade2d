/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "host/foreign.h"
#include "host/procRead.h"
#include "model/filter.h"
#include "model/published.h"
#include "module/modules.h"
#include "monitor/monitor.h"
#include "probe/kernelEvents.h"
#include "probe/kernelTables.h"
#include "search/search.h"
#include "watch/connectionSockets.h"
#include "watch/packetReader.h"

#define REFRESH_NS   2000000000ull
#define MORE_NS      10000000ull /* so soon the next one of many packet sources is opened */
#define REFRESH_PART 50 /* a refresh because IOCs have changed comes not before so many times what the last one took,
                         * without new sources: else who starts and ends IOCs all the time would keep this thread
                         * busy */

typedef struct {
    ebpfMonMonitor      *m;
    /* only for the thread */
    ebpfMonPacketReader *reader;
    uint64_t             refreshed, second; /* monotonic ns of the last refresh, and of the last second's counts */
    uint64_t             read;              /* monotonic ns: all packets from before were read */
    size_t               changes;           /* changes of the targets at the last refresh */
    uint64_t             refreshNext;       /* monotonic ns: not before then because of changes */
    uint64_t             lost, lostAt;      /* lost packets; when that grew last (monotonic ns; 0: never) … */
    char                 newest[40];        /* … and why */
    unsigned             found;             /* packets since the last second's counts */
    int                  isMore;            /* more sources are to be opened */
    uint64_t             tlsFailed, tlsTold; /* handshakes that failed; how many of them were told in events … */
    uint64_t             tlsToldAt;         /* … and when the last one was (monotonic ns) */
    int                  isSilent;          /* no packet but beacons came for a second, and no IOC hits a probe */
} ebpfMonPacketThread;

/* Tells of a connection to an IOC whose handshake of TLS has failed: once a second, so that nobody fills the events. */
static void noteTlsFailed(ebpfMonPacketThread *p, const ebpfMonWireEvent *ev)
{
    uint64_t now = ebpfMonClockMonotonic();
    const ebpfMonServer *server = ebpfMonServersFind(p->m->put.servers, &ev->peer, now);
    ebpfMonPutClient who;
    char process[sizeof(who.realUser) + sizeof(who.command) + 24] = "", more[60] = "", name[EBPFMON_IOCNAME_SIZE];
    char text[EBPFMON_MODULE_EVENT];

    if (!server->iocId)
        return;
    memcpy(name, server->name, sizeof(name));
    p->tlsFailed++;
    if (p->tlsToldAt && now - p->tlsToldAt < EBPFMON_SECOND_NS)
        return;
    ebpfMonPutClientsFind(p->m->put.clients, &ev->peer, &ev->first, "", "", &who);
    if (who.peerPid)
        snprintf(process, sizeof(process), ", %s, %s, pid %u", who.realUser, who.command, who.peerPid);
    if (p->tlsFailed - p->tlsTold > 1)
        snprintf(more, sizeof(more), "; %llu before it were not told",
                 (unsigned long long)(p->tlsFailed - p->tlsTold - 1));
    snprintf(text, sizeof(text), "IOC %s: TLS with %s%s failed: %s%s", name, who.peer, process, ev->message, more);
    ebpfMonModuleAddEvent(text);
    p->tlsTold = p->tlsFailed;
    p->tlsToldAt = now;
}

/* The wire itself counts users, channels and gaps. */
static void onWireEvent(void *arg, const ebpfMonWireEvent *ev)
{
    ebpfMonPacketThread *p = arg;
    ebpfMonWireEvent named;
    char name[256];

    if (ev->isTls)
        ebpfMonPacketTlsNote(p->m->targets,
                             ebpfMonServersFind(p->m->put.servers, &ev->peer, ebpfMonClockMonotonic())->iocId);
    ebpfMonModulesTellMessage(ev);
    if (ev->kind != ebpfMonWireBeacon && ebpfMonKernelIsSilent()) {
        ebpfMonKernelBreakSilence();
        ebpfMonRingReaderWake(p->m->eventThread); /* it tells others */
    }
    if (ev->kind == ebpfMonWireTlsFailed) {
        noteTlsFailed(p, ev);
        return;
    }
    if (ev->kind == ebpfMonWireOpened)
        ebpfMonServersNoteOpened(p->m->put.servers, &ev->peer);
    if (ev->kind == ebpfMonWireGivenUp)
        ebpfMonLossesAdd(&p->m->losses, ebpfMonLossUrgent);
    if (ev->kind == ebpfMonWireCrowded)
        ebpfMonLossesAdd(&p->m->losses, ebpfMonLossCircuits);
    ebpfMonOtherServersAddEvent(p->m->put.otherServers, ev, ebpfMonClockMonotonic());
    if (ebpfMonSearchAddPacket(p->m->search, ev))
        return;
    if (ev->kind == ebpfMonWireUpdate || ev->kind == ebpfMonWireFlow || ev->kind == ebpfMonWireRead ||
        ev->kind == ebpfMonWireSubscribe || ev->kind == ebpfMonWireStill) /* they are for modules */
        return;
    /* the packet that named its channel came before the first one that we saw */
    if (ev->protocol == ebpfMonWirePva && ev->sid && !ev->name[0] && !ebpfMonFirstIsKnown(&ev->first) &&
        ebpfMonModulesFindChannel(&ev->peer, ev->sid, name, sizeof(name)) == 0) {
        named = *ev;
        named.name = name;
        ev = &named;
    }
    ebpfMonPacketEventsAdd(p->m->put.packetEvents, ev);
}

static void onPacket(void *arg, uint32_t netns, const ebpfMonPacket *packet)
{
    ebpfMonModulesTellPacket(&(ebpfMonModulePacket){ .time = packet->time, .netns = netns, .ip = packet->ip,
                             .length = packet->len, .sent = packet->wireLen });
}

static void onCovers(void *arg, const uint32_t *netns, const uint64_t *since, unsigned count)
{
    ebpfMonPacketThread *p = arg;

    ebpfMonServersSetCovered(p->m->put.servers, netns, since, count);
    ebpfMonPutJoinSetCovered(p->m->put.join, netns, count, ebpfMonClockMonotonic());
}

static void expectPort(void *arg, uint32_t netns, uint16_t port)
{
    ebpfMonPacketThread *p = arg;

    ebpfMonPacketReaderExpectPort(p->reader, netns, port);
}

static void onTook(void *arg, const struct ebpfMonPeer *server, uint64_t ns)
{
    ebpfMonPacketThread *p = arg;
    const ebpfMonServer *found = ebpfMonServersFind(p->m->put.servers, server, ebpfMonClockMonotonic());

    if (found->iocId)
        ebpfMonPacketCostAdd(p->m->targets, found->iocId, ns);
}

static int64_t findUser(void *arg, const struct ebpfMonPeer *peer)
{
    struct ebpfMonOwner owner;
    uid_t user;

    if (!ebpfMonKernelGetOwner(peer, NULL, &owner))
        return -1;
    if (ebpfMonProcIsOther((pid_t)owner.pid, owner.start))
        return owner.uid;
    user = ebpfMonProcPayer((pid_t)owner.pid); /* 0 if it is gone */
    return user ? user : owner.uid;
}

static int isReal(void *arg, const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first)
{
    ebpfMonPacketThread *p = arg;
    const ebpfMonServer *server = ebpfMonServersFind(p->m->put.servers, peer, ebpfMonClockMonotonic());
    ebpfMonReceived received;

    return ebpfMonConnectionSocketsFind(peer, first, server->pid, &received) && !received.endedAt;
}

static void onRefused(void *arg, int hasWrongSum)
{
    ebpfMonPacketThread *p = arg;

    ebpfMonLossesAdd(&p->m->losses, hasWrongSum ? ebpfMonLossWrongSum : ebpfMonLossOwnAddress);
}

static void publishCounts(ebpfMonPacketThread *p, double seconds, uint64_t now)
{
    ebpfMonPacketValues values;

    ebpfMonPacketCostTick(p->m->targets, seconds);
    ebpfMonPacketReaderTick(p->reader, seconds, &values);
    ebpfMonModulesTellMessage(NULL); /* what it told is about no packet */
    values.lost += ebpfMonPutJoinCountDropped(p->m->put.join);
    values.tlsFailed = p->tlsFailed;
    ebpfMonPacketEventsNotePacketsLost(p->m->put.packetEvents, values.lost, now);
    if (values.lost > p->lost) {
        p->lostAt = now;
        strcpy(p->newest, values.newest);
    }
    p->lost = values.lost;
    strcpy(values.newest, p->lostAt && now - p->lostAt < EBPFMON_LOSS_SECONDS * EBPFMON_SECOND_NS ? p->newest : "");
    ebpfMonPublishedLock()->packets = values;
    ebpfMonPublishedUnlock();
}

static void publishOtherServers(ebpfMonMonitor *m, uint64_t now)
{
    ebpfMonFilter filter;

    ebpfMonRequestsGetFilter(m->requests, &filter);
    ebpfMonOtherServersPublish(m->put.otherServers, &filter, now);
}

static void refreshSources(ebpfMonPacketThread *p, uint64_t now)
{
    uint64_t begin, took;
    size_t before = p->changes;

    p->changes = ebpfMonTargetsCountChanges(p->m->targets); /* before they are read */
    p->refreshed = now;
    p->isMore = ebpfMonPacketReaderFollow(p->reader, now);
    begin = ebpfMonForeignGetCpu(); /* for what was opened before somebody has paid */
    ebpfMonServersRefresh(p->m->put.servers, expectPort, p);
    ebpfMonModulesTellServers(p->changes != before);
    took = ebpfMonForeignGetCpu() - begin;
    p->refreshNext = now + (took < REFRESH_NS / REFRESH_PART ? took * REFRESH_PART : REFRESH_NS);
}

static int hasChanged(const ebpfMonPacketThread *p)
{
    return ebpfMonTargetsCountChanges(p->m->targets) != p->changes;
}

/* When the counts of the last second are due; in a silence, of the last seconds. Monotonic ns. */
static uint64_t findTick(const ebpfMonPacketThread *p)
{
    return p->isSilent ? ebpfMonClockNextLook(p->second) : p->second + EBPFMON_SECOND_NS;
}

/* Does what is due from time to time. "n": packets that were just read, without beacons. The first ones after a silence
 * are not kept waiting by that: rates are counted from them on. */
static void tickSources(ebpfMonPacketThread *p, unsigned n)
{
    uint64_t now = ebpfMonClockMonotonic();

    if (n && p->isSilent) {
        p->second = now;
        if (now > p->refreshed + EBPFMON_SECOND_NS)
            p->refreshed = now - EBPFMON_SECOND_NS;
    }
    p->found += n;
    p->isSilent &= !n;
    if (now >= (p->isSilent ? findTick(p) : p->refreshed + REFRESH_NS))
        refreshSources(p, now);
    if (now < findTick(p))
        return;
    publishCounts(p, (double)(now - p->second) / 1e9, now);
    publishOtherServers(p->m, now);
    p->second = now;
    p->isSilent = !p->found && ebpfMonKernelIsSilent();
    p->found = 0;
}

/* Reads the packets that have come, and does the work that is due. More are also expected if a program still writes a
 * packet before the others. */
static void readPackets(void *arg, int *expects)
{
    ebpfMonPacketThread *p = arg;
    ebpfMonPacketReaderLook look;
    uint64_t now;

    now = ebpfMonClockMonotonic();
    if (p->isMore || (hasChanged(p) && now >= p->refreshNext))
        refreshSources(p, now);
    now = ebpfMonClockMonotonic();
    ebpfMonPacketEventsNoteLost(p->m->put.packetEvents, now);
    ebpfMonPacketReaderRead(p->reader, &look);
    if (look.isWhole) {
        ebpfMonPutJoinSetPacketsRead(p->m->put.join, now);
        p->read = now;
    }
    ebpfMonGatewaysPublish(p->m->put.gateways, p->read, ebpfMonClockMonotonic());
    ebpfMonPacketEventsPublish(p->m->put.packetEvents, ebpfMonClockMonotonic());
    tickSources(p, look.others);
    *expects = look.expected || !look.isWhole;
}

/* Nonzero: a put waits for its reply, its event or a part that is missing. */
static int awaitsAny(const ebpfMonPacketThread *p)
{
    return ebpfMonPutJoinHasWaiting(p->m->put.join) || ebpfMonPacketReaderAwaitsAny(p->reader);
}

static uint64_t getPacketDue(void *arg)
{
    ebpfMonPacketThread *p = arg;
    uint64_t puts = ebpfMonPutJoinGetDue(p->m->put.join), tick = p->isMore ? p->refreshed + MORE_NS : findTick(p);
    uint64_t gateways = ebpfMonGatewaysGetDue(p->m->put.gateways);
    uint64_t late = ebpfMonPacketEventsGetDue(p->m->put.packetEvents);

    if (gateways < puts)
        puts = gateways;
    if (late < puts)
        puts = late;
    if (hasChanged(p) && p->refreshNext < tick)
        tick = p->refreshNext;
    return puts < tick ? puts : tick;
}

static int getPacketFile(void *arg)
{
    ebpfMonPacketThread *p = arg;

    return ebpfMonPacketReaderGetFile(p->reader);
}

/* A put that waits, or is not whole, and the end of a silence, may need any packet at once. Else only puts do. */
static int beginPacketSleep(void *arg)
{
    ebpfMonPacketThread *p = arg;
    enum ebpfMonPacketsSleep which = p->isSilent || awaitsAny(p) ? EBPFMON_PACKETS_ALL : EBPFMON_PACKETS_URGENT;

    return ebpfMonPacketReaderBeginSleep(p->reader, which);
}

static void endPacketSleep(void *arg)
{
    ebpfMonPacketThread *p = arg;

    ebpfMonPacketReaderEndSleep(p->reader);
}

static void publishWaitingPuts(void *arg)
{
    ebpfMonPacketThread *p = arg;

    ebpfMonGatewaysPublish(p->m->put.gateways, p->read, UINT64_MAX);
    ebpfMonPacketEventsPublish(p->m->put.packetEvents, UINT64_MAX);
}

static void freeThread(void *arg)
{
    ebpfMonPacketThread *p = arg;

    ebpfMonPacketReaderFree(p->reader);
    free(p);
}

ebpfMonRingReader *ebpfMonPacketThreadNew(ebpfMonMonitor *m, unsigned ringBytes)
{
    static const ebpfMonRingReaderCalls calls = {
        .name = "ebpfMonPacket", .read = readPackets, .getDue = getPacketDue,
        .getFile = getPacketFile, .beginSleep = beginPacketSleep, .endSleep = endPacketSleep,
        .finish = publishWaitingPuts, .free = freeThread,
    };
    ebpfMonPacketThread *p = calloc(1, sizeof(*p));
    const ebpfMonPacketReaderSink sink = {
        .event = onWireEvent, .covers = onCovers, .setOwner = ebpfMonKernelSetOwner, .took = onTook,
        .packet = onPacket, .findUser = findUser, .isReal = isReal, .refused = onRefused,
        .arg = p,
    };
    ebpfMonRingReader *thread;

    if (!p)
        return NULL;
    p->m = m;
    p->second = ebpfMonClockMonotonic();
    p->reader = ebpfMonPacketReaderNew(m->targets, ringBytes, &sink);
    thread = p->reader ? ebpfMonRingReaderNew(&calls, p) : NULL;
    if (!thread)
        freeThread(p);
    return thread;
}
