/* SPDX-License-Identifier: BSD-3-Clause */
/* Levels, filter, lines of puts, cutting of text, and published values without an IOC. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dbAccess.h>
#include <envDefs.h>
#include <epicsUnitTest.h>
#include <errlog.h>
#include <testMain.h>

#include "model/published.h"
#include "model/ops.h"
#include "model/filter.h"
#include "model/put.h"

#define ARROW "\xe2\x86\x92"

static void testLevel(void)
{
    int level;

    testDiag("levels");
    for (level = 0; level < ebpfMonLevelCount; level++)
        testOk(ebpfMonLevelParse(ebpfMonLevelName((ebpfMonLevel)level)) == level, "level %d is \"%s\"", level,
               ebpfMonLevelName((ebpfMonLevel)level));
    testOk1(ebpfMonLevelParse("Chains") == ebpfMonLevelChains);
    testOk1(ebpfMonLevelParse("chain") == -1);
    testOk1(ebpfMonLevelParse("") == -1);
    testOk1(ebpfMonLevelParse(NULL) == -1);
    testOk1(ebpfMonLevelName((ebpfMonLevel)77) != NULL);
}

static void testCut(void)
{
    char buf[8];

    testDiag("cutting of text");
    testOk1(ebpfMonTextCopy(buf, sizeof(buf), "1234567") == 0 && strcmp(buf, "1234567") == 0);
    testOk1(ebpfMonTextCopy(buf, sizeof(buf), "12345678") != 0 && strcmp(buf, "1234...") == 0);
    testOk1(ebpfMonTextCopy(buf, sizeof(buf), "123\xc2\xb5xxx") != 0);
    testOk(strcmp(buf, "123...") == 0, "no half of a two-byte character: \"%s\"", buf);
    testOk1(ebpfMonTextCopy(buf, sizeof(buf), "12" ARROW "xxx") != 0);
    testOk(strcmp(buf, "12...") == 0, "no part of a three-byte character: \"%s\"", buf);
    testOk1(ebpfMonTextCopy(buf, 3, "123") != 0 && strcmp(buf, "..") == 0);
    testOk1(ebpfMonTextCopy(buf, 1, "123") != 0 && buf[0] == 0);
    testOk1(ebpfMonTextCopy(buf, 1, "") == 0 && buf[0] == 0);
}

static void testLine(void)
{
    ebpfMonPut put;
    char line[EBPFMON_LINE_SIZE], shortLine[40];

    testDiag("a put in one line");
    memset(&put, 0, sizeof(put));
    put.time.secPastEpoch = 1163575683u; /* 2026-11-15 07:28:03 UTC */
    put.time.nsec = 123456000;
    strcpy(put.pv, "RING:CURRENT.HOPR");
    strcpy(put.old, "1");
    strcpy(put.val, "2");
    strcpy(put.who, "alice@opi1");
    strcpy(put.origin, "CA 127.0.0.1:51234");
    testOk1(ebpfMonPutLine(&put, line, sizeof(line)) == strlen(line));
    testOk(strcmp(line, "2026-11-15 07:28:03.123456 RING:CURRENT.HOPR 1 -> 2"
                  " by alice@opi1 (CA 127.0.0.1:51234)") == 0, "a put that was made: %s", line);
    put.result = ebpfMonPutDenied;
    ebpfMonPutLine(&put, line, sizeof(line));
    testOk(strstr(line, "51234) DENIED") != NULL, "a put that was denied: %s", line);
    put.result = ebpfMonPutUnknown;
    ebpfMonPutLine(&put, line, sizeof(line));
    testOk(strstr(line, "51234) (result not seen)") != NULL, "a put whose result is unknown: %s", line);
    put.result = ebpfMonPutFailed;
    put.status = S_db_badChoice;
    ebpfMonPutLine(&put, line, sizeof(line));
    testOk(strstr(line, " FAILED: Illegal choice") != NULL, "a put that failed: %s", line);
    put.status = 0;
    ebpfMonPutLine(&put, line, sizeof(line));
    testOk(strcmp(line + strlen(line) - strlen("51234) FAILED"), "51234) FAILED") == 0, "the reason is not known: %s",
           line);
    put.result = ebpfMonPutOk;
    strcpy(put.val, "a\nb\033[2J");
    ebpfMonPutLine(&put, line, sizeof(line));
    testOk(!strchr(line, '\n') && !strchr(line, '\033'), "no control characters: %s", line);
    memset(put.val, 'v', sizeof(put.val) - 1);
    memset(put.old, 'o', sizeof(put.old) - 1);
    put.origin[0] = 0;
    testOk1(ebpfMonPutLine(&put, line, sizeof(line)) > 1024);
    testOk(strcmp(line + strlen(line) - strlen(" by alice@opi1"), " by alice@opi1") == 0, "the longest line fits");
    testOk1(ebpfMonPutLine(&put, shortLine, sizeof(shortLine)) == 39);
    testOk(strcmp(shortLine + 36, "...") == 0, "a line that is cut: %s", shortLine);
}

