/* SPDX-License-Identifier: BSD-3-Clause */
/* The writer, the way and the cause of a put, and the text about them. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "put/putWriter.h"
#include "put/valueText.h"
#include "fakeClients.h"
#include "fakeIoc.h"

#define AT 1000000000000ull /* ns */

static ebpfMonPutClients *clients;
static ebpfMonLinkWrites *linkWrites;
static ebpfMonThreadPuts *threadPuts;
static ebpfMonPutWriters *writers;
static ebpfMonPut put;

/* A put to A:AO by a thread of the IOC that is not its first thread. */
static struct ebpfMonPutEvent makeEvent(const char *comm)
{
    struct ebpfMonPutEvent ev = {
        .head = { .tgid = (uint32_t)getpid(), .tid = (uint32_t)getpid() + 1, .iocId = fake.t->iocId, .ktime = AT },
        .precord = fakeAddress(FAKE_AO), .putKind = EBPFMON_PUT_VALUE,
    };

    snprintf(ev.who.comm, sizeof(ev.who.comm), "%s", comm);
    return ev;
}

static void findWriter(const struct ebpfMonPutEvent *ev, const struct ebpfMonCauseEvent *cause)
{
    ebpfMonPutEventClients found;

    memset(&put, 0, sizeof(put));
    ebpfMonPutWritersLookUp(writers, &ev->head, &ev->who, cause, &found);
    ebpfMonTargetsLock(fake.targets);
    ebpfMonPutWritersFind(writers, fake.t, ev, cause, &found, &put);
    ebpfMonTargetsUnlock(fake.targets);
    ebpfMonWriterTextComplete(&put);
}

static int isWrittenBy(const char *who, const char *origin)
{
    if (strcmp(put.who, who) == 0 && strcmp(put.origin, origin) == 0)
        return 1;
    testDiag("by \"%s\" (%s)", put.who, put.origin);
    return 0;
}

static void testClients(void)
{
    struct ebpfMonPutEvent ev = makeEvent("CAS-client");
    char want[100], command[64];
    ebpfMonPutClient c;

    testDiag("the writer is a client");
    ev.who = fakeCaClient(2000, "anna", "office1");
    findWriter(&ev, NULL);
    testOk(isWrittenBy("anna@office1", "CA 10.0.0.1:2000") && put.through == ebpfMonByCa && !put.peerPid &&
           strcmp(put.server, "10.0.0.2:5064") == 0, "a client of another host is known by what it claims");
    ev.who = fakeCaClient(2001, "", "");
    findWriter(&ev, NULL);
    testOk(isWrittenBy("?@10.0.0.1", "CA 10.0.0.1:2001"), "a client that claims nothing is known by its address");
    ev.who = fakeCaClient(FAKE_LOCAL_PORT, "anna", "office1");
    findWriter(&ev, NULL);
    snprintf(want, sizeof(want), "anna@office1 testPutWriter[%d]", (int)getpid());
    testOk(strncmp(put.who, want, strlen(want)) == 0 && strcmp(put.realUser, "phil") == 0 && put.peerUid == 1000 &&
           strcmp(put.origin, "CA 10.0.0.1:1000 uid phil") == 0, "of this host: %s (%s)", put.who, put.origin);
    strcpy(command, put.command);
    ev.who = fakeCaClient(FAKE_LOCAL_PORT, "", "office1");
    findWriter(&ev, NULL);
    testOk(strcmp(put.user, "phil") == 0 && strcmp(put.command, command) == 0,
           "a connection that claims another name keeps the true user and command");
    ebpfMonPutClientsFind(clients, &ev.who.peer, NULL, "", "", &c);
    testOk(strcmp(c.realUser, "phil") == 0 && strcmp(c.command, command) == 0 && strcmp(c.host, "10.0.0.1") == 0,
           "a client of this host is found by its connection");
    ev.who = fakeCaClient(2000, "anna", "office1");
    ev.root = fakeAddress(FAKE_CALC);
    findWriter(&ev, NULL);
    testOk(isWrittenBy("anna@office1", "chain of A:CALC, put by anna@office1"),
           "a put in another record's chain is that of a routine, and the client has caused it");
}

