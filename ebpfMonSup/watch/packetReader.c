/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errlog.h>
#include <linux/ipv6.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <math.h>

#include "common/clock.h"
#include "common/shares.h"
#include "host/foreign.h"
#include "host/procInfo.h"
#include "host/procNetns.h"
#include "host/procRead.h"
#include "model/published.h"
#include "probe/calibrate.h"
#include "watch/packetReader.h"
#include "wire/packet.h"
#include "wire/wire.h"

/* --- owners of older connections --- */

void ebpfMonConnectionOwnersRead(pid_t pid, uint32_t netns, ebpfMonConnectionOwnersSet set)
{
    ebpfMonProcConn *conns = NULL;
    int n = ebpfMonProcReadConns(pid, &conns);

    for (int i = 0; i < n; i++) {
        struct ebpfMonPeer peer = {
            .addr = conns[i].addr, .saddr = conns[i].saddr, .port = conns[i].port, .sport = conns[i].sport,
            .netns = netns,
        };
        struct ebpfMonOwner owner = { .pid = (uint32_t)conns[i].pid, .uid = conns[i].uid };

        if (conns[i].pid) /* as the kernel part has it */
            owner.start = (uint32_t)((int64_t)ebpfMonProcStart(conns[i].pid) -
                                     ebpfMonClockGetBootOffset() / EBPFMON_TICK_NS);

        if (!conns[i].pid)
            continue;
        memcpy(peer.addr6, conns[i].addr6, sizeof(peer.addr6));
        memcpy(peer.saddr6, conns[i].saddr6, sizeof(peer.saddr6));
        memcpy(owner.comm, conns[i].comm, sizeof(owner.comm));
        set(&peer, &owner);
    }
    free(conns);
}

void ebpfMonPacketTlsNote(ebpfMonTargets *targets, uint32_t iocId)
{
    ebpfMonTarget *t;

    ebpfMonTargetsLock(targets);
    t = ebpfMonTargetsFindById(targets, iocId);
    if (t)
        t->packets.hasTls = 1;
    ebpfMonTargetsUnlock(targets);
}

/* --- what IOCs pay for packets --- */

#define MEAN_SECONDS 10.0
#define NOTHING      1e-4 /* percent */

void ebpfMonPacketCostAdd(ebpfMonTargets *targets, uint32_t iocId, uint64_t ns)
{
    ebpfMonTarget *t;

    ebpfMonTargetsLock(targets);
    t = ebpfMonTargetsFindById(targets, iocId);
    if (t)
        t->packets.ns += ns;
    ebpfMonTargetsUnlock(targets);
}

void ebpfMonPacketCostTick(ebpfMonTargets *targets, double seconds)
{
    double part = 1 - exp(-seconds / MEAN_SECONDS);

    if (seconds <= 0)
        return;
    ebpfMonTargetsLock(targets);
    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(targets); t; t = t->next) {
        t->packets.cost += part * (ebpfMonCostOfPrograms(t->packets.ns) / 1e7 / seconds - t->packets.cost);
        if (!t->packets.ns && t->packets.cost < NOTHING)
            t->packets.cost = 0; /* else its PVs would change for ever */
        t->packets.ns = 0;
    }
    ebpfMonTargetsUnlock(targets);
}

/* --- network namespaces --- */

/* In which network namespaces packets are read, if there are more than places: each user has a share (common/shares.h).
 * Packet thread only; /proc is read. */

/* Keeps at most "max" of these namespaces, the first one (our own) in any case. The others keep their order. Of one
 * user, those stay in which the oldest processes are. *left: of those that are left out, how many belong to system
 * users. Returns how many are left out. */