#define UMLAUTS "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"

static void brief(const char *pv, const char *val, const char *user, const char *rule, const char *expected)
{
    char text[EBPFMON_BRIEF_SIZE];
    ebpfMonPut put;

    memset(&put, 0, sizeof(put));
    strcpy(put.pv, pv);
    strcpy(put.val, val);
    strcpy(put.user, user);
    strcpy(put.who, "shell");
    strcpy(put.rule, rule);
    ebpfMonPutBrief(&put, text);
    testOk(strcmp(text, expected) == 0, "%s", text);
    if (strcmp(text, expected) != 0)
        testDiag("    expected %s", expected);
}

static void testBrief(void)
{
    testDiag("a put for an alarm table: PV and value first, at most 39 characters");
    brief("M:I", "450", "eve", "no rule", "M:I = 450 by eve: no rule");
    brief("M:I", "450", "", "no rule", "M:I = 450 by shell: no rule");
    brief("DEMO:MAG:I", "450", "eve", "rule \"m\": 450 is not 200 or less",
          "DEMO:MAG:I = 450 by eve: rule \"m\": 4...");
    brief("DEMO:MAGNET:CURRENT:SET", "450", "eve", "rule", "DEMO:MAGNET:CURRENT:SET = 450 by eve");
    brief("DEMO:MAGNET:CURRENT:SET", "450", "evelyn.long", "rule", "DEMO:MAGNET:CURRENT:SET = 450");
    brief("DEMO:MAG:CURRENT:SET", "0123456789abcdefghij", "eve", "r", "DEMO:MAG:CURRENT:SET = 0123456789abc...");
    brief("SECTION:07:MAGNET:QUADRUPOLE:3:CURRENT:SET", "0123456789abcdefghij", "eve", "r",
          "...DRUPOLE:3:CURRENT:SET = 012345678...");
    brief("SECTION:07:MAGNET:QUADRUPOLE:3:CURRENT:SET", "", "eve", "r", "...7:MAGNET:QUADRUPOLE:3:CURRENT:SET = ");
    /* 18 characters, two bytes each */
    brief(UMLAUTS UMLAUTS UMLAUTS, "12345", "eve", "r", "..." UMLAUTS UMLAUTS "\xc3\xa4\xc3\xa4 = 12345");
}

static void refused(ebpfMonFilter filter, const char *because)
{
    char why[256] = "";

    testOk(ebpfMonFilterCheck(&filter, why, sizeof(why)) == -1 && strstr(why, because) != NULL,
           "refused: %s", why);
}

