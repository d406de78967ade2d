/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of puts, in the form that the kernel part sends, become finished puts. The name service is not called while
 * the lock of the targets is held. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsEvent.h>
#include <epicsTime.h>
#include <epicsUnitTest.h>
#include <testMain.h>

#include "common/clock.h"
#include "model/audits.h"
#include "put/iocPuts.h"
#include "fakeClients.h"
#include "fakeIoc.h"

#define AT 1000000000000ull /* ns */

static ebpfMonThreadPuts *threadPuts;
static ebpfMonLosses losses;
static ebpfMonAudits *audits;

/* The tested object, and the objects that it needs. */
typedef struct {
    ebpfMonPutJoin    *join;
    ebpfMonUserNames  *users;
    ebpfMonPutClients *clients;
    ebpfMonLinkWrites *linkWrites;
    ebpfMonIocPuts    *iocPuts;
} fixture;

static ebpfMonIocPuts *iocPuts; /* the objects that most tests share */

/* Puts that the sinks received. */
static unsigned count, linkWrites, linkChanges;
static ebpfMonPut last;
static ebpfMonFinishedPut lastFinished;
static ebpfMonMessageKey lastKey;
static ebpfMonLinkWrite lastWrite;
static uint64_t lastChange;

static void onFinished(void *arg, const ebpfMonFinishedPut *finished)
{
    count++;
    lastFinished = *finished;
    last = *finished->put;
    lastKey = *finished->key;
}

static void onLinkWritten(void *arg, const ebpfMonLinkWrite *write)
{
    linkWrites++;
    lastWrite = *write;
}

static void onLinkChanged(void *arg, uint32_t iocId, uint64_t precord)
{
    linkChanges += iocId == fake.t->iocId;
    lastChange = precord;
}

static uint64_t countLost(void *arg)
{
    return 0;
}

/* "wait": longest wait for the name of a user, s. */
static fixture fixtureMake(ebpfMonUserNameReader readUser, double wait)
{
    ebpfMonIocPutSinks sinks = { .finished = onFinished, .linkWritten = onLinkWritten, .linkChanged = onLinkChanged,
                                 .countLost = countLost };
    fixture f;

    f.join = ebpfMonPutJoinNew(NULL);
    f.users = ebpfMonUserNamesNew(readUser, wait);
    f.clients = ebpfMonPutClientsNew(f.users, fakeFindOwner, fakeFindCertificate);
    f.linkWrites = ebpfMonLinkWritesNew();
    f.iocPuts = ebpfMonIocPutsNew(fake.targets, f.clients, f.join, f.linkWrites, threadPuts, &losses, audits, &sinks);
    return f;
}

static void fixtureFree(fixture *f)
{
    ebpfMonIocPutsFree(f->iocPuts);
    ebpfMonLinkWritesFree(f->linkWrites);
    ebpfMonPutClientsFree(f->clients);
    ebpfMonUserNamesFree(f->users, 60);
    ebpfMonPutJoinFree(f->join);
}

/* An event, followed by its values. */
static union {
    struct ebpfMonPutEvent ev;
    uint8_t bytes[sizeof(struct ebpfMonPutEvent) + 2 * EBPFMON_VAL_MAX];
} put;
static uint64_t ids;

/* A put of "new" to A:AO, which has "old"; returns the event's size. */
static size_t makePut(unsigned rec, const char *field, double old, double new)
{
    const ebpfMonField *f = fakeField(rec, field);

    memset(&put, 0, sizeof(put));
    put.ev = (struct ebpfMonPutEvent){
        .head = {.kind = EBPFMON_EV_PUT, .tgid = (uint32_t)getpid(), .tid = 77, .iocId = fake.t->iocId, .ktime = AT},
        .id = ++ids,
        .precord = fakeAddress(rec),
        .pfldDes = f->addr,
        .pfield = fakeAddress(rec) + f->offset,
        .nRequest = 1,
        .nElements = 1,
        .oldCount = -1,
        .dbrType = 10 /* DBR_DOUBLE of dbAccess */,
        .fieldType = (int16_t)f->type,
        .fieldSize = (int16_t)f->size,
        .putKind = EBPFMON_PUT_VALUE,
        .oldLen = 8,
        .newLen = 8,
        .who = {.comm = "DRIVER"},
    };
    memcpy(put.bytes + sizeof(put.ev), &old, 8);
    memcpy(put.bytes + sizeof(put.ev) + 8, &new, 8);
    return sizeof(put.ev) + 16;
}