static unsigned choosePacketPlaces(ebpfMonNetns *list, unsigned count, unsigned max, unsigned *left)
{
    ebpfMonShare *shares = count > max ? calloc(count, sizeof(*shares)) : NULL;
    unsigned kept = 1, out;

    *left = 0;
    if (count <= max)
        return 0;
    if (!shares) {
        *left = count - max;
        return count - max;
    }
    for (unsigned i = 1; i < count; i++) {
        uid_t user = ebpfMonProcNetnsPayer(list[i].pid);

        shares[i] = (ebpfMonShare){ .user = user, .isSystem = user < EBPFMON_SYSTEM_USERS,
                                    .order = ebpfMonProcStart(list[i].pid), .size = 1 };
    }
    out = ebpfMonSharesFit(shares + 1, count - 1, max - 1);
    for (unsigned i = 1; i < count; i++) {
        if (!shares[i].isOut)
            list[kept++] = list[i];
        *left += shares[i].isOut && shares[i].isSystem;
    }
    free(shares);
    return out;
}

/* --- reading --- */

#define REST_NS  3000000000ull /* so long the rest of a put is waited for: TCP sends a lost segment again meanwhile */
#define LOSS_NS  (EBPFMON_LOSS_SECONDS * EBPFMON_SECOND_NS) /* so long a gap is because of lost packets */
#define REMIND_NS (300 * EBPFMON_SECOND_NS) /* a channel that is still open is noted as used so often */
#define DENSE_NS 10000000ull /* while any packet wakes the thread, packets that come faster are expected to go on:
                              * else each one would wake it, and who sends many of them would keep it busy */

struct ebpfMonPacketReader {
    ebpfMonTargets         *targets;      /* the caller's */
    ebpfMonPacketReaderSink sink;
    ebpfMonWire            *wire;
    ebpfMonPacketSources   *sources;
    uint64_t                passedBefore; /* packets, at the last tick */
    uint64_t                droppedBefore, gapsBefore;
    uint64_t                remindAt;     /* ns of the clock: when open channels are reported next */
    uint64_t                lossAt;       /* ns of the clock; 0: no packet was lost */
    enum ebpfMonPacketsSleep wakes; /* which packets wake the thread when it sleeps */
    unsigned                beacons, dense; /* packets of this look: beacons, and those that came fast */
    uint64_t                packetAt; /* ns of the clock, of the last packet */
    uint64_t                urgentAt; /* monotonic ns: one that could not wait was read */
    int                     hasBeacon, hasOther; /* the packet at hand told of a beacon, of something else */
    unsigned                left;   /* namespaces of watched IOCs for which there is no place; … */
    unsigned                leftOfSystem; /* of these, those of system users */
    uint32_t                unread[EBPFMON_PACKET_SOURCES_MAX]; /* namespaces of IOCs that are not watched … */
    unsigned                unreadCount;
};

static void onEvent(void *arg, const ebpfMonWireEvent *ev)
{
    ebpfMonPacketReader *r = arg;

    r->hasBeacon |= ev->kind == ebpfMonWireBeacon;
    r->hasOther |= ev->kind != ebpfMonWireBeacon;
    if (ev->kind == ebpfMonWireForeign)
        ebpfMonPacketSourcesReject(r->sources, &ev->peer);
    else if (ev->kind == ebpfMonWireOpened) /* a server on a port of its own is searched for there, too */
        ebpfMonPacketSourcesExpectPort(r->sources, ev->peer.netns, ntohs(ev->peer.sport));
    r->sink.event(r->sink.arg, ev);
}

/* Who sent this TCP packet. 0, or -1: it is another one. The program in the kernel has found both headers whole. */
static int readSender(const ebpfMonPacket *packet, uint32_t netns, struct ebpfMonPeer *sender)
{
    const struct iphdr *ip = (const struct iphdr *)packet->ip; /* in the ring, which is aligned */
    const struct tcphdr *tcp = (const struct tcphdr *)(packet->ip + ip->ihl * 4u);

    if (ip->version != 4) {
        tcp = (const struct tcphdr *)(packet->ip + sizeof(struct ipv6hdr));
        if (packet->len < sizeof(struct ipv6hdr) + sizeof(*tcp) ||
            ((const struct ipv6hdr *)packet->ip)->nexthdr != IPPROTO_TCP)
            return -1;
        *sender = (struct ebpfMonPeer){ .sport = tcp->source, .netns = netns };
        memcpy(sender->saddr6, ((const struct ipv6hdr *)packet->ip)->saddr.s6_addr, sizeof(sender->saddr6));
        sender->saddr = ebpfMonShortAddress(sender->saddr6);
        return 0;
    }
    if (ip->protocol != IPPROTO_TCP || packet->len < ip->ihl * 4u + sizeof(*tcp))
        return -1;
    *sender = (struct ebpfMonPeer){
        .saddr = ip->saddr,
        .sport = tcp->source,
        .netns = netns,
    };
    return 0;
}

