/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts in packets: which are wanted, the previous value of the PV, and which will not be seen in an IOC. The test
 * makes the packets as events of wire/. It decides which server has which port. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "common/clock.h"
#include "host/procNetns.h"
#include "host/procRead.h"
#include "model/audits.h"
#include "put/gateways.h"
#include "put/packetEvents.h"
#include "fakeClients.h"

#define WATCHED_PORT 5064 /* port of an IOC in which each put is seen */
#define OTHER_PORT   6064 /* port of another process, "other" */
#define OTHER_PID    4711
#define NOWHERE_PORT 5999 /* no process of this host listens there */

static ebpfMonTargets *targets;
static ebpfMonTarget *ioc;
static ebpfMonPutJoin *join;
static ebpfMonServers *servers;
static ebpfMonPacketPuts *packetPuts;
static ebpfMonPutClients *clients;
static ebpfMonGateways *gateways;
static ebpfMonPacketEvents *events;
static ebpfMonAudits *audits;

/* The answers of the host. */
static const char *serverName = "other";
static ebpfMonFilter filter;
static uint64_t lost;

/* Puts that the sinks received. */
static unsigned count, elsewhere, lostPuts;
static ebpfMonPut last;
static uint64_t elsewhereAt;

static int readSockets(const pid_t *pids, unsigned watched, unsigned n, unsigned max, ebpfMonSocketOwners *owners,
                       ebpfMonServerSocket **list)
{
    *list = calloc(1, sizeof(**list));
    **list = (ebpfMonServerSocket){ .pid = pids[0], .port = htons(WATCHED_PORT) };
    return (int)n;
}

static int accepts(const ebpfMonServerSocket *s, const struct ebpfMonPeer *peer)
{
    return s->port == peer->sport;
}

static pid_t otherPid = OTHER_PID;

static uint32_t netns; /* of the packets */
static int isAway;     /* the server is in another one */

static pid_t findProcess(ebpfMonHostSockets *host, const struct ebpfMonPeer *peer, ebpfMonHostLook *look)
{
    return (isAway && peer->netns) || peer->sport == htons(NOWHERE_PORT) ? 0 : otherPid;
}

static uint32_t findClient(void *arg, const ebpfMonWireEvent *ev, uint32_t *pid)
{
    return 0;
}

static int served = 1; /* the IOC has received data of the connection */
static unsigned forged;

static int isServed(void *arg, const ebpfMonPacketPut *p)
{
    return served;
}

static void countDropped(void *arg, ebpfMonReal real)
{
    forged += real != ebpfMonRealPerhaps;
}

static ebpfMonReceived received; /* what every socket has received; at first, nobody can tell how much */

static int findReceived(const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first, pid_t pid,
                        ebpfMonReceived *found)
{
    *found = received;
    return 1;
}

static int readName(pid_t pid, char *buf, size_t size)
{
    snprintf(buf, size, "%s", serverName);
    return 0;
}

static uint32_t readNetns(pid_t pid)
{
    return netns + (uint32_t)isAway;
}

static long queue;      /* bytes that the server has not read */
static unsigned asked;  /* … so often this was asked for */

static long readQueue(pid_t pid, const struct ebpfMonPeer *peer)
{
    asked += pid == getpid() && peer->sport == htons(WATCHED_PORT);
    return queue;
}

static void onPort(void *arg, uint32_t netns, uint16_t port)
{
}

static void getFilter(void *arg, ebpfMonFilter *f)
{
    *f = filter;
}

static uint64_t countLost(void *arg)
{
    return lost;
}

static void onElsewhere(void *arg, const ebpfMonWireEvent *ev, uint64_t at)
{
    elsewhere++;
    elsewhereAt = at;
}

static void onPut(void *arg, const ebpfMonFinishedPut *finished)
{
    count++;
    last = *finished->put;
    lostPuts += last.result == ebpfMonPutLost;
}

static const ebpfMonServerReaders readers = {
    .readSockets = readSockets, .accepts = accepts, .findProcess = findProcess, .readName = readName,
    .readQueue = readQueue, .readNetns = readNetns,
};
static const ebpfMonPacketEventCalls calls = {
    .getFilter = getFilter, .countLost = countLost, .findClient = findClient,
    .isServed = isServed, .findReceived = findReceived, .countDropped = countDropped, .putElsewhere = onElsewhere,
};