static void testFilter(void)
{
    ebpfMonFilter filter = ebpfMonFilterDefault;
    char why[256] = "";

    testDiag("filter");
    testOk1(ebpfMonFilterCheck(&filter, why, sizeof(why)) == 0);
    testOk1(filter.level == ebpfMonLevelChains && filter.slowUs == 10000 && filter.timed == 5 && filter.budget == 1);
    filter.record[0] = 0;
    filter.sample = 0;
    testOk1(ebpfMonFilterCheck(&filter, why, sizeof(why)) == 0);
    testOk1(strcmp(filter.record, "*") == 0 && filter.sample == 1);

    strcpy(filter.record, "A[bc");
    refused(filter, "[");
    strcpy(filter.record, "A[bc]");
    refused(filter, "not supported");
    strcpy(filter.record, "A\tB");
    refused(filter, "control character");
    strcpy(filter.record, "A\x9b");
    refused(filter, "not UTF-8");
    strcpy(filter.record, "A\xe2\x80\xae*");
    refused(filter, "does not see");
    strcpy(filter.record, "*");
    memset(filter.user, 'u', sizeof(filter.user));
    refused(filter, "longer than 60");
    strcpy(filter.user, "*");
    filter.level = (ebpfMonLevel)5;
    refused(filter, "level 5");
    filter.level = ebpfMonLevelTrace;
    filter.slowUs = -1;
    refused(filter, "slow");
    filter.slowUs = NAN;
    refused(filter, "slow");
    filter.slowUs = 0;
    filter.budget = 100.5;
    refused(filter, "budget");
    filter.budget = NAN;
    refused(filter, "budget");
    filter.budget = -1;
    refused(filter, "budget");
    filter.budget = 0;
    filter.timed = 100.5;
    refused(filter, "measured");
    filter.timed = NAN;
    refused(filter, "measured");
    filter.timed = -1;
    refused(filter, "measured");

    filter = ebpfMonFilterDefault;
    testOk1(ebpfMonFilterWantsPut(&filter, "A:B", "VAL", "", ""));
    strcpy(filter.record, "A:?");
    strcpy(filter.user, "op*");
    testOk1(ebpfMonFilterWantsPut(&filter, "A:B", "VAL", "h", "operator"));
    testOk1(!ebpfMonFilterWantsPut(&filter, "A:BC", "VAL", "h", "operator"));
    testOk1(!ebpfMonFilterWantsPut(&filter, "A:B", "VAL", "h", "root"));
}

static unsigned heard[ebpfMonGroupCount];

static void hear(ebpfMonGroup group)
{
    heard[group]++;
}

static void keepPut(ebpfMonThrough through, int byProgram, const char *pv)
{
    static ebpfMonPut put;

    put.through = through;
    put.byProgram = byProgram;
    strcpy(put.pv, pv);
    ebpfMonPublishedKeepPut(ebpfMonPublishedLock(), &put);
    ebpfMonPublishedUnlock();
}

static int isPut(const ebpfMonPut *put, const char *pv)
{
    return put && strcmp(put->pv, pv) == 0;
}

static void testPutKinds(void)
{
    const ebpfMonPublished *published = ebpfMonPublishedLock(); /* no other thread writes it */

    ebpfMonPublishedUnlock();
    keepPut(ebpfMonByCa, 0, "person");
    keepPut(ebpfMonByShell, 0, "shell");
    keepPut(ebpfMonByCa, 1, "sequence");
    keepPut(ebpfMonByThread, 0, "driver");
    testOk1(isPut(ebpfMonPublishedGetPut(published, 0), "driver") &&
            isPut(ebpfMonPublishedGetPut(published, 3), "person") && !ebpfMonPublishedGetPut(published, 4));
    testOk1(isPut(ebpfMonPublishedGetPutOf(published, ebpfMonPutByClient, 0), "shell") &&
            isPut(ebpfMonPublishedGetPutOf(published, ebpfMonPutAutomatic, 1), "sequence") &&
            !ebpfMonPublishedGetPutOf(published, ebpfMonPutAutomatic, 2));
    for (int i = 0; i < 1000; i++)
        keepPut(ebpfMonByLink, 0, "link");
    testOk(isPut(ebpfMonPublishedGetPutOf(published, ebpfMonPutByClient, 1), "person") &&
           !ebpfMonPublishedGetPutOf(published, ebpfMonPutByClient, 2), "puts of links do not push out puts of people");
    keepPut(ebpfMonByPva, 0, "newest");
    testOk(isPut(ebpfMonPublishedGetPut(published, 0), "newest") &&
               isPut(ebpfMonPublishedGetPut(published, 1), "link") &&
               isPut(ebpfMonPublishedGetPut(published, EBPFMON_PUTS_MAX - 1), "link") &&
               !ebpfMonPublishedGetPut(published, EBPFMON_PUTS_MAX),
           "all puts are there, in their order");
}

