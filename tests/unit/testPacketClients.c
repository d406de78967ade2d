/* SPDX-License-Identifier: BSD-3-Clause */
/* clients/packetClients.h: clients and monitors of pvAccess, from events as packets give them. */
#include <string.h>
#include <unistd.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "clients/packetClients.h"
#include "host/procNetns.h"

static const ebpfMonServer *server; /* of a client that is added */
static ebpfMonPacketClients *clients;
static int isCa;

static void add(ebpfMonWireEvent ev)
{
    ev.protocol = isCa ? ebpfMonWireCa : ebpfMonWirePva;
    ev.user = ev.user ? ev.user : "";
    ev.host = ev.host ? ev.host : "";
    ev.name = ev.name ? ev.name : "";
    ev.options = ev.options ? ev.options : "";
    ebpfMonPacketClientsAdd(clients, &ev, server);
}

/* The monitor with this number of a circuit; its members 0: there is none. */
static ebpfMonPacketMonitor find(uint64_t circuit, uint32_t ioid)
{
    ebpfMonPacketMonitor found = { .ioid = 0 };

    ebpfMonPacketClientsLock(clients);
    for (const ebpfMonPacketClient *c = ebpfMonPacketClientsNext(clients, NULL); c;
         c = ebpfMonPacketClientsNext(clients, c))
        for (const ebpfMonPacketMonitor *m = c->monitor; m; m = m->next)
            if (c->circuit == circuit && m->ioid == ioid)
                found = *m;
    ebpfMonPacketClientsUnlock(clients);
    return found;
}

static unsigned countClients(void)
{
    unsigned count = 0;

    for (const ebpfMonPacketClient *c = ebpfMonPacketClientsNext(clients, NULL); c;
         c = ebpfMonPacketClientsNext(clients, c))
        count++;
    return count;
}

static void addUpdate(uint64_t circuit, uint32_t ioid, const char *name, int hasOverrun)
{
    add((ebpfMonWireEvent){ .kind = ebpfMonWireUpdate, .circuit = circuit, .ioid = ioid, .name = name,
                            .seq = 0xfffffff0u, .end = 84, .hasOverrun = hasOverrun });
}

static void testWindow(void)
{
    ebpfMonPacketMonitor m;

    add((ebpfMonWireEvent){ .kind = ebpfMonWireOpened, .circuit = 1 });
    add((ebpfMonWireEvent){ .kind = ebpfMonWireSubscribe, .circuit = 1, .ioid = 7, .sid = 3, .name = "A",
                            .options = "record[queueSize=2,pipeline=true]", .isPipelined = 1, .taken = 2 });
    m = find(1, 7);
    testOk(strcmp(m.name, "A") == 0 && m.queueSize == 2 && m.window == 2 && !m.closedAt, "a monitor begins");
    addUpdate(1, 7, "A", 0);
    addUpdate(1, 7, "A", 1);
    m = find(1, 7);
    testOk(m.updates == 2 && m.bytes == 200 && m.overruns == 1 && !m.unread && !m.isAtLeast, "updates are counted");
    testOk(m.window == 0 && m.closedAt, "its window is used up");
    add((ebpfMonWireEvent){ .kind = ebpfMonWireFlow, .circuit = 1, .ioid = 7, .taken = 1 });
    testOk(find(1, 7).window == 1 && !find(1, 7).closedAt, "the client takes one more");
    add((ebpfMonWireEvent){ .kind = ebpfMonWireFlow, .circuit = 1, .ioid = 7, .flow = ebpfMonWireFlowStopped });
    testOk(find(1, 7).isStopped, "the client stops it");
    add((ebpfMonWireEvent){ .kind = ebpfMonWireFlow, .circuit = 1, .ioid = 7, .flow = ebpfMonWireFlowStarted });
    testOk(!find(1, 7).isStopped, "… and lets it run");
}

static void testUnknown(void)
{
    ebpfMonPacketMonitor m;

    add((ebpfMonWireEvent){ .kind = ebpfMonWireOpened, .circuit = 2 });
    addUpdate(2, 7, NULL, -1);
    m = find(2, 7);
    testOk(m.updates == 1 && m.unread == 1 && m.isAtLeast && !m.name[0], "a monitor that is older");
    addUpdate(3, 7, NULL, 0);
    testOk(find(3, 7).ioid == 0, "a circuit that is not known");
    add((ebpfMonWireEvent){ .kind = ebpfMonWireGap, .circuit = 1, .fromServer = 1 });
    m = find(1, 7);
    testOk(m.isAtLeast && !m.isUnsure && !m.isPipelined && !m.closedAt, "bytes of the server are missing");
    add((ebpfMonWireEvent){ .kind = ebpfMonWireGap, .circuit = 1 });
    testOk(find(1, 7).isUnsure, "bytes of the client are missing");
}