/* Starts again: no put waits, no value is known, nothing was lost. */
static void renew(int canJoin)
{
    ebpfMonPacketEventsFree(events);
    ebpfMonGatewaysFree(gateways);
    ebpfMonPutJoinFree(join);
    gateways = ebpfMonGatewaysNew(clients, &(ebpfMonGatewayCalls){ .findPayer = ebpfMonProcPayer });
    join = ebpfMonPutJoinNew(targets);
    ebpfMonPutJoinSetCovered(join, (const uint32_t[]){ 0 }, 1, 1);
    lost = 0;
    events = ebpfMonPacketEventsNew(join, servers, packetPuts, gateways, audits, &calls, canJoin);
    filter = ebpfMonFilterDefault;
    ioc->wantedLevel = ebpfMonLevelPuts;
    ebpfMonServersRefresh(servers, onPort, NULL);
    count = elsewhere = 0;
}

/* Its probes are attached, or are not. */
static void watch(int on)
{
    ioc->probesOn = on ? EBPFMON_BIT(ebpfMonProgPut) | EBPFMON_BIT(ebpfMonProgPutField) : 0;
    ioc->putsSince = on ? 1 : UINT64_MAX;
}

static int asksReply; /* a put */
static int dbrType;

/* An event that arrives now, of a CA circuit to "port". The value is a DBR_LONG of one byte. */
static void addEvent(ebpfMonWireKind kind, unsigned port, uint64_t id, uint8_t value, int ok)
{
    const uint8_t data[] = { 0, 0, 0, value };
    ebpfMonWireEvent ev = {
        .kind = kind, .protocol = ebpfMonWireCa, .time = ebpfMonClockReal(), .peer = fakePeer(2000, port),
        .circuit = 1, .seq = (uint32_t)(100 * id), .end = (uint32_t)(100 * id + 24), .user = "anna",
        .host = "office1", .name = "X", .sid = 12, .id = id, .baseType = 5, .elementSize = 4, .count = 1,
        .data = data, .have = sizeof(data), .hash = value, .text = "", .ok = ok, .message = "", .replyAsked = asksReply,
        .dbrType = dbrType,
    };

    ev.peer.netns = netns;
    ebpfMonPacketEventsAdd(events, &ev);
}

static void addPut(unsigned port, uint64_t id, uint8_t value)
{
    addEvent(ebpfMonWirePut, port, id, value, 0);
}

/* Returns the number of puts that are published when these ms have passed and all events of IOCs have been read. */
static unsigned publishAfter(unsigned ms)
{
    uint64_t now = ebpfMonClockMonotonic() + ms * 1000000ull;

    count = 0;
    ebpfMonPutJoinSetEventsRead(join, now);
    ebpfMonPutJoinSetPacketsRead(join, now);
    ebpfMonPacketEventsPublish(events, now);
    return count;
}

