/* SPDX-License-Identifier: BSD-3-Clause */
/* The client behind a gateway: which outer put is the one of an inner put, and when nobody can tell. */
#include <stdlib.h>
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "common/clock.h"
#include "common/hash.h"
#include "put/gateways.h"
#include "fakeClients.h"

#define GATEWAY_PID 4711
#define SECOND_PID  4712
#define USER_PIDS   10000 /* each has so many: the first ones are root's */
#define MS          1000000ull

static ebpfMonPutClients *clients;
static ebpfMonGateways *gateways;
static ebpfMonPut published; /* the last one of those that were held … */
static unsigned count;       /* … and their number */
static unsigned wakes;
static unsigned forgedPort;  /* no socket has this connection; 0: all are real */
static uint64_t base, id;
static int isPlain;          /* outer puts of Channel Access that ask for no reply */

static int isReal(void *arg, const ebpfMonPacketPut *put)
{
    return ntohs(put->peer.port) != forgedPort;
}

static void onPublish(void *arg, ebpfMonPut *put)
{
    published = *put;
    count++;
}

static void onWake(void *arg)
{
    wakes++;
}

static uid_t findPayer(pid_t pid)
{
    return pid < USER_PIDS ? 0 : 1000 + (uid_t)(pid / USER_PIDS);
}

static void renew(void)
{
    const ebpfMonGatewayCalls calls = { .publish = onPublish, .wake = onWake, .findPayer = findPayer };

    ebpfMonGatewaysFree(gateways);
    gateways = ebpfMonGatewaysNew(clients, &calls);
    ebpfMonGatewaysSetProofs(gateways, isReal, NULL);
    count = wakes = forgedPort = 0;
    id = 0;
    base = ebpfMonClockMonotonic();
}

/* A put of the client with this port and name to this process, "ms" after the begin. A name "" and a value "?" are not
 * known. Returns its number. */
static uint64_t addOuterTo(pid_t pid, unsigned port, const char *user, const char *name, const char *value,
                           unsigned ms)
{
    ebpfMonPacketPut p = {
        .at = base + ms * MS, .time = ebpfMonClockReal(), .id = ++id, .circuit = port, .seq = (uint32_t)id * 100,
        .pva = !isPlain, .replyAsked = !isPlain, .peer = fakePeer(port, 5075), .pid = pid, .host = "office1",
    };

    strcpy(p.user, user);
    strcpy(p.channel, name);
    p.isNumber = value[0] != '?';
    p.number = strtod(value, NULL);
    p.hash = p.isNumber ? ebpfMonHashInteger((uint64_t)p.number + 1) : 0;
    ebpfMonGatewaysAddPut(gateways, &p, name, value);
    return id;
}

static uint64_t addOuter(unsigned port, const char *user, const char *name, const char *value, unsigned ms)
{
    return addOuterTo(GATEWAY_PID, port, user, name, value, ms);
}

static void reply(unsigned port, uint64_t number, int ok, unsigned ms)
{
    const ebpfMonWireEvent ev = { .kind = ebpfMonWireReply, .circuit = port, .id = number, .ok = ok };

    ebpfMonGatewaysAddReply(gateways, &ev, base + ms * MS);
}

/* A put that the gateway makes. */
static ebpfMonPut makeInner(const char *pv, const char *value, unsigned ms)
{
    ebpfMonPut put = { .at = base + ms * MS, .peerPid = GATEWAY_PID, .through = ebpfMonByPva, .isNumber = 1,
                       .number = strtod(value, NULL), .peer = "10.0.0.2:3000", .server = "10.0.0.3:5075",
                       .user = "gate", .host = "gate1", .command = "python pvagw" };

    put.hash = ebpfMonHashInteger((uint64_t)put.number + 1);
    strcpy(put.pv, pv);
    strcpy(put.val, value);
    return put;
}

/* The same, after the gateway's packets were read. */
static ebpfMonPut join(const char *pv, const char *value, unsigned ms)
{
    ebpfMonPut put = makeInner(pv, value, ms);

    ebpfMonGatewaysSetClient(gateways, &put);
    return put;
}

