/* SPDX-License-Identifier: BSD-3-Clause */
/* Notes of uses, and the database in which they are stored. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "common/clock.h"
#include "uses/useStore.h"

#define NOW 1700000000

static ebpfMonUseNotes *notes;
static ebpfMonUse use[64];
static char file[64], why[200];

static unsigned takeAll(int64_t now, int all, unsigned max)
{
    size_t cursor = 0;
    unsigned n, sum = 0;

    while ((n = ebpfMonUseNotesTake(notes, &cursor, now, all, use, max)) > 0)
        sum += n;
    return sum;
}

/* As ebpfMonUseNotesAdd; the client gets a name. */
static int addNamed(ebpfMonUseNotes *to, const char *ioc, const char *channel, ebpfMonUseKind kind, uint64_t identity,
                    int64_t now, unsigned count)
{
    int isOther = ebpfMonUseNotesAdd(to, ioc, channel, kind, identity, now, count);

    if (isOther)
        ebpfMonUseNotesSetWho(to, ioc, channel, kind, "somebody");
    return isOther;
}

static void testNotes(void)
{
    testDiag("Notes");
    testOk(!addNamed(notes, "ioc", "A.VAL", ebpfMonUseRead, 1, NOW, 1) && takeAll(NOW, 1, 64) == 0,
           "without a file no use is noted");
    ebpfMonUseNotesSetWanted(notes, 1);
    testOk(ebpfMonUseNotesAdd(notes, "ioc", "A.VAL", ebpfMonUseRead, 1, NOW, 1), "a new client is noted");
    testOk(takeAll(NOW, 1, 64) == 0, "and not taken before it has its name");
    ebpfMonUseNotesSetWho(notes, "ioc", "A", ebpfMonUseRead, "anna@office");
    testOk(!addNamed(notes, "ioc", "A.DESC", ebpfMonUseRead, 1, NOW + 5, 2),
           "the same client at another field is not new");
    testOk(addNamed(notes, "ioc", "A", ebpfMonUseWrite, 1, NOW, 1) &&
               addNamed(notes, "ioc2", "A", ebpfMonUseRead, 1, NOW, 1) &&
               addNamed(notes, "ioc", "AB", ebpfMonUseRead, 1, NOW, 1),
           "other kinds, IOCs and records are uses of their own");
    testOk(!addNamed(notes, "ioc", ".VAL", ebpfMonUseRead, 7, NOW, 1), "a name without record is not noted");
    testOk1(takeAll(NOW + 5, 0, 64) == 4);
    for (unsigned i = 0; i < 4; i++)
        if (strcmp(use[i].ioc, "ioc") == 0 && strcmp(use[i].record, "A") == 0 && use[i].kind == ebpfMonUseRead)
            testOk(use[i].first == NOW && use[i].last == NOW + 5 && use[i].count == 3 &&
                       strcmp(use[i].who, "anna@office") == 0 && strcmp(use[i].channel, "A.VAL") == 0,
                   "the notes have what was noted");
    testOk(takeAll(NOW + 6, 0, 64) == 0, "the same use is not new");
    addNamed(notes, "ioc", "A", ebpfMonUseRead, 1, NOW + 7, 1);
    testOk(takeAll(NOW + 7, 0, 64) == 0 && takeAll(NOW + 65, 0, 64) == 1 && use[0].count == 1,
           "the same use is due later");
    addNamed(notes, "ioc", "A", ebpfMonUseRead, 1, NOW + 66, 1);
    testOk(takeAll(NOW + 66, 1, 64) == 1, "… or at once when all is wanted");
    addNamed(notes, "ioc", "A", ebpfMonUseRead, 2, NOW + 67, 1);
    testOk(takeAll(NOW + 67, 0, 64) == 1, "a use by another client is due at once");
    ebpfMonUseNotesGiveBack(notes, use, 1);
    testOk(takeAll(NOW + 67, 0, 64) == 1 && use[0].count == 1, "notes that were given back come again");
    for (int i = 0; i < 5000; i++) {
        char name[20];

        snprintf(name, sizeof(name), "R%d", i);
        addNamed(notes, "ioc", name, ebpfMonUseSubscribe, 3, NOW, 0);
    }
    testOk(takeAll(NOW, 0, 7) == 5000 && takeAll(NOW, 1, 7) == 0, "notes come in batches, each once");
}