static void addResult(uint64_t id, long status, double after)
{
    struct ebpfMonResultEvent ev = {
        .head = { .kind = EBPFMON_EV_RESULT, .tgid = (uint32_t)getpid(), .tid = 77, .iocId = fake.t->iocId }, .id = id,
        .status = status, .afterLen = 8,
    };

    memcpy(ev.after, &after, 8);
    ebpfMonIocPutsAddResult(iocPuts, &ev, sizeof(ev));
}

static void testPuts(void)
{
    size_t size = makePut(FAKE_AO, "VAL", 1.5, 2.5);

    testDiag("A put and its result");
    ebpfMonTargetSetProbes(fake.t, EBPFMON_BIT(ebpfMonProgPutReturn));
    ebpfMonIocPutsAddPut(iocPuts, &put.ev, size);
    testOk(count == 0, "the put waits for its result");
    addResult(ids, 0, 2.5);
    testOk(count == 1 && strcmp(last.pv, "A:AO") == 0 && strcmp(last.val, "2.5") == 0 && strcmp(last.old, "1.5") == 0 &&
           last.result == ebpfMonPutOk && !last.after[0] && strcmp(last.ioc, "iocA") == 0 &&
           strcmp(last.who, "thread DRIVER") == 0, "%s: %s → %s by %s", last.pv, last.old, last.val, last.who);
    testOk(lastFinished.iocId == fake.t->iocId && lastFinished.tid == 77 && lastFinished.id == ids,
           "it has the number of its event");
    addResult(ids, 0, 2.5);
    testOk(count == 1, "a result without a put");

    size = makePut(FAKE_AO, "VAL", 2.5, 9);
    ebpfMonIocPutsAddPut(iocPuts, &put.ev, size);
    addResult(ids, 0, 5);
    testOk(count == 2 && strcmp(last.after, "5") == 0, "the record made another value of it: %s", last.after);
    size = makePut(FAKE_AO, "VAL", 2.5, 9);
    ebpfMonIocPutsAddPut(iocPuts, &put.ev, size);
    addResult(ids, 0x1f70001, 2.5);
    testOk(count == 3 && last.result == ebpfMonPutFailed && last.status == 0x1f70001 && !last.after[0],
           "dbPut refused it");

    size = makePut(FAKE_AO, "VAL", 1, 2);
    put.ev.head.ktime = ebpfMonClockMonotonic();
    ebpfMonTargetSetProbes(fake.t, 0);
    ebpfMonIocPutsAddPut(iocPuts, &put.ev, size);
    testOk(count == 3, "a put from before the end of the IOC, or before a lower level: its result is in the ring");
    addResult(ids, 0, 2);
    testOk(count == 4 && last.result == ebpfMonPutOk, "the put gets its result");
    size = makePut(FAKE_AO, "VAL", 1, 2);
    put.ev.head.ktime = ebpfMonClockMonotonic();
    ebpfMonIocPutsAddPut(iocPuts, &put.ev, size);
    testOk(count == 5 && last.result == ebpfMonPutUnknown, "results are not watched: finished at once");
    size = makePut(FAKE_AO, "VAL", 1, 2);
    put.ev.putKind = EBPFMON_PUT_DENIED;
    ebpfMonIocPutsAddPut(iocPuts, &put.ev, size);
    testOk(count == 6 && last.result == ebpfMonPutDenied, "a put that access security denies");
    fake.t->resultsUntil = 0; /* of what follows nobody sends a result */
    size = makePut(FAKE_AO, "VAL", 1, 2);
    put.ev.putKind = EBPFMON_PUT_DENIED;
    put.ev.who = fakeCaClient(2001, "x509/anna", "opi1");
    ebpfMonIocPutsAddPut(iocPuts, &put.ev, size);
    testOk(count == 7 && strcmp(last.user, "ca/x509/anna") == 0, "who claims a certificate is %s", last.user);
    testOk(!ebpfMonThreadPutsFindForChain(
               threadPuts,
               &(struct ebpfMonChain){.head = {.tid = 77, .iocId = fake.t->iocId, .ktime = AT + 1}, .begin = AT}, 1),
           "no chain of another root began with this put");
}

