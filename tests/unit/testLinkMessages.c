/* SPDX-License-Identifier: BSD-3-Clause */
/* Link writes, and the messages that carry them. Times are invented. */
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "trace/linkMessages.h"

#define MS  1000000ull
#define IOC 7

static ebpfMonLinkMessages *messages;
static const struct ebpfMonPeer peer = { .addr = 1 };

static void writes(uint32_t pid, const char *link, const char *channel, uint64_t begin)
{
    ebpfMonLinkWrite l = { .pid = pid, .at = begin + 10, .chain = { .iocId = IOC, .tid = 1, .begin = begin } };

    strcpy(l.link, link);
    strcpy(l.channel, channel);
    ebpfMonLinkMessagesAdd(messages, &l);
}

/* "seq" 0: it came in no message. */
static void arrives(const ebpfMonChainId *chain, const char *link, uint32_t seq, uint64_t at)
{
    ebpfMonMessageKey key = { .at = at };

    if (seq) {
        key.peer = peer;
        key.seq = seq;
        key.seqKind = EBPFMON_SEQ_MESSAGE;
    }
    ebpfMonLinkMessagesNoteArrival(messages, chain, link, &key);
}

static void packet(uint32_t pid, const char *channel, uint32_t seq, uint64_t at)
{
    ebpfMonLinkMessagesNotePacket(messages, pid, channel, &peer, seq, at);
}

static unsigned find(uint64_t begin, ebpfMonLinkMessage list[4])
{
    ebpfMonChainId chain = { IOC, 1, begin };

    return ebpfMonLinkMessagesFind(messages, &chain, list, 4);
}

/* The message that carried the value of this chain; 0 if none is known. */
static uint32_t messageOf(uint64_t begin)
{
    ebpfMonLinkMessage list[4];

    return find(begin, list) == 1 && list[0].seen && list[0].isMessage ? list[0].seq : 0;
}

/* A seq record with delays: only its last step is a chain that the kernel part sends. */
static void steps(void)
{
    ebpfMonChainId source = { IOC, 1, 500 * MS }, last = { IOC, 2, 520 * MS };
    ebpfMonLinkMessage list[4];

    for (uint64_t i = 0; i < 3; i++) {
        ebpfMonLinkWrite l = {.pid = 50,
                              .at = (501 + 10 * i) * MS,
                              .chain = source,
                              .link = "seq.LNK",
                              .channel = "pv",
                              .step = {IOC, 2, (500 + 10 * i) * MS}};

        l.link[7] = (char)('1' + i);
        ebpfMonLinkMessagesAdd(messages, &l);
    }
    testOk(find(500 * MS, list) == 3, "all messages belong to the chain that began");
    ebpfMonLinkMessagesNoteChain(messages, &last);
    testOk(find(500 * MS, list) == 2 && ebpfMonLinkMessagesFind(messages, &last, list, 4) == 1 &&
               strcmp(list[0].link, "seq.LNK3") == 0, "… except the message of a chain that has arrived");
    arrives(&source, "seq.LNK3", 9, 530 * MS);
    ebpfMonLinkMessagesFind(messages, &last, list, 4);
    testOk(list[0].seen && list[0].seq == 9, "the receiver knows the chain that began");
}