/* A look each 10 s finds two clients that stay. */
static void testTwoSubscribers(void)
{
    unsigned written = 0;
    int64_t now = NOW;

    testDiag("Two subscribers of a PV");
    for (; now < NOW + 3600; now += 10) {
        if (ebpfMonUseNotesAdd(notes, "ioc", "T", ebpfMonUseSubscribe, 11, now, 0))
            ebpfMonUseNotesSetWho(notes, "ioc", "T", ebpfMonUseSubscribe, "anna");
        if (ebpfMonUseNotesAdd(notes, "ioc", "T", ebpfMonUseSubscribe, 12, now, 0))
            ebpfMonUseNotesSetWho(notes, "ioc", "T", ebpfMonUseSubscribe, "bert");
        written += takeAll(now, 0, 64);
    }
    testOk(written == 6 && strcmp(use[0].who, "bert") == 0, "written every ten minutes: %u times in an hour, by %s",
           written, use[0].who);
    if (ebpfMonUseNotesAdd(notes, "ioc", "T", ebpfMonUseSubscribe, 13, now, 0))
        ebpfMonUseNotesSetWho(notes, "ioc", "T", ebpfMonUseSubscribe, "carl");
    testOk(takeAll(now, 0, 64) == 1 && strcmp(use[0].who, "carl") == 0, "the last one is the one that was seen last");
}

static void testRoom(void)
{
    unsigned i;

    testDiag("No more room");
    for (i = 0; i < EBPFMON_USE_NOTES + 100; i++) {
        char name[20];

        snprintf(name, sizeof(name), "S%u", i);
        addNamed(notes, "ioc", name, ebpfMonUseRead, 3, NOW, 1);
    }
    testOk(ebpfMonUseNotesCountLost(notes) > 100, "notes that did not fit are counted: %llu",
           (unsigned long long)ebpfMonUseNotesCountLost(notes));
    ebpfMonUseNotesForget(notes, NOW);
    testOk(addNamed(notes, "ioc", "A", ebpfMonUseRead, 9, NOW, 1) == 1 && takeAll(NOW, 1, 64) > 100000,
           "notes that are not written yet are kept");
    ebpfMonUseNotesForget(notes, NOW);
    testOk(addNamed(notes, "ioc", "NEW", ebpfMonUseRead, 9, NOW, 1),
           "after they are written there is room again");
}

static void addChannels(ebpfMonUseNotes *to, unsigned first, unsigned end, int64_t now)
{
    for (unsigned i = first; i < end; i++) {
        char name[20];

        snprintf(name, sizeof(name), "C%u", i);
        addNamed(to, "ioc", name, ebpfMonUseConnect, 3, now, 0);
    }
}

/* More than half of the room is used, by channels that stay. */
static void testForget(void)
{
    const unsigned many = EBPFMON_USE_NOTES / 4 * 3;
    ebpfMonUseNotes *all = notes;

    testDiag("Notes that are forgotten");
    notes = ebpfMonUseNotesNew();
    ebpfMonUseNotesSetWanted(notes, 1);
    addChannels(notes, 0, 1, NOW);
    addChannels(notes, 1, many, NOW + 900);
    takeAll(NOW + 900, 1, 64);
    ebpfMonUseNotesForget(notes, NOW + 910);
    addChannels(notes, 0, many, NOW + 910);
    testOk(takeAll(NOW + 910, 0, 64) == 1 && strcmp(use[0].record, "C0") == 0,
           "a channel that is still there is not forgotten, so it is not written again");
    addChannels(notes, many, EBPFMON_USE_NOTES, NOW + 920);
    takeAll(NOW + 920, 1, 64);
    ebpfMonUseNotesForget(notes, NOW + 920);
    addChannels(notes, EBPFMON_USE_NOTES, EBPFMON_USE_NOTES + 10, NOW + 920);
    testOk(ebpfMonUseNotesCountLost(notes) == 0, "… unless all of the room is used");
    ebpfMonUseNotesFree(notes);
    notes = all;
}