static void testWanted(void)
{
    uint64_t before;

    testDiag("Which puts are wanted");
    renew(1);
    before = ebpfMonClockMonotonic();
    addPut(OTHER_PORT, 1, 7);
    testOk(elsewhere == 1 && elsewhereAt > before - EBPFMON_SECOND_NS && elsewhereAt <= ebpfMonClockMonotonic(),
           "a put to another server is published, with the time of its packet");
    testOk(publishAfter(0) == 0, "an error reply may come for it");
    testOk(publishAfter(60) == 1 && strcmp(last.pv, "X") == 0 && strcmp(last.ioc, "other") == 0 &&
               strcmp(last.val, "7") == 0 && last.result == ebpfMonPutSent && !last.hasOld,
           "%s to %s of %s", last.val, last.pv, last.ioc);

    renew(1);
    strcpy(filter.ioc, "oth*");
    addPut(OTHER_PORT, 1, 7);
    testOk(publishAfter(60) == 1, "the filter selects this server");
    strcpy(filter.ioc, "vac*");
    addPut(OTHER_PORT, 2, 7);
    testOk(publishAfter(60) == 0 && elsewhere == 2,
           "the filter selects other IOCs: the put is reported, but not published");
    serverName = "dev3#4711";
    ebpfMonServersFree(servers);
    servers = ebpfMonServersNew(targets, &readers);
    renew(1);
    snprintf(filter.ioc, sizeof(filter.ioc), "dev3");
    addPut(OTHER_PORT, 1, 7);
    testOk(publishAfter(60) == 1 && strcmp(last.ioc, serverName) == 0, "the filter selects the name of %s", last.ioc);
    filter = ebpfMonFilterDefault;
    filter.level = ebpfMonLevelOff;
    addPut(OTHER_PORT, 3, 7);
    testOk(publishAfter(60) == 0, "the filter has level off");

    renew(1);
    watch(0);
    ioc->wantedLevel = ebpfMonLevelOff;
    ebpfMonServersRefresh(servers, onPort, NULL);
    addPut(WATCHED_PORT, 1, 7);
    testOk(publishAfter(60) == 0, "the IOC is at level off");
    ioc->wantedLevel = ebpfMonLevelPuts;
    ebpfMonServersRefresh(servers, onPort, NULL);
    addPut(WATCHED_PORT, 2, 7);
    testOk(publishAfter(60) == 1 && strcmp(last.ioc, "iocA") == 0, "an IOC in which puts are not seen: %s", last.ioc);
    watch(1);
}

static void testOldValues(void)
{
    testDiag("Values before a put");
    renew(1);
    addEvent(ebpfMonWireValue, OTHER_PORT, 0, 3, 0);
    addPut(OTHER_PORT, 1, 7);
    testOk(publishAfter(60) == 1 && last.hasOld && strcmp(last.old, "3") == 0, "a client has read it: %s", last.old);
    addPut(OTHER_PORT, 2, 8);
    addEvent(ebpfMonWireReply, OTHER_PORT, 2, 0, 0);
    testOk(publishAfter(0) == 1 && strcmp(last.old, "7") == 0 && last.result == ebpfMonPutFailed, "%s → %s is refused",
           last.old, last.val);
    addPut(OTHER_PORT, 3, 9);
    testOk(publishAfter(60) == 1 && strcmp(last.old, "7") == 0, "so the PV keeps %s", last.old);
    addPut(OTHER_PORT, 4, 10);
    addEvent(ebpfMonWireReply, OTHER_PORT, 4, 0, 1);
    testOk(publishAfter(0) == 1 && last.result == ebpfMonPutOk, "%s → %s succeeds", last.old, last.val);
    addPut(OTHER_PORT, 5, 11);
    testOk(publishAfter(60) == 1 && strcmp(last.old, "10") == 0, "so the PV has %s", last.old);
    dbrType = 36; /* DBR_PUT_ACKS */
    addPut(OTHER_PORT, 6, 2);
    testOk(publishAfter(60) == 1 && !last.hasOld, "an acknowledgement of an alarm has none");
    dbrType = 0;
    addPut(OTHER_PORT, 7, 12);
    testOk(publishAfter(60) == 1 && strcmp(last.old, "11") == 0, "... and changes none: %s", last.old);
    addEvent(ebpfMonWireValue, WATCHED_PORT, 0, 3, 0);
    watch(0);
    ebpfMonServersRefresh(servers, onPort, NULL);
    addPut(WATCHED_PORT, 8, 7);
    testOk(publishAfter(60) == 1 && !last.hasOld, "values that clients read from a watched IOC are not kept");
    watch(1);
}

static ebpfMonPutJoinResult matchInside(uint64_t id)
{
    ebpfMonMessageKey key = {
        .peer = fakePeer(2000, WATCHED_PORT), .seq = (uint32_t)(100 * id), .seqKind = EBPFMON_SEQ_MESSAGE,
        .at = ebpfMonClockMonotonic(),
    };
    ebpfMonPut put = { .pv = "X", .peer = "10.0.0.1:2000" };

    return ebpfMonPutJoinMatchIoc(join, &key, &put, 0);
}