/* dbPut hands them to putAckt and putAcks (dbAccess.c). */
static void testAcknowledgements(void)
{
    static const struct { int network; int16_t type; uint16_t value; const char *pv, *val; } acks[] = {
        { 0, 12, 1, "A:AO.ACKT", "acknowledge transient YES" }, { 0, 13, 2, "A:AO.ACKS", "acknowledge MAJOR" },
        { 1, 35, 0, "A:AO.ACKT", "acknowledge transient NO" }, { 1, 36, 0x300, "A:AO.ACKS", "acknowledge INVALID" },
        { 0, 13, 9, "A:AO.ACKS", "acknowledge ?" },
    };

    testDiag("An acknowledgement of an alarm is no put to VAL");
    ebpfMonTargetSetProbes(fake.t, EBPFMON_BIT(ebpfMonProgPutReturn));
    for (unsigned i = 0; i < sizeof(acks) / sizeof(acks[0]); i++) {
        size_t size = makePut(FAKE_AO, "VAL", 1.5, 0);

        count = 0;
        put.ev.putKind = acks[i].network ? EBPFMON_PUT_DENIED : EBPFMON_PUT_VALUE;
        put.ev.network = (uint8_t)acks[i].network;
        put.ev.dbrType = acks[i].type;
        put.ev.newLen = sizeof(acks[i].value);
        strcpy(put.ev.channel, i % 2 ? "A:AO" : "A:AO.DESC");
        memcpy(put.bytes + sizeof(put.ev) + put.ev.oldLen, &acks[i].value, sizeof(acks[i].value));
        ebpfMonIocPutsAddPut(iocPuts, &put.ev, size);
        addResult(ids, 0, 1.5);
        testOk(count == 1 && strcmp(last.pv, acks[i].pv) == 0 && strcmp(last.val, acks[i].val) == 0 && !last.hasOld &&
               !last.old[0] && !last.after[0] && !last.isNumber && !last.channel[0],
               "%s (%s): %s", last.pv, last.channel, last.val);
    }
    ebpfMonTargetSetProbes(fake.t, 0);
    fake.t->resultsUntil = 0;
}

static void addPutOfThread(uint32_t tid)
{
    size_t size = makePut(FAKE_AO, "VAL", 1, 2);

    put.ev.head.tid = tid;
    ebpfMonIocPutsAddPut(iocPuts, &put.ev, size);
}

static void testMissing(void)
{
    ebpfMonAuditResults results;

    testDiag("Each thread numbers its puts");
    addPutOfThread(78);
    addPutOfThread(78);
    ebpfMonAuditsGet(audits, &results);
    testOk(!results.count[ebpfMonAuditPutNumber], "no number is missing");
    ids += 2;
    addPutOfThread(79);
    ebpfMonAuditsGet(audits, &results);
    testOk(!results.count[ebpfMonAuditPutNumber], "the first put of another thread says nothing of those before");
    addPutOfThread(78);
    ebpfMonAuditsGet(audits, &results);
    testOk(results.count[ebpfMonAuditPutNumber] == 3 && strcmp(results.last, "iocA") == 0,
           "three numbers are missing, and nothing was lost: a cross-check fails, %s", results.last);
}

static void testBadEvents(void)
{
    size_t size = makePut(FAKE_AO, "VAL", 1, 2);
    uint64_t before = ebpfMonLossesGet(&losses, ebpfMonLossGone);

    testDiag("Damaged events");
    count = 0;
    ebpfMonIocPutsAddPut(iocPuts, &put.ev, sizeof(put.ev) - 1);
    testOk(count == 0 && ebpfMonLossesGet(&losses, ebpfMonLossGone) == before, "an event that is too short");
    ebpfMonIocPutsAddPut(iocPuts, &put.ev, size - 1);
    testOk(count == 0 && ebpfMonLossesGet(&losses, ebpfMonLossGone) == before + 1, "its values are cut: lost");
    put.ev.newLen = EBPFMON_VAL_MAX + 1;
    ebpfMonIocPutsAddPut(iocPuts, &put.ev, sizeof(put));
    testOk(count == 0 && ebpfMonLossesGet(&losses, ebpfMonLossGone) == before + 2, "an event that is too long");
    size = makePut(FAKE_AO, "VAL", 1, 2);
    put.ev.head.iocId = 12345;
    ebpfMonIocPutsAddPut(iocPuts, &put.ev, size);
    testOk(count == 0 && ebpfMonLossesGet(&losses, ebpfMonLossGone) == before + 3,
           "an event of an IOC that is not known");
}