static void testEnds(void)
{
    add((ebpfMonWireEvent){ .kind = ebpfMonWireFlow, .circuit = 1, .ioid = 7, .flow = ebpfMonWireFlowEnded });
    testOk(find(1, 7).ioid == 0, "a monitor ends");
    for (uint32_t i = 0; i < 100; i++)
        add((ebpfMonWireEvent){ .kind = ebpfMonWireSubscribe, .circuit = 1, .ioid = i, .sid = i % 2, .name = "B" });
    add((ebpfMonWireEvent){ .kind = ebpfMonWireChannelGone, .circuit = 1, .sid = 1 });
    testOk(find(1, 50).name[0] && !find(1, 51).name[0] && countClients() == 2, "a channel takes its monitors with it");
    add((ebpfMonWireEvent){ .kind = ebpfMonWireClosed, .circuit = 1 });
    testOk(!find(1, 50).name[0] && countClients() == 1, "a connection takes all");
}

/* A client of Channel Access of a server that is no IOC. */
static void testCaClient(void)
{
    const ebpfMonWireEvent update = { .kind = ebpfMonWireValue, .circuit = 5, .ioid = 2, .sid = 1, .name = "A",
                                      .isUpdate = 1, .seq = 100, .end = 140 };

    isCa = 1;
    add((ebpfMonWireEvent){ .kind = ebpfMonWireOpened, .circuit = 5 });
    add((ebpfMonWireEvent){ .kind = ebpfMonWireChannel, .circuit = 5, .sid = 1, .name = "A" });
    add((ebpfMonWireEvent){ .kind = ebpfMonWireSubscribe, .circuit = 5, .sid = 1, .ioid = 2, .name = "A" });
    add(update);
    add((ebpfMonWireEvent){ .kind = ebpfMonWireValue, .circuit = 5, .sid = 1, .name = "A" });
    testOk(find(5, 2).updates == 1 && find(5, 2).bytes == 40, "the updates of a subscription of CA are counted");
    testOk(!ebpfMonPacketClientsHasBehind(clients, "A"), "the process of its server is not known: nobody is behind it");
    add((ebpfMonWireEvent){ .kind = ebpfMonWireFlow, .circuit = 5, .ioid = 2, .flow = ebpfMonWireFlowEnded });
    testOk(!find(5, 2).name[0], "it is cancelled");
    add((ebpfMonWireEvent){ .kind = ebpfMonWireSubscribe, .circuit = 5, .sid = 1, .ioid = 3, .name = "A" });
    add((ebpfMonWireEvent){ .kind = ebpfMonWireChannelGone, .circuit = 5, .sid = 1 });
    testOk(!find(5, 3).name[0], "its channel takes it with it");
    isCa = 0;
}

/* Clients of a process that may be a gateway. In a namespace of his own any user writes packets of clients. */
static void testBehind(void)
{
    const ebpfMonServer process = { .pid = getppid() };
    const uint32_t own = ebpfMonProcNetns(getpid());

    server = &process;
    add((ebpfMonWireEvent){ .kind = ebpfMonWireOpened, .circuit = 6, .peer.netns = own + 1 });
    add((ebpfMonWireEvent){ .kind = ebpfMonWireChannel, .circuit = 6, .sid = 1, .name = "G" });
    testOk(!ebpfMonPacketClientsHasBehind(clients, "G"), "in another namespace than the process: nobody is behind it");
    add((ebpfMonWireEvent){ .kind = ebpfMonWireOpened, .circuit = 7, .peer.netns = own });
    add((ebpfMonWireEvent){ .kind = ebpfMonWireChannel, .circuit = 7, .sid = 1, .name = "G" });
    testOk(ebpfMonPacketClientsHasBehind(clients, "G"), "in a namespace of the host");
    server = NULL;
}

MAIN(testPacketClients)
{
    testPlan(19);
    clients = ebpfMonPacketClientsNew(NULL);
    testWindow();
    testUnknown();
    testEnds();
    testCaClient();
    testBehind();
    ebpfMonPacketClientsFree(clients);
    return testDone();
}
