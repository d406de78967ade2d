/* SPDX-License-Identifier: BSD-3-Clause */
/* watch/recordTables.h, and with it closureTable.h, without the kernel. */
#include <testMain.h>

#include "common/clock.h"
#include "probe/kernelLoad.h"
#include "recordTablesTest.h"

static void testAdd(void)
{
    ebpfMonTarget *t = makeIoc();
    unsigned wrong = 0;
    char buf[64];

    testDiag("an IOC is added");
    record[1].spvt = record[4].spvt = 1;
    ebpfMonRecordTablesAddArrays(recordTables, t);
    testOk1(arrays == 1);
    testOk1(ebpfMonRecordTablesAdd(recordTables, t) == 0 && t->slot == 0 && t->indexed && t->slotAt != 0);
    for (unsigned i = 0; i < RECORDS; i++)
        wrong += indexed[t->slot + i] != t->cat->rec[i].addr || state[t->slot + i].addr != t->cat->rec[i].addr ||
                 state[t->slot + i].time != record[i].time || !state[t->slot + i].seen ||
                 conf[t->slot + i].valOff != offsetof(iocRecord, value) || conf[t->slot + i].valSize != 4;
    testOk(rootsTaken == 2 && state[t->slot + 1].root && state[t->slot + 4].root && !state[t->slot].root,
           "records in scan lists have a histogram");
    testOk(wrong == 0, "each record has its slot, its place in the index and its value's; %u do not", wrong);
    testOk(strcmp(closureOf(t, 0, buf), "0 1 2") == 0, "the closure of the first root has all that it reaches: %s",
           buf);
    testOk(strcmp(closureOf(t, 1, buf), "1 2") == 0, "the closure of the second root has all that it reaches: %s", buf);
    testOk(strcmp(closureOf(t, 5, buf), "5") == 0, "the closure of a record without links has itself: %s", buf);
    testOk(state[t->slot].last == t->slot + 2 && state[t->slot + 2].last == t->slot + 2 &&
           state[t->slot + 5].last == t->slot + 5, "the flag of a stretch stands at its last record");
    testOk(t->followed->trapped == 1 && t->how[3] == (EBPFMON_BY_TRAP | EBPFMON_AT_LEAST) && !t->how[0],
           "a record with TSE is counted by the trap");
    testOk1(conf[t->slot + 3].flags & EBPFMON_REC_NOTIME && !(conf[t->slot].flags & EBPFMON_REC_NOTIME));
    ebpfMonRecordTablesRemoveIndex(recordTables, t);
    testOk1(!t->indexed && countIndexed() == 0 && t->slot == 0);
    ebpfMonRecordTablesRemove(recordTables, t);
    for (unsigned i = 0; i < MAX_RECORDS; i++)
        wrong += state[i].addr || conf[i].len;
    testOk1(t->slot == UINT32_MAX && !t->recState && !t->how && wrong == 0 && rootsRemoved == RECORDS &&
            asyncsRemoved == RECORDS);
    freeIoc(t);
}

static void testTwo(void)
{
    ebpfMonTarget *a = makeIoc(), *b = makeIoc(), *c = makeIoc();

    testDiag("several IOCs, and no room");
    testOk1(ebpfMonRecordTablesAdd(recordTables, a) == 0 && ebpfMonRecordTablesAdd(recordTables, b) == 0);
    testOk1(a->slot == 0 && b->slot == RECORDS && a->closures.at != b->closures.at);
    testOk(ebpfMonRecordTablesAdd(recordTables, c) == -1 && strstr(c->note, "raise maxRecords"), "\"%s\"", c->note);
    testOk1(c->slot == UINT32_MAX && !c->indexed && !c->how);
    ebpfMonRecordTablesRemove(recordTables, a);
    indexFails = 1;
    testOk(ebpfMonRecordTablesAdd(recordTables, c) == -1 && strstr(c->note, "table of records is full"), "\"%s\"",
           c->note);
    testOk1(c->slot == UINT32_MAX && !c->indexed);
    indexFails = 0;
    testOk(ebpfMonRecordTablesAdd(recordTables, c) == 0 && c->slot == 0, "the room of an IOC that ended is used again");
    freeIoc(a);
    freeIoc(b);
    freeIoc(c);
}

