/* SPDX-License-Identifier: BSD-3-Clause */
/* Differences between releases of Base: the memory shows which layout a process has. A layout that belongs to no
 * release is refused, and so are links, lock sets and a CA server that are not as expected. */
#include <arpa/inet.h>
#include <stddef.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "fakeIoc.h"
#include "ioc/baseLink.h"
#include "ioc/caServer.h"
#include "ioc/recordLinks.h"
#include "watch/followed.h"
#include "watch/targetDatabase.h"

static ebpfMonMem *mem;

static uint64_t at(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

/* EPICS 3.14. */
static const ebpfMonBaseRelease *getOldest(void)
{
    unsigned i = 0;

    while (ebpfMonBaseReleaseGet(i + 1))
        i++;
    return ebpfMonBaseReleaseGet(i);
}

static void testDecision(void)
{
    static const struct {
        const char *what;
        ebpfMonBaseEvidence seen;
        const char *odd; /* the member that is named */
        int gap, oldLinks;
    } cases[] = {
        { "EPICS 7 and 3.16.1", { 12, 16, 14, 17, 80 }, NULL, 0, 0 },
        { "EPICS 3.16.0.1: old numbers, new links", { 10, 14, 12, 15, 80 }, NULL, 2, 0 },
        { "EPICS 3.15 and 3.14.12", { 10, 14, 12, 15, 56 }, NULL, 2, 1 },
        { "EPICS 3.14.11: links without text", { 10, 14, 12, 15, 48 }, "sizeof(struct link) is 48", 0, 0 },
        { "new numbers, old links", { 12, 16, 14, 17, 56 }, "sizeof(struct link) is 56", 0, 0 },
        { "links of another size", { 12, 16, 14, 17, 88 }, "link) is 88, in 7.0.9 to ", 0, 0 },
        { "one type more", { 13, 17, 15, 18, 80 }, "DBF_MENU is 13", 0, 0 },
        { "one type more behind DBF_MENU", { 12, 17, 15, 18, 80 }, "DBF_FWDLINK is 17", 0, 0 },
        { "a gap of 1", { 11, 15, 13, 16, 80 }, "DBF_MENU is 11", 0, 0 },
        { "links are numbered otherwise", { 12, 16, 15, 17, 80 }, "DBF_INLINK is 15", 0, 0 },
        { "fields are missing", { UINT16_MAX, UINT16_MAX, UINT16_MAX, UINT16_MAX, 0 }, "DBF_MENU is 65535", 0, 0 },
    };

    testDiag("Which release an IOC has");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char why[160] = "";
        const ebpfMonBaseRelease *r = ebpfMonBaseReleaseFind(&cases[i].seen, why, sizeof(why));

        if (!cases[i].odd)
            testOk(r && EBPFMON_DBF_MENU - r->dbf.menu == cases[i].gap &&
                       (r->link.type == offsetof(struct layoutOldLink, type)) == cases[i].oldLinks,
                   "%s: %s", cases[i].what, r ? r->releases : why);
        else
            testOk(!r && strstr(why, cases[i].odd), "%s: %s", cases[i].what, why);
    }
}

static void testTypes(void)
{
    const ebpfMonBaseRelease *old = getOldest(), *newest = ebpfMonBaseReleaseGet(0);

    testDiag("Numbers of types");
    testOk(ebpfMonBaseReleaseType(old, 6) == ebpfMonDbfUlong && ebpfMonBaseReleaseType(old, 7) == ebpfMonDbfFloat &&
           ebpfMonBaseReleaseType(old, 15) == ebpfMonDbfNoaccess, "the numbers are those of EPICS 3.15");
    testOk(ebpfMonBaseReleaseType(newest, 7) == ebpfMonDbfInt64, "the numbers are those of EPICS 7");
}

/* Reads a link of A:SEQ. Returns the record that it leads to and sets "addrAt", or returns -1 if the link is not as
 * expected. */