static void keepPutAt(ebpfMonThrough through, double seconds, uint64_t made)
{
    static ebpfMonPut put;

    put.through = through;
    put.time = (epicsTimeStamp){ .secPastEpoch = 1000000000 };
    epicsTimeAddSeconds(&put.time, seconds);
    put.at = made;
    snprintf(put.pv, sizeof(put.pv), "%.6f", seconds);
    ebpfMonPublishedKeepPut(ebpfMonPublishedLock(), &put);
    ebpfMonPublishedUnlock();
}

static double secondsOf(const ebpfMonPut *put)
{
    return put ? atof(put->pv) : -1e9;
}

#define LATE_PUTS 2000

static int byDescent(const void *a, const void *b)
{
    return *(const double *)a < *(const double *)b ? 1 : -1;
}

/* Puts do not arrive in the order of their times. */
static void testLatePuts(void)
{
    const ebpfMonPublished *published = ebpfMonPublishedLock(); /* no other thread writes it */
    static double of[ebpfMonPutKinds][LATE_PUTS], all[LATE_PUTS];
    unsigned n[ebpfMonPutKinds] = { 0 }, bad = 0, badOf = 0;

    ebpfMonPublishedUnlock();
    for (unsigned i = 0; i < LATE_PUTS; i++) {
        ebpfMonPutKind kind = rand() % 3 ? ebpfMonPutAutomatic : ebpfMonPutByClient;

        all[i] = 0.05 * i + 90.0 * rand() / RAND_MAX;
        of[kind][n[kind]++] = all[i];
        keepPutAt(kind == ebpfMonPutAutomatic ? ebpfMonByLink : ebpfMonByCa, all[i], (uint64_t)(1e6 * all[i]));
    }
    qsort(all, LATE_PUTS, sizeof(*all), byDescent);
    for (unsigned i = 0; i < EBPFMON_PUTS_MAX; i++)
        bad += fabs(secondsOf(ebpfMonPublishedGetPut(published, i)) - all[i]) > 1e-5;
    for (int kind = 0; kind < ebpfMonPutKinds; kind++) {
        qsort(of[kind], n[kind], sizeof(**of), byDescent);
        for (unsigned i = 0; i < EBPFMON_PUTS_MAX; i++)
            badOf += fabs(secondsOf(ebpfMonPublishedGetPutOf(published, (ebpfMonPutKind)kind, i)) - of[kind][i]) > 1e-5;
    }
    testOk(!bad && !badOf, "in the order of their times: %u of all and %u of a kind are not", bad, badOf);
    keepPutAt(ebpfMonByCa, -3600, UINT64_MAX);
    testOk(secondsOf(ebpfMonPublishedGetPutOf(published, ebpfMonPutByClient, 0)) == -3600 &&
               secondsOf(ebpfMonPublishedGetPut(published, 0)) == -3600,
           "the clock was set back: the newest put comes first");
}

/* "writer": a link, or a user if it has no field. */
static void keepOf(const char *writer, const char *pv, const char *value, double seconds)
{
    static ebpfMonPut put;

    put.through = strchr(writer, '.') ? ebpfMonByLink : ebpfMonByCa;
    strcpy(put.link, put.through == ebpfMonByLink ? writer : "");
    strcpy(put.user, put.through == ebpfMonByLink ? "" : writer);
    put.time = (epicsTimeStamp){ .secPastEpoch = 1000000000 };
    epicsTimeAddSeconds(&put.time, seconds);
    put.at = (uint64_t)((1000 + seconds) * 1e9); /* later than those of the tests before */
    strcpy(put.pv, pv);
    strcpy(put.val, value);
    strcpy(put.after, strcmp(value, "too much") == 0 ? "200" : "");
    ebpfMonPublishedKeepPut(ebpfMonPublishedLock(), &put);
    ebpfMonPublishedUnlock();
}

static void keepOfLink(const char *pv, const char *value, double seconds)
{
    keepOf("RUN:SEQ.LNK1", pv, value, seconds);
}

/* "first" NULL: the row stands for itself. */
static int isRunOf(ebpfMonPutKind kind, unsigned i, const char *pv, uint64_t count, const char *first,
                   const char *value)
{
    const ebpfMonPut *put = ebpfMonPublishedGetPutOf(ebpfMonPublishedLock(), kind, i);

    ebpfMonPublishedUnlock();
    testDiag("%s x%llu from %s to %s", put->pv, (unsigned long long)put->run.count, put->run.first, put->val);
    return isPut(put, pv) && strcmp(put->val, value) == 0 && put->run.count == count &&
           (!first || strcmp(put->run.first, first) == 0);
}