static void testShares(void)
{
    ebpfMonTarget *a = makeIoc(), *b = makeIoc(), *c = makeIoc(), *d = makeIoc();

    testDiag("no room, and several users");
    a->user = b->user = 1000;
    c->user = d->user = 1001;
    testOk1(ebpfMonRecordTablesAdd(recordTables, a) == 0 && ebpfMonRecordTablesAdd(recordTables, b) == 0);
    testOk(ebpfMonRecordTablesAdd(recordTables, c) == 0 && a->slot != UINT32_MAX && b->slot == UINT32_MAX,
           "who has most gives up the records of his newest IOC");
    testOk(strstr(b->note, "gave way") && b->followed->database.readAt == 0, "\"%s\"", b->note);
    testOk(ebpfMonRecordTablesAdd(recordTables, b) == -1 && ebpfMonRecordTablesAdd(recordTables, d) == -1 &&
           a->slot != UINT32_MAX && c->slot != UINT32_MAX, "and both have as much");
    d->user = 0;
    testOk(ebpfMonRecordTablesAdd(recordTables, d) == 0 && c->slot == UINT32_MAX && a->slot != UINT32_MAX,
           "root takes from who came last");
    freeIoc(d);
    freeIoc(c);
    freeIoc(b);
    freeIoc(a);
}

/* Record 2 gets a forward link to 4, which processed meanwhile. 5 is not reached by it. */
static void testLinks(void)
{
    ebpfMonTarget *t = makeIoc();
    uint32_t at;
    char buf[64];

    testDiag("links change");
    ebpfMonRecordTablesAdd(recordTables, t);
    state[t->slot].pass[t->followed->records.bank] = 7; /* seven chains passed the stretch 0 1 2 */
    state[t->slot].count = 1;
    testOk1(ebpfMonTargetCountRecord(t, 0) == 8 && ebpfMonTargetCountRecord(t, 1) == 7);
    at = t->closures.at;
    ebpfMonMemFlush(t->followed->mem);
    ebpfMonRecordTablesUpdateLinks(recordTables, t, 2);
    testOk(t->closures.at == at, "links that did not change leave the closures alone");
    setForward(2, 4);
    record[4].time = stamp(1000);
    record[5].time = stamp(1000);
    ebpfMonMemFlush(t->followed->mem);
    ebpfMonRecordTablesUpdateLinks(recordTables, t, 2);
    testOk(strcmp(closureOf(t, 0, buf), "0 1 2 4") == 0, "a new link brings its record into the closure: %s", buf);
    testOk(t->closures.at != at && t->closures.oldAt == at, "the old closure stays for one more change");
    testOk(ebpfMonTargetCountRecord(t, 4) == 0 && state[t->slot + 4].time != stamp(1000),
           "what processed meanwhile is left to the chain that may be under way: %u",
           (unsigned)ebpfMonTargetCountRecord(t, 4));
    testOk(ebpfMonTargetCountRecord(t, 5) == 0, "a record that is not reached is not marked");
    testOk(t->how[4] & EBPFMON_MISSED && !t->how[5] && !t->how[0],
           "a record that may have processed more than once is marked");
    testOk(ebpfMonTargetCountRecord(t, 0) == 8 && ebpfMonTargetCountRecord(t, 1) == 7,
           "the passes before the change still count");
    testOk(t->cat->rec[2].toCount == 1 && t->cat->rec[2].fwd == 4, "the catalogue has the new link");
    setForward(0, -1);
    ebpfMonMemFlush(t->followed->mem);
    ebpfMonRecordTablesUpdateLinks(recordTables, t, EBPFMON_ALL_RECORDS);
    testOk(strcmp(closureOf(t, 0, buf), "0") == 0, "after all links are read again the closure is right: %s", buf);
    testOk(ebpfMonTargetCountRecord(t, 0) == 8 && ebpfMonTargetCountRecord(t, 1) == 7, "the counts go on after that");
    freeIoc(t);
}