static void testCause(void)
{
    size_t size = makePut(FAKE_SEQ, "VAL", 1, 2);
    struct ebpfMonCauseEvent cause = {
        .head = { .tid = 77, .iocId = fake.t->iocId }, .root = fakeAddress(FAKE_CALC), .put = (uint32_t)ids + 1,
    };

    testDiag("Who began the asynchronous processing that a put completes");
    count = 0;
    cause.who = fakeCaClient(2000, "anna", "office1");
    ebpfMonIocPutsAddCause(iocPuts, &cause, sizeof(cause));
    put.ev.root = fakeAddress(FAKE_CALC);
    ebpfMonIocPutsAddPut(iocPuts, &put.ev, size);
    testOk(count == 1 && !last.user[0], "the cause of another put");
    size = makePut(FAKE_SEQ, "VAL", 1, 2);
    put.ev.root = fakeAddress(FAKE_CALC);
    put.ev.addr = fakeLinkAddr();
    ebpfMonIocPutsAddPut(iocPuts, &put.ev, size);
    testOk(count == 2 && strcmp(last.user, "anna") == 0 && strcmp(last.root, "A:CALC") == 0 && !lastKey.peer.addr,
           "%s (%s)", last.who, last.origin);
    put.ev.head.ktime++;
    ebpfMonIocPutsAddPut(iocPuts, &put.ev, size);
    testOk(count == 3 && !last.user[0], "a cause is used once");
}

static void testLinks(void)
{
    struct ebpfMonCauseEvent ev = {
        .head = { .tgid = (uint32_t)getpid(), .tid = 9, .iocId = fake.t->iocId, .ktime = AT }, .name = "A:SEL",
        .link = fakeAddress(FAKE_SEQ) + offsetof(fakeRecord, out), .who = { .comm = "scan-1" },
    };
    size_t size = makePut(FAKE_SEL, "VAL", 0, 1);

    testDiag("Links");
    count = 0;
    ebpfMonIocPutsAddLinkWrite(iocPuts, &ev, sizeof(ev) - 1);
    testOk1(linkWrites == 0);
    ebpfMonIocPutsAddLinkWrite(iocPuts, &ev, sizeof(ev));
    testOk(linkWrites == 1 && strcmp(lastWrite.link, "A:SEQ.OUT") == 0, "a record writes through a CA link");
    put.ev.who = fakeCaClient(FAKE_LOCAL_PORT, "phil", "ioc");
    strcpy(put.ev.channel, "A:SEL");
    ebpfMonIocPutsAddPut(iocPuts, &put.ev, size);
    testOk(count == 1 && strcmp(last.link, "A:SEQ.OUT") == 0 && strcmp(last.linkIoc, "iocA") == 0, "its put: %s",
           last.origin);

    testOk1(linkChanges == 0);
    size = makePut(FAKE_SEQ, "OUT", 0, 0);
    put.ev.putKind = EBPFMON_PUT_LINK;
    put.ev.newLen = put.ev.oldLen = 0;
    ebpfMonIocPutsAddPut(iocPuts, &put.ev, size);
    testOk(linkChanges == 1 && lastChange == fakeAddress(FAKE_SEQ), "a link field is written");
    ebpfMonIocPutsTick(iocPuts, AT + 5000000000ull, 0);
    testOk(count == 2 && strcmp(last.pv, "A:SEQ.OUT") == 0, "its result is looked up");
}

/* Replaces the output link to A:SEL by one with this text. */
static void putLinkText(const char *text)
{
    static const char *const before = "A:SEL";
    size_t len = strlen(text) + 1;

    makePut(FAKE_SEQ, "OUT", 0, 0);
    put.ev.putKind = EBPFMON_PUT_LINK;
    put.ev.dbrType = 0; /* DBR_STRING */
    put.ev.linkType = EBPFMON_LINK_DB;
    put.ev.linkMask = 4; /* pvlOptPP, link.h */
    put.ev.oldLen = (uint32_t)strlen(before) + 1;
    put.ev.newLen = (uint32_t)len;
    memcpy(put.bytes + sizeof(put.ev), before, put.ev.oldLen);
    memcpy(put.bytes + sizeof(put.ev) + put.ev.oldLen, text, len);
    ebpfMonIocPutsAddPut(iocPuts, &put.ev, sizeof(put.ev) + put.ev.oldLen + len);
}