static int isRun(unsigned i, const char *pv, uint64_t count, const char *first, const char *value)
{
    return isRunOf(ebpfMonPutAutomatic, i, pv, count, first, value);
}

#define TURNS 60 /* PVs */

/* A script writes many PVs in turn; before, it has done something else, and so has a person. */
static void testTurns(void)
{
    char pv[20], value[20];
    unsigned bad = 0, rows = 0;

    keepOf("script", "TURN:ONCE", "1", 1000);
    keepOf("person", "TURN:0", "5", 1001);
    keepOf("person", "TURN:0", "6", 1002);
    for (int i = 0; i < 50 * TURNS; i++) {
        snprintf(pv, sizeof(pv), "TURN:%d", i % TURNS);
        snprintf(value, sizeof(value), "%d", i / TURNS);
        keepOf("script", pv, value, 1003 + i / 20.0);
    }
    for (unsigned i = 0; i < TURNS; i++) { /* behind the put of before the clock was set back */
        snprintf(pv, sizeof(pv), "TURN:%u", TURNS - 1 - i);
        bad += !isRunOf(ebpfMonPutByClient, 1 + i, pv, 50, "0", "49");
    }
    testOk(!bad, "one row for each PV of a program that writes many: %u are not", bad);
    while (rows < EBPFMON_PUTS_MAX && !isRunOf(ebpfMonPutByClient, rows, "TURN:0", 0, NULL, "6"))
        rows++;
    testOk(rows == 1 + TURNS && isRunOf(ebpfMonPutByClient, rows + 1, "TURN:0", 0, NULL, "5") &&
               isRunOf(ebpfMonPutByClient, rows + 2, "TURN:ONCE", 0, NULL, "1"), "nothing else is hidden");
    keepOf("script", "TURN:0", "too much", 1160);
    keepOf("script", "TURN:0", "50", 1161);
    testOk(isRunOf(ebpfMonPutByClient, 1, "TURN:0", 51, "0", "50") &&
               isRunOf(ebpfMonPutByClient, 2, "TURN:0", 0, NULL, "too much"),
           "one that became another value has a row of its own");
}

/* One writer writes two PVs in turn. */
static void testRuns(void)
{
    char value[20];

    for (int i = 0; i < 3000; i++) {
        snprintf(value, sizeof(value), "%d", i / 2);
        keepOfLink(i % 2 ? "RUN:B" : "RUN:A", value, i / 100.0);
    }
    testOk(isRun(0, "RUN:B", 1500, "0", "1499") && isRun(1, "RUN:A", 1500, "0", "1499"), "one row for each PV");
    keepOfLink("RUN:A", "late", 29.5);
    keepOfLink("RUN:A", "before", -1);
    testOk(isRun(0, "RUN:B", 1500, "0", "1499") && isRun(1, "RUN:A", 1501, "0", "1499") &&
               isRun(2, "RUN:A", 0, NULL, "before"),
           "a put that comes late is counted; one from before the run is a row of its own");
    for (int i = 0; i < 10; i++)
        keepOfLink("RUN:A", "again", 100 + i);
    testOk(isRun(0, "RUN:A", 0, NULL, "again") && isRun(9, "RUN:A", 0, NULL, "again") &&
               isRun(10, "RUN:B", 1500, "0", "1499"),
           "after a pause ten puts are rows of their own");
    keepOfLink("RUN:A", "more", 110);
    testOk(isRun(0, "RUN:A", 11, "again", "more") && isRun(1, "RUN:B", 1500, "0", "1499") &&
               isRun(2, "RUN:A", 1501, "0", "1499"), "one more, and they are a row");
    for (int i = 0; i < EBPFMON_PUTS_MAX; i++) {
        snprintf(value, sizeof(value), "RUN:%d", i);
        keepOfLink(value, "1", 200 + i);
    }
    testOk(isRun(0, "RUN:199", 0, NULL, "1") && isRun(EBPFMON_PUTS_MAX - 1, "RUN:0", 0, NULL, "1"),
           "the freed places are used again");
}