/* For a while 2 had a link to 4, and the monitor did not read it: the event of the put tells. 4 processed 5, and this
 * link goes before the monitor looks. */
static void testSuperseded(void)
{
    ebpfMonTarget *t = makeIoc();

    testDiag("a link that was changed before it was read");
    setForward(4, 5);
    ebpfMonRecordTablesAdd(recordTables, t);
    ebpfMonTargetNoteUnseen(t, 4, EBPFMON_UNSEEN_REACHED);
    ebpfMonTargetNoteUnseen(t, 4, EBPFMON_UNSEEN_ALONE);
    testOk(!ebpfMonTargetIsAtLeast(t, 4), "the follower marks, not the thread that sees the put");
    setForward(4, -1);
    ebpfMonMemFlush(t->followed->mem);
    ebpfMonRecordTablesUpdateLinks(recordTables, t, 4);
    testOk(t->how[4] == EBPFMON_MISSED && t->how[5] == EBPFMON_MISSED, "what the link reached is marked");
    testOk(!t->how[0] && !t->how[1] && !t->how[2] && !(t->how[3] & EBPFMON_MISSED) && !t->hasUnseen,
           "… and nothing else");
    freeIoc(t);
}

/* Without an event: it was lost, or comes later. */
static void testRemoved(void)
{
    ebpfMonTarget *t = makeIoc();

    testDiag("a link that is removed");
    ebpfMonRecordTablesAdd(recordTables, t);
    setForward(0, 4);
    ebpfMonMemFlush(t->followed->mem);
    ebpfMonRecordTablesUpdateLinks(recordTables, t, EBPFMON_ALL_RECORDS);
    testOk(t->how[1] == EBPFMON_MISSED && t->how[2] == EBPFMON_MISSED && t->how[4] == EBPFMON_MISSED && !t->how[0] &&
               !t->how[5],
           "what the record reached before is marked, and what it reaches now");
    freeIoc(t);
}

static void testTrap(void)
{
    ebpfMonTarget *t = makeIoc();

    testDiag("counted the other way");
    ebpfMonRecordTablesAdd(recordTables, t);
    state[t->slot + 3].count = 5;
    testOk1(ebpfMonTargetCountRecord(t, 3) == 5);
    state[t->slot + 3].trapped = 100;
    ebpfMonRecordTablesSetTrap(recordTables, t, 1, 1);
    testOk(ebpfMonTargetCountRecord(t, 3) == 5 && t->how[3] == EBPFMON_BY_TRAP,
           "the trap goes on from the count that was there");
    state[t->slot + 3].trapped += 2;
    state[t->slot + 3].count += 50;
    testOk1(ebpfMonTargetCountRecord(t, 3) == 7);
    ebpfMonRecordTablesSetTrap(recordTables, t, 0, 0);
    testOk1(ebpfMonTargetCountRecord(t, 3) == 7 && t->how[3] == (EBPFMON_BY_TRAP | EBPFMON_AT_LEAST));
    ebpfMonRecordTablesSetTrap(recordTables, t, 1, 0);
    testOk(t->how[3] == (EBPFMON_BY_TRAP | EBPFMON_MISSED) && ebpfMonTargetIsAtLeast(t, 3),
           "what processed without the trap stays uncounted");
    freeIoc(t);
}

