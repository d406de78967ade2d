/* SPDX-License-Identifier: BSD-3-Clause */
/* Scenes of an invented IOC: the events of a few traces. The test program supplies the functions that get them. */
#ifndef TRACESCENES_H
#define TRACESCENES_H

#include <arpa/inet.h>
#include <sys/syscall.h>

#include "model/put.h"
#include "put/linkWrites.h"
#include "put/finishedPut.h"
#include "traceIoc.h"

/* The test program's own. */
static void sceneAddChain(const struct ebpfMonChain *chain, const struct ebpfMonChainRec *rec, uint32_t count);
static void sceneBeginHandOver(const struct ebpfMonHandOverEvent *ev);
static void sceneEndHandOver(const struct ebpfMonHandOverEvent *ev);
static void sceneAddThreadPut(const struct ebpfMonPutEvent *ev);
static void sceneAddPut(uint32_t tid, uint64_t id, const ebpfMonPut *put, const ebpfMonMessageKey *key);
static void sceneAddLinkWrite(const ebpfMonLinkWrite *write);
static void sceneNoteArrival(const ebpfMonChainId *chain, const char *link, const struct ebpfMonPeer *peer,
                             uint32_t seq, uint64_t at, int inside);
static void sceneTick(uint64_t now, int all);
static void sceneBegin(const char *name);

/* The chain processed these records, one every 10 us from its begin. -1 ends the list. */
static void sceneSend(struct ebpfMonChain c, const int *records)
{
    static struct ebpfMonChainRec rec[2048];
    uint32_t n = 0;

    memset(rec, 0, sizeof(rec));
    for (; records[n] >= 0; n++) {
        double value = 1.5 * records[n];

        rec[n].slot = SCENE_SLOT + (uint32_t)records[n];
        rec[n].time = sceneStamp(c.begin + 3 * US + 10 * US * (n + 1));
        memcpy(rec[n].val, &value, sizeof(value));
        if (records[n] % 4 == 2) {
            rec[n].sevr = 2;
            rec[n].stat = 3;
        }
    }
    if (!c.total)
        c.total = n;
    sceneAddChain(&c, rec, n);
}

#define SEND(chain, ...) sceneSend(chain, (const int[]){ __VA_ARGS__, -1 })

static struct ebpfMonChain sceneAsync(struct ebpfMonChain c, uint32_t first, int second)
{
    c.async[0] = SCENE_SLOT + first + 1;
    c.async[1] = second >= 0 ? SCENE_SLOT + (uint32_t)second + 1 : 0;
    return c;
}

/* "next" completes the record that "c" left processing. */
static struct ebpfMonChain sceneCompletes(struct ebpfMonChain c, struct ebpfMonChain next)
{
    next.causeTid = c.head.tid;
    next.causeBegin = c.begin;
    return next;
}

/* "next" comes out of a queue. "c" put it there. */
static struct ebpfMonHandOverEvent sceneHandOver(struct ebpfMonChain c, struct ebpfMonChain next, uint64_t delay)
{
    struct ebpfMonHandOverEvent ev = { .head = next.head, .what = { .delay = delay } };

    ev.what.source.begin = c.begin;
    ev.what.source.tid = c.head.tid;
    ev.what.source.root = sceneTarget->cat->rec[c.rootSlot - SCENE_SLOT].addr;
    sceneBeginHandOver(&ev);
    return ev;
}

static void sceneDone(struct ebpfMonChain c)
{
    struct ebpfMonHandOverEvent ev = { .head = c.head };

    ev.what.source.begin = c.begin;
    ev.what.source.tid = c.head.tid;
    sceneEndHandOver(&ev);
}

static void sceneSimple(void)
{
    struct ebpfMonChain c = sceneChain("scan-0.1", 10, 100 * MS, 0);

    sceneBegin("simple");
    c.blocked = 200 * US;
    c.syscall = SYS_read;
    c.longest = 150 * US;
    c.cpuWait = 30 * US;
    c.queueWait = 7 * US;
    SEND(c, 0, 1, 2, 9);
    SEND(sceneChain("thread", 11, 102 * MS, 30), 30);
    c = sceneChain("main", 12, 104 * MS, 3);
    c.flags = EBPFMON_CHAIN_LATE | EBPFMON_CHAIN_MAIN;
    SEND(c, 3);
    c = sceneChain("cbLow", 12, 106 * MS, 31);
    c.outer = SCENE_SLOT + 1 + 4;
    SEND(c, 31);
}

