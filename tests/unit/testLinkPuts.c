/* SPDX-License-Identifier: BSD-3-Clause */
/* watch/linkPuts.h: which puts to links are superseded or settled, and how long they are kept. */
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "watch/linkPuts.h"

#define MS 1000000ull
#define X  0x1000 /* records */
#define Y  0x2000
#define B  0x3000
#define C  0x4000
#define FLNK 0x10 /* fields */
#define INPA 0x20

static ebpfMonLinkPuts *puts;
static uint64_t leadsTo; /* the target of each link that the test reads */

static int isDone(void *arg, const ebpfMonLinkPut *put)
{
    (void)arg;
    return put->target ? put->target == leadsTo : put->old != leadsTo;
}

static int putLink(uint64_t record, uint64_t field, uint64_t old, uint64_t target, uint64_t at, uint32_t tid)
{
    ebpfMonLinkPut put = { .iocId = 1, .tid = tid, .at = at, .precord = record, .pfldDes = field, .target = target,
                           .old = old, .isLink = 1 };

    return ebpfMonLinkPutsAdd(puts, &put, at + 1);
}

static void putStamp(uint64_t at, int stops, int isBrief)
{
    ebpfMonLinkPut put = { .iocId = 1, .tid = 1, .at = at, .precord = X, .pfldDes = 0x30, .isStamp = 1,
                           .stops = (uint8_t)stops, .isBrief = (uint8_t)isBrief };

    ebpfMonLinkPutsAdd(puts, &put, at + 1);
}

static ebpfMonLinkPut found[4];

/* The record was read, and has this link. */
static unsigned take(uint64_t record, uint64_t link, uint64_t readAt)
{
    leadsTo = link;
    return ebpfMonLinkPutsTake(puts, 1, record, readAt, isDone, NULL, found, 4);
}

static void begin(const char *what)
{
    testDiag("%s", what);
    ebpfMonLinkPutsFree(puts);
    puts = ebpfMonLinkPutsNew();
    if (!puts)
        testAbort("out of memory");
}

static void testAlone(void)
{
    begin("one put alone");
    testOk1(ebpfMonLinkPutsGetOldest(puts, 1, X) == UINT64_MAX);
    putLink(X, FLNK, 0, B, 10 * MS, 1);
    testOk1(ebpfMonLinkPutsGetOldest(puts, 1, X) == 10 * MS && ebpfMonLinkPutsGetOldest(puts, 2, X) == UINT64_MAX &&
            ebpfMonLinkPutsGetOldest(puts, 1, Y) == UINT64_MAX);
    testOk(take(X, 0, 11 * MS) == 0 && ebpfMonLinkPutsGetOldest(puts, 1, X) == 10 * MS, "the put is not done yet");
    testOk(take(X, B, 12 * MS) == 0 && ebpfMonLinkPutsGetOldest(puts, 1, X) == UINT64_MAX, "now it is done");
    putLink(X, FLNK, B, C, 20 * MS, 1);
    testOk(take(X, C, 21 * MS) == 0, "a put whose link was read is not superseded");
    testOk1(!ebpfMonLinkPutsIsAwaited(puts, 1, X, 21 * MS));
    putLink(X, FLNK, C, B, 20 * MS + 1, 1);
    testOk(take(X, B, 22 * MS) == 1 && found[0].target == C && found[0].at == 20 * MS,
           "... except by a put from before that reading, which was known later");
    testOk(take(X, B, 23 * MS) == 1 && found[0].at == 22 * MS,
           "... and which was done before that reading began, or after");
    testOk1(take(X, B, 24 * MS) == 0);
}

static void testSuperseded(void)
{
    begin("superseded");
    putLink(X, FLNK, 0, B, 10 * MS, 1);
    putLink(Y, FLNK, 0, C, 11 * MS, 1);
    putLink(X, FLNK, B, 0, 12 * MS, 1);
    testOk(take(Y, C, 20 * MS) == 0, "the put to another record is not superseded");
    testOk(take(X, 0, 9 * MS) == 0, "a reading that began before the put says nothing about it; the next one does");
    testOk1(take(X, 0, 20 * MS) == 1 && found[0].target == B && found[0].at == 10 * MS && found[0].precord == X);
    testOk(take(X, 0, 21 * MS) == 1 && take(X, 0, 22 * MS) == 0, "... and says when the second put was made");
    putLink(X, FLNK, 0, B, 30 * MS, 1);
    putLink(X, INPA, C, 0, 31 * MS, 1);
    testOk(take(X, B, 32 * MS) == 1 && found[0].target == B, "another link of the same record supersedes it, too");
    testOk1(take(X, B, 33 * MS) == 1 && take(X, B, 34 * MS) == 0);
    for (unsigned i = 0; i < 100; i++) {
        putLink(X, FLNK, C, B, 40 * MS + 2 * i, 1);
        putLink(X, FLNK, B, C, 40 * MS + 2 * i + 1, 1);
    }
    testOk(take(X, C, 50 * MS) == 2 && found[0].at + found[1].at == 80 * MS + 1,
           "the oldest put of each kind stands for all of its kind");
    begin("by another thread");
    putLink(X, FLNK, 0, B, 10 * MS, 1);
    putLink(X, FLNK, 0, C, 11 * MS, 2);
    testOk1(take(X, C, 12 * MS) == 1 && found[0].at == 10 * MS);
    testOk(take(X, C, 13 * MS) == 1 && found[0].at == 12 * MS,
           "the put may be done later: it is looked for again from then on");
    testOk1(take(X, C, 2000 * MS) == 1 && take(X, C, 2001 * MS) == 0);
}

