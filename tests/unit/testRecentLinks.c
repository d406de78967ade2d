/* SPDX-License-Identifier: BSD-3-Clause */
/* put/putWriter.h: output links that somebody changed a moment ago. The link table knows one link, A:SEQ.OUT. */
#include <epicsUnitTest.h>
#include <testMain.h>

#include "fakeIoc.h"
#include "put/putWriter.h"

#define MS 1000000ull
#define AT (5000 * MS)

static ebpfMonRecentLinks *recent;
static struct layoutDbChannel other; /* the channel that a changed link writes by */

static ebpfMonLinkOwner ownerOf(unsigned rec)
{
    return (ebpfMonLinkOwner){ .rec = rec, .field = (uint32_t)(fakeField(rec, "OUT") - fake.field) };
}

static uint64_t otherAddr(void)
{
    return (uint64_t)(uintptr_t)&other.addr;
}

/* The link OUT of a record leads to this channel now. */
static void setLink(unsigned rec, const struct layoutDbChannel *channel, int16_t type)
{
    fake.rec[rec].out = (struct layoutPvLink){
        .precord = fakeAddress(rec), .type = type, .pvt = (uint64_t)(uintptr_t)channel};
}

/* The record whose link makes a put by this address; -1: none. */
static int findRecord(uint64_t addr, uint64_t at)
{
    ebpfMonLinkOwner owner;

    return ebpfMonRecentLinksFind(recent, fake.t, addr, at, &owner) ? -1 : (int)owner.rec;
}

static void testChanges(void)
{
    testDiag("links that change");
    testOk(findRecord(fakeLinkAddr(), AT) == FAKE_SEQ && findRecord(otherAddr(), AT) == -1,
           "at first only the table is asked");
    setLink(FAKE_AO, &other, EBPFMON_LINK_DB);
    testOk(findRecord(otherAddr(), AT) == -1, "a link that nobody put is not looked at");
    ebpfMonRecentLinksAdd(recent, fake.t->iocId, ownerOf(FAKE_AO), AT);
    testOk(findRecord(otherAddr(), AT + MS) == FAKE_AO, "a new link has an address that the table does not have");
    testOk(findRecord(fakeLinkAddr(), AT + MS) == FAKE_SEQ, "the others are in the table still");
    setLink(FAKE_AO, &other, EBPFMON_LINK_CA);
    testOk(findRecord(otherAddr(), AT + MS) == -1, "a CA link writes by no address");
    setLink(FAKE_AO, NULL, EBPFMON_LINK_DB);
    testOk(findRecord(otherAddr(), AT + MS) == -1, "nor does a link that leads nowhere");

    setLink(FAKE_SEQ, &other, EBPFMON_LINK_DB);
    ebpfMonRecentLinksAdd(recent, fake.t->iocId, ownerOf(FAKE_SEQ), AT + 2 * MS);
    testOk(findRecord(otherAddr(), AT + 3 * MS) == FAKE_SEQ, "a known link leads somewhere else");
    testOk(findRecord(fakeLinkAddr(), AT + 3 * MS) == -1, "the address that it had before belongs to nobody");
    setLink(FAKE_AO, &fake.link, EBPFMON_LINK_DB);
    testOk(findRecord(fakeLinkAddr(), AT + 3 * MS) == FAKE_AO, "… or to the link that has it now");
}

static void testTime(void)
{
    testDiag("after a time the table was read again");
    testOk(findRecord(fakeLinkAddr(), AT + 1500 * MS) == FAKE_AO, "after 1.5 s the link is looked at still");
    testOk(findRecord(fakeLinkAddr(), AT + 1503 * MS) == FAKE_SEQ && findRecord(otherAddr(), AT + 1503 * MS) == -1,
           "then the table is believed");
    ebpfMonRecentLinksAdd(recent, fake.t->iocId, ownerOf(FAKE_AO), AT + 2000 * MS);
    testOk(findRecord(fakeLinkAddr(), AT + 2001 * MS) == FAKE_AO, "the same link is put once more");
}

static void testLimits(void)
{
    testDiag("limits");
    for (uint32_t i = 0; i < 16; i++)
        ebpfMonRecentLinksAdd(recent, fake.t->iocId + 1 + i, ownerOf(FAKE_SEQ), AT + 2000 * MS);
    testOk(findRecord(fakeLinkAddr(), AT + 2001 * MS) == FAKE_SEQ,
           "16 links of other IOCs: the oldest link is forgotten");
    ebpfMonRecentLinksAdd(recent, fake.t->iocId, (ebpfMonLinkOwner){ .rec = FAKE_RECORDS, .field = 0 }, AT + 2000 * MS);
    testOk(findRecord(otherAddr(), AT + 2001 * MS) == -1, "a record that is not in the catalogue any more is left out");
    testOk(findRecord(0, AT + 2001 * MS) == -1, "there is no put by the address 0");
    fake.t->cat = NULL;
    testOk(findRecord(fakeLinkAddr(), AT + 2001 * MS) == -1, "nor a link without a catalogue");
}

MAIN(testRecentLinks)
{
    testPlan(16);
    fakeMake();
    fake.t->eventThread.reads = NULL; /* what is needed is read at once */
    recent = ebpfMonRecentLinksNew();
    testChanges();
    testTime();
    testLimits();
    ebpfMonRecentLinksFree(recent);
    ebpfMonRecentLinksFree(NULL);
    return testDone();
}