/* A record type whose time stamp may move without a processing. */
static void testTrapAlone(void)
{
    ebpfMonTarget *t = makeIoc();

    testDiag("a time stamp that may say too much");
    ebpfMonRecordTablesAdd(recordTables, t);
    t->cat->rtype[0].stamps = EBPFMON_STAMPS_NOT;
    ebpfMonMemFlush(t->followed->mem);
    ebpfMonRecordTablesUpdateLinks(recordTables, t, EBPFMON_ALL_RECORDS);
    state[t->slot + 3].count += 5;
    testOk(ebpfMonTargetCountRecord(t, 3) == 0 && ebpfMonTargetIsAtLeast(t, 3),
           "is not counted by it without the trap");
    t->followed->att.on = EBPFMON_BIT(ebpfMonProgCompleted);
    ebpfMonRecordTablesSetTrap(recordTables, t, 1, 0);
    state[t->slot + 3].trapped += 2;
    state[t->slot + 3].count += 9;
    testOk1(ebpfMonTargetCountRecord(t, 3) == 2);
    t->followed->att.on = 0;
    ebpfMonRecordTablesSetTrap(recordTables, t, 0, 0);
    state[t->slot + 3].count += 9;
    testOk(ebpfMonTargetCountRecord(t, 3) == 2 && ebpfMonTargetIsAtLeast(t, 3), "… and its count stands still");
    freeIoc(t);
}

/* Device support that requests no scan needs no trap (watch/typeTrial.h). */
static void testAsleep(void)
{
    ebpfMonDevSup dev = { .name = "driver", .stamps = EBPFMON_STAMPS_ASLEEP };
    ebpfMonTarget *t = makeIoc();

    testDiag("device support that sleeps");
    ebpfMonRecordTablesAdd(recordTables, t);
    t->cat->rtype[0].dev = &dev;
    t->cat->rtype[0].devs = 1;
    t->cat->rec[3].dev = 1;
    t->how[3] = EBPFMON_BY_TRAP | EBPFMON_MAY_SLEEP;
    state[t->slot + 3].trapped = 5;
    state[t->slot + 3].count = 8;
    ebpfMonRecordTablesSetTrap(recordTables, t, 0, 0);
    testOk(ebpfMonTargetCountRecord(t, 3) == 5 && !ebpfMonTargetIsAtLeast(t, 3), "its count is exact without the trap");
    state[t->slot + 3].count++;
    testOk(ebpfMonTargetCountRecord(t, 3) == 5, "what a snapshot counts is not shown");
    dev.stamps = EBPFMON_STAMPS_UNKNOWN;
    ebpfMonRecordTablesSetTrap(recordTables, t, 0, 0);
    testOk(ebpfMonTargetIsAtLeast(t, 3), "one that does not sleep needs the trap");
    t->cat->rtype[0].dev = NULL;
    freeIoc(t);
}

/* TSE of record 1, in the middle of a stretch, is put. */
static void testTimeSource(void)
{
    ebpfMonTarget *t = makeIoc();

    testDiag("a time stamp stops to move while the IOC runs");
    ebpfMonRecordTablesAdd(recordTables, t);
    t->followed->att.on = EBPFMON_BIT(ebpfMonProgCompleted);
    ebpfMonRecordTablesSetTrap(recordTables, t, 1, 1);
    state[t->slot].pass[t->followed->records.bank] = 4;
    state[t->slot + 2].count = 4;
    state[t->slot + 1].trapped = 4;
    record[1].tse = -1;
    ebpfMonMemFlush(t->followed->mem);
    ebpfMonRecordTablesUpdateLinks(recordTables, t, 1);
    testOk(t->how[1] == (EBPFMON_BY_TRAP | EBPFMON_MISSED),
           "the trap counts the record, and marks that something may be missing");
    testOk(t->how[2] == EBPFMON_MISSED && !t->how[0], "… also of the records behind it, not of those before it");
    state[t->slot + 1].trapped += 3;
    testOk1(ebpfMonTargetCountRecord(t, 1) == 7 && t->followed->trapped == 2);
    record[1].tse = 0;
    ebpfMonMemFlush(t->followed->mem);
    ebpfMonRecordTablesUpdateLinks(recordTables, t, 1);
    state[t->slot].pass[t->followed->records.bank] += 2;
    state[t->slot + 1].trapped += 2;
    testOk(t->how[1] == (EBPFMON_BY_TRAP | EBPFMON_MISSED) && ebpfMonTargetCountRecord(t, 1) == 9,
           "the trap goes on when the time stamp moves again, and no stretch counts it, too: %u",
           (unsigned)ebpfMonTargetCountRecord(t, 1));
    ebpfMonTargetNoteUnseen(t, 5, EBPFMON_UNSEEN_ALONE);
    ebpfMonTargetNoteUnseen(t, 1, EBPFMON_UNSEEN_ALONE); /* the trap counts it */
    testOk1(t->hasUnseen && t->unseen[5] && !t->unseen[1]);
    ebpfMonRecordTablesUpdateLinks(recordTables, t, 5);
    testOk(t->how[5] == EBPFMON_MISSED && !t->how[4] && !t->hasUnseen,
           "a put that no time stamp shows marks the record to which it was made");
    ebpfMonRecordTablesMarkMissed(recordTables, t);
    testOk1(ebpfMonTargetIsAtLeast(t, 0) && ebpfMonTargetIsAtLeast(t, 5));
    freeIoc(t);
}