/* dbPutFieldLink waits for the lock sets. A slow record may hold them for a long time. */
static void testLate(void)
{
    begin("not done at once");
    putLink(X, FLNK, 0, B, 10 * MS, 1);
    testOk1(take(X, 0, 1200 * MS) == 0 && ebpfMonLinkPutsIsAwaited(puts, 1, X, 1200 * MS));
    testOk1(!ebpfMonLinkPutsIsAwaited(puts, 1, Y, 1200 * MS) && !ebpfMonLinkPutsIsAwaited(puts, 2, X, 1200 * MS));
    testOk(take(X, 0, 30000 * MS) == 0 && ebpfMonLinkPutsGetOldest(puts, 1, X) == 10 * MS,
           "the put is kept, because it may still be done");
    testOk1(take(X, B, 31000 * MS) == 0 && !ebpfMonLinkPutsIsAwaited(puts, 1, X, 31000 * MS));
    begin("not done at once, and superseded");
    putLink(X, FLNK, 0, B, 10 * MS, 1);
    take(X, 0, 1200 * MS);
    putLink(X, FLNK, B, 0, 4000 * MS, 1);
    testOk(take(X, 0, 3999 * MS) == 0, "a reading that began before the second put says nothing about the first");
    testOk1(take(X, B, 4100 * MS) == 1 && found[0].at == 10 * MS && ebpfMonLinkPutsIsAwaited(puts, 1, X, 4100 * MS));
    testOk(take(X, B, 9000 * MS) == 1 && found[0].at == 4100 * MS, "... until the second put is done");
    testOk1(take(X, 0, 10000 * MS) == 1 && take(X, 0, 11000 * MS) == 1);
    testOk1(take(X, 0, 12000 * MS) == 0 && !ebpfMonLinkPutsIsAwaited(puts, 1, X, 12000 * MS));
    begin("refused");
    putLink(X, FLNK, 0, B, 10 * MS, 1);
    take(X, 0, 60000 * MS);
    testOk(!ebpfMonLinkPutsIsAwaited(puts, 1, X, 60020 * MS), "after a minute it is not looked for any more");
}

static void testStamps(void)
{
    begin("time stamps");
    putStamp(10 * MS, 1, 0);
    testOk1(take(X, 0, 11 * MS) == 0);
    putLink(X, FLNK, 0, B, 12 * MS, 1);
    testOk(take(X, B, 13 * MS) == 0, "a put to a link does not supersede it");
    putStamp(14 * MS, 0, 0);
    testOk1(take(X, B, 15 * MS) == 1 && found[0].stops && found[0].at == 10 * MS);
    putStamp(20 * MS, 0, 0);
    putStamp(21 * MS, 0, 0);
    testOk(take(X, B, 22 * MS) == 0, "a put that lets the time stamp move supersedes nothing");
    putStamp(30 * MS, 1, 1);
    testOk(take(X, B, 31 * MS) == 1, "a put whose effect anything may end is superseded at once");
    testOk(take(X, B, 32 * MS) == 1 && found[0].at == 31 * MS, "… and it may be done later: it is looked for again");
}

static void testKept(void)
{
    ebpfMonLinkEdge edges[8];
    unsigned kept = 0;

    begin("how long they are kept");
    putLink(X, FLNK, C, B, 10 * MS, 1);
    testOk1(ebpfMonLinkPutsListEdges(puts, 1, edges, 8) == 2 && edges[0].from == X && edges[0].to == B &&
            edges[1].to == C && ebpfMonLinkPutsListEdges(puts, 2, edges, 8) == 0 &&
            ebpfMonLinkPutsListEdges(puts, 1, edges, 1) == 1);
    putLink(X, FLNK, B, 0, 3000 * MS, 1);
    testOk(take(X, 0, 3001 * MS) == 1, "a put whose link nobody has read is kept for long");
    take(X, 0, 3002 * MS);
    putLink(X, FLNK, C, B, 4000 * MS, 1);
    take(X, B, 4001 * MS);
    putLink(X, FLNK, 0, 0, 6000 * MS, 1);
    testOk(take(X, 0, 6001 * MS) == 0 && ebpfMonLinkPutsListEdges(puts, 1, edges, 8) == 0,
           "a put whose link was read, and which is done, is not kept for long");
    for (unsigned i = 0; i < 2000; i++)
        kept += putLink(X + i, FLNK, 0, B, 7000 * MS, 1) == 0;
    testOk(kept == 1024, "there are no more than %u", kept);
    testOk(putLink(X, FLNK, 0, 0, 7000 * MS, 1) == 0, "a put that makes no record process takes no place");
    testOk(putLink(X, FLNK, 0, B, 100000 * MS, 1) == 0, "a put whose link nobody reads is forgotten in the end");
}

MAIN(testLinkPuts)
{
    testPlan(0);
    testAlone();
    testSuperseded();
    testLate();
    testStamps();
    testKept();
    ebpfMonLinkPutsFree(puts);
    ebpfMonLinkPutsFree(NULL);
    return testDone();
}
