/* SPDX-License-Identifier: BSD-3-Clause */
/* put/realCircuits.h: which puts the kernel's sockets prove. */
#include <unistd.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "put/realCircuits.h"

#define FIRST 1000u /* sequence numbers */

static int known, isAllReal;
static uint32_t upTo;
static uint64_t endedAt;
static unsigned asked;

static int find(void *arg, const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first, pid_t pid,
                ebpfMonReceived *received)
{
    (void)arg; (void)peer; (void)pid;
    asked++;
    *received = (ebpfMonReceived){ .isAll = isAllReal, .hasFrom = 1, .from = first->seq[0], .upTo = upTo,
                                   .endedAt = endedAt };
    return known;
}

static void setKnown(int is, uint32_t to)
{
    known = is;
    upTo = to;
}

static void note(ebpfMonRealCircuits *real, uint64_t circuit)
{
    const struct ebpfMonPeer peer = { .addr = 1 };
    const struct ebpfMonFirst first = { { FIRST, 1 } };

    ebpfMonRealCircuitsNote(real, circuit, &peer, &first, getpid());
}

static int has(ebpfMonRealCircuits *real, uint64_t circuit, uint32_t end)
{
    const ebpfMonPacketPut put = { .circuit = circuit, .first = { { FIRST, 1 } }, .end = end, .pid = getpid(),
                                   .at = 50000000 };

    return ebpfMonRealCircuitsHas(real, &put);
}

MAIN(testRealCircuits)
{
    ebpfMonRealCircuits *real = ebpfMonRealCircuitsNew(find, NULL), *blind = ebpfMonRealCircuitsNew(NULL, NULL);
    const ebpfMonPacketPut elsewhere = { .circuit = 3 };

    testPlan(14);
    note(real, 1);
    setKnown(1, FIRST + 100);
    testOk(!has(real, 1, FIRST + 50), "there was no such connection when the packet came");
    note(real, 2);
    asked = 0;
    testOk(has(real, 2, FIRST + 100) && asked == 0, "the server has received it, which was known already");
    testOk(!has(real, 2, FIRST + 101) && asked == 1, "it has not received this");
    setKnown(1, FIRST + 200);
    testOk(has(real, 2, FIRST + 101) && asked == 2, "now it has");
    setKnown(0, 0);
    testOk(has(real, 2, FIRST + 300), "the connection has ended since");
    setKnown(-1, 0);
    testOk(has(real, 4, FIRST + 1), "the kernel does not tell");
    setKnown(0, 0);
    testOk(!has(real, 5, FIRST + 1), "no packet of it was noted");
    isAllReal = 1;
    setKnown(1, 0);
    note(real, 6);
    testOk(has(real, 6, FIRST + 1), "its client is on this host");
    asked = 0;
    testOk(ebpfMonRealCircuitsHas(real, &elsewhere) && asked == 0, "a server elsewhere is not asked for");
    isAllReal = 0;
    setKnown(1, 0xffffffff);
    note(real, 7);
    testOk(has(real, 7, 0xfffffff0) && !has(real, 7, 5), "sequence numbers wrap");
    setKnown(1, FIRST + 100);
    note(real, 8);
    testOk(!has(real, 8, FIRST - 1) && !has(real, 8, FIRST + 0x80000000), "before its first byte, and far away");
    endedAt = 10000000;
    note(real, 9);
    testOk(!has(real, 9, FIRST + 50), "a packet that came when its socket was closed");
    endedAt = 60000000;
    testOk(has(real, 9, FIRST + 50), "it was not");
    testOk1(has(blind, 1, 1));
    ebpfMonRealCircuitsFree(real);
    ebpfMonRealCircuitsFree(blind);
    return testDone();
}
