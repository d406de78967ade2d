/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <envDefs.h>
#include <errlog.h>

#include "common/shares.h"
#include "common/text.h"
#include "host/foreign.h"
#include "host/netnsSocket.h"
#include "host/procNetns.h"
#include "host/procRead.h"
#include "probe/packetSources.h"

#define RETRY_NS  30000000000ull
#define READS_MAX 100
#define ADDRESSES_NS 2000000000ull /* so long the addresses of a namespace are believed */

typedef struct {
    uint32_t netns;
    uid_t    user;        /* who pays for it: procRead.h */
    ebpfMonPackets *packets;
    pid_t    pid;         /* a process in it; 0: ours */
    uint64_t addressesAt; /* monotonic ns when they were read; 0: never */
    ebpfMonOwnAddresses addresses;
    ebpfMonPacketSources *all;
} packetSource;

struct ebpfMonPacketSources {
    ebpfMonPacketSourcesSink sink;
    unsigned ringBytes;
    int      rings;       /* the file descriptor that waits for the rings of all sources */
    packetSource source[EBPFMON_PACKET_SOURCES_MAX];
    unsigned count;
    uint32_t refused[EBPFMON_PACKET_SOURCES_MAX]; /* inodes of namespaces that could not be opened; tried again every
                                                   * RETRY_NS */
    unsigned refusedCount;
    uint64_t refusedAt;
    uint64_t dropped;     /* packets that sources lost which are closed now */
    char     trouble[200];
};

ebpfMonPacketSources *ebpfMonPacketSourcesNew(unsigned ringBytes, const ebpfMonPacketSourcesSink *sink)
{
    ebpfMonPacketSources *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->ringBytes = ringBytes;
    s->sink = *sink;
    s->rings = ebpfMonRingsNew();
    if (s->rings >= 0)
        return s;
    free(s);
    return NULL;
}

static void closeSource(ebpfMonPacketSources *s, unsigned i)
{
    uint64_t begin = ebpfMonForeignGetCpu();
    uid_t user = s->source[i].user;
    ebpfMonPacketsStats stats;

    ebpfMonPacketsGetStats(s->source[i].packets, &stats);
    s->dropped += stats.dropped;
    ebpfMonRingsRemove(s->rings, ebpfMonPacketsGetRing(s->source[i].packets));
    ebpfMonPacketsClose(s->source[i].packets);
    s->source[i] = s->source[--s->count];
    ebpfMonForeignChargeCpu(user, ebpfMonForeignGetCpu() - begin);
}

static void onPacket(void *arg, const ebpfMonPacket *packet)
{
    const packetSource *source = arg;
    const ebpfMonPacketSourcesSink *sink = &source->all->sink;

    sink->packet(sink->arg, source->netns, packet);
}

/* Closes a source, after it has read the packets that are still in its ring: they were sent before the last IOC of the
 * namespace ended. It reads several times, because a program may still write a packet. */
static void finishSource(ebpfMonPacketSources *s, unsigned i)
{
    ebpfMonPacketsLook look = { .isWhole = 0 };

    ebpfMonPacketsEnd(s->source[i].packets);
    for (unsigned n = 0; n < READS_MAX && !look.isWhole; n++)
        ebpfMonPacketsRead(s->source[i].packets, onPacket, &s->source[i], &look);
    closeSource(s, i);
}

void ebpfMonPacketSourcesFree(ebpfMonPacketSources *s)
{
    if (!s)
        return;
    while (s->count)
        closeSource(s, 0);
    close(s->rings);
    free(s);
}

/* Reads a port of Channel Access from the environment. Some have no default in Base, and to read those without a value
 * prints an error (envGetInetPortConfigParam; rsrv/caservertask.c checks first, too). */
static unsigned short readPort(const ENV_PARAM *param, unsigned short otherwise)
{
    return envGetConfigParamPtr(param) ? envGetInetPortConfigParam(param, otherwise) : otherwise;
}

/* Expects the ports that the site uses for searches and beacons. The environment of the monitor has them, as that of
 * any other IOC. */
static void expectPortsOfEnvironment(ebpfMonPackets *packets)
{
    unsigned short server = readPort(&EPICS_CA_SERVER_PORT, 5064), repeater = readPort(&EPICS_CA_REPEATER_PORT, 5065);

    ebpfMonPacketsExpectPort(packets, server, 1);
    ebpfMonPacketsExpectPort(packets, readPort(&EPICS_CAS_SERVER_PORT, server), 1);
    ebpfMonPacketsExpectPort(packets, repeater, 1);
    ebpfMonPacketsExpectPort(packets, readPort(&EPICS_CAS_BEACON_PORT, repeater), 1);
}