static void sceneAsynchronous(void)
{
    struct ebpfMonChain a, b, c;

    sceneBegin("asynchronous");
    a = sceneAsync(sceneChain("scan-1", 10, 200 * MS, 0), 3, 5);
    SEND(a, 0, 1, 2);
    b = sceneCompletes(a, sceneChain("cbHigh", 20, 210 * MS, 3));
    b.flags = EBPFMON_CHAIN_BUSY;
    b.async[0] = 0;
    SEND(b, 4);
    SEND(sceneCompletes(a, sceneChain("cbHigh", 20, 215 * MS, 5)), 5, 6);
    c = sceneCompletes(b, sceneChain("cbLow", 21, 220 * MS, 3));
    SEND(c, 3, 4, 7);

    a = sceneAsync(sceneChain("scan-1", 10, 300 * MS, 0), 0, -1);
    SEND(a, 1);
    sceneTick(20000 * MS, 0);
    SEND(sceneCompletes(a, sceneChain("cbLow", 22, 30000 * MS, 0)), 0, 1);
}

static void sceneHandedOver(void)
{
    struct ebpfMonChain a, b, c;

    sceneBegin("handed over");
    sceneMemory[11].scan = 1;
    sceneMemory[12].scan = 2;
    a = sceneChain("scan-1", 10, 40000 * MS, 0);
    a.handOvers = 5;
    SEND(a, 0, 1, 2);
    b = sceneChain("cbMedium", 20, 40010 * MS, 11);
    sceneHandOver(a, b, 0);
    b = sceneAsync(b, 13, -1);
    b.handOvers = 1;
    SEND(b, 11);
    sceneDone(a);
    c = sceneChain("cbMedium", 20, 40012 * MS, 12);
    sceneHandOver(b, c, 0);
    SEND(c, 12);
    sceneDone(b);
    SEND(sceneCompletes(b, sceneChain("other", 30, 40013 * MS, 13)), 13, 14);
    c = sceneChain("scanOnce", 21, 40014 * MS, 1); /* a record of the chain itself, in the middle of its tree */
    sceneHandOver(a, c, 0);
    SEND(c, 1, 2);
    sceneDone(a);
    c = sceneChain("cbLow", 22, 40015 * MS, 2); /* … and at its end */
    sceneHandOver(a, c, 5000 * MS);
    SEND(c, 2);
    sceneDone(a);
    c = sceneChain("cbLow", 22, 40016 * MS, 20);
    sceneHandOver(a, c, 0);
    SEND(c, 20);
    sceneDone(a);
    sceneTick(60000 * MS, 0); /* one hand-over is never done */

    a = sceneChain("scan-1", 10, 61000 * MS, 0);
    a.handOvers = 1;
    b = sceneChain("cbLow", 22, 61000 * MS + 1, 20); /* it ends before the chain that handed it over */
    b.flags = EBPFMON_CHAIN_EARLY;
    sceneHandOver(a, b, 0);
    SEND(b, 20);
    sceneDone(a);
    SEND(a, 0);

    b = sceneChain("cbLow", 22, 62000 * MS, 20); /* the chain that handed it over was not kept */
    a.begin++;
    sceneHandOver(a, b, 0);
    SEND(b, 20, 21);
}

/* A record that processed without a known link, and hand-overs if such records are the last ones. */
static void sceneUnknownParent(void)
{
    struct ebpfMonChain a, b;

    sceneBegin("unknown parent");
    a = sceneChain("scan-1", 10, 70000 * MS, 0);
    a.handOvers = 1;
    SEND(a, 0, 1, 25, 26, 32);
    b = sceneChain("cbLow", 20, 70010 * MS, 25);
    sceneHandOver(a, b, 0);
    SEND(b, 25, 26);
    sceneDone(a);
}

static ebpfMonPut scenePut(const char *writer)
{
    ebpfMonPut put = { .through = ebpfMonByCa, .peerPid = 4711 };

    strcpy(put.pv, "R0");
    strcpy(put.who, writer);
    strcpy(put.origin, "CA");
    strcpy(put.user, "me");
    strcpy(put.command, "caput");
    return put;
}

static ebpfMonMessageKey sceneKey(uint64_t at)
{
    return (ebpfMonMessageKey){
        .peer = { .addr = htonl(0x7f000001), .saddr = htonl(0x7f000001), .port = htons(40000), .sport = htons(5064) },
        .seq = 77, .seqKind = EBPFMON_SEQ_MESSAGE, .at = at,
    };
}

/* The thread of the chain made this put, and the put began the chain. */
static void sceneThreadPut(struct ebpfMonChain c, uint64_t id)
{
    struct ebpfMonPutEvent ev = { .head = c.head, .id = id, .putKind = EBPFMON_PUT_VALUE };

    ev.head.ktime = c.begin + 5;
    ev.precord = ev.root = sceneTarget->cat->rec[c.rootSlot - SCENE_SLOT].addr;
    ev.who.isCA = 1;
    sceneAddThreadPut(&ev);
}