static void testLinkTexts(void)
{
    static const struct {
        const char *text;
        int processes; /* A:AO */
    } links[] = {
        { "A:AO PP", 1 }, { "A:AO.HIGH NMS PP", 1 }, { "A:AO.PROC", 1 }, { "  A:AO.VAL\tPP MS ", 1 }, { "A:AO", 0 },
        { "A:AO.VAL NPP", 0 }, { "A:AO.PROC CA", 0 }, { "A:AO CPP", 0 }, { "A:AO.VAL PP CA", 0 }, { "A:AOX PP", 0 },
        { "3.5", 0 }, { "", 0 }, { "PP", 0 }, { "{\"const\":1}", 0 }, { ".PROC", 0 },
    };
    ebpfMonCatalogue *cat = fake.t->cat;
    uint8_t how[FAKE_RECORDS] = { 0 }, unseen[FAKE_RECORDS];
    unsigned wrong = 0;

    testDiag("The record that a link leads to, by its text");
    fake.t->how = how;
    fake.t->unseen = unseen;
    cat->names = calloc(FAKE_RECORDS, sizeof(*cat->names));
    for (cat->nameCount = 0; cat->nameCount < FAKE_RECORDS; cat->nameCount++) {
        cat->names[cat->nameCount].name = cat->rec[cat->nameCount].name;
        cat->names[cat->nameCount].rec = cat->nameCount;
    }
    ebpfMonCatalogueIndexNames(cat);
    for (unsigned i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
        memset(unseen, 0, sizeof(unseen));
        lastChange = 0;
        putLinkText(links[i].text);
        for (unsigned k = 0; k < FAKE_RECORDS; k++)
            if (unseen[k] != (k == FAKE_AO && links[i].processes ? EBPFMON_UNSEEN_REACHED : 0) ||
                lastChange != fakeAddress(FAKE_SEQ)) {
                testDiag("\"%s\": record %u: %u", links[i].text, k, unseen[k]);
                wrong++;
            }
    }
    testOk(!wrong, "each record is found, and noted, and no other one");
    fake.t->how = fake.t->unseen = NULL;
    ebpfMonIocPutsTick(iocPuts, AT + 5000000000ull, 0);
}

static int isFree; /* the lock of the targets, taken by the name service */

/* A name service that needs the lock of the targets. If the thread that waits for the name holds this lock, the
 * answer comes too late. */
static int readUserWithLock(uid_t uid, char *buf, size_t size)
{
    ebpfMonTargetsLock(fake.targets);
    isFree = 1;
    ebpfMonTargetsUnlock(fake.targets);
    return fakeReadUser(uid, buf, size);
}

static void testLock(void)
{
    fixture own = fixtureMake(readUserWithLock, 2);
    size_t size = makePut(FAKE_AO, "VAL", 1, 2);

    testDiag("The lock of the targets");
    put.ev.who = fakeCaClient(FAKE_LOCAL_PORT, "", "");
    ebpfMonIocPutsAddPut(own.iocPuts, &put.ev, size);
    testOk(isFree && strcmp(last.realUser, "phil") == 0, "is not held while a name service is asked: user %s",
           last.realUser);
    fixtureFree(&own);
}

static epicsEventId goOn;

static int readUserLate(uid_t uid, char *buf, size_t size)
{
    epicsEventMustWait(goOn);
    return fakeReadUser(uid, buf, size);
}

/* The name of the user comes after the first put. */
static void testLateName(void)
{
    fixture own = fixtureMake(readUserLate, 0.01);
    size_t size = makePut(FAKE_AO, "VAL", 1, 2);
    epicsUInt64 begin;

    testDiag("A name service that hangs");
    goOn = epicsEventMustCreate(epicsEventEmpty);
    put.ev.who = fakeCaClient(FAKE_LOCAL_PORT, "", "");
    count = 0;
    ebpfMonIocPutsAddPut(own.iocPuts, &put.ev, size);
    testOk(count == 1 && strcmp(last.realUser, "1000") == 0, "the put has the uid: %s", last.realUser);
    epicsEventMustTrigger(goOn);
    for (begin = epicsMonotonicGet(); strcmp(last.realUser, "phil") && epicsMonotonicGet() - begin < 60000000000ull;)
        ebpfMonIocPutsAddPut(own.iocPuts, &put.ev, size);
    testOk(strcmp(last.realUser, "phil") == 0 && strcmp(last.user, "phil") == 0, "a later one the name: %s",
           last.realUser);
    fixtureFree(&own);
}

MAIN(testIocPuts)
{
    fixture shared;

    testPlan(37);
    fakeMake();
    threadPuts = ebpfMonThreadPutsNew();
    audits = ebpfMonAuditsNew();
    shared = fixtureMake(fakeReadUser, 60);
    iocPuts = shared.iocPuts;
    testPuts();
    testAcknowledgements();
    testMissing();
    testBadEvents();
    testCause();
    testLinks();
    testLinkTexts();
    testLock();
    testLateName();
    fixtureFree(&shared);
    ebpfMonThreadPutsFree(threadPuts);
    ebpfMonAuditsFree(audits);
    return testDone();
}