static void testUnknownType(void)
{
    ebpfMonTarget *t;

    testDiag("a type that is not Base's");
    typeName = "fair";
    t = makeIoc();
    record[3].tse = 0;
    ebpfMonRecordTablesAdd(recordTables, t);
    t->followed->att.on = EBPFMON_BIT(ebpfMonProgCompleted);
    ebpfMonRecordTablesSetTrap(recordTables, t, 1, 1);
    testOk(t->followed->trapped == RECORDS && t->how[0] == (EBPFMON_BY_TRAP | EBPFMON_TRAP_ALONE),
           "the trap counts all records of the type");
    testOk(state[t->slot].last == t->slot, "such records are in no stretch");
    for (unsigned i = 0; i < RECORDS; i++)
        state[t->slot + i].count = state[t->slot + i].trapped = 10;
    state[t->slot + 5].trapped++; /* it completed, and its chain continues */
    testOk1(ebpfMonTypeTrialLook(t->followed->trial, t, 1, 1) == ebpfMonTrialNothing);
    state[t->slot + 5].count++;
    testOk1(ebpfMonTypeTrialLook(t->followed->trial, t, 1, 2) == ebpfMonTrialLinks);
    state[t->slot + 5].trapped++;
    ebpfMonRecordTablesUpdateLinks(recordTables, t, EBPFMON_ALL_RECORDS);
    testOk(t->how[0] == EBPFMON_BY_TRAP, "while the trial goes on the trap counts the type");
    ebpfMonRecordTablesReleaseTrap(recordTables, t);
    testOk(!t->how[0] && t->how[5] == EBPFMON_BY_TRAP && t->followed->trapped == 1,
           "all records but the one under way are given back by the trap");
    state[t->slot + 5].count++;
    ebpfMonRecordTablesReleaseTrap(recordTables, t);
    testOk(!t->how[5] && !t->followed->trapped && ebpfMonTargetCountRecord(t, 5) == 12 &&
           ebpfMonTargetCountRecord(t, 0) == 10, "then that one is given back, too, and all counts are exact");
    freeIoc(t);
    typeName = "calc";
}