/* Nonzero: no host accepts this TCP packet. */
static int isRefused(ebpfMonPacketReader *r, const ebpfMonPacket *packet, const struct ebpfMonPeer *sender)
{
    int hasWrongSum = ebpfMonPacketHasWrongSum(packet->ip, packet->len, packet->wireLen);

    if (!hasWrongSum && !(packet->isOutside &&
                          ebpfMonPacketSourcesHasSender(r->sources, sender, ebpfMonClockMonotonic())))
        return 0;
    r->sink.refused(r->sink.arg, hasWrongSum);
    return 1;
}

static void onPacket(void *arg, uint32_t netns, const ebpfMonPacket *packet)
{
    struct ebpfMonPeer sender;
    ebpfMonPacketReader *r = arg;
    int isTcp = !readSender(packet, netns, &sender);

    if (isTcp && isRefused(r, packet, &sender))
        return;
    if (packet->took && isTcp)
        r->sink.took(r->sink.arg, &sender, packet->took);
    r->hasBeacon = r->hasOther = 0;
    ebpfMonWirePacket(r->wire, packet->time, netns, packet->ip, packet->len, packet->wireLen);
    if (r->sink.packet)
        r->sink.packet(r->sink.arg, netns, packet);
    r->beacons += r->hasBeacon && !r->hasOther;
    r->dense += packet->time - r->packetAt < DENSE_NS;
    r->packetAt = packet->time;
}

static void onOpened(void *arg, pid_t pid, uint32_t netns)
{
    ebpfMonPacketReader *r = arg;

    ebpfMonConnectionOwnersRead(pid, netns, r->sink.setOwner);
}

/* Who pays for a circuit, if there are too many: for all that is in a namespace of his own, the user who has made it;
 * otherwise the user of the client, or the client's host. Nobody pays for what only packets show: anybody can send
 * them. */
static ebpfMonWirePayer findPayer(void *arg, const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first)
{
    ebpfMonPacketReader *r = arg;
    uid_t owner = ebpfMonPacketSourcesGetUser(r->sources, peer->netns);
    int64_t user = owner;

    if (owner < EBPFMON_SYSTEM_USERS && !r->sink.isReal(r->sink.arg, peer, first))
        return (ebpfMonWirePayer){ .isNobody = 1 };
    if (owner < EBPFMON_SYSTEM_USERS)
        user = r->sink.findUser(r->sink.arg, peer);
    if (user < 0)
        return (ebpfMonWirePayer){ .id = 1ull << 32 | peer->addr };
    return (ebpfMonWirePayer){ .id = (uint64_t)user, .isSystem = user < EBPFMON_SYSTEM_USERS };
}

ebpfMonPacketReader *ebpfMonPacketReaderNew(ebpfMonTargets *targets, unsigned ringBytes,
                                            const ebpfMonPacketReaderSink *sink)
{
    ebpfMonPacketReader *r = calloc(1, sizeof(*r));
    const ebpfMonPacketSourcesSink packets = { .packet = onPacket, .opened = onOpened, .arg = r };

    if (!r)
        return NULL;
    r->targets = targets;
    r->sink = *sink;
    r->wire = ebpfMonWireNew(NULL, onEvent, r);
    r->sources = ebpfMonPacketSourcesNew(ringBytes, &packets);
    if (r->wire && r->sources) {
        ebpfMonWireSetPayer(r->wire, findPayer, r);
        return r;
    }
    ebpfMonPacketReaderFree(r);
    return NULL;
}