static int follow(const ebpfMonBaseRelease *base, const void *link, uint64_t *addrAt)
{
    ebpfMonLinkEnd end;
    ebpfMonLink l;

    ebpfMonMemFlush(mem);
    if (ebpfMonLinkRead(mem, base, at(link), &l) ||
        ebpfMonLinkFindEnd(mem, fake.t->cat, fakeAddress(FAKE_SEQ), &l, &end))
        return -1;
    *addrAt = end.addrAt;
    return (int)end.rec;
}

static void testLinks(void)
{
    const ebpfMonBaseRelease *own = ebpfMonBaseReleaseGet(0), *before = getOldest();
    struct layoutDbAddr addr = { .precord = fakeAddress(FAKE_SEL), .pfield = fakeAddress(FAKE_SEL) + 100,
                                 .pfldDes = at(fakeField(FAKE_SEL, "VAL")), .no_elements = 1 };
    struct { struct layoutDbChannel chan; uint64_t more; } channel = { { .name = at("A:SEL"), .addr = addr }, 0 };
    struct { struct layoutDbAddr addr; uint64_t more[2]; } bare = { addr, { 0 } };
    struct layoutPvLink link = { .precord = fakeAddress(FAKE_SEQ), .type = EBPFMON_LINK_DB, .pvt = at(&channel) };
    struct layoutOldLink old = { .precord = fakeAddress(FAKE_SEQ), .type = EBPFMON_LINK_DB, .pvt = at(&bare) };
    uint64_t found;
    char why[160];

    testDiag("Where a database link leads");
    testOk(follow(own, &link, &found) == FAKE_SEL && found == at(&channel.chan.addr),
           "the link has a dbChannel (since 7.0.5)");
    link.pvt = at(&bare);
    testOk(follow(own, &link, &found) == FAKE_SEL && found == at(&bare), "the link has a DBADDR (up to 7.0.4.1)");
    testOk(follow(before, &old, &found) == FAKE_SEL && found == at(&bare), "the link is a struct link of 3.15");
    bare.addr.pfield = bare.addr.precord;
    testOk(follow(own, &link, &found) == FAKE_SEL && found == at(&bare),
           "a DBADDR of a NAME field: the address of the record is in it twice");
    bare.addr = (struct layoutDbAddr){ .precord = fakeAddress(FAKE_AO), .pfield = at(why), .pfldDes = at(why) };
    testOk(follow(own, &link, &found) == FAKE_AO && found == at(&bare),
           "a DBADDR of an attribute, which is not a field");
    channel.chan.addr = bare.addr;
    link.pvt = at(&channel);
    testOk(follow(own, &link, &found) == FAKE_AO && found == at(&channel.chan.addr), "a dbChannel of an attribute");
    channel.chan.addr.precord = 4711;
    testOk(follow(own, &link, &found) == -1, "the link leads to memory that is not a record");
    link.pvt = 8;
    testOk(follow(own, &link, &found) == -1, "the link leads to an address that cannot be read");
    link.pvt = at(&bare);
    link.precord = fakeAddress(FAKE_AO);
    testOk(follow(own, &link, &found) == -1, "the link names another record as its owner: so it is not a link");
}

static void testLockSets(void)
{
    static struct layoutLockRecord lock[FAKE_RECORDS];
    ebpfMonCatalogue *cat = fake.t->cat;
    uint64_t lset[FAKE_RECORDS];

    testDiag("Lock sets");
    cat->common.lset = offsetof(fakeRecord, desc);
    for (unsigned i = 0; i < FAKE_RECORDS; i++) {
        lock[i].precord = fakeAddress(i);
        lset[i] = at(&lock[i]);
        memcpy(fake.rec[i].desc, &lset[i], sizeof(lset[i]));
    }
    ebpfMonMemFlush(mem);
    testOk(ebpfMonLockSetsAreKnown(mem, cat), "each lock record leads back to its record");
    lock[2].precord++;
    ebpfMonMemFlush(mem);
    testOk(!ebpfMonLockSetsAreKnown(mem, cat), "one lock record does not lead back to its record");
    lock[2].precord--;
    memset(fake.rec[1].desc, 0, sizeof(lset[1]));
    ebpfMonMemFlush(mem);
    testOk(!ebpfMonLockSetsAreKnown(mem, cat), "there is no lock record");
}