static unsigned rows;
static ebpfMonUse lastRow;
static ebpfMonWatched span[8];

static void noteRow(void *arg, const ebpfMonUse *row)
{
    rows++;
    lastRow = *row;
}

static void noteSpan(void *arg, const ebpfMonWatched *w)
{
    unsigned *n = arg;

    if (*n < 8)
        span[*n] = *w;
    ++*n;
}

static int addUse(ebpfMonUseStore *s, int64_t at, const char *who)
{
    ebpfMonUse one = { .ioc = "ioc", .record = "A", .channel = "A.VAL", .kind = ebpfMonUseRead, .first = at, .last = at,
                       .count = 2 };

    snprintf(one.who, sizeof(one.who), "%s", who);
    return ebpfMonUseStoreAddUse(s, &one, why, sizeof(why));
}

static int addWatched(ebpfMonUseStore *s, int ways, int64_t at)
{
    return ebpfMonUseStoreAddWatched(s, "ioc", ways, at, why, sizeof(why));
}

static void testStore(void)
{
    ebpfMonUseStore *s = ebpfMonUseStoreOpen(file, 0, 0, why, sizeof(why)), *reader;
    unsigned n = 0;

    testDiag("Database");
    testOk(!s, "a reader does not make a file that is missing: %s", why);
    s = ebpfMonUseStoreOpen(file, 1, 1, why, sizeof(why));
    if (!s)
        testAbort("%s", why);
    testOk1(ebpfMonUseStoreBegin(s, why, sizeof(why)) == 0 && addUse(s, NOW, "anna") == 0);
    testOk(!ebpfMonUseStoreOpen(file, 1, 1, why, sizeof(why)) &&
           strstr(why, "another monitor writes this file") == why, "a second writer: %s", why);
    ebpfMonUseStoreCancel(s);
    testOk(ebpfMonUseStoreCount(s) == 0, "a batch that is cancelled leaves nothing");
    testOk1(ebpfMonUseStoreBegin(s, why, sizeof(why)) == 0 && addUse(s, NOW, "anna") == 0 &&
            addUse(s, NOW + 9, "bert") == 0 && ebpfMonUseStoreEnd(s, why, sizeof(why)) == 0);
    reader = ebpfMonUseStoreOpen(file, 0, 0, why, sizeof(why));
    testOk(reader && ebpfMonUseStoreEachUse(reader, "ioc", noteRow, NULL, why, sizeof(why)) == 0 && rows == 1 &&
           lastRow.first == NOW && lastRow.last == NOW + 9 && lastRow.count == 4 && strcmp(lastRow.who, "bert") == 0,
           "a reader sees one row, of who was last, while the writer has it open");
    addWatched(s, 7, NOW);
    addWatched(s, 7, NOW + 10);
    addWatched(s, 7, NOW + 70);
    addWatched(s, 3, NOW + 80);
    addWatched(s, 7, NOW + 90);
    addWatched(s, 7, NOW + 151);
    testOk(ebpfMonUseStoreEachWatched(reader, "ioc", noteSpan, &n, why, sizeof(why)) == 0 && n == 4, "%u times watched",
           n);
    testOk(span[0].began == NOW && span[0].ended == NOW + 70 && span[1].ways == 3 && span[1].began == NOW + 80 &&
           span[2].began == NOW + 90 && span[2].ended == NOW + 90 && span[3].began == NOW + 151,
           "watching goes on; another way or a break of more than a minute begins anew");
    ebpfMonUseStoreClose(reader);
    ebpfMonUseStoreClose(s);
    s = ebpfMonUseStoreOpen(file, 1, 1, why, sizeof(why));
    testOk(s && ebpfMonUseStoreCount(s) == 1, "an IOC that is there again is watched again");
    ebpfMonUseStoreClose(s);
}