void ebpfMonPacketReaderFree(ebpfMonPacketReader *r)
{
    if (!r)
        return;
    ebpfMonWireFree(r->wire);
    ebpfMonPacketSourcesFree(r->sources);
    free(r);
}

/* The namespaces of IOCs for which this level was asked, and our own as the first one. Returns the number, *list is
 * malloc'ed; 0 without memory. */
static unsigned listNamespaces(ebpfMonPacketReader *r, ebpfMonLevel least, ebpfMonNetns **list)
{
    pid_t pids[EBPFMON_TARGETS_MAX + 1];
    unsigned n;
    int count;

    *list = NULL;
    pids[0] = getpid();
    n = 1 + ebpfMonTargetsListPids(r->targets, least, pids + 1, EBPFMON_TARGETS_MAX);
    count = ebpfMonProcNetnsList(pids, n, list);
    return count < 0 ? 0 : (unsigned)count;
}

static void tellLeft(ebpfMonPacketReader *r, unsigned left)
{
    if (left && !r->left)
        errlogSevPrintf(errlogMinor,
                        "ebpfMon: watched IOCs are in more than %d network namespaces. In %u of them no packets "
                        "are read: what only packets show is missing there. Each user has a share. Watch fewer IOCs, "
                        "or run a monitor in each container\n",
                        EBPFMON_PACKET_SOURCES_MAX, left);
    r->left = left;
}

static int hasNamespace(const uint32_t *netns, unsigned count, uint32_t which)
{
    for (unsigned i = 0; i < count; i++)
        if (netns[i] == which)
            return 1;
    return 0;
}

/* Nonzero: its user has time left for it, and pays for it. */
static int readOwners(const ebpfMonPacketReader *r, const ebpfMonNetns *at)
{
    uid_t user = ebpfMonProcNetnsPayer(at->pid);
    uint64_t begin = ebpfMonForeignGetCpu();

    if (user >= EBPFMON_SYSTEM_USERS && ebpfMonForeignIsUserCharged(user))
        return 0;
    ebpfMonConnectionOwnersRead(at->pid, at->netns, r->sink.setOwner);
    ebpfMonForeignChargeCpu(user, ebpfMonForeignGetCpu() - begin);
    return 1;
}

/* No packets are read where no IOC is watched: reading them costs each packet there. But a process of an IOC that is
 * not watched may write to one that is: whose its connections are is read once. */
static void readOwnersElsewhere(ebpfMonPacketReader *r, const uint32_t *covered, unsigned coveredCount)
{
    uint32_t unread[EBPFMON_PACKET_SOURCES_MAX] = { 0 };
    ebpfMonNetns *list;
    unsigned count = listNamespaces(r, ebpfMonLevelOff, &list), n = 0;

    for (unsigned i = 0; i < count && n < EBPFMON_PACKET_SOURCES_MAX; i++) {
        if (hasNamespace(covered, coveredCount, list[i].netns))
            continue;
        if (hasNamespace(r->unread, r->unreadCount, list[i].netns) || readOwners(r, &list[i]))
            unread[n++] = list[i].netns;
    }
    memcpy(r->unread, unread, n * sizeof(unread[0]));
    r->unreadCount = n;
    free(list);
}

static void tellCovered(ebpfMonPacketReader *r, const uint32_t *netns, unsigned count)
{
    uint64_t since[EBPFMON_PACKET_SOURCES_MAX];

    for (unsigned i = 0; i < count; i++)
        since[i] = ebpfMonPacketSourcesGetSince(r->sources, netns[i]);
    r->sink.covers(r->sink.arg, netns, since, count);
}

