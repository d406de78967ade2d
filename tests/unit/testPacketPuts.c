/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts that were seen in packets only, with the values that the PVs had before. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "put/packetEvents.h"
#include "fakeClients.h"

static ebpfMonPacketPuts *packetPuts;
static ebpfMonLinkWrites *linkWrites;

/* Puts that the sink received. */
static unsigned count;
static ebpfMonPut last;
static ebpfMonMessageKey lastKey;

static void onPut(void *arg, const ebpfMonFinishedPut *finished)
{
    count++;
    last = *finished->put;
    lastKey = *finished->key;
}

/* A plain CA write of 7 (DBR_LONG) to "channel". */
static ebpfMonPacketPut *makePut(const char *channel)
{
    static const uint8_t seven[] = { 0, 0, 0, 7 };
    ebpfMonPacketPut *p = calloc(1, sizeof(*p) + EBPFMON_PACKET_PUT_DATA);

    p->at = 5;
    p->seq = 100;
    p->sid = 12;
    p->count = 1;
    p->hash = 42;
    p->baseType = 5;
    p->have = sizeof(seven);
    p->peer = fakePeer(2000, 5064);
    memcpy(p->data, seven, sizeof(seven));
    snprintf(p->channel, sizeof(p->channel), "%s", channel);
    strcpy(p->user, "anna");
    strcpy(p->host, "office1");
    return p;
}

static void finish(ebpfMonPacketPut *p, int missed)
{
    ebpfMonPacketPutsFinish(packetPuts, p, "srv", missed);
    free(p);
}

static void testCa(void)
{
    ebpfMonPacketPut *p = makePut("X.VAL");

    testDiag("A plain CA write");
    finish(p, 0);
    testOk(count == 1 && strcmp(last.pv, "X") == 0 && strcmp(last.channel, "X.VAL") == 0 &&
               strcmp(last.ioc, "srv") == 0 && strcmp(last.val, "7") == 0 && last.isNumber && last.number == 7 &&
               last.hash == 42 && !last.hasOld && last.oldCount == -1 && last.seen == EBPFMON_SEEN_WIRE &&
               last.result == ebpfMonPutSent && strcmp(last.who, "anna@office1") == 0 &&
               strcmp(last.origin, "CA 10.0.0.1:2000") == 0,
           "%s to %s by %s (%s)", last.val, last.pv, last.who, last.origin);
    testOk(lastKey.seq == 100 && lastKey.seqKind == EBPFMON_SEQ_MESSAGE && lastKey.at == 5 &&
               lastKey.peer.port == htons(2000),
           "the put has the id of its message");
    finish(makePut(""), 0);
    testOk(strcmp(last.pv, "sid 12") == 0 && !last.channel[0], "a channel that was created before we watched: %s",
           last.pv);
    p = makePut("X");
    p->old = (ebpfMonOldValue){ .text = "3", .number = 3, .isNumber = 1, .known = 1, .count = 1 };
    finish(p, 0);
    testOk(last.hasOld && strcmp(last.old, "3") == 0 && last.oldIsNumber && last.oldNumber == 3 && last.oldCount == 1,
           "the put before it");
    p = makePut("X");
    p->old = (ebpfMonOldValue){ .text = "[2] 3 4", .isText = 1, .known = 1, .count = 2 };
    p->baseType = 0; /* DBR_STRING */
    p->count = 2;
    p->have = 80;
    memset(p->data, 0, p->have);
    p->data[0] = '1';
    p->data[40] = '2';
    finish(p, 0);
    testOk(strcmp(last.val, "[2] 1 2") == 0 && last.isText && last.oldIsText, "texts that look like numbers: %s",
           last.val);
    for (int i = 0; i < 2; i++) {
        p = makePut("X");
        p->old = (ebpfMonOldValue){ .text = "3", .number = 3, .isNumber = 1, .known = 1, .count = 1 };
        p->baseType = 0;
        p->count = 1;
        p->have = 40;
        memset(p->data, 0, p->have);
        strcpy((char *)p->data, i ? "0x10" : "7.50");
        finish(p, 0);
        testOk(i ? last.isText && !last.isNumber : !last.isText && last.isNumber && last.number == 7.5,
               "a text for a number: %s", last.val);
    }
    p = makePut("X");
    p->peer = fakePeer(FAKE_LOCAL_PORT, 5064);
    finish(p, 0);
    testOk(last.peerPid == (uint32_t)getpid() && strcmp(last.realUser, "phil") == 0, "a client on this host: %s",
           last.who);
}