/* The clock was ahead by ten days, and then it was set right. */
static void testClockAhead(void)
{
    ebpfMonUseStore *s = ebpfMonUseStoreOpen(file, 1, 1, why, sizeof(why));
    int64_t now = ebpfMonClockUnixSeconds(), ahead = now + 10 * 86400;
    unsigned n = 0;

    testDiag("A clock that was ahead");
    if (!s)
        testAbort("%s", why);
    addUse(s, ahead, "carl");
    addUse(s, now, "dora");
    ebpfMonUseStoreEachUse(s, "ioc", noteRow, NULL, why, sizeof(why));
    testOk(lastRow.last == now && strcmp(lastRow.who, "dora") == 0, "a date that is to come does not stay");
    addUse(s, now - 5, "emil");
    ebpfMonUseStoreEachUse(s, "ioc", noteRow, NULL, why, sizeof(why));
    testOk(lastRow.last == now && lastRow.first == NOW && strcmp(lastRow.who, "dora") == 0,
           "a later date stays, if it is past, and so does its client");
    ebpfMonUseStoreAddWatched(s, "ahead", 7, ahead, why, sizeof(why));
    for (int i = 0; i < 10; i++)
        ebpfMonUseStoreAddWatched(s, "ahead", 7, now + 10 * i, why, sizeof(why));
    ebpfMonUseStoreEachWatched(s, "ahead", noteSpan, &n, why, sizeof(why));
    testOk(n == 2 && span[0].began == now && span[0].ended == now + 90, "watching since then is one row of %u", n);
    ebpfMonUseStoreClose(s);
}

/* A file of 1 MB, and more uses than it can have. */
static void testFullFile(void)
{
    ebpfMonUseStore *s = ebpfMonUseStoreOpen(file, 1, 1, why, sizeof(why));
    ebpfMonUse other = { .ioc = "ioc", .kind = ebpfMonUseRead, .first = NOW, .last = NOW };
    int64_t count;
    int status = 0;

    testDiag("A full file");
    if (!s)
        testAbort("%s", why);
    for (unsigned i = 0; i < 20000 && status == 0; i++) {
        snprintf(other.record, sizeof(other.record), "A:LONG:NAME:TO:FILL:THE:FILE:SOON:%05u", i);
        status = ebpfMonUseStoreBegin(s, why, sizeof(why)) || ebpfMonUseStoreAddUse(s, &other, why, sizeof(why));
        if (status == 0)
            status = ebpfMonUseStoreEnd(s, why, sizeof(why));
    }
    count = ebpfMonUseStoreCount(s);
    ebpfMonUseStoreCancel(s);
    testOk(count > 1000 && ebpfMonUseStoreBegin(s, why, sizeof(why)) == 0 &&
           ebpfMonUseStoreAddUse(s, &other, why, sizeof(why)) == EBPFMON_STORE_FULL,
           "full with %d uses: %s", (int)count, why);
    ebpfMonUseStoreCancel(s);
    ebpfMonUseStoreBegin(s, why, sizeof(why));
    testOk(ebpfMonUseStoreUpdateUse(s, &other, why, sizeof(why)) == 1, "it has no room for a new use");
    strcpy(other.record, "A:LONG:NAME:TO:FILL:THE:FILE:SOON:00000");
    other.last = NOW + 77;
    testOk(ebpfMonUseStoreUpdateUse(s, &other, why, sizeof(why)) == 0 && ebpfMonUseStoreEnd(s, why, sizeof(why)) == 0,
           "a use that it has goes on: %s", why);
    ebpfMonUseStoreEachUse(s, "ioc", noteRow, NULL, why, sizeof(why));
    testOk(ebpfMonUseStoreCount(s) == count, "nothing is lost");
    ebpfMonUseStoreClose(s);
}

