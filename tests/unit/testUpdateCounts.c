/* SPDX-License-Identifier: BSD-3-Clause */
/* clients/clientTable.h: updates of channels, counted from events as packets give them. */
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "clients/clientTable.h"

static ebpfMonUpdateCounts *counts;

/* An update of "size" bytes in the channel "sid" of the circuit from this port of the client to this port of the
 * server. */
static void addUpdate(uint16_t client, uint16_t server, uint32_t sid, unsigned size, uint32_t stretch)
{
    ebpfMonWireEvent ev;

    memset(&ev, 0, sizeof(ev));
    ev.kind = ebpfMonWireValue;
    ev.isUpdate = 1;
    ev.peer.port = client;
    ev.peer.sport = server;
    ev.sid = sid;
    ev.seq = 0xffffff00u; /* sequence numbers of TCP begin again at 0 */
    ev.end = ev.seq + size;
    ev.stretch = stretch;
    ebpfMonUpdateCountsAdd(counts, &ev);
}

static ebpfMonUpdateCount find(uint16_t client, uint16_t server, uint32_t sid)
{
    const struct ebpfMonPeer peer = { .port = client, .sport = server };
    ebpfMonUpdateCount count = { 0 };

    if (ebpfMonUpdateCountsFind(counts, &peer, sid, &count))
        count.updates = 0;
    return count;
}

static void testCounts(void)
{
    ebpfMonWireEvent reply;

    testDiag("what is counted");
    testOk(find(1, 5064, 1).updates == 0, "a channel without updates has no count");
    addUpdate(1, 5064, 1, 24, 1);
    addUpdate(1, 5064, 1, 1000, 1);
    testOk(find(1, 5064, 1).updates == 2 && find(1, 5064, 1).bytes == 1024 && !find(1, 5064, 1).isAtLeast,
           "two updates and their bytes, over the end of the sequence numbers, too");
    memset(&reply, 0, sizeof(reply));
    reply.peer.port = 1;
    reply.peer.sport = 5064;
    reply.sid = 1;
    reply.end = 24;
    ebpfMonUpdateCountsAdd(counts, &reply);
    testOk(find(1, 5064, 1).updates == 2, "the answer to a read is no update");
    addUpdate(1, 5064, 2, 10, 1);
    addUpdate(1, 5065, 1, 20, 1);
    addUpdate(2, 5064, 1, 30, 1);
    testOk(find(1, 5064, 1).bytes == 1024 && find(1, 5064, 2).bytes == 10 && find(1, 5065, 1).bytes == 20 &&
               find(2, 5064, 1).bytes == 30,
           "channels, servers and clients are counted apart, with the same numbers, too");
    addUpdate(2, 5064, 1, 30, 2);
    testOk(find(2, 5064, 1).updates == 2 && find(2, 5064, 1).isAtLeast,
           "after a gap in the packets the count is a lower bound");
    addUpdate(2, 5064, 1, 30, 2);
    testOk(find(2, 5064, 1).isAtLeast && !find(1, 5064, 1).isAtLeast, "… for ever, and of this channel only");
}

static void testForget(void)
{
    unsigned n = 0;

    testDiag("what is forgotten");
    for (int look = 0; look < 10; look++) {
        n += find(1, 5064, 1).updates != 0;
        ebpfMonUpdateCountsForget(counts);
    }
    testOk(n == 10, "a count stays while each look asks for it");
    testOk(find(1, 5065, 1).updates == 0, "the others are forgotten");
    addUpdate(3, 5064, 1, 10, 1);
    ebpfMonUpdateCountsForget(counts);
    ebpfMonUpdateCountsForget(counts);
    testOk(find(3, 5064, 1).updates == 1, "a channel that the first two looks do not know yet keeps its count");
    addUpdate(4, 5064, 1, 10, 1);
    for (int look = 0; look < 3; look++)
        ebpfMonUpdateCountsForget(counts);
    testOk(find(4, 5064, 1).updates == 0, "after three looks it is forgotten");
}

static void testRoom(void)
{
    unsigned known = 0;

    testDiag("more channels than there is room for");
    for (int look = 0; look < 4; look++)
        ebpfMonUpdateCountsForget(counts);
    for (uint32_t sid = 0; sid < EBPFMON_UPDATE_COUNTS + 1000; sid++)
        addUpdate(9, 5064, sid, 16, 1);
    for (uint32_t sid = 0; sid < EBPFMON_UPDATE_COUNTS + 1000; sid++)
        known += find(9, 5064, sid).updates == 1;
    testOk(known == EBPFMON_UPDATE_COUNTS, "%u channels have a count", known);
    addUpdate(9, 5064, 5, 16, 1);
    testOk(find(9, 5064, 5).updates == 2, "those are counted on");
    for (int look = 0; look < 4; look++)
        ebpfMonUpdateCountsForget(counts);
    addUpdate(9, 5064, EBPFMON_UPDATE_COUNTS + 7, 16, 1);
    testOk(find(9, 5064, EBPFMON_UPDATE_COUNTS + 7).updates == 1, "there is room again when channels are gone");
}

MAIN(testUpdateCounts)
{
    testPlan(13);
    counts = ebpfMonUpdateCountsNew();
    if (!counts)
        testAbort("no memory");
    testCounts();
    testForget();
    testRoom();
    ebpfMonUpdateCountsFree(counts);
    ebpfMonUpdateCountsFree(NULL);
    return testDone();
}