static void testAcknowledgements(void)
{
    for (int type = 35; type <= 36; type++) { /* DBR_PUT_ACKT, DBR_PUT_ACKS */
        ebpfMonPacketPut *p = makePut("X.DESC");

        p->dbrType = (int16_t)type;
        p->baseType = 3;
        p->have = 2;
        p->data[1] = 1;
        finish(p, 0);
        testOk(strcmp(last.pv, type == 35 ? "X.ACKT" : "X.ACKS") == 0 && !last.channel[0] && !last.isNumber &&
               strcmp(last.val, type == 35 ? "acknowledge transient YES" : "acknowledge MINOR") == 0 &&
               last.count == 1 && last.oldCount == -1 && last.hash == 42, "%s: %s", last.pv, last.val);
    }
}

static void testLink(void)
{
    ebpfMonLinkWrite w = {
        .pid = (uint32_t)getpid(), .at = 1, .chain = {.iocId = 3}, .channel = "X", .link = "A:AO.OUT", .ioc = "iocA"};
    ebpfMonPacketPut *p = makePut("X");

    testDiag("A CA link of an IOC on this host");
    ebpfMonLinkWritesAdd(linkWrites, &w);
    p->peer = fakePeer(FAKE_LOCAL_PORT, 5064);
    finish(p, 0);
    testOk(last.through == ebpfMonByCaLink && strcmp(last.link, "A:AO.OUT") == 0 && last.linkChain.iocId == 3, "%s",
           last.origin);
    finish(makePut("X"), 0);
    testOk(last.through == ebpfMonByCa && !last.link[0], "not a CA link of another host");
}

static void testPva(void)
{
    static const char *const text[] = { "3.25", "2 (Fast)" };

    testDiag("pvAccess");
    for (int i = 0; i < 2; i++) {
        ebpfMonPacketPut *p = makePut("X");

        p->pva = p->isNumber = 1;
        p->number = 3.25;
        strcpy((char *)p->data, text[i]);
        finish(p, 0);
        testOk(last.through == ebpfMonByPva && strcmp(last.val, text[i]) == 0 && last.isNumber == !i, "%s is %s number",
               text[i], i ? "no" : "a");
    }
}

static ebpfMonPutResult resultOf(int inside, int replyAsked, int pva, int closed, int missed)
{
    ebpfMonPacketPut *p = makePut("X");

    p->inside = (uint8_t)inside;
    p->replyAsked = (uint8_t)replyAsked;
    p->pva = (uint8_t)pva;
    p->closed = (uint8_t)closed;
    finish(p, missed);
    return last.result;
}

static ebpfMonPutResult replyOf(int ok, int denied, uint32_t status, const char *message)
{
    ebpfMonPacketPut *p = makePut("X");

    p->replied = 1;
    p->ok = (uint8_t)ok;
    p->denied = (uint8_t)denied;
    p->status = status;
    strcpy(p->message, message);
    finish(p, 0);
    return last.result;
}

/* The server answered that the put is made. */
static ebpfMonPutResult resultOfAnswered(int inside, int pva, int missed)
{
    ebpfMonPacketPut *p = makePut("X");

    p->replied = p->ok = 1;
    p->inside = (uint8_t)inside;
    p->pva = (uint8_t)pva;
    finish(p, missed);
    return last.result;
}

static void testResults(void)
{
    testDiag("Results");
    testOk1(replyOf(1, 0, 1, "") == ebpfMonPutOk && !last.message[0]);
    testOk(replyOf(0, 1, 376, "") == ebpfMonPutDenied && strcmp(last.message, "Write access denied") == 0, "%s",
           last.message);
    testOk1(replyOf(0, 0, 0, "no such field") == ebpfMonPutFailed && strcmp(last.message, "no such field") == 0);
    testOk(resultOf(0, 0, 0, 0, 0) == ebpfMonPutSent, "a put without a request for a reply");
    testOk(resultOf(0, 1, 0, 0, 0) == ebpfMonPutUnknown, "a put whose reply did not come");
    testOk(resultOf(1, 0, 0, 0, 0) == ebpfMonPutLost, "a put that the watched IOC did not make");
    testOk(resultOf(1, 0, 0, 0, 1) == ebpfMonPutUnknown, "… as far as the monitor knows");
    testOk(resultOf(1, 1, 0, 0, 0) == ebpfMonPutUnknown, "a write-notify may wait for its record");
    testOk(resultOf(1, 1, 0, 1, 0) == ebpfMonPutLost, "… but not when its circuit is closed");
    testOk(resultOf(1, 1, 1, 0, 0) == ebpfMonPutLost, "nor with pvAccess");
    testOk(resultOfAnswered(1, 1, 0) == ebpfMonPutUnwritten, "a put over pvAccess that was answered, and not made");
    testOk(resultOfAnswered(1, 1, 1) == ebpfMonPutOk, "… and perhaps was made");
    testOk(resultOfAnswered(0, 1, 0) == ebpfMonPutOk, "… by another server");
    testOk(resultOfAnswered(1, 0, 0) == ebpfMonPutOk, "over Channel Access that cannot be: the audit tells");
}