static int isBy(const ebpfMonPut *put, const char *user)
{
    return !put->isUnsure && strcmp(put->user, user) == 0 && put->gatewayClients == 1 &&
           strcmp(put->gateway, "pvagw[4711]") == 0 && strcmp(put->server, "10.0.0.3:5075") == 0 &&
           strcmp(put->gatewayServer, "10.0.0.2:5075") == 0;
}

static int isOneOf(const ebpfMonPut *put, unsigned number)
{
    return put->isUnsure && put->gatewayClients == number && strcmp(put->user, "gate") == 0 && put->gateway[0];
}

static void testJoin(void)
{
    ebpfMonPut put;
    uint64_t first;

    testDiag("One client, or one that is certain");
    renew();
    put = join("X", "5", 1);
    testOk(!put.gateway[0] && !put.isUnsure, "a client that is no server is no gateway");
    addOuter(1001, "anna", "X", "5", 0);
    put = join("X", "5", 1);
    testOk(isBy(&put, "anna") && strstr(put.who, "anna@office1 through gateway pvagw[4711]"), "%s", put.who);
    put = join("X", "5", 2);
    testOk(isOneOf(&put, 0) && strstr(put.who, "a client not known through gateway"), "its put is taken: %s", put.who);

    renew();
    addOuter(1001, "anna", "X", "5", 0);
    put = makeInner("X", "5", 1);
    put.isNumber = 0;
    strcpy(put.val, "?");
    ebpfMonGatewaysSetClient(gateways, &put);
    testOk(isBy(&put, "anna") && strcmp(put.val, "5") == 0 && put.isNumber && put.number == 5,
           "a value that is not known is that of the client: %s", put.val);

    renew();
    addOuter(1001, "anna", "X", "5", 0);
    addOuter(1002, "bert", "X", "6", 0);
    addOuter(1003, "carl", "Y", "5", 0);
    addOuter(1004, "dora", "X", "5", 3);
    put = join("X", "5", 1);
    testOk(isBy(&put, "anna"), "others have another value, another PV, or came later: %s", put.who);
    put = join("X", "6", 2);
    testOk(isBy(&put, "bert"), "… and the other value is his: %s", put.who);

    renew();
    first = addOuter(1001, "anna", "X", "5", 0);
    reply(1001, first, 1, 2);
    addOuter(1002, "bert", "X", "5", 3);
    put = join("X", "5", 4);
    testOk(isBy(&put, "bert"), "the first was answered before: %s", put.who);

    renew();
    addOuter(1001, "anna", "X", "5", 0);
    addOuter(1001, "anna", "X", "5", 0);
    put = join("X", "5", 1);
    testOk(isBy(&put, "anna"), "two of one client: %s", put.who);
}

static void testUnsure(void)
{
    ebpfMonPut put;
    uint64_t first;

    testDiag("Not certain");
    renew();
    addOuter(1001, "anna", "X", "5", 0);
    addOuter(1002, "bert", "X", "5", 0);
    put = join("X", "5", 1);
    testOk(isOneOf(&put, 2) && strstr(put.who, "one of 2 clients through gateway pvagw[4711]"), "%s", put.who);

    renew();
    forgedPort = 1002;
    addOuter(1001, "anna", "X", "5", 0);
    addOuter(1002, "bert", "X", "5", 0);
    put = join("X", "5", 1);
    testOk(isBy(&put, "anna"), "the other one is forged: %s", put.who);

    renew();
    first = addOuter(1001, "anna", "X", "5", 0);
    reply(1001, first, 1, 1);
    put = join("X", "5", 2);
    testOk(put.isUnsure && put.gatewayClients == 1 && strncmp(put.who, "perhaps anna@", 13) == 0,
           "the gateway answered before: %s", put.who);

    renew();
    first = addOuter(1001, "anna", "X", "5", 0);
    reply(1001, first, 0, 1);
    put = join("X", "5", 2);
    testOk(!put.gateway[0], "the gateway refused it");
}