int ebpfMonPacketReaderFollow(ebpfMonPacketReader *r, uint64_t now)
{
    uint32_t netns[EBPFMON_PACKET_SOURCES_MAX];
    ebpfMonNetns *list;
    unsigned count = listNamespaces(r, ebpfMonLevelPuts, &list), left;
    int isMore = 0;

    left = choosePacketPlaces(list, count, EBPFMON_PACKET_SOURCES_MAX, &r->leftOfSystem);
    count -= left;
    tellLeft(r, left);
    if (count) {
        for (unsigned i = 0; i < count; i++)
            netns[i] = list[i].netns;
        tellCovered(r, netns, count);
        isMore = ebpfMonPacketSourcesFollow(r->sources, list, count, now);
    }
    free(list);
    count = ebpfMonPacketSourcesList(r->sources, netns);
    tellCovered(r, netns, count);
    readOwnersElsewhere(r, netns, count);
    return isMore;
}

void ebpfMonPacketReaderRead(ebpfMonPacketReader *r, ebpfMonPacketReaderLook *look)
{
    ebpfMonPacketsLook found;

    r->beacons = r->dense = 0;
    ebpfMonPacketSourcesRead(r->sources, &found);
    if (found.urgent)
        r->urgentAt = ebpfMonClockMonotonic();
    *look = (ebpfMonPacketReaderLook){
        .packets = found.packets,
        .others = found.packets - r->beacons,
        .expected = found.urgent + (r->wakes == EBPFMON_PACKETS_ALL ? r->dense : 0),
        .isWhole = found.isWhole,
    };
}

int ebpfMonPacketReaderAwaitsAny(const ebpfMonPacketReader *r)
{
    return ebpfMonWireStat(r->wire)->waiting && ebpfMonClockMonotonic() < r->urgentAt + REST_NS;
}

int ebpfMonPacketReaderGetFile(const ebpfMonPacketReader *r)
{
    return ebpfMonPacketSourcesFile(r->sources);
}

int ebpfMonPacketReaderBeginSleep(ebpfMonPacketReader *r, enum ebpfMonPacketsSleep which)
{
    r->wakes = which;
    return ebpfMonPacketSourcesBeginSleep(r->sources, which);
}

void ebpfMonPacketReaderEndSleep(ebpfMonPacketReader *r)
{
    ebpfMonPacketSourcesEndSleep(r->sources);
}

void ebpfMonPacketReaderExpectPort(ebpfMonPacketReader *r, uint32_t netns, uint16_t port)
{
    ebpfMonPacketSourcesExpectPort(r->sources, netns, port);
}

void ebpfMonPacketReaderTick(ebpfMonPacketReader *r, double seconds, ebpfMonPacketValues *values)
{
    const ebpfMonWireStats *w = ebpfMonWireStat(r->wire);
    ebpfMonPacketSourcesState state;
    uint64_t now = ebpfMonClockReal();

    ebpfMonPacketSourcesGetState(r->sources, &state);
    if (state.dropped != r->droppedBefore)
        r->lossAt = now;
    ebpfMonWireSetLossAt(r->wire, r->lossAt);
    ebpfMonWireTick(r->wire, now);
    if (now >= r->remindAt) {
        ebpfMonWireRemind(r->wire, now);
        r->remindAt = now + REMIND_NS;
    }
    r->droppedBefore = state.dropped;
    *values = (ebpfMonPacketValues){
        .state = !state.count || state.trouble || r->leftOfSystem ? ebpfMonWireTrouble : ebpfMonWireOn,
        /* fewer than before: a source was closed */
        .rate = state.passed >= r->passedBefore ? (double)(state.passed - r->passedBefore) / seconds : 0,
        .lost = state.dropped + w->gaps + w->noMemory + w->crowded,
        .gaps = w->gaps, .circuits = w->circuits,
    };
    strcpy(values->newest, now - r->lossAt < LOSS_NS ? "packets came faster than they are read" :
           values->gaps != r->gapsBefore ? "bytes of a connection are missing" : "too much at once");
    r->gapsBefore = w->gaps;
    strcpy(values->trouble, state.trouble || r->leftOfSystem ? "packets of a namespace are not read" : "");
    r->passedBefore = state.passed;
}