/* The size of the ring of a new source. A user who makes many namespaces gets smaller ones: all rings of a user
 * together take less than four times the first. */
static unsigned findRingBytes(const ebpfMonPacketSources *s, uid_t user)
{
    unsigned others = 0, bytes = s->ringBytes ? s->ringBytes : EBPFMON_PACKETS_RING, most = bytes;

    if (user < EBPFMON_SYSTEM_USERS)
        return bytes;
    for (unsigned i = 0; i < s->count; i++)
        others += s->source[i].user == user;
    while (bytes > most / (others + 1)) /* a ring's size is a power of two */
        bytes /= 2;
    return bytes;
}

static void openSource(ebpfMonPacketSources *s, pid_t pid, uint32_t netns, uid_t user)
{
    packetSource *source = &s->source[s->count];
    char why[sizeof(s->trouble)];

    source->packets = ebpfMonPacketsOpen(pid, findRingBytes(s, user), why, sizeof(why));
    if (source->packets && ebpfMonRingsAdd(s->rings, ebpfMonPacketsGetRing(source->packets))) {
        snprintf(why, sizeof(why), "packets: %s", strerror(errno));
        ebpfMonPacketsClose(source->packets);
        source->packets = NULL;
    }
    if (source->packets) {
        source->netns = netns;
        source->user = user;
        source->pid = pid;
        source->addressesAt = 0;
        source->all = s;
        s->count++;
        expectPortsOfEnvironment(source->packets);
        if (pid)
            s->sink.opened(s->sink.arg, pid, netns);
        return;
    }
    if (pid && ebpfMonProcNetns(pid) != netns) /* it ended meanwhile: the next list does not have it */
        return;
    if (s->refusedCount < EBPFMON_PACKET_SOURCES_MAX)
        s->refused[s->refusedCount++] = netns;
    if (strcmp(why, s->trouble) != 0)
        errlogSevPrintf(errlogMinor, "ebpfMon: puts, searches and beacons in packets are not seen: %s\n", why);
    ebpfMonTextCopy(s->trouble, sizeof(s->trouble), why);
}

/* Nonzero: there is a place for it, and it was not tried a short time ago. */
static int mayOpen(const ebpfMonPacketSources *s, uint32_t netns)
{
    for (unsigned i = 0; i < s->refusedCount; i++)
        if (s->refused[i] == netns)
            return 0;
    return s->count < EBPFMON_PACKET_SOURCES_MAX;
}

/* Opens it, if its user has time left. A system user has, always. */
static void openForUser(ebpfMonPacketSources *s, pid_t pid, uint32_t netns, uid_t user)
{
    uint64_t begin = ebpfMonForeignGetCpu();

    if (ebpfMonForeignIsUserCharged(user) && user >= EBPFMON_SYSTEM_USERS)
        return;
    openSource(s, pid, netns, user);
    ebpfMonForeignChargeCpu(user, ebpfMonForeignGetCpu() - begin);
}

int ebpfMonPacketSourcesFollow(ebpfMonPacketSources *s, const ebpfMonNetns *list, unsigned count, uint64_t now)
{
    unsigned i, k, opened = 0;
    int isMore = 0;

    if (now - s->refusedAt > RETRY_NS) {
        s->refusedAt = now;
        s->refusedCount = 0;
    }
    for (i = 0; i < s->count; i++) {
        for (k = 0; k < count && list[k].netns != s->source[i].netns; k++) {}
        if (k == count)
            finishSource(s, i--);
    }
    for (k = 0; k < count; k++) {
        pid_t pid = list[k].pid == getpid() ? 0 : list[k].pid;

        for (i = 0; i < s->count && s->source[i].netns != list[k].netns; i++) {}
        if (i < s->count) {
            s->source[i].pid = pid;
            ebpfMonPacketsFollow(s->source[i].packets, pid);
        } else if (mayOpen(s, list[k].netns)) {
            uid_t user = pid ? ebpfMonProcNetnsPayer(pid) : 0;

            if (user >= EBPFMON_SYSTEM_USERS && opened++)
                isMore = 1;
            else
                openForUser(s, pid, list[k].netns, user);
        }
    }
    if (!s->refusedCount)
        s->trouble[0] = 0;
    return isMore;
}