/* struct client and struct channel_in_use of one client, in the layout of a release. */
static struct {
    struct layoutList q;
    char client[256], ciu[128], as[64], buf[16];
    struct layoutDbChannel chan;
} rsrv;

static void set64(char *bytes, unsigned offset, uint64_t value)
{
    memcpy(bytes + offset, &value, sizeof(value));
}

static void makeClient(const ebpfMonBaseRelease *b)
{
    struct layoutList channels = { at(rsrv.ciu), at(rsrv.ciu), 1, 0 };
    uint16_t family = AF_INET;

    memset(&rsrv, 0, sizeof(rsrv));
    rsrv.q = (struct layoutList){ at(rsrv.client), at(rsrv.client), 1, 0 };
    memcpy(rsrv.client + b->client.addr, &family, sizeof(family));
    set64(rsrv.client, b->client.recvBuf, at(rsrv.buf));
    set64(rsrv.client, b->client.pUserName, at("anna"));
    set64(rsrv.client, b->client.pHostName, at("office1"));
    memcpy(rsrv.client + b->client.chanList, &channels, sizeof(channels));
    set64(rsrv.ciu, b->channel.client, at(rsrv.client));
    set64(rsrv.ciu, b->channel.asClientPVT, at(rsrv.as));
    set64(rsrv.as, b->asgClient.access - 12, at(rsrv.buf)); /* pcallback, level, access */
    rsrv.chan.addr.precord = fakeAddress(FAKE_AO);
    set64(rsrv.ciu, b->channel.dbch, b->has.channels ? at(&rsrv.chan) : fakeAddress(FAKE_AO));
}

static const char *odd; /* member of a struct of the server */

static int isServerKnown(void)
{
    ebpfMonMemFlush(mem);
    return ebpfMonCaServerIsKnown(mem, fake.t->cat, fake.t->cat->base, at(&rsrv.q), &odd);
}

static void testServer(int is314)
{
    const ebpfMonBaseRelease *b = is314 ? getOldest() : ebpfMonBaseReleaseGet(0);
    const ebpfMonBaseRelease *other = is314 ? ebpfMonBaseReleaseGet(0) : getOldest();

    testDiag("The CA server of EPICS %s", is314 ? "3.14" : "7");
    fake.t->cat->base = b;
    makeClient(b);
    testOk(isServerKnown() == 1, "a client with a channel is recognised");
    makeClient(other);
    testOk(isServerKnown() == -1 && strcmp(odd, "channel_in_use.dbch") == 0, "a client of another release is not");
    makeClient(b);
    memset(rsrv.client + b->client.chanList, 0, sizeof(struct layoutList));
    testOk(isServerKnown() == 0, "a client without channels does not show the release");
    makeClient(b);
    rsrv.client[b->client.addr] = 7;
    testOk(isServerKnown() == -1 && strcmp(odd, "client.addr") == 0, "the client has no address");
    makeClient(b);
    set64(rsrv.client, b->client.pUserName, 12);
    testOk(isServerKnown() == -1 && strcmp(odd, "client.pUserName") == 0, "the client has no name");
    makeClient(b);
    set64(rsrv.ciu, b->channel.client, 0);
    testOk(isServerKnown() == -1 && strcmp(odd, "channel_in_use.client") == 0, "the channel belongs to no client");
    makeClient(b);
    set64(rsrv.as, b->asgClient.access - 12, 0);
    testOk(isServerKnown() == -1 && strcmp(odd, "channel_in_use.asClientPVT") == 0, "its rights lie elsewhere");
    rsrv.q = (struct layoutList){ 0 };
    testOk(isServerKnown() == 0, "the list has no client");
}