static uint64_t fields = 1; /* of the next event */

static ebpfMonWireEvent makeEvent(ebpfMonWireKind kind, const char *name, const char *text, uint64_t id)
{
    return (ebpfMonWireEvent){
        .kind = kind,
        .protocol = ebpfMonWirePva,
        .peer = fakePeer(2000, 5075),
        .circuit = 1,
        .name = name,
        .text = text,
        .data = (const uint8_t *)text,
        .count = 1,
        .isNumber = 1,
        .number = strtod(text, NULL),
        .fields = fields,
        .id = id,
    };
}

static void testPartialReads(void)
{
    ebpfMonLastValues *values = ebpfMonLastValuesNew();
    ebpfMonWireEvent ev = makeEvent(ebpfMonWireValue, "X", "5", 0);
    ebpfMonOldValue old;

    ebpfMonLastValuesSet(values, &ev);
    ev = makeEvent(ebpfMonWireValue, "X", "ao", 0);
    ev.isPartial = 1;
    ebpfMonLastValuesSet(values, &ev);
    ev = makeEvent(ebpfMonWirePut, "X", "6", 1);
    ebpfMonLastValuesExchange(values, &ev, &old);
    testOk(old.known && strcmp(old.text, "5") == 0, "a part of the value that was read is not the old value");
    ev = makeEvent(ebpfMonWireValue, "X", "7", 0);
    ev.isPartial = ev.isUpdate = 1;
    ebpfMonLastValuesSet(values, &ev);
    ev = makeEvent(ebpfMonWirePut, "X", "8", 2);
    ebpfMonLastValuesExchange(values, &ev, &old);
    testOk(!old.known, "an update of a part says that the value seen before is old");
    ebpfMonLastValuesFree(values);
}

/* The old value that a put to these fields finds. */
static const char *findOld(ebpfMonLastValues *values, uint64_t of, const char *text)
{
    static ebpfMonOldValue old;
    ebpfMonWireEvent ev;

    fields = of;
    ev = makeEvent(ebpfMonWirePut, "X", text, 1);
    fields = 1;
    ebpfMonLastValuesExchange(values, &ev, &old);
    return old.known ? old.text : "?";
}

static void testFields(void)
{
    ebpfMonLastValues *values = ebpfMonLastValuesNew();

    testOk1(strcmp(findOld(values, 1, "1"), "?") == 0 && strcmp(findOld(values, 1, "2"), "1") == 0);
    testOk(strcmp(findOld(values, 6, "3"), "?") == 0, "a put to another field has no old value");
    testOk(strcmp(findOld(values, 6, "4"), "3") == 0, "the next one to the same field has");
    testOk(strcmp(findOld(values, 1, "5"), "?") == 0, "the one before it may have changed this field, too");
    testOk(strcmp(findOld(values, 0, "6"), "?") == 0 && strcmp(findOld(values, 0, "7"), "?") == 0,
           "fields that are not known are not the same");
    ebpfMonLastValuesFree(values);
}