/* A PVA client is recognised by the port of its server. */
static void testPva(void)
{
    struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct ebpfMonPutEvent ev = makeEvent("PVXTCP");
    socklen_t size = sizeof(in);
    int server = socket(AF_INET, SOCK_STREAM, 0);

    testDiag("the writer is a thread that reads from sockets");
    bind(server, (struct sockaddr *)&in, sizeof(in));
    getsockname(server, (struct sockaddr *)&in, &size);
    ev.who.peer = fakePeer(2000, ntohs(in.sin_port));
    findWriter(&ev, NULL);
    testOk(isWrittenBy("thread PVXTCP", "in the IOC") && put.through == ebpfMonByThread,
           "where nobody listens, the thread reads from a device");
    listen(server, 1);
    findWriter(&ev, NULL);
    testOk(put.through == ebpfMonByThread, "within a second this is not looked up again");
    ev.head.ktime += 1100000000ull;
    findWriter(&ev, NULL);
    testOk(put.through == ebpfMonByPva && strncmp(put.origin, "PVA 10.0.0.1:2000", 17) == 0,
           "where a server listens, the writer is a client");
    close(server);
}

static void testLinks(void)
{
    struct ebpfMonPutEvent ev = makeEvent("scan-0.1");
    ebpfMonLinkWrite w = { .pid = (uint32_t)getpid(), .at = AT, .channel = "A:AO", .link = "B:X.OUT", .ioc = "iocB",
                           .root = "B:ROOT", .cause = "scan 1 second" };

    testDiag("the writer is a link");
    ev.addr = fakeLinkAddr();
    ev.root = fakeAddress(FAKE_SEQ);
    findWriter(&ev, NULL);
    testOk1(isWrittenBy("thread scan-0.1", "link A:SEQ.OUT, chain of A:SEQ, scan 0.1 second"));
    ev.who = fakeCaClient(2000, "anna", "office1");
    findWriter(&ev, NULL);
    testOk1(isWrittenBy("anna@office1", "link A:SEQ.OUT, chain of A:SEQ, put by anna@office1"));

    ebpfMonLinkWritesAdd(linkWrites, &w);
    ev = makeEvent("CAS-client");
    ev.who = fakeCaClient(FAKE_LOCAL_PORT, "phil", "ioc");
    strcpy(ev.channel, "A:AO");
    findWriter(&ev, NULL);
    testOk(put.through == ebpfMonByCaLink &&
               strstr(put.origin, "CA link B:X.OUT of iocB, chain of B:ROOT, scan 1 second"),
           "a CA link of another IOC: %s", put.origin);
    ev = makeEvent("dbCaLink");
    strcpy(ev.channel, "A:AO");
    findWriter(&ev, NULL);
    testOk1(isWrittenBy("thread dbCaLink", "CA link B:X.OUT of iocB, chain of B:ROOT, scan 1 second"));
}

static void testThreads(void)
{
    struct ebpfMonPutEvent ev = makeEvent("softIoc");

    testDiag("the writer is a thread of the IOC");
    ev.head.tid = ev.head.tgid;
    findWriter(&ev, NULL);
    testOk1(isWrittenBy("shell", "in the IOC") && put.through == ebpfMonByShell);
    fake.t->running = 0;
    findWriter(&ev, NULL);
    testOk1(isWrittenBy("start-up", "in the IOC") && put.through == ebpfMonByInit);
    fake.t->running = 1;
    strcpy(ev.who.comm, "python3");
    findWriter(&ev, NULL);
    testOk(isWrittenBy("thread python3", "in the IOC"), "a script interpreter has no IOC shell");

    fake.t->indexed = 1;
    put.through = ebpfMonByInit;
    ebpfMonPutWritersFindLateLink(fake.t, fakeLinkAddr(), &put);
    testOk(put.through == ebpfMonByLink && strcmp(put.link, "A:SEQ.OUT") == 0 && strcmp(put.cause, "start-up") == 0,
           "the link of a start-up put is found when the links are read");
    memset(&put, 0, sizeof(put));
    put.through = ebpfMonByThread;
    ebpfMonPutWritersFindLateLink(fake.t, fakeLinkAddr() + 8, &put);
    testOk(put.through == ebpfMonByThread && !put.link[0], "an address that belongs to no link changes nothing");
}

