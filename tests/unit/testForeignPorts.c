/* SPDX-License-Identifier: BSD-3-Clause */
/* Who opened a connection is not noted for a server that is neither CA nor PVA (bpf/foreignPorts.bpf.h), and is noted
 * for all others: real connections in a network namespace of this program. */
#include <testMain.h>

#include "packetNet.h"
#include "probe/kernelLoad.h"
#include "probe/kernelTables.h"

#define TESTS 11
#define PORT  40123
#define OTHER (PORT + EBPFMON_FOREIGN_PORTS) /* it has the same place */

static int listener;

static void listenAnew(uint16_t port)
{
    struct sockaddr_in at = local(port);
    int one = 1;

    if (listener > 0)
        close(listener);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (listener < 0 || bind(listener, (struct sockaddr *)&at, sizeof(at)) || listen(listener, 8))
        testAbort("port %d: %s", port, strerror(errno));
}

/* Connects, sends, and closes. Nonzero: it is known that this process opened the connection. */
static int isOwnerKnown(uint16_t port, const void *data, size_t size)
{
    struct sockaddr_in at = local(port), own;
    socklen_t length = sizeof(own);
    struct ebpfMonOwner owner;
    Pair pair;

    pair.fd[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(pair.fd[0], (struct sockaddr *)&at, sizeof(at)) || (pair.fd[1] = accept(listener, NULL, NULL)) < 0 ||
        getsockname(pair.fd[0], (struct sockaddr *)&own, &length))
        testAbort("a connection to port %d: %s", port, strerror(errno));
    pairSend(&pair, 0, data, size);
    pairClose(&pair, 0);
    pair.peer = (struct ebpfMonPeer){ .addr = own.sin_addr.s_addr, .saddr = own.sin_addr.s_addr, .port = own.sin_port,
                                      .sport = htons(port), .netns = ebpfMonPacketsGetNetns(source) };
    return ebpfMonKernelGetOwner(&pair.peer, &owner) == 0 && owner.pid == (uint32_t)getpid();
}

static int isForeignOwnerKnown(uint16_t port)
{
    return isOwnerKnown(port, "GET / HTTP/1.1\r\n", 16);
}

static void testForeign(void)
{
    testDiag("A server that is neither CA nor PVA");
    listenAnew(PORT);
    testOk(isForeignOwnerKnown(PORT), "its first connection has an owner");
    testOk(!isForeignOwnerKnown(PORT), "the next ones have none");
    listenAnew(PORT);
    testOk(isForeignOwnerKnown(PORT), "a new server at its port has one");
    testOk(!isForeignOwnerKnown(PORT), "… once");
    ebpfMonKernelForgetForeignPorts();
    testOk(isForeignOwnerKnown(PORT), "after a minute the port is forgotten");
}

static void testSamePlace(void)
{
    testDiag("Two ports that have the same place");
    listenAnew(OTHER);
    testOk(isForeignOwnerKnown(OTHER), "the other port is not taken for the first one");
    listenAnew(PORT);
    testOk(isForeignOwnerKnown(PORT), "and takes its place");
}

static void testCa(void)
{
    testDiag("Channel Access at that port");
    testOk(!isForeignOwnerKnown(PORT), "the port is foreign");
    ebpfMonPacketsExpectPort(source, PORT, 1);
    testOk(isOwnerKnown(PORT, caVersion, sizeof(caVersion)), "not after CA was found there");
    testOk(isForeignOwnerKnown(PORT) && isForeignOwnerKnown(PORT), "… even if others connect there");
    testOk(isOwnerKnown(PORT, caVersion, sizeof(caVersion)), "who writes is known");
}

MAIN(testForeignPorts)
{
    ebpfMonLoadSizes sizes = { .maxRecords = 1000, .maxClosure = 1000, .maxRoots = 1000, .ringBytes = 1 << 18 };
    char why[256] = "";

    testPlan(TESTS);
    if (skipWithoutNetwork(TESTS))
        return testDone();
    if (ebpfMonKernelLoad(&sizes, why, sizeof(why))) {
        testSkip(TESTS, why);
        return testDone();
    }
    if (!skipWithoutSource(TESTS)) {
        testForeign();
        testSamePlace();
        testCa();
        close(listener);
        ebpfMonPacketsClose(source);
    }
    ebpfMonKernelUnload();
    return testDone();
}