static void testWatched(void)
{
    testDiag("A watched IOC");
    renew(1);
    addPut(WATCHED_PORT, 1, 7);
    testOk(publishAfter(1000) == 0 && elsewhere == 0, "a put to it waits until it is seen in the IOC");
    testOk(matchInside(1) == ebpfMonPutJoinFound && publishAfter(4000000) == 0,
           "seen in the IOC: it is published from there");
    addPut(WATCHED_PORT, 2, 7);
    testOk(matchInside(3) == ebpfMonPutJoinWait, "another put waits");
    addEvent(ebpfMonWireClosed, WATCHED_PORT, 0, 0, 0);
    testOk(publishAfter(11000) == 1 && last.result == ebpfMonPutUnknown && strcmp(last.ioc, "iocA") == 0,
           "not seen in the IOC, and the circuit is closed: the IOC may still make it");
    addPut(WATCHED_PORT, 4, 7);
    ioc->gone = 1;
    addEvent(ebpfMonWireClosed, WATCHED_PORT, 0, 0, 0);
    testOk(publishAfter(11000) == 1 && last.result == ebpfMonPutLost, "… and the IOC has ended: the put is lost");
    ioc->gone = 0;

    renew(0);
    addPut(WATCHED_PORT, 1, 7);
    testOk(matchInside(1) != ebpfMonPutJoinFound && publishAfter(4000000) == 0 && elsewhere == 0,
           "the kernel does not show the message: only what was seen in the IOC counts");
    addPut(OTHER_PORT, 1, 7);
    testOk(publishAfter(60) == 1, "a put to another server is published in spite of that");
}

/* Somebody writes a put and its answer with the number that a client's put will have. */
static void testForgedBefore(void)
{
    testDiag("A put that no socket has received");
    renew(1);
    served = 0;
    addPut(WATCHED_PORT, 1, 66);
    addEvent(ebpfMonWireReply, WATCHED_PORT, 1, 0, 1);
    testOk(publishAfter(4000) == 0 && forged == 1, "it is counted");
    testOk(matchInside(1) == ebpfMonPutJoinWait, "the IOC makes another one with this number: it is no copy");
    served = 1;
}

/* A thread of the server has locked the socket and stands still, so the kernel has not given it the bytes. */
static void testLate(void)
{
    testDiag("A put that its socket has not received yet");
    renew(1);
    forged = 0;
    received = (ebpfMonReceived){ .hasUpTo = 1, .upTo = 100, .window = 100 };
    addPut(OTHER_PORT, 1, 7);
    addPut(OTHER_PORT, 2, 8);
    testOk(publishAfter(60) == 0 && forged == 0, "it waits");
    testOk(ebpfMonPacketEventsGetDue(events) < ebpfMonClockMonotonic() + EBPFMON_SECOND_NS, "… not for long");
    received.upTo = received.window = 300;
    testOk(publishAfter(600) == 2 && forged == 0 && strcmp(last.val, "8") == 0, "received: both are published");
    testOk1(ebpfMonPacketEventsGetDue(events) == UINT64_MAX);
    addPut(OTHER_PORT, 3, 9);
    testOk(publishAfter(60) == 0 && publishAfter(700) == 0 && forged == 0, "the next one waits");
    testOk(publishAfter(3000) == 0 && forged == 1, "… in vain");
    for (unsigned i = 0; i < 1000; i++)
        addPut(OTHER_PORT, 4 + i, 9);
    testOk(publishAfter(60) == 0 && forged > 900 && forged < 1001, "not all of many wait: %u do not", forged - 1);
    received = (ebpfMonReceived){ .hasUpTo = 0 };
}