static void testNotSeen(void)
{
    ebpfMonPut put;

    testDiag("Not all is seen");
    renew();
    addOuter(1001, "anna", "X", "5", 0);
    ebpfMonGatewaysNoteLost(gateways, GATEWAY_PID, 0, base);
    put = join("X", "5", 1);
    testOk(put.isUnsure && strncmp(put.who, "perhaps anna@", 13) == 0, "packets were lost: %s", put.who);

    renew();
    addOuter(1001, "anna", "X", "5", 0);
    addOuter(1002, "bert", "", "5", 0);
    put = join("X", "5", 1);
    testOk(isOneOf(&put, 2), "the name of the other one is not known: %s", put.who);

    renew();
    for (unsigned i = 0; i < 300; i++)
        addOuter(2000 + i, "many", "Z", "5", 0);
    addOuter(1001, "anna", "X", "5", 0);
    put = join("X", "5", 1);
    testOk(put.isUnsure && strncmp(put.who, "perhaps anna@", 13) == 0, "too many at once: %s", put.who);

    renew();
    addOuter(1001, "anna", "X", "?", 0);
    put = join("X", "5", 1);
    testOk(put.isUnsure && strncmp(put.who, "perhaps anna@", 13) == 0, "its value is not known: %s", put.who);
}

static void testNames(int plain)
{
    static const char *const name[] = { "A", "A", "B", "C", "D" };
    char outer[16], value[] = "1";
    ebpfMonPut put;

    testDiag("A gateway that changes names%s", plain ? ", and no put asks for a reply" : "");
    renew();
    isPlain = plain;
    for (unsigned i = 0; i < 5; i++, value[0]++) {
        uint64_t number;

        snprintf(outer, sizeof(outer), "GW:DEV:%s", name[i]);
        number = addOuter(1001, "anna", outer, value, 10 * i);
        snprintf(outer, sizeof(outer), "DEV:%s", name[i]);
        put = join(outer, value, 10 * i + 1);
        if (!plain)
            reply(1001, number, 1, 10 * i + 2);
        testOk(i < 4 ? !put.gateway[0] : isBy(&put, "anna") && strcmp(put.channel, "GW:DEV:D") == 0,
               "%s by %s", outer, put.who);
    }
    addOuter(1001, "anna", "GW:DEV:E", "7", 60);
    addOuter(1002, "bert", "GW:DEV:F", "7", 60);
    put = join("DEV:F", "7", 61);
    testOk(isBy(&put, "bert"), "the rule tells them apart: %s", put.who);
    isPlain = 0;
}

static void testChain(void)
{
    ebpfMonPut put, link;

    testDiag("Two in a row, and what a put causes");
    renew();
    addOuterTo((pid_t)getpid(), 1001, "anna", "X", "5", 0); /* to the first gateway, which is this process */
    addOuter(FAKE_LOCAL_PORT, "gate0", "X", "5", 1);
    put = join("X", "5", 2);
    testOk(!put.isUnsure && strcmp(put.user, "anna") == 0 && strstr(put.gateway, ", pvagw[4711]"), "%s", put.who);

    renew();
    addOuter(1001, "anna", "X", "5", 0);
    link = makeInner("Y", "9", 1);
    link.through = ebpfMonByLink;
    link.source = (ebpfMonChainId){ .iocId = 1, .tid = 2, .begin = 3 };
    put = makeInner("X", "5", 1);
    put.chain = link.source;
    testOk(ebpfMonGatewaysHold(gateways, &link) && ebpfMonGatewaysHold(gateways, &put) && wakes == 2, "held");
    ebpfMonGatewaysPublish(gateways, base, base);
    testOk(count == 0, "not all packets from before are read");
    ebpfMonGatewaysPublish(gateways, base + 2 * MS, base);
    testOk(count == 1 && isBy(&published, "anna"), "%u: %s", count, published.who);
    ebpfMonGatewaysPublish(gateways, base + 3 * MS, base);
    testOk(count == 2 && strcmp(published.pv, "Y") == 0 && isBy(&published, "anna"), "the link: %s", published.who);
    put = makeInner("X", "5", 1);
    put.peerPid = SECOND_PID;
    testOk(!ebpfMonGatewaysHold(gateways, &put), "no server");
    ebpfMonGatewaysPublish(gateways, base, UINT64_MAX);
    put.peerPid = GATEWAY_PID;
    testOk(!ebpfMonGatewaysHold(gateways, &put), "at the end nothing is held");
}