static void testCauses(void)
{
    struct ebpfMonPutEvent ev = makeEvent("cbLow"), before;
    struct ebpfMonCauseEvent cause = { .root = fakeAddress(FAKE_CALC) };

    testDiag("what caused the put");
    ev.addr = fakeLinkAddr();
    ev.root = fakeAddress(FAKE_SEQ);
    findWriter(&ev, NULL);
    testOk1(isWrittenBy("thread cbLow", "link A:SEQ.OUT, chain of A:SEQ, callback in cbLow"));
    fake.rec[FAKE_SEQ].scan = 2;
    findWriter(&ev, NULL);
    testOk1(isWrittenBy("thread cbLow", "link A:SEQ.OUT, chain of A:SEQ, I/O Intr"));
    fake.rec[FAKE_SEQ].scan = 0;

    ev.source = (struct ebpfMonSourceChain){
        .begin = AT - 100, .root = fakeAddress(FAKE_CALC), .tid = 9, .comm = "scan-1"};
    findWriter(&ev, NULL);
    testOk1(isWrittenBy("thread cbLow",
                        "link A:SEQ.OUT, chain of A:SEQ, callback in cbLow, chain of A:CALC, scan 1 second"));
    before = makeEvent("CAS-client");
    before.head.tid = 9;
    before.precord = fakeAddress(FAKE_CALC);
    before.head.ktime = AT - 50;
    ebpfMonThreadPutsAdd(threadPuts, &before, "put by anna@office1");
    findWriter(&ev, NULL);
    testOk1(isWrittenBy("thread cbLow",
                 "link A:SEQ.OUT, chain of A:SEQ, callback in cbLow, chain of A:CALC, put by anna@office1"));

    cause.who = fakeCaClient(2000, "anna", "office1");
    findWriter(&ev, &cause);
    testOk(isWrittenBy("anna@office1", "link A:SEQ.OUT, chain of A:CALC, put by anna@office1"),
           "the cause of a completion is who began the record");
    memset(&cause.who, 0, sizeof(cause.who));
    strcpy(cause.who.comm, "scan-2");
    findWriter(&ev, &cause);
    testOk1(isWrittenBy("thread cbLow", "link A:SEQ.OUT, chain of A:CALC, scan 2 second"));
    ev = makeEvent("DRIVER");
    ev.root = ev.precord;
    findWriter(&ev, &cause);
    testOk(isWrittenBy("thread DRIVER", "in the IOC"),
           "a thread with a lock set of its own is not caused by what the record is busy with");
}

static void testCpLinks(void)
{
    struct ebpfMonPutEvent ev, begun;

    testDiag("CP links");
    ev = makeEvent("scanOnce");
    ev.addr = fakeLinkAddr();
    ev.root = fakeAddress(FAKE_CALC);
    findWriter(&ev, NULL);
    testOk(strstr(put.origin, "queued once") != NULL, "%s", put.origin);
    fake.rec[FAKE_CALC].inp = (struct layoutPvLink){ .type = EBPFMON_LINK_CA, .pvlMask = EBPFMON_PVL_CP,
                                                     .pvname = (uint64_t)(uintptr_t)fake.rec[FAKE_AO].name };
    findWriter(&ev, NULL);
    testOk(strstr(put.origin, "CP link from A:AO") != NULL, "%s", put.origin);

    ev = makeEvent("dbCaLink");
    ev.addr = fakeLinkAddr();
    ev.root = fakeAddress(FAKE_CALC);
    ev.begin = AT - 10;
    findWriter(&ev, NULL);
    testOk(strstr(put.origin, "CP link from A:AO") != NULL, "Base 7.0.10: %s", put.origin);
    begun = makeEvent("dbCaLink");
    begun.precord = begun.root = ev.root;
    begun.head.ktime = AT - 5;
    ebpfMonThreadPutsAdd(threadPuts, &begun, "");
    findWriter(&ev, NULL);
    testOk(strstr(put.origin, "thread dbCaLink") != NULL, "a CA link put to this record: %s", put.origin);
    ev.begin = AT - 3;
    findWriter(&ev, NULL);
    testOk(strstr(put.origin, "CP link from A:AO") != NULL, "… and that was another chain: %s", put.origin);
}