static void sceneSentWrite(struct ebpfMonChain c, const char *link, const char *channel, uint64_t after)
{
    ebpfMonLinkWrite write = {
        .pid = (uint32_t)sceneTarget->pid, .at = c.begin + after,
        .chain = { .iocId = c.head.iocId, .tid = c.head.tid, .begin = c.begin },
    };

    strcpy(write.link, link);
    strcpy(write.channel, channel);
    sceneAddLinkWrite(&write);
}

static void scenePuts(void)
{
    ebpfMonMessageKey key = sceneKey(80000 * MS);
    ebpfMonPut put = scenePut("me@here");
    struct ebpfMonPeer peer = key.peer;
    struct ebpfMonChain a, b;
    ebpfMonChainId id;

    sceneBegin("puts");
    a = sceneChain("CAS-client", 40, 80000 * MS, 0);
    sceneThreadPut(a, 1);
    sceneSentWrite(a, "R2.OUT", "OTHER:PV", 100 * US);
    sceneSentWrite(a, "R1.OUT", "R10", 50 * US);
    sceneSentWrite(a, "R1.OUT", "LOCAL", 60 * US);
    SEND(a, 0, 1, 2);
    id = (ebpfMonChainId){ .iocId = a.head.iocId, .tid = 40, .begin = a.begin };
    peer.port = htons(40001);
    sceneNoteArrival(&id, "R2.OUT", &peer, 1000, 80003 * MS, 0);
    sceneNoteArrival(&id, "R1.OUT", &peer, 1001, 80004 * MS, 1);
    sceneNoteArrival(&id, "R1.OUT", NULL, 0, 80004 * MS, 1);
    sceneAddPut(40, 1, &put, &key);
    /* its write to R10 comes as a put with this chain as its cause */
    b = sceneChain("CAS-client", 41, 80004 * MS, 10);
    sceneThreadPut(b, 2);
    SEND(b, 10);
    put = scenePut("R1.OUT");
    put.peerPid = (uint32_t)sceneTarget->pid;
    put.linkChain = id;
    put.through = ebpfMonByCaLink;
    key.peer = peer;
    key.seq = 1001;
    sceneAddPut(41, 2, &put, &key);
    sceneTick(80010 * MS, 0);
    sceneTick(80010 * MS + 2000 * MS, 0);

    /* from another host; and one that was no message */
    a = sceneChain("CAS-client", 42, 83000 * MS, 0);
    sceneThreadPut(a, 3);
    put = scenePut("me@there");
    put.peerPid = 0;
    key.peer.addr = htonl(0x0a000001);
    sceneAddPut(42, 3, &put, &key);
    SEND(a, 0);
    a = sceneChain("CAS-client", 43, 84000 * MS, 0);
    sceneThreadPut(a, 4);
    key.seqKind = EBPFMON_SEQ_NONE;
    sceneAddPut(43, 4, &put, &key);
    SEND(a, 0);
    sceneTick(90000 * MS, 0);
}

/* The chain that completes a record hands over a chain. The root of this chain is none of its records. */
static void sceneBelowCompleted(void)
{
    struct ebpfMonChain a, b, c;

    sceneBegin("below completed");
    a = sceneAsync(sceneChain("scan-1", 10, 71000 * MS, 0), 3, -1);
    SEND(a, 0, 1);
    b = sceneCompletes(a, sceneChain("cbHigh", 20, 71010 * MS, 3));
    b.handOvers = 1;
    SEND(b, 3, 4);
    c = sceneChain("cbLow", 21, 71020 * MS, 20);
    sceneHandOver(b, c, 0);
    SEND(c, 20, 21);
    sceneDone(b);
}

/* A trace takes its id from the first message that goes to an IOC that is not watched here. */
static void sceneMessages(void)
{
    struct ebpfMonPeer peer = { .addr = htonl(0x7f000001), .saddr = htonl(0x0a000002), .port = htons(40002),
                                .sport = htons(5064) };
    struct ebpfMonChain a = sceneChain("scan-1", 10, 72000 * MS, 0);
    ebpfMonChainId id = { .iocId = a.head.iocId, .tid = 10, .begin = a.begin };

    sceneBegin("messages");
    sceneSentWrite(a, "R1.OUT", "R10", 50 * US);
    sceneSentWrite(a, "R2.OUT", "OTHER:PV", 60 * US);
    SEND(a, 0, 1, 2);
    sceneNoteArrival(&id, "R1.OUT", &peer, 2001, 72003 * MS, 1);
    peer.port = htons(40003);
    sceneNoteArrival(&id, "R2.OUT", &peer, 2002, 72004 * MS, 0);
    sceneTick(72010 * MS, 0);
}