/* An epicsMutexParm in the layout of a release, as the mutex of all lock sets. */
static void makeMutex(const ebpfMonBaseRelease *b)
{
    static struct layoutLockRecord lock[FAKE_RECORDS];
    static struct layoutLockSet set;
    static char mutex[80];
    const int32_t line = 127;

    memset(mutex, 0, sizeof(mutex));
    set64(mutex, b->mutex.pFileName, at("../db/dbLock.c"));
    memcpy(mutex + b->mutex.lineno, &line, sizeof(line));
    if (b->mutex.id)
        set64(mutex, b->mutex.id, at(rsrv.buf));
    set.lock = at(mutex);
    fake.t->cat->common.lset = offsetof(fakeRecord, desc);
    for (unsigned i = 0; i < FAKE_RECORDS; i++) {
        lock[i] = (struct layoutLockRecord){ .plockSet = at(&set), .precord = fakeAddress(i) };
        set64(fake.rec[i].desc, 0, at(&lock[i]));
    }
}

static int isChosen(unsigned from, const ebpfMonBaseRelease *expected)
{
    fake.t->cat->base = ebpfMonBaseReleaseGet(from);
    ebpfMonTargetLayoutsChoose(fake.t, fake.t->cat);
    return fake.t->cat->base == expected;
}

static void testChoice(void)
{
    static ebpfMonBinary core;
    static ebpfMonFollowed followed;
    const ebpfMonBaseRelease *newest = ebpfMonBaseReleaseGet(0), *second = ebpfMonBaseReleaseGet(1);
    ebpfMonTarget *t = fake.t;
    int looks = 0;

    testDiag("Two layouts of EPICS 7");
    t->followed = &followed;
    t->followed->mem = mem;
    t->image.core = &core;
    makeMutex(newest);
    testOk(isChosen(0, newest) && isChosen(1, newest), "%s: the first layout fits", newest->releases);
    makeMutex(second);
    testOk(isChosen(0, second), "%s: only the second one fits", second->releases);
    memset(fake.rec, 0, sizeof(fake.rec));
    testOk(isChosen(1, newest), "as long as nothing tells them apart, it is the first");
    for (unsigned i = 2; ebpfMonBaseReleaseGet(i); i++)
        if (ebpfMonBaseReleaseIsAlike(ebpfMonBaseReleaseGet(i), getOldest())) {
            testOk(isChosen(i, ebpfMonBaseReleaseGet(i)), "EPICS 3.15");
            core.oldNames = 1u << ebpfMonFnProcessNotify;
            testOk(isChosen(i, getOldest()), "EPICS 3.14 has another function");
            core.oldNames = 0;
            break;
        }
    makeClient(newest);
    makeMutex(second);
    t->image.clientQ = at(&rsrv.q);
    t->followed->life.isPrepared = 1;
    t->cat->base = newest;
    set64(rsrv.ciu, newest->channel.dbch, 8);
    while (!ebpfMonTargetLayoutsLookAtServer(t) && looks++ < 9)
        ;
    testOk(looks == EBPFMON_ODD_SERVER - 1 && strcmp(t->followed->odd.member, "channel_in_use.dbch") == 0 &&
           !t->followed->odd.isServerKnown, "no layout fits to the CA server: %s is named", t->followed->odd.member);
}

MAIN(testBaseRelease)
{
    testPlan(11 + 2 + 9 + 3 + 16 + 6);
    fakeMake();
    mem = ebpfMonMemNew(getpid());
    testDecision();
    testTypes();
    testLinks();
    testLockSets();
    testServer(0);
    testServer(1);
    testChoice();
    ebpfMonMemFree(mem);
    return testDone();
}