/* The links stay, and what is behind the records is to be counted by the trap all the same. */
static void testBecomesUnlocked(void)
{
    ebpfMonTarget *t;

    testDiag("a type that always needs the trap is seen to complete without its lock set");
    typeName = "busy";
    t = makeIoc();
    ebpfMonRecordTablesAdd(recordTables, t);
    t->followed->att.on = EBPFMON_BIT(ebpfMonProgCompleted);
    ebpfMonRecordTablesSetTrap(recordTables, t, 1, 1);
    t->how[2] = 0; /* as if it were of a type of Base */
    t->cat->rtype[0].stamps = EBPFMON_STAMPS_UNLOCKED;
    ebpfMonRecordTablesUpdateLinks(recordTables, t, EBPFMON_ALL_RECORDS);
    testOk(t->how[2] & EBPFMON_BY_TRAP && t->how[2] & EBPFMON_MISSED, "what is behind it may have been missed");
    typeName = "swait";
    freeIoc(t);
    t = makeIoc();
    ebpfMonRecordTablesAdd(recordTables, t);
    testOk(t->cat->rtype[0].stamps == EBPFMON_STAMPS_UNLOCKED, "one that has not written yet would pass the trial");
    typeName = "calc";
    freeIoc(t);
}

static void testShown(void)
{
    ebpfMonTarget *t = makeIoc();
    unsigned untraced = 0;

    testDiag("the filter's pattern");
    ebpfMonRecordTablesAdd(recordTables, t);
    ebpfMonRecordTablesSetShown(recordTables, t, "*");
    for (unsigned i = 0; i < RECORDS; i++)
        untraced += !!(conf[t->slot + i].flags & EBPFMON_REC_UNTRACED);
    testOk1(t->shown == RECORDS && untraced == 0);
    ebpfMonRecordTablesSetShown(recordTables, t, "rec2");
    testOk1(t->shown == 1 && (t->how[2] & EBPFMON_SHOWN) && !(t->how[1] & EBPFMON_SHOWN));
    testOk(!(conf[t->slot].flags & EBPFMON_REC_UNTRACED) && !(conf[t->slot + 2].flags & EBPFMON_REC_UNTRACED) &&
               (conf[t->slot + 4].flags & EBPFMON_REC_UNTRACED),
           "chains that reach a shown record are traced, others are not");
    freeIoc(t);
}

static void testBegin(void)
{
    ebpfMonTarget *t = makeIoc();
    uint64_t addr;

    testDiag("counting begins");
    ebpfMonRecordTablesAdd(recordTables, t);
    state[t->slot + 1].pending = 1;
    record[1].time = stamp(5000);
    record[2].pact = 1;
    ebpfMonRecordTablesBeginCounting(recordTables, t, 0);
    testOk1(state[t->slot + 1].time == stamp(5000) && !state[t->slot + 1].pending && !state[t->slot + 1].noted);
    testOk(state[t->slot + 2].noted == EBPFMON_NOTED_BUSY, "a record that is busy is noted");
    testOk(!ebpfMonTargetIsAtLeast(t, 1), "before the first count nothing is missing");
    ebpfMonRecordTablesSettleCounting(recordTables, t);
    testOk(state[t->slot + 2].noted == EBPFMON_NOTED_BUSY, "it is still busy when the probes are attached");
    ebpfMonRecordTablesBeginCounting(recordTables, t, 0);
    record[2].pact = 0;
    ebpfMonRecordTablesSettleCounting(recordTables, t);
    testOk(!state[t->slot + 2].noted, "one that completed while they were being attached is not taken for busy");
    record[1].time = stamp(6000);
    ebpfMonRecordTablesBeginCounting(recordTables, t, 1);
    testOk(ebpfMonTargetIsAtLeast(t, 1) && !ebpfMonTargetIsAtLeast(t, 0),
           "what processed while counting was interrupted is marked");
    addr = t->cat->rec[0].addr;
    t->cat->rec[0].addr = 16; /* a page that cannot be read */
    ebpfMonRecordTablesBeginCounting(recordTables, t, 0);
    t->cat->rec[0].addr = addr;
    testOk(!state[t->slot].seen && state[t->slot + 1].seen && ebpfMonTargetIsAtLeast(t, 0),
           "a record that cannot be read is marked, and its first look counts nothing");
    freeIoc(t);
}