static void testLastValues(void)
{
    ebpfMonLastValues *values = ebpfMonLastValuesNew();
    ebpfMonWireEvent ev;
    ebpfMonOldValue old, refused;
    char name[20];
    unsigned known = 0;

    testDiag("Values before a put");
    ev = makeEvent(ebpfMonWirePut, "X", "1", 1);
    ebpfMonLastValuesExchange(values, &ev, &old);
    testOk(!old.known, "nobody has read the value");
    ev = makeEvent(ebpfMonWirePut, "X.VAL", "2", 2);
    ebpfMonLastValuesExchange(values, &ev, &old);
    testOk(old.known && strcmp(old.text, "1") == 0 && old.isNumber && old.number == 1,
           "a value that was put before, by the other name of the PV");
    ev = makeEvent(ebpfMonWireValue, "X", "5", 0);
    ebpfMonLastValuesSet(values, &ev);
    ev = makeEvent(ebpfMonWirePut, "X", "6", 3);
    ebpfMonLastValuesExchange(values, &ev, &refused);
    testOk(refused.known && strcmp(refused.text, "5") == 0, "a value that was read before");
    ev = makeEvent(ebpfMonWireReply, "X", "", 4);
    ebpfMonLastValuesRestore(values, &ev, &refused);
    ev = makeEvent(ebpfMonWireReply, "X", "", 3);
    ebpfMonLastValuesRestore(values, &ev, &refused);
    ev = makeEvent(ebpfMonWirePut, "X", "7", 5);
    ebpfMonLastValuesExchange(values, &ev, &old);
    testOk(old.known && strcmp(old.text, "5") == 0, "the put in between was refused");
    ev = makeEvent(ebpfMonWireReply, "X", "", 4);
    ebpfMonLastValuesRestore(values, &ev, &refused);
    ev = makeEvent(ebpfMonWirePut, "X", "8", 6);
    ebpfMonLastValuesExchange(values, &ev, &old);
    testOk(strcmp(old.text, "7") == 0, "an earlier one was refused");
    ev.peer.sport = htons(9999);
    ebpfMonLastValuesExchange(values, &ev, &old);
    testOk(!old.known, "another server has other values");
    ebpfMonLastValuesForgetServer(values, &ev.peer);
    ebpfMonLastValuesExchange(values, &ev, &old);
    testOk(!old.known, "the server has ended: its values are forgotten");
    ebpfMonLastValuesForgetServer(values, &ev.peer);
    ev.peer.sport = makeEvent(ebpfMonWirePut, "X", "8", 6).peer.sport;
    ebpfMonLastValuesExchange(values, &ev, &old);
    testOk(old.known, "the values of the first server stay");
    ev = makeEvent(ebpfMonWirePut, "", "8", 7);
    ebpfMonLastValuesExchange(values, &ev, &old);
    ebpfMonLastValuesExchange(values, &ev, &old);
    testOk(!old.known, "a channel without a name");
    for (int round = 0; round < 2; round++)
        for (unsigned i = 0; i < 100000; i++) {
            snprintf(name, sizeof(name), "N%u", i);
            ev = makeEvent(ebpfMonWirePut, name, name + 1, i + 10);
            ebpfMonLastValuesExchange(values, &ev, &old);
            known += old.known;
            if (old.known && strcmp(old.text, name + 1) != 0)
                testFail("%s had %s", name, old.text);
        }
    testOk(known < 8192, "of 100000 PVs the values of %u are remembered", known);
    ebpfMonLastValuesFree(values);
}

/* A client can write these names for the same field: no rule may miss one of them. */
static void testNames(void)
{
    static const struct {
        const char *channel, *pv;
    } names[] = {
        {"X", "X"}, {"X.VAL", "X"}, {"X.", "X"}, {"X.{\"dbnd\":{\"d\":0}}", "X"}, {"X.VAL{\"arr\":{}}", "X"},
        {"X.VAL[1:2]", "X"}, {"X.DESC$", "X.DESC"},
        {"X.$", "X"}, {"X.VALU", "X.VALU"}, {"X{T:1}M.RBV", "X{T:1}M.RBV"}, {"X{T:1}M.VAL", "X{T:1}M"},
        {"a.b.VAL", "a.b"}, {"a.b{c", "a.b"}, {".VAL", ".VAL"}, {".", "."}, {"", ""},
    };
    unsigned wrong = 0;

    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t n = ebpfMonPacketTextGetNameLength(names[i].channel);

        if (n == strlen(names[i].pv) && strncmp(names[i].channel, names[i].pv, n) == 0)
            continue;
        testDiag("%s: %.*s, not %s", names[i].channel, (int)n, names[i].channel, names[i].pv);
        wrong++;
    }
    testOk(wrong == 0, "names without modifiers");
}

MAIN(testPacketPuts)
{
    ebpfMonPutClients *clients = fakeClientsMake(NULL);

    testPlan(46);
    testNames();
    linkWrites = ebpfMonLinkWritesNew();
    packetPuts = ebpfMonPacketPutsNew(NULL, clients, linkWrites, onPut, NULL);
    testCa();
    testAcknowledgements();
    testLink();
    testPva();
    testResults();
    testPartialReads();
    testFields();
    testLastValues();
    ebpfMonPacketPutsFree(packetPuts);
    ebpfMonLinkWritesFree(linkWrites);
    fakeClientsFree(clients);
    return testDone();
}