/* A put finds its record busy, so that it is processed once more. */
static void testBusy(void)
{
    struct ebpfMonPutEvent ev = makeEvent("CAS-client"), once = makeEvent("scanOnce");
    struct ebpfMonRecState state[FAKE_RECORDS] = { [FAKE_CALC] = { .pending = 1 } };

    testDiag("a put to a busy record");
    ev.who = fakeCaClient(2000, "anna", "office1");
    ev.precord = ev.root = fakeAddress(FAKE_CALC);
    once.addr = fakeLinkAddr();
    once.root = fakeAddress(FAKE_CALC);
    once.begin = AT;
    fake.rec[FAKE_CALC].inp.type = 0;
    findWriter(&ev, NULL);
    fake.rec[FAKE_CALC].rpro = 1;
    findWriter(&ev, NULL);
    fake.t->recState = state;
    fake.rec[FAKE_CALC].rpro = 0;
    findWriter(&ev, NULL);
    findWriter(&once, NULL);
    testOk(isWrittenBy("thread scanOnce", "link A:SEQ.OUT, chain of A:CALC, queued once"), "it was not busy");
    fake.rec[FAKE_CALC].rpro = 1;
    findWriter(&ev, NULL);
    for (int i = 0; i < 2; i++) {
        findWriter(&once, NULL);
        testOk(isWrittenBy("thread scanOnce", "link A:SEQ.OUT, chain of A:CALC, queued once, perhaps as the put by "
                           "anna@office1 found it busy"), "it was");
    }
    once.begin++;
    findWriter(&once, NULL);
    testOk(isWrittenBy("thread scanOnce", "link A:SEQ.OUT, chain of A:CALC, queued once"), "the next is not for it");
    fake.t->recState = NULL;
}

static void testLinkWrite(void)
{
    struct ebpfMonCauseEvent ev = {
        .head = { .tgid = (uint32_t)getpid(), .tid = 9, .iocId = fake.t->iocId, .ktime = AT }, .begin = AT - 10,
        .root = fakeAddress(FAKE_AO), .link = fakeAddress(FAKE_SEQ) + offsetof(fakeRecord, out), .name = "B:Y",
        .who = { .comm = "scan-1" },
    };
    ebpfMonPutEventClients found;
    ebpfMonLinkWrite w;

    testDiag("a record writes through a CA link");
    ebpfMonPutWritersLookUp(writers, &ev.head, &ev.who, NULL, &found);
    testOk(ebpfMonPutWritersFindLinkWrite(writers, fake.t, &ev, &found, &w) && w.pid == (uint32_t)getpid() &&
           w.at == AT && w.chain.iocId == fake.t->iocId && strcmp(w.channel, "B:Y") == 0 &&
           strcmp(w.link, "A:SEQ.OUT") == 0 &&
           strcmp(w.root, "A:AO") == 0 && strcmp(w.cause, "scan 1 second") == 0, "%s, %s", w.link, w.cause);
    ev.who = fakeCaClient(2000, "anna", "office1");
    ebpfMonPutWritersLookUp(writers, &ev.head, &ev.who, NULL, &found);
    testOk(ebpfMonPutWritersFindLinkWrite(writers, fake.t, &ev, &found, &w) &&
               strcmp(w.cause, "put by anna@office1") == 0,
           "a link write of a client's chain has the client as cause");
    ev.link++;
    testOk(!ebpfMonPutWritersFindLinkWrite(writers, fake.t, &ev, &found, &w),
           "an address where no link begins gives no link write");
    ev.link = fakeAddress(FAKE_SEQ) + offsetof(fakeRecord, out);
    ev.sourceBegin = AT - 99;
    ev.sourceTid = 8;
    testOk(ebpfMonPutWritersFindLinkWrite(writers, fake.t, &ev, &found, &w) && w.chain.begin == AT - 99 &&
               w.chain.tid == 8 && w.step.begin == AT - 10 && w.step.tid == 9,
           "a step of an asynchronous record belongs to the chain that began it");
}

/* The records with the text OUTN are swait now, but for A:SEL. */
static const ebpfMonField *makeNames(void)
{
    ebpfMonCatalogue *cat = fake.t->cat;
    ebpfMonField *f = (ebpfMonField *)fakeField(FAKE_CALC, "DESC");

    strcpy(cat->rtype[f->rtype].name, "swait");
    strcpy(f->name, "OUTN");
    cat->names = calloc(FAKE_RECORDS, sizeof(*cat->names));
    cat->nameCount = FAKE_RECORDS;
    for (uint32_t i = 0; i < FAKE_RECORDS; i++) {
        cat->names[i].name = cat->rec[i].name;
        cat->names[i].rec = i;
    }
    testOk1(ebpfMonCatalogueIndexNames(cat) == 0);
    return f;
}