static ebpfMonPacketPut *makePacket(unsigned port, uint64_t number, int ok)
{
    ebpfMonPacketPut *p = calloc(1, sizeof(*p));

    p->circuit = port;
    p->id = number;
    p->pid = GATEWAY_PID;
    p->replied = 1;
    p->ok = (uint8_t)ok;
    return p;
}

static void testOuter(void)
{
    uint64_t number;
    ebpfMonPacketPut *p, *given;

    testDiag("The outer put");
    renew();
    number = addOuter(1001, "anna", "X", "5", 0);
    p = makePacket(1001, number, 1);
    testOk(!ebpfMonGatewaysTake(gateways, p, base), "this server is no client");
    ebpfMonGatewaysAddClient(gateways, GATEWAY_PID);
    testOk(ebpfMonGatewaysTake(gateways, p, base), "it waits for the inner one");
    testOk(ebpfMonGatewaysGetDue(gateways) > base + 1000 * MS && !ebpfMonGatewaysGive(gateways, base + 1000 * MS),
           "… for more than a second");
    given = ebpfMonGatewaysGive(gateways, base + 4000 * MS);
    testOk(given == p && !ebpfMonGatewaysGive(gateways, base + 4000 * MS), "there is none");
    free(given);
    testOk(ebpfMonGatewaysGetDue(gateways) == UINT64_MAX, "nothing waits");

    number = addOuter(1001, "anna", "X", "6", 10);
    testOk(ebpfMonGatewaysTake(gateways, makePacket(1001, number, 1), base), "it waits");
    join("X", "6", 11);
    testOk(!ebpfMonGatewaysGive(gateways, base + 5000 * MS), "there is one");

    number = addOuter(1001, "anna", "X", "7", 20);
    join("X", "7", 21);
    testOk(ebpfMonGatewaysTake(gateways, makePacket(1001, number, 1), base), "there was one");
    testOk(!ebpfMonGatewaysGive(gateways, base + 5000 * MS), "it is not published");

    number = addOuter(1001, "anna", "X", "8", 30);
    p = makePacket(1001, number, 1);
    testOk(!ebpfMonGatewaysTake(gateways, p, UINT64_MAX), "at the end nothing waits");
    free(p);
    number = addOuter(1001, "anna", "X", "9", 40);
    testOk(ebpfMonGatewaysTake(gateways, makePacket(1001, number, 1), base), "what waits now …");
    for (unsigned i = 0; i < 300; i++)
        addOuter(1002, "bert", "Z", "1", 50);
    given = ebpfMonGatewaysGive(gateways, base);
    testOk(given && given->id == number, "… is published when its place is needed");
    free(given);
}

static void testIsGateway(void)
{
    uint64_t number;
    ebpfMonPacketPut *p;

    testDiag("Servers that are clients, too");
    renew();
    ebpfMonGatewaysAddClient(gateways, GATEWAY_PID);
    for (unsigned i = 0; i < 3; i++) {
        number = addOuter(1001, "anna", "X", "5", 10 * i);
        testOk(ebpfMonGatewaysTake(gateways, makePacket(1001, number, 1), base), "it waits");
        free(ebpfMonGatewaysGive(gateways, base + 4000 * MS));
    }
    number = addOuter(1001, "anna", "X", "5", 50);
    p = makePacket(1001, number, 1);
    testOk(!ebpfMonGatewaysTake(gateways, p, base), "the server is no gateway");
    join("X", "5", 51);
    testOk(ebpfMonGatewaysTake(gateways, p, base), "it is one …");
    for (unsigned i = 1; i < 1000; i++)
        ebpfMonGatewaysAddClient(gateways, GATEWAY_PID + i);
    p = makePacket(1001, addOuter(1001, "anna", "X", "6", 60), 1);
    testOk(ebpfMonGatewaysTake(gateways, p, base), "… however many clients come");
}