/* The full file of testFullFile, in which one IOC has nearly all. */
static void testShares(void)
{
    ebpfMonUseStore *s = ebpfMonUseStoreOpen(file, 1, 1, why, sizeof(why));
    ebpfMonUse other = { .ioc = "new", .record = "X", .kind = ebpfMonUseRead, .first = NOW, .last = NOW };
    int64_t most = 0;

    testDiag("Shares of a full file");
    if (!s)
        testAbort("%s", why);
    testOk(ebpfMonUseStoreGetPayer(s, "ioc") == -1 && ebpfMonUseStoreSetPayer(s, "ioc", 1000, why, sizeof(why)) == 0 &&
           ebpfMonUseStoreSetPayer(s, "ioc", 1001, why, sizeof(why)) == 0 && ebpfMonUseStoreGetPayer(s, "ioc") == 1000,
           "the first one pays");
    testOk(ebpfMonUseStoreMakeRoom(s, 1000, &most, why, sizeof(why)) == 0 && most == 1000,
           "who has most gets no more");
    ebpfMonUseStoreBegin(s, why, sizeof(why));
    testOk(ebpfMonUseStoreMakeRoom(s, 1001, &most, why, sizeof(why)) == 1 && most == 1000 &&
           ebpfMonUseStoreEnd(s, why, sizeof(why)) == 0, "another one gets room: %s", why);
    ebpfMonUseStoreBegin(s, why, sizeof(why));
    testOk(ebpfMonUseStoreAddUse(s, &other, why, sizeof(why)) == 0 && ebpfMonUseStoreEnd(s, why, sizeof(why)) == 0 &&
           ebpfMonUseStoreCount(s) < 100, "and uses it: %s", why);
    testOk(ebpfMonUseStoreMakeRoom(s, 1001, &most, why, sizeof(why)) == 0, "a file with room gives nothing up");
    testOk(ebpfMonUseStoreSetPayer(s, "ioc", 0, why, sizeof(why)) == 0 && ebpfMonUseStoreGetPayer(s, "ioc") == 0,
           "a system user pays for an IOC from now on");
    ebpfMonUseStoreClose(s);
}

/* A database in a folder where other users could replace it, or make a link to another file. */
static void testForeignFiles(const char *folder)
{
    char link[100], target[100];
    struct stat st;

    testDiag("Files of others");
    testOk(stat(file, &st) == 0 && !(st.st_mode & 0137), "the file is not for everybody: mode %o", st.st_mode & 0777);
    snprintf(link, sizeof(link), "%s/link.db", folder);
    snprintf(target, sizeof(target), "%s/target.db", folder);
    testOk(symlink(target, link) == 0 && !ebpfMonUseStoreOpen(link, 1, 1, why, sizeof(why)) && access(target, F_OK),
           "a link in place of the file is refused: %s", why);
    unlink(link);
    testOk(chmod(folder, 01777) == 0 && !ebpfMonUseStoreOpen(link, 1, 1, why, sizeof(why)) && access(link, F_OK), "%s",
           why);
    chmod(folder, 0700);
}

MAIN(testUsage)
{
    char folder[] = "/tmp/testUsageXXXXXX", name[80];

    testPlan(14 + 2 + 3 + 2 + 9 + 3 + 4 + 6 + 3);
    if (!mkdtemp(folder))
        testAbort("no folder");
    snprintf(file, sizeof(file), "%s/uses.db", folder);
    notes = ebpfMonUseNotesNew();
    testNotes();
    testTwoSubscribers();
    testRoom();
    testForget();
    testStore();
    testClockAhead();
    testFullFile();
    testShares();
    testForeignFiles(folder);
    ebpfMonUseNotesFree(notes);
    for (const char *end = "\0-wal\0-shm\0."; *end != '.'; end += strlen(end) + 1) {
        snprintf(name, sizeof(name), "%s%s", file, end);
        unlink(name);
    }
    rmdir(folder);
    return testDone();
}