/* Long traces: too long for the text, too long for the spans, and a chain that hands itself over again and again. */
static void sceneLong(void)
{
    static int records[SCENE_RECORDS + 1];
    struct ebpfMonChain a, b;

    sceneBegin("long");
    for (int i = 0; i < 1200; i++)
        records[i] = 100 + i;
    records[1200] = -1;
    a = sceneChain("scan-1", 10, 91000 * MS, 100);
    a.head.ktime += 100 * MS;
    sceneSend(a, records);
    a = sceneChain("scan-1", 10, 92000 * MS, 0);
    a.handOvers = 1;
    SEND(a, 0);
    for (unsigned i = 0; i < EBPFMON_TRACE_CHAINS + 3; i++) {
        b = sceneChain("cbLow", 20, (92010 + i) * MS, 20 + i % 3);
        b.handOvers = 1;
        sceneHandOver(a, b, 0);
        SEND(b, 20 + (int)i % 3);
        sceneDone(a);
        a = b;
    }
    sceneTick(110000 * MS, 0);
}

/* The monitor of a CP link of R15 has the time stamp of R2. */
static void sceneCpLink(void)
{
    static const char name[64] = "R2.VAL";
    struct ebpfMonHandOverEvent ev;
    struct ebpfMonChain a, b;
    uint64_t link, stamp;

    sceneBegin("CP link");
    a = sceneChain("scan-1", 10, 120000 * MS, 0);
    SEND(a, 0, 1, 2);
    stamp = sceneStamp(a.begin + 33 * US);
    sceneMemory[15].inp.precord = sceneTarget->cat->rec[15].addr;
    sceneMemory[15].inp.type = EBPFMON_LINK_CA;
    sceneMemory[15].inp.pvlMask = EBPFMON_PVL_CP;
    sceneMemory[15].inp.pvname = (uintptr_t)name;
    link = (uintptr_t)&sceneMemory[15].inp;
    b = sceneChain("scanOnce", 21, 120010 * MS, 15);
    ev = (struct ebpfMonHandOverEvent){ .head = b.head, .what.cpLink = link };
    memcpy(ev.what.caLink + 60, &stamp, sizeof(stamp));
    sceneBeginHandOver(&ev);
    SEND(b, 15, 16);
    sceneTick(121000 * MS, 0);
}

/* What was handed over early ends long before the chain that handed it over: that one is the last to end. */
static void sceneEarly(void)
{
    struct ebpfMonChain a, b;

    sceneBegin("early");
    a = sceneChain("scan-1", 10, 130000 * MS, 0);
    a.head.ktime = a.begin + 120 * MS;
    a.handOvers = 1;
    b = sceneChain("cbLow", 22, 130001 * MS, 20);
    b.flags = EBPFMON_CHAIN_EARLY;
    sceneHandOver(a, b, 0);
    SEND(b, 20);
    sceneDone(a);
    SEND(a, 0);
}

static void sceneMakeIoc(void)
{
    ebpfMonCatalogue *cat;

    sceneNewIoc();
    cat = sceneTarget->cat;
    sceneLink(cat, 0, 1, sceneFlnk);
    sceneLink(cat, 0, 9, sceneOut);
    sceneLink(cat, 0, 3, sceneOut);
    sceneLink(cat, 0, 5, sceneFlnk);
    sceneLink(cat, 1, 2, sceneInp);
    sceneLink(cat, 1, 2, sceneFlnk);
    sceneLink(cat, 3, 4, sceneFlnk);
    sceneLink(cat, 4, 7, sceneFlnk);
    sceneLink(cat, 5, 6, sceneFlnk);
    sceneLink(cat, 11, 13, sceneFlnk);
    sceneLink(cat, 13, 14, sceneFlnk);
    sceneLink(cat, 15, 16, sceneFlnk);
    sceneLink(cat, 20, 21, sceneFlnk);
    sceneLink(cat, 25, 26, sceneFlnk);
    for (uint32_t i = 100; i < SCENE_RECORDS - 1; i++)
        sceneLink(cat, i, i + 1, sceneFlnk);
}

static void sceneAll(void)
{
    sceneSimple();
    sceneAsynchronous();
    sceneHandedOver();
    sceneUnknownParent();
    sceneBelowCompleted();
    sceneMessages();
    scenePuts();
    sceneLong();
    sceneCpLink();
    sceneEarly();
}

#endif