static void testTwoOuter(void)
{
    testDiag("Two outer puts that may be the one");
    renew();
    ebpfMonGatewaysAddClient(gateways, GATEWAY_PID);
    for (unsigned i = 0; i < 2; i++) {
        ebpfMonPacketPut *p = makePacket(1001 + i, addOuter(1001 + i, i ? "bert" : "anna", "X", "5", 0), 0);

        p->replied = 0;
        ebpfMonGatewaysTake(gateways, p, base);
    }
    join("X", "5", 1);
    testOk(!ebpfMonGatewaysGive(gateways, base + 5000 * MS),
           "one of two that want no reply had an inner one: neither is shown");
}

/* A put of this process, after the gateway's packets were read. */
static ebpfMonPut joinBy(pid_t pid, const char *pv, const char *value, unsigned ms)
{
    ebpfMonPut put = makeInner(pv, value, ms);

    put.peerPid = (uint32_t)pid;
    ebpfMonGatewaysSetClient(gateways, &put);
    return put;
}

static void testShares(void)
{
    const pid_t greedy = USER_PIDS, other = 2 * USER_PIDS;
    ebpfMonPut put;

    testDiag("More gateways than places");
    renew();
    addOuter(1001, "anna", "X", "5", 0);
    put = join("X", "5", 1);
    testOk1(isBy(&put, "anna"));
    addOuter(1001, "anna", "X", "6", 2);
    addOuterTo(other, 1002, "bert", "Y", "7", 3);
    for (unsigned i = 0; i < 20; i++)
        addOuterTo(100 + (pid_t)i, 3001 + i, "bert", "Z", "1", 10 + i);
    for (unsigned i = 0; i < 10; i++)
        addOuterTo(greedy + (pid_t)i, 2001 + i, "bert", "Z", "1", 30 + i);
    addOuterTo(other, 1002, "bert", "Y", "8", 50);
    for (unsigned i = 10; i < 200; i++)
        addOuterTo(greedy + (pid_t)i, 2001 + i, "bert", "Z", "1", 50 + i);
    put = join("X", "6", 300);
    testOk(isBy(&put, "anna"), "one user's many take none from root's gateway");
    put = joinBy(other, "Y", "8", 301);
    testOk(put.gatewayClients == 1 && strcmp(put.user, "bert") == 0, "… nor from another user's");
    addOuterTo(greedy + 200, 2500, "anna", "X", "9", 310);
    put = joinBy(greedy + 200, "X", "9", 311);
    testOk(put.gatewayClients == 1 && strcmp(put.user, "anna") == 0, "his newest one has a place, too");
}

/* A client that is older than the monitor: the names of its channels are not known. */
static void testOlder(void)
{
    static const char *const value[] = { "5", "6", "7", "8" };
    ebpfMonPut put;

    testDiag("Channels whose names are not known");
    renew();
    for (unsigned i = 0; i < 4; i++) {
        addOuter(1001, "anna", "", value[i], 10 * i);
        addOuter(1002, "bert", "", "99", 10 * i);
        put = join("X", value[i], 10 * i + 1);
        if (i < 3)
            testOk(put.isUnsure && strcmp(put.user, "anna") == 0 && strstr(put.who, "perhaps anna@office1 through"),
                   "it may be this client: %s", put.who);
        else
            testOk(isBy(&put, "anna"), "three puts tell which PV its channel has: %s", put.who);
    }
    addOuter(1001, "anna", "", "10", 50);
    put = join("Y", "10", 51);
    testOk(strcmp(put.user, "anna") != 0, "another PV is not by this channel: %s", put.who);
    renew();
    addOuter(1001, "anna", "", "5", 0);
    addOuter(1002, "bert", "", "5", 0);
    put = join("X", "5", 1);
    testOk(strcmp(put.user, "gate") == 0, "two such clients with the same value: %s", put.who);
}

MAIN(testGateways)
{
    testPlan(64);
    clients = fakeClientsMake(NULL);
    testJoin();
    testOlder();
    testUnsure();
    testNotSeen();
    testNames(0);
    testNames(1);
    testChain();
    testOuter();
    testIsGateway();
    testTwoOuter();
    testShares();
    ebpfMonGatewaysFree(gateways);
    ebpfMonGatewaysFree(NULL);
    fakeClientsFree(clients);
    return testDone();
}