static void addUnexpected(const char *pv, uint64_t made)
{
    static ebpfMonPut put;

    put.unexpected = 1;
    put.at = made;
    snprintf(put.pv, sizeof(put.pv), "%s", pv);
    ebpfMonPublishedAddUnexpected(&put);
}

static void testLateUnexpected(void)
{
    const ebpfMonPublished *published = ebpfMonPublishedLock();
    unsigned bad = 0;

    ebpfMonPublishedUnlock();
    addUnexpected("old", 5);
    addUnexpected("new", 9);
    addUnexpected("late", 7);
    testOk(isPut(ebpfMonPublishedGetNewestUnexpected(published), "new") &&
               isPut(ebpfMonPublishedGetLastUnexpected(published), "late"),
           "one that is published late is not the newest");
    testOk1(isPut(ebpfMonPublishedGetUnexpected(published, 1), "late") &&
            isPut(ebpfMonPublishedGetUnexpected(published, 2), "old") && !ebpfMonPublishedGetUnexpected(published, 3));
    ebpfMonPublishedSetUnexpectedShown(ebpfMonShownByPvs, 2);
    testOk(ebpfMonPublishedAcknowledge(ebpfMonShownByPvs) == 1 &&
               isPut(ebpfMonPublishedGetNewestUnexpected(published), "late") &&
               isPut(ebpfMonPublishedGetUnexpected(published, 0), "late"), "the others are acknowledged: it is shown");
    ebpfMonPublishedSetUnexpectedShown(ebpfMonShownByPvs, 3);
    testOk(ebpfMonPublishedAcknowledge(ebpfMonShownByPvs) == 0 && !ebpfMonPublishedGetUnexpected(published, 0) &&
               isPut(ebpfMonPublishedGetNewestUnexpected(published), "new"), "all are: the newest is shown");
    for (unsigned i = 0; i < 1000; i++)
        addUnexpected("many", 100 + (uint64_t)rand() % 50);
    for (unsigned i = 1; i < EBPFMON_UNEXPECTED_MAX; i++)
        bad += ebpfMonPublishedGetUnexpected(published, i - 1)->at < ebpfMonPublishedGetUnexpected(published, i)->at;
    testOk(!bad && !ebpfMonPublishedGetUnexpected(published, EBPFMON_UNEXPECTED_MAX), "of many, the last in order");
}

static void testTimes(void)
{
    ebpfMonPublished *published = ebpfMonPublishedLock();
    epicsTimeStamp *time = &published->time[ebpfMonGroupWatch], now = { .secPastEpoch = 5000 };

    ebpfMonPublishedSetTime(published, ebpfMonGroupWatch, now, 100);
    now.secPastEpoch -= 12;
    ebpfMonPublishedSetTime(published, ebpfMonGroupWatch, now, 100);
    testOk(time->secPastEpoch == 5000, "what comes late does not set the time of the list back");
    now.secPastEpoch -= 100;
    ebpfMonPublishedSetTime(published, ebpfMonGroupWatch, now, 99);
    testOk(time->secPastEpoch == 5000, "nor does what comes very late");
    ebpfMonPublishedSetTime(published, ebpfMonGroupWatch, now, 101);
    testOk(time->secPastEpoch == 4888, "... but a clock that was set back does");
    ebpfMonPublishedUnlock();
}