static void testSince(void)
{
    const uint64_t second = (POSIX_TIME_AT_EPICS_EPOCH + 1000ull) * EBPFMON_SECOND_NS;
    ebpfMonTarget *t = makeIoc();
    uint64_t addr;

    testDiag("what has processed since the clock was set");
    ebpfMonRecordTablesAdd(recordTables, t);
    for (unsigned i = 0; i < RECORDS; i++)
        record[i].time = 999 + (999999999ull << 32);
    record[1].time = 1000 + (7ull << 32);
    ebpfMonMemFlush(t->followed->mem);
    testOk(ebpfMonRecordTablesMarkSince(recordTables, t, second + 8) == 0 && !t->how[1], "none has");
    testOk(ebpfMonRecordTablesMarkSince(recordTables, t, second + 7) == 2 && t->how[1] & EBPFMON_MISSED &&
           t->how[2] & EBPFMON_MISSED && !ebpfMonTargetIsAtLeast(t, 0), "one has, and makes another one process");
    testOk(ebpfMonRecordTablesMarkSince(recordTables, t, second) == 0, "they were marked before");
    addr = t->cat->rec[5].addr;
    t->cat->rec[5].addr = 16; /* a page that cannot be read */
    testOk(ebpfMonRecordTablesMarkSince(recordTables, t, second) == 1 && t->how[5] & EBPFMON_MISSED, "not known");
    t->cat->rec[5].addr = addr;
    freeIoc(t);
}

/* The process executes an IOC again: the next IOC has the same pid, and perhaps the same addresses. */
static void testSamePid(void)
{
    ebpfMonTarget *t = makeIoc(), *next;

    testDiag("another IOC gets the pid");
    ebpfMonRecordTablesAdd(recordTables, t);
    t->followed->sweep.number = t->followed->sweep.lost = 1;
    listsRemoved = 0;
    ebpfMonRecordTablesRemoveIndex(recordTables, t);
    testOk(listsRemoved == 1 && arrays == 0, "the scan lists and arrays of the first one go when it ends");
    next = makeIoc();
    ebpfMonRecordTablesAddArrays(recordTables, next);
    freeIoc(t);
    testOk(listsRemoved == 1 && arrays == 1, "when it is forgotten, those of the next one stay");
    freeIoc(next);
    testOk(arrays == 0, "an IOC without slots takes its arrays with it");
}

MAIN(testRecordTables)
{
    ebpfMonRecordTablesKernel kernel = {
        .tables = &tables, .setRecordIndex = setRecordIndex, .removeRecordIndex = removeRecordIndex,
        .setArray = setArray, .removeArray = removeArray, .takeRoot = takeRoot,
        .removeRoots = removeRoots, .removeAsyncs = removeAsyncs,
        .removeLists = removeLists,
    };

    ebpfMonFeature.loop = 1; /* the kernel part can exchange a time stamp with the user part of the monitor */
    testPlan(0);
    tables = (ebpfMonTables){ .conf = conf, .state = state, .closure = closure,
                              .size = { .maxRecords = MAX_RECORDS, .maxClosure = MAX_CLOSURE } };
    targets = ebpfMonTargetsNew();
    recordTables = ebpfMonRecordTablesNew(targets, ebpfMonAuditsNew(), &kernel);
    if (!targets || !recordTables)
        testAbort("out of memory");
    testAdd();
    testTwo();
    testShares();
    testLinks();
    testSuperseded();
    testRemoved();
    testTrap();
    testTrapAlone();
    testAsleep();
    testTimeSource();
    testUnknownType();
    testBecomesUnlocked();
    testShown();
    testBegin();
    testSince();
    testSamePid();
    testOk(countIndexed() == 0 && arrays == 0 && ebpfMonTargetsGetFirst(targets) == NULL,
           "after the end nothing is left");
    ebpfMonRecordTablesFree(recordTables);
    ebpfMonRecordTablesFree(NULL);
    ebpfMonTargetsFree(targets);
    return testDone();
}