static void testUnread(void)
{
    testDiag("What the IOC has not read yet");
    renew(1);
    addPut(WATCHED_PORT, 1, 7);
    addPut(WATCHED_PORT, 2, 7);
    addPut(WATCHED_PORT, 3, 7);
    testOk1(matchInside(3) == ebpfMonPutJoinFound);
    queue = 100;
    asked = 0;
    publishAfter(0);
    testOk(publishAfter(3000) == 0 && asked == 1, "it has served a later put, and has bytes left: no put is lost");
    testOk(publishAfter(3050) == 0 && publishAfter(3090) == 0 && asked == 1, "the kernel is not asked again at once");
    testOk(publishAfter(4000) == 0 && asked == 2, "… but later");
    testOk(matchInside(1) == ebpfMonPutJoinFound, "it makes one of them");
    queue = 1;
    testOk(publishAfter(5000) == 1 && last.result == ebpfMonPutLost && asked == 3,
           "only the end of the connection is left");
    testOk(matchInside(2) == ebpfMonPutJoinPublished, "it is not published again");
    addPut(WATCHED_PORT, 4, 7);
    queue = 100;
    testOk(publishAfter(4000000) == 1 && last.result == ebpfMonPutUnknown,
           "an hour is enough: its result is not known");
    queue = -1;
    addPut(WATCHED_PORT, 5, 7);
    addPut(WATCHED_PORT, 6, 7);
    testOk1(matchInside(6) == ebpfMonPutJoinFound && publishAfter(0) == 0);
    testOk(publishAfter(3000) == 1 && last.result == ebpfMonPutLost, "the socket is gone");
    queue = 0;
}

/* The result of a put to an IOC that has ended, if the put was not seen in the IOC: it is uncertain only if events
 * were lost. */
static ebpfMonPutResult resultOfUnseen(uint64_t id)
{
    addPut(WATCHED_PORT, id, 7);
    addEvent(ebpfMonWireClosed, WATCHED_PORT, 0, 0, 0);
    ioc->gone = 1;
    publishAfter(11000);
    ioc->gone = 0;
    return count == 1 ? last.result : ebpfMonPutOk;
}

/* A put that a gateway makes, after anna wrote the same to it. */
static ebpfMonPut makeInner(void)
{
    ebpfMonPut put = { .peerPid = OTHER_PID, .through = ebpfMonByCa, .isNumber = 1, .number = 7,
                       .hash = 7, .pv = "X", .val = "7", .user = "gate", .host = "gate1", .command = "pvagw" };

    addPut(OTHER_PORT, 1, 7);
    put.at = ebpfMonClockMonotonic();
    ebpfMonGatewaysSetClient(gateways, &put);
    return put;
}

static void testGatewayWithTls(void)
{
    ebpfMonWireEvent tls = {
        .kind = ebpfMonWireForeign, .time = ebpfMonClockReal(), .peer = fakePeer(2001, OTHER_PORT), .isTls = 1
    };
    ebpfMonPut put;

    testDiag("A gateway one of whose clients is over TLS: the same put may be that client's");
    renew(1);
    ebpfMonGatewaysSetProofs(gateways, isServed, NULL);
    ebpfMonGatewaysAddClient(gateways, OTHER_PID);
    put = makeInner();
    testOk(!put.isUnsure && strcmp(put.user, "anna") == 0, "before it connected: %s", put.user);
    ebpfMonPacketEventsAdd(events, &tls);
    put = makeInner();
    testOk(put.isUnsure && strcmp(put.user, "anna") == 0, "perhaps %s", put.user);
}

static void testStamp(void)
{
    testDiag("The moment from which each put is seen inside");
    renew(1);
    ioc->putsSince = UINT64_MAX;
    addPut(WATCHED_PORT, 1, 7);
    testOk(publishAfter(60) == 1 && last.result == ebpfMonPutSent, "while probes are attached: sent, and never lost");
    addPut(WATCHED_PORT, 2, 7);
    ioc->putsSince = ebpfMonClockMonotonic() + EBPFMON_SECOND_NS;
    testOk(publishAfter(60) == 1 && last.result == ebpfMonPutSent, "it came before all of them were attached");
    ioc->putsSince = 1;
    addPut(WATCHED_PORT, 3, 7);
    ioc->putsSince = UINT64_MAX;
    testOk(publishAfter(60) == 1 && last.result == ebpfMonPutSent, "they went before it was seen inside");
    ioc->putsSince = 1;
}