unsigned ebpfMonPacketSourcesList(const ebpfMonPacketSources *s, uint32_t *netns)
{
    for (unsigned i = 0; i < s->count; i++)
        netns[i] = s->source[i].netns;
    return s->count;
}

uint64_t ebpfMonPacketSourcesGetSince(const ebpfMonPacketSources *s, uint32_t netns)
{
    for (unsigned i = 0; i < s->count; i++)
        if (s->source[i].netns == netns)
            return ebpfMonPacketsGetSince(s->source[i].packets);
    return UINT64_MAX;
}

uid_t ebpfMonPacketSourcesGetUser(const ebpfMonPacketSources *s, uint32_t netns)
{
    for (unsigned i = 0; i < s->count; i++)
        if (s->source[i].netns == netns)
            return s->source[i].user;
    return 0;
}

int ebpfMonPacketSourcesHasSender(ebpfMonPacketSources *s, const struct ebpfMonPeer *sender, uint64_t now)
{
    for (unsigned i = 0; i < s->count; i++) {
        packetSource *source = &s->source[i];

        if (source->netns != sender->netns)
            continue;
        if (!source->addressesAt || now - source->addressesAt > ADDRESSES_NS) {
            source->addressesAt = now;
            ebpfMonOwnAddressesRead(source->pid, &source->addresses);
        }
        return ebpfMonOwnAddressesHave(&source->addresses, sender->saddr, sender->saddr6);
    }
    return 0;
}

int ebpfMonPacketSourcesFile(const ebpfMonPacketSources *s)
{
    return s->rings;
}

int ebpfMonPacketSourcesBeginSleep(ebpfMonPacketSources *s, enum ebpfMonPacketsSleep which)
{
    int mayWait = 1;

    for (unsigned i = 0; i < s->count; i++)
        mayWait &= ebpfMonRingBeginSleep(ebpfMonPacketsGetRing(s->source[i].packets), which);
    return mayWait;
}

void ebpfMonPacketSourcesEndSleep(ebpfMonPacketSources *s)
{
    for (unsigned i = 0; i < s->count; i++)
        ebpfMonRingEndSleep(ebpfMonPacketsGetRing(s->source[i].packets));
}

void ebpfMonPacketSourcesRead(ebpfMonPacketSources *s, ebpfMonPacketsLook *look)
{
    *look = (ebpfMonPacketsLook){ .isWhole = 1 };
    ebpfMonRingsClear(s->rings);
    /* A packet that is forwarded is seen in our own namespace, the first one, before it is in another one: where a
     * client has connected is known before its put to the server is read. */
    for (unsigned i = s->count; i-- > 0;)
        ebpfMonRingSetEnd(ebpfMonPacketsGetRing(s->source[i].packets));
    for (unsigned i = 0; i < s->count; i++) {
        ebpfMonPacketsLook one;

        ebpfMonPacketsRead(s->source[i].packets, onPacket, &s->source[i], &one);
        look->packets += one.packets;
        look->urgent += one.urgent;
        look->isWhole &= one.isWhole;
        if (!i && !one.isWhole)
            return; /* a packet of ours is still being written, and those behind it wait */
    }
}

void ebpfMonPacketSourcesExpectPort(ebpfMonPacketSources *s, uint32_t netns, uint16_t port)
{
    for (unsigned i = 0; i < s->count; i++)
        if (!netns || s->source[i].netns == netns)
            ebpfMonPacketsExpectPort(s->source[i].packets, port, 1);
}

void ebpfMonPacketSourcesReject(ebpfMonPacketSources *s, const struct ebpfMonPeer *connection)
{
    for (unsigned i = 0; i < s->count; i++)
        if (!connection->netns || s->source[i].netns == connection->netns)
            ebpfMonPacketsSetVerdict(s->source[i].packets, connection, 0);
}

void ebpfMonPacketSourcesGetState(const ebpfMonPacketSources *s, ebpfMonPacketSourcesState *state)
{
    *state = (ebpfMonPacketSourcesState){ .count = s->count, .trouble = s->refusedCount > 0, .dropped = s->dropped };
    for (unsigned i = 0; i < s->count; i++) {
        ebpfMonPacketsStats stats;

        ebpfMonPacketsGetStats(s->source[i].packets, &stats);
        state->passed += stats.passed;
        state->dropped += stats.dropped;
    }
}