static void packets(void)
{
    packet(60, "pv", 1, 901 * MS);
    packet(60, "", 2, 911 * MS);
    writes(60, "a.OUT", "pv", 900 * MS);
    ebpfMonLinkMessagesMatch(messages, 905 * MS);
    writes(60, "a.OUT", "pv", 910 * MS);
    ebpfMonLinkMessagesMatch(messages, 911 * MS);
    testOk(messageOf(900 * MS) == 1 && !messageOf(910 * MS), "a packet waits until all writes before it are known");
    writes(60, "a.OUT", "pv", 912 * MS);
    ebpfMonLinkMessagesMatch(messages, 920 * MS);
    testOk(messageOf(910 * MS) == 2 && !messageOf(912 * MS),
           "a message belongs to the chain that wrote before it, not to a later one; also if its channel has no name");
    writes(60, "a.OUT", "pv", 930 * MS);
    packet(61, "pv", 3, 931 * MS);
    packet(60, "other", 4, 931 * MS);
    ebpfMonLinkMessagesMatch(messages, 932 * MS);
    testOk(!messageOf(912 * MS) && !messageOf(930 * MS),
           "a message to another PV, or of another process, does not belong to the chain");
    writes(60, "b.OUT", "other", 940 * MS);
    packet(60, "", 5, 941 * MS);
    ebpfMonLinkMessagesMatch(messages, 942 * MS);
    testOk(!messageOf(930 * MS) && !messageOf(940 * MS), "a message without a name may belong to each of two links");
    packet(60, "pv", 6, 950 * MS);
    packet(60, "pv", 7, 951 * MS);
    ebpfMonLinkMessagesMatch(messages, 960 * MS);
    testOk(messageOf(930 * MS) == 6 && !messageOf(912 * MS), "of two values of a link only the last one is sent");
    for (uint32_t i = 0; i <= 512; i++)
        packet(60, "other", 100 + i, 970 * MS);
    ebpfMonLinkMessagesMatch(messages, 980 * MS);
    testOk(messageOf(940 * MS) == 101, "only as many packets wait as there is room for");
    writes(62, "c.OUT", "late", 1000 * MS);
    packet(62, "late", 8, 2001 * MS);
    ebpfMonLinkMessagesMatch(messages, 3000 * MS);
    testOk(!messageOf(1000 * MS), "a value is under way for a second at most");
}

/* Two links write to one PV before the first packet leaves. */
static void twoLinks(void)
{
    writes(63, "a.OUT", "two", 4000 * MS);
    writes(63, "b.OUT", "two", 4001 * MS);
    writes(63, "b.OUT", "two", 4002 * MS);
    packet(63, "two", 21, 4003 * MS);
    packet(63, "two", 22, 4003 * MS);
    ebpfMonLinkMessagesMatch(messages, 4004 * MS);
    testOk(messageOf(4000 * MS) == 21 && messageOf(4002 * MS) == 22 && !messageOf(4001 * MS),
           "the first packet has the value of the link that waited first, the second one the last value of the other");
}

static void arrivals(void)
{
    ebpfMonChainId chain = { IOC, 1, 5000 * MS };
    ebpfMonLinkMessage list[4];
    ebpfMonLinkWrite none = { .pid = 60 };

    writes(60, "a.OUT", "pv", 5000 * MS);
    writes(60, "b.OUT", "inside", 5000 * MS);
    testOk(find(5000 * MS, list) == 2 && strcmp(list[0].link, "a.OUT") == 0 && !list[0].seen && !list[1].seen,
           "two writes of one chain, in their order");
    arrives(&chain, "b.OUT", 0, 5001 * MS);
    arrives(&chain, "a.OUT", 55, 5002 * MS);
    testOk(find(5000 * MS, list) == 2 && list[0].isMessage && list[0].seq == 55 && list[0].inside &&
           list[0].seenAt == 5002 * MS && list[1].seen && !list[1].isMessage,
           "one value arrived as a message, the other one through a channel within the IOC");
    arrives(&chain, "a.OUT", 56, 5003 * MS);
    testOk(find(5000 * MS, list) == 2 && list[0].seq == 55, "a value arrives only once");
    chain.tid = 2;
    testOk(ebpfMonLinkMessagesFind(messages, &chain, list, 4) == 0, "another thread's chain wrote nothing");
    chain.tid = 1;
    testOk(ebpfMonLinkMessagesFind(messages, &chain, list, 1) == 1, "no more values than were asked for");
    ebpfMonLinkMessagesAdd(messages, &none);
    for (unsigned i = 0; i < 511; i++)
        writes(70, "x.OUT", "pv", (6000 + i) * MS);
    testOk(find(5000 * MS, list) == 1 && strcmp(list[0].link, "b.OUT") == 0,
           "the last 512 writes are known; a write of an unknown chain takes no place");
}

MAIN(testLinkMessages)
{
    testPlan(17);
    messages = ebpfMonLinkMessagesNew();
    steps();
    packets();
    twoLinks();
    arrivals();
    ebpfMonLinkMessagesFree(messages);
    return testDone();
}