static void addName(unsigned rec, const ebpfMonField *f, const char *text, const ebpfMonField *named)
{
    snprintf(fake.rec[rec].desc, sizeof(fake.rec[rec].desc), "%s", text);
    ebpfMonLinkTableAddName(fake.t->cat->links, fakeAddress(FAKE_AO) + named->offset,
                            (ebpfMonLinkOwner){ .rec = rec, .field = (uint32_t)(f - fake.field) });
}

/* recDynLink.c of the modules calc and sscan */
static void testNames(void)
{
    const ebpfMonField *f = makeNames(), *val = fakeField(FAKE_AO, "VAL");
    ebpfMonLinkPut change = { .precord = fakeAddress(FAKE_CALC), .pfldDes = f->addr };
    struct ebpfMonPutEvent ev = makeEvent("recDynOut");
    static struct layoutDbChannel channel;

    testDiag("the writer is the thread that writes for all swait records");
    ev.pfldDes = val->addr;
    ev.root = ev.precord;
    findWriter(&ev, NULL);
    testOk(isWrittenBy("thread recDynOut", "in the IOC"), "no record names the PV");
    addName(FAKE_CALC, f, "A:AO", val);
    findWriter(&ev, NULL);
    testOk(isWrittenBy("thread recDynOut", "CA link A:CALC.OUTN of iocA") && put.through == ebpfMonByCaLink,
           "one record names it");
    strcpy(ev.who.comm, "DRIVER");
    findWriter(&ev, NULL);
    testOk(isWrittenBy("thread DRIVER", "in the IOC"), "another thread writes");
    strcpy(ev.who.comm, "recDynOut");
    ev.root = fakeAddress(FAKE_SEQ);
    findWriter(&ev, NULL);
    testOk(put.through == ebpfMonByThread && !put.link[0], "a routine of the chain that such a put began writes");
    ev.root = 0;
    findWriter(&ev, NULL);
    testOk(put.through == ebpfMonByThread && !put.link[0], "below level chains: a put without a channel");
    ev.addr = (uint64_t)(uintptr_t)&channel.addr;
    channel.name = (uint64_t)(uintptr_t)"A:AO";
    findWriter(&ev, NULL);
    testOk(isWrittenBy("thread recDynOut", "CA link A:CALC.OUTN of iocA"), "one whose channel has the record's text");
    channel.name = (uint64_t)(uintptr_t)"A:AO.VAL";
    findWriter(&ev, NULL);
    testOk(put.through == ebpfMonByThread && !put.link[0], "another channel");
    ev.root = ev.precord;
    addName(FAKE_SEQ, f, "A:AO.VAL$", val);
    findWriter(&ev, NULL);
    testOk(isWrittenBy("thread recDynOut", "one of 2 links: A:CALC.OUTN, A:SEQ.OUTN") && put.through == ebpfMonByThread,
           "two records name it");
    strcpy(fake.rec[FAKE_SEQ].desc, "A:AO.DRVH");
    findWriter(&ev, NULL);
    testOk(isWrittenBy("thread recDynOut", "CA link A:CALC.OUTN of iocA"), "one of them does not any more");
    ebpfMonPutWritersAddLink(writers, fake.t, &change, AT - 1000000000);
    findWriter(&ev, NULL);
    testOk(isWrittenBy("thread recDynOut", "in the IOC"), "a name that was put a moment ago may not be known yet");
    ev.head.ktime += 10000000000ull;
    findWriter(&ev, NULL);
    testOk(put.through == ebpfMonByCaLink, "… and is later");
}

MAIN(testPutWriter)
{
    testPlan(50);
    fakeMake();
    fake.t->eventThread.reads = NULL; /* what is needed is read at once */
    clients = fakeClientsMake(NULL);
    linkWrites = ebpfMonLinkWritesNew();
    threadPuts = ebpfMonThreadPutsNew();
    writers = ebpfMonPutWritersNew(fake.targets, clients, linkWrites, threadPuts);
    testClients();
    testPva();
    testLinks();
    testThreads();
    testCauses();
    testCpLinks();
    testBusy();
    testLinkWrite();
    testNames();
    ebpfMonPutWritersFree(writers);
    ebpfMonThreadPutsFree(threadPuts);
    ebpfMonLinkWritesFree(linkWrites);
    fakeClientsFree(clients);
    return testDone();
}