static void testPublished(void)
{
    ebpfMonPublished *published;
    int first, i, full;
    char name[32], selected[EBPFMON_NAME_SIZE];

    testDiag("published");
    published = ebpfMonPublishedLock();
    testOk1(published->state == ebpfMonStarting);
    testOk1(ebpfMonPublishedGetPut(published, 0) == NULL);
    ebpfMonPublishedUnlock();
    testPutKinds();
    testLatePuts();
    testRuns();
    testTurns();
    testLateUnexpected();
    testTimes();

    ebpfMonPublishedNotify(ebpfMonGroupPuts);
    ebpfMonPublishedSetListener(hear);
    ebpfMonPublishedNotify(ebpfMonGroupPuts);
    ebpfMonPublishedSetListener(NULL);
    ebpfMonPublishedNotify(ebpfMonGroupPuts);
    testOk1(heard[ebpfMonGroupPuts] == 1 && heard[ebpfMonGroupState] == 0);

    first = ebpfMonPublishedAddWatch("REC:A");
    testOk1(first >= 0 && ebpfMonPublishedAddWatch("REC:A") == first && ebpfMonPublishedAddWatch("REC:B") != first);
    testOk1(ebpfMonPublishedAddWatch("") == -1);
    testOk(strcmp(ebpfMonPublishedLock()->watched.row[first].putLast, "no put yet") == 0, "there is no put yet");
    ebpfMonPublishedUnlock();
    testOk1(ebpfMonPublishedAddWatch("1234567890123456789012345678901234567890123456789012345678901") == -1);
    for (i = 0, full = 0; i < EBPFMON_WATCH_MAX + 1 && full >= 0; i++) {
        sprintf(name, "MANY:%d", i);
        full = ebpfMonPublishedAddWatch(name);
    }
    testOk(full == -1 && ebpfMonPublishedAddWatch("REC:A") == first, "the list is full after %d puts", i);

    ebpfMonPublishedSelectRoot("ROOT");
    strcpy(selected, ebpfMonPublishedLock()->chains.selectedRoot);
    ebpfMonPublishedUnlock();
    testOk1(strcmp(selected, "ROOT") == 0);
}

static int checkSettings(unsigned records, unsigned roots, unsigned ring, int wire)
{
    ebpfMonSettings s = { .maxRecords = records, .maxRoots = roots, .ringKiB = ring, .wireKiB = wire };
    char why[200] = "";
    int result = ebpfMonSettingsCheck(&s, why, sizeof(why));

    if (result && !strstr(why, "a power of two from 64 to 1048576"))
        testFail("it says: %s", why);
    return result;
}

static void testSettings(void)
{
    ebpfMonSettings s = { .maxRoots = 77 };
    char why[200];

    testDiag("settings");
    testOk(!ebpfMonSettingsCheck(&s, why, sizeof(why)) && !s.maxRecords && s.maxRoots == 77 &&
           s.ringKiB == 8192 && s.wireKiB == 8192 && !s.watchSelf, "0 is the default");
    testOk(!checkSettings(0, 100000, 64, -1) && checkSettings(0, 4000001, 64, -1), "the default number of records");
    testOk1(!checkSettings(1000, 16, 64, -1) && !checkSettings(4000000, 4000000, 1048576, 1048576));
    testOk(checkSettings(999, 16, 64, 1) && checkSettings(4000001, 16, 64, 1), "too few records, too many");
    testOk(checkSettings(1000, 15, 64, 1) && checkSettings(1000, 1001, 64, 1), "too few roots, more than records");
    testOk(checkSettings(1000, 16, 32, 1) && checkSettings(1000, 16, 65, 1) && checkSettings(1000, 16, 2097152, 1),
           "the event ring");
    testOk(checkSettings(1000, 16, 64, -2) && checkSettings(1000, 16, 64, 1048577), "the packet ring");
}

static void testAbsent(void)
{
    ebpfMonFilter filter = ebpfMonFilterDefault;
    ebpfMonFilterAnswer answer = { .number = 9 };
    const ebpfMonOps *ops = ebpfMonOpsGet();
    static ebpfMonOps other;
    char text[100] = "";

    testDiag("no monitor");
    testOk1(ops && ops->monitor && !ops->logs && !ops->rules);
    testOk1(ops->monitor->setFilter(NULL, &filter, &answer, text, sizeof(text)) == -1 && !answer.number);
    testOk(strstr(text, "not linked") != NULL, "says so: %s", text);
    testOk1(ops->monitor->addList(NULL, ebpfMonListIocs, NULL, "*", NULL) == ebpfMonOpAbsent &&
            ops->monitor->setLevel(NULL, "*", 1, text, sizeof(text)) == ebpfMonOpAbsent);
    ebpfMonOpsSet(&other);
    testOk1(ebpfMonOpsGet() == &other);
}

MAIN(testModel)
{
    testPlan(105);
    epicsEnvSet("TZ", "UTC");
    errlogInit(0); /* this header also declares the text of the status codes */
    testLevel();
    testCut();
    testLine();
    testBrief();
    testFilter();
    testPublished();
    testSettings();
    testAbsent();
    return testDone();
}