static void testLost(void)
{
    uint64_t now;

    testDiag("Lost events of IOCs");
    renew(1);
    testOk(resultOfUnseen(1) == ebpfMonPutLost, "no event was lost: the put is lost");
    lost = 5;
    testOk(resultOfUnseen(2) == ebpfMonPutUnknown,
           "events were lost, which is noticed when puts are published: the result is not known");
    renew(1);
    lost = 5;
    now = ebpfMonClockMonotonic();
    ebpfMonPacketEventsNoteLost(events, now + 5 * EBPFMON_SECOND_NS);
    testOk(resultOfUnseen(1) == ebpfMonPutUnknown, "events were lost while the put waited");
    renew(1);
    lost = 5;
    ebpfMonPacketEventsNoteLost(events, ebpfMonClockMonotonic() - EBPFMON_SECOND_NS);
    testOk(resultOfUnseen(1) == ebpfMonPutLost, "events were lost, but before the put");
}

static void testLostPackets(void)
{
    uint64_t now;

    testDiag("Lost packets");
    renew(1);
    now = ebpfMonClockMonotonic();
    ebpfMonPacketEventsNotePacketsLost(events, 1, now - EBPFMON_SECOND_NS);
    asksReply = 1;
    testOk(resultOfUnseen(1) == ebpfMonPutLost, "packets were lost before the put");
    ebpfMonPacketEventsNotePacketsLost(events, 1, now + EBPFMON_SECOND_NS);
    testOk(resultOfUnseen(2) == ebpfMonPutLost, "no more packets were lost than before");
    ebpfMonPacketEventsNotePacketsLost(events, 2, now + 5 * EBPFMON_SECOND_NS);
    testOk(resultOfUnseen(3) == ebpfMonPutUnknown,
           "packets were lost while the put waited: its answer may be among them");
    asksReply = 0;
    testOk(resultOfUnseen(4) == ebpfMonPutLost, "a put without an answer");
}

static void testAudit(void)
{
    ebpfMonAuditResults results;

    testDiag("The cross-check (audit)");
    renew(1);
    ebpfMonAuditsReset(audits);
    addPut(WATCHED_PORT, 1, 7);
    addEvent(ebpfMonWireReply, WATCHED_PORT, 1, 0, 1);
    testOk(publishAfter(3000) == 1 && last.result == ebpfMonPutOk,
           "a put that was answered, and never seen in the IOC");
    ebpfMonAuditsGet(audits, &results);
    testOk(results.count[ebpfMonAuditPutNotInside] == 1, "the check failed: %s", results.last);
    addPut(WATCHED_PORT, 2, 7);
    testOk1(matchInside(2) == ebpfMonPutJoinFound);
    addPut(WATCHED_PORT, 3, 7);
    addEvent(ebpfMonWireReply, WATCHED_PORT, 3, 0, 0);
    testOk1(publishAfter(3000) == 1);
    ebpfMonAuditsGet(audits, &results);
    testOk(results.count[ebpfMonAuditPutNotInside] == 1,
           "a put that is seen in the IOC, and one that is refused, agree");
}

static void testEnd(void)
{
    testDiag("The end of the monitor, and events that belong to no put");
    renew(1);
    addPut(OTHER_PORT, 1, 7);
    addPut(WATCHED_PORT, 1, 7);
    addEvent(ebpfMonWireClosed, WATCHED_PORT, 0, 0, 0);
    ioc->gone = 1; /* without lost events, the result of such a put is "lost" */
    count = lostPuts = 0;
    ebpfMonPacketEventsPublish(events, UINT64_MAX);
    ioc->gone = 0;
    testOk(count == 2, "at the end each put that waits is published");
    testOk(!lostPuts, "no put is called lost");
    addEvent(ebpfMonWireSearch, OTHER_PORT, 1, 7, 0);
    addEvent(ebpfMonWireGap, OTHER_PORT, 1, 7, 0);
    testOk1(publishAfter(4000000) == 0);
}

