/* SPDX-License-Identifier: BSD-3-Clause */
/* The last puts of each thread: the put that a chain began with, and its writer. */
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "put/threadPuts.h"

#define MS  1000000ull
#define IOC 7
#define RECORD(n) (0x1000ull + 0x100 * (n))

static ebpfMonThreadPuts *puts;

static struct ebpfMonPutEvent makePut(uint32_t tid, uint64_t at, uint64_t id, unsigned record)
{
    return (struct ebpfMonPutEvent){
        .head = { .kind = EBPFMON_EV_PUT, .tid = tid, .iocId = IOC, .ktime = at }, .id = id, .precord = RECORD(record),
        .root = RECORD(record), .putKind = EBPFMON_PUT_VALUE,
    };
}

static void addPut(uint32_t tid, uint64_t at, uint64_t id, unsigned record, const char *who)
{
    struct ebpfMonPutEvent ev = makePut(tid, at, id, record);

    ebpfMonThreadPutsAdd(puts, &ev, who);
}

static const ebpfMonThreadPut *findForChain(uint32_t tid, uint64_t begin, uint64_t end, unsigned root)
{
    struct ebpfMonChain chain = { .head = { .tid = tid, .iocId = IOC, .ktime = end }, .begin = begin };

    return ebpfMonThreadPutsFindForChain(puts, &chain, RECORD(root));
}

static const char *findWriter(uint32_t tid, uint64_t begin, unsigned root)
{
    struct ebpfMonSourceChain source = { .begin = begin, .tid = tid, .root = RECORD(root) };

    return ebpfMonThreadPutsFindWriter(puts, IOC, &source);
}

static void testChain(void)
{
    struct ebpfMonPutEvent ev;
    ebpfMonPutSummary summary = { .pv = "X" };
    const ebpfMonThreadPut *p;

    testDiag("The put that a chain began with");
    addPut(3, 101 * MS, 77, 4, "put by U@H");
    p = findForChain(3, 100 * MS, 110 * MS, 4);
    testOk(p && p->id == 77 && !p->isFinished && !p->byClient, "a put in the chain to its root began the chain");
    testOk(!findForChain(3, 102 * MS, 110 * MS, 4) && !findForChain(3, 90 * MS, 100 * MS, 4),
           "a put before or after the chain did not begin it");
    testOk(!findForChain(3, 100 * MS, 110 * MS, 5) && !findForChain(4, 100 * MS, 110 * MS, 4),
           "a put to another root or by another thread did not begin it");
    ebpfMonThreadPutsFinish(puts, IOC, 3, 76, &summary);
    ebpfMonThreadPutsFinish(puts, IOC, 4, 77, &summary);
    testOk(!p->isFinished, "the end of another put changes nothing");
    ebpfMonThreadPutsFinish(puts, IOC, 3, 77, &summary);
    testOk(p->isFinished && strcmp(p->put.pv, "X") == 0, "the put is finished with its own end");

    ev = makePut(3, 103 * MS, 78, 6);
    ev.root = RECORD(4);
    ebpfMonThreadPutsAdd(puts, &ev, "");
    testOk(findForChain(3, 100 * MS, 110 * MS, 4) != NULL, "a put in the course of the chain did not begin it");
    ev = makePut(3, 103 * MS, 79, 4);
    ev.putKind = EBPFMON_PUT_DENIED;
    ebpfMonThreadPutsAdd(puts, &ev, "");
    p = findForChain(3, 100 * MS, 110 * MS, 4);
    testOk(p && p->id == 77, "a put that was refused did not begin it");
    ev = makePut(3, 104 * MS, 80, 4);
    ev.who.isCA = 1;
    ebpfMonThreadPutsAdd(puts, &ev, "put by U@H");
    p = findForChain(3, 100 * MS, 110 * MS, 4);
    testOk(p && p->id == 80 && p->byClient && !p->isFinished, "the next put takes its place");
}

static void testWriter(void)
{
    testDiag("Who made the put that began a source chain: one thread may serve many clients");
    addPut(9, 90 * MS, 1, 4, "A");
    testOk(!findWriter(9, 100 * MS, 4)[0], "a put that ended before the chain did not begin it");
    addPut(9, 101 * MS, 2, 4, "B");
    addPut(9, 110 * MS, 3, 4, "C");
    testOk(strcmp(findWriter(9, 100 * MS, 4), "B") == 0, "a chain has no single client if another client put since");
    testOk(!findWriter(9, 100 * MS, 5)[0], "… nor if a client put to another record");
    for (unsigned i = 0; i < EBPFMON_THREAD_PUTS_BEFORE; i++)
        addPut(9, 111 * MS, 4, 5, "D");
    testOk(!findWriter(9, 100 * MS, 4)[0], "after many puts a put is not known any more,");
    for (unsigned i = 0; i < EBPFMON_THREAD_PUTS_BEFORE + 1; i++)
        addPut(9, 112 * MS, 5, 4, "B");
    testOk(strcmp(findWriter(9, 100 * MS, 4), "B") == 0, "unless all are of one client");
}

static void testOwner(void)
{
    struct ebpfMonPutEvent ev = makePut(12, 90 * MS, 1, 4), inner = makePut(12, 91 * MS, 2, 5);

    testDiag("Two puts of one message");
    ev.seqKind = inner.seqKind = EBPFMON_SEQ_MESSAGE;
    ev.seq = inner.seq = 1000;
    ebpfMonThreadPutsAdd(puts, &ev, "A");
    testOk(ebpfMonThreadPutsFindOwner(puts, &inner) == RECORD(4), "the second one is a routine's");
    inner.precord = RECORD(4);
    testOk(!ebpfMonThreadPutsFindOwner(puts, &inner), "a put to the same record may be the client's");
    inner.precord = RECORD(5);
    inner.seq = 1040;
    testOk(!ebpfMonThreadPutsFindOwner(puts, &inner), "the next message is another put of the client");
    inner.seq = 1000;
    inner.seqKind = EBPFMON_SEQ_RECEIVED;
    testOk(!ebpfMonThreadPutsFindOwner(puts, &inner), "what was received may be several messages");
}

static void testMany(void)
{
    testDiag("More threads than are remembered");
    for (uint32_t tid = 1; tid <= 10000; tid++)
        addPut(tid, (1000 + tid) * MS, tid, 4, "");
    testOk1(findForChain(10000, 1000 * MS, 99999 * MS, 4) != NULL);
    testOk(!findForChain(1, 1000 * MS, 99999 * MS, 4), "the one that wrote longest ago is forgotten");
}

MAIN(testThreadPuts)
{
    testPlan(19);
    puts = ebpfMonThreadPutsNew();
    testChain();
    testWriter();
    testOwner();
    testMany();
    ebpfMonThreadPutsFree(puts);
    return testDone();
}