static void testNames(void)
{
    ebpfMonWireEvent ev = {
        .kind = ebpfMonWirePut, .time = ebpfMonClockReal(), .peer = fakePeer(2000, OTHER_PORT), .circuit = 1,
        .seq = 100, .end = 124, .sid = 12, .id = 1, .name = "", .user = "", .host = "", .text = "",
        .data = (const uint8_t *)"\0\0\0\7", .have = 4, .count = 1, .baseType = 5,
    };

    testDiag("A channel that was created before we looked");
    renew(1);
    ebpfMonPacketEventsAdd(events, &ev);
    ev.kind = ebpfMonWireChannel;
    ebpfMonPacketEventsAdd(events, &ev);
    ev.name = "LATE";
    ebpfMonPacketEventsAdd(events, &ev);
    testOk(publishAfter(60) == 1 && strcmp(last.pv, "LATE") == 0, "its name was known before its put was published: %s",
           last.pv);
}

/* DNAT: packets of the client's connection, and of that to the server. Those of two namespaces may be read in any
 * order. */
static void testTranslated(void)
{
    testDiag("A connection whose server's address is translated");
    otherPid = getppid(); /* in our namespace */
    netns = ebpfMonProcNetns(getpid());
    received = (ebpfMonReceived){ .hasUpTo = 0 };
    serverName = "other";
    ebpfMonServersFree(servers);
    servers = ebpfMonServersNew(targets, &readers);
    for (int innerFirst = 0; innerFirst < 2; innerFirst++) {
        renew(1);
        addPut(innerFirst ? OTHER_PORT : NOWHERE_PORT, 1, 7);
        addPut(innerFirst ? NOWHERE_PORT : OTHER_PORT, 1, 7);
        ebpfMonPutJoinSetPacketsRead(join, ebpfMonClockMonotonic() + EBPFMON_SECOND_NS);
        testOk(publishAfter(60) == 1 && strcmp(last.ioc, "other") == 0, "a put is shown once, %s",
               innerFirst ? "also if the inner one is read first" : "as one to the server");
    }
    otherPid = OTHER_PID;
    netns = 0;
    ebpfMonServersFree(servers);
    servers = ebpfMonServersNew(targets, &readers);
}

/* Packets in our namespace of a server in another one, whose packets are read since a second, or soon. */
static void testElsewhere(void)
{
    uint32_t there;

    testDiag("A server in another network namespace");
    netns = ebpfMonProcNetns(getpid());
    isAway = 1;
    there = netns + 1;
    for (int isLater = 0; isLater < 2; isLater++) {
        uint64_t since = ebpfMonClockMonotonic() + (isLater ? EBPFMON_SECOND_NS : -EBPFMON_SECOND_NS);

        renew(1);
        ebpfMonServersSetCovered(servers, &there, &since, 1);
        addPut(OTHER_PORT, 1, 7);
        testOk(publishAfter(60) == (unsigned)isLater, "%s", isLater ? "what came before was read here only" : "a copy");
    }
    netns = 0;
}

MAIN(testPacketEvents)
{
    ebpfMonLinkWrites *linkWrites = ebpfMonLinkWritesNew();

    testPlan(69);
    clients = fakeClientsMake(NULL);
    audits = ebpfMonAuditsNew();
    targets = ebpfMonTargetsNew();
    ioc = calloc(1, sizeof(*ioc));
    ioc->pid = getpid();
    watch(1);
    strcpy(ioc->name, "iocA");
    ebpfMonTargetsAdd(targets, ioc);
    servers = ebpfMonServersNew(targets, &readers);
    packetPuts = ebpfMonPacketPutsNew(targets, clients, linkWrites, onPut, NULL);
    testWanted();
    testOldValues();
    testWatched();
    testForgedBefore();
    testLate();
    testUnread();
    testGatewayWithTls();
    testStamp();
    testLost();
    testLostPackets();
    testAudit();
    testEnd();
    testNames();
    testTranslated();
    testElsewhere();
    ebpfMonPacketEventsFree(events);
    ebpfMonPacketEventsFree(NULL);
    ebpfMonGatewaysFree(gateways);
    ebpfMonPutJoinFree(join);
    ebpfMonPacketPutsFree(packetPuts);
    ebpfMonServersFree(servers);
    ebpfMonLinkWritesFree(linkWrites);
    fakeClientsFree(clients);
    ebpfMonAuditsFree(audits);
    return testDone();
}
