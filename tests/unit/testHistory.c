/* SPDX-License-Identifier: BSD-3-Clause */
/* What becomes a row of the history: runs of automatic puts, effects of what people wrote, figures of each minute, and
 * changes that no event tells; and which rows the file keeps. Times are invented. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <dbDefs.h>
#include <epicsThread.h>
#include <epicsUnitTest.h>
#include <testMain.h>

#include "common/clock.h"
#include "history/historyAsk.h"
#include "history/historyFreezer.h"
#include "history/historyMinutes.h"
#include "history/historyRuns.h"
#include "history/historyStore.h"

#define MS     1000000ull
#define SECOND (1000 * MS)
#define T0     (1700000000ull * SECOND)

/* --- runs --- */

static struct {
    unsigned rows, puts;
    ebpfMonHistoryRow last;
    char source[32], lines[4000];
} written;

static void writeRow(void *arg, const ebpfMonHistoryRow *row)
{
    written.rows++;
    written.puts += (unsigned)row->n;
    written.last = *row;
    snprintf(written.source, sizeof(written.source), "%s", row->source ? row->source : "");
}

static char kind[8] = "put";

static ebpfMonHistoryRow makeRow(uint64_t at, int automatic, const char *pv, const char *chain, const char *source)
{
    return (ebpfMonHistoryRow){
        .time = T0 + at, .first = T0 + at, .kind = kind, .automatic = automatic, .ioc = "ioc", .pv = pv, .who = "w",
        .origin = "link", .result = "ok", .chain = chain, .source = source, .n = 1, .isNumber = 1,
        .least = (double)at, .most = (double)at,
    };
}

static void add(ebpfMonHistoryRuns *runs, uint64_t at, int automatic, const char *pv, const char *chain,
                const char *source)
{
    ebpfMonHistoryRow row = makeRow(at, automatic, pv, chain, source);

    ebpfMonHistoryRunsNoteChain(runs, &row);
    if (automatic)
        ebpfMonHistoryRunsAdd(runs, &row);
}

static void testRuns(void)
{
    ebpfMonHistoryRuns *runs = ebpfMonHistoryRunsNew(writeRow, NULL);

    for (unsigned i = 0; i < 100; i++)
        add(runs, i * 100 * MS, 1, "TICK", NULL, "");
    strcpy(kind, "?"); /* the caller reads its next batch into the same memory */
    ebpfMonHistoryRunsEnd(runs, T0 + 21 * SECOND, 0);
    testOk(strcmp(written.last.kind, "put") == 0, "a run keeps its kind, too");
    strcpy(kind, "put");
    testOk(written.rows == 1 && written.puts == 100 && written.last.least == 0 &&
           written.last.most == (double)(9900 * MS), "100 puts of a scan are one row (%u rows, %u puts)", written.rows,
           written.puts);

    written.rows = written.puts = 0;
    add(runs, 30 * SECOND, 1, "TICK", NULL, "");
    add(runs, 3630 * SECOND, 1, "TICK", NULL, "");
    testOk(written.rows == 1 && written.last.time == written.last.first, "a clock that is set ahead ends a run");
    ebpfMonHistoryRunsEnd(runs, T0 + 3700 * SECOND, 1);

    written.rows = written.puts = 0;
    for (unsigned i = 0; i < 20; i++)
        add(runs, (100 + i) * SECOND / 10, 1, "TO", NULL, i == 7 ? "p.1" : "s.1");
    add(runs, 10 * SECOND + 699 * MS, 0, "SET", "p.1", NULL); /* the put of the person is finished later */
    testOk(ebpfMonHistoryRunsEnd(runs, T0 + 15 * SECOND, 0) == 1 &&
           ebpfMonHistoryRunsEnd(runs, T0 + 40 * SECOND, 0) == 0, "a run is left until its writer has rested");
    testOk(written.rows == 1 && written.puts == 20, "an effect that a later put followed at once is in the run");

    written.rows = written.puts = 0;
    add(runs, 50 * SECOND, 1, "TO", "c.2", "p.2");
    add(runs, 50 * SECOND + MS, 1, "FAR", NULL, "c.2"); /* in the chain that the put to TO began */
    add(runs, 50 * SECOND, 0, "SET", "p.2", NULL);
    ebpfMonHistoryRunsEnd(runs, T0 + 52 * SECOND, 0);
    testOk(written.rows == 0, "… it is waited for what people wrote");
    ebpfMonHistoryRunsEnd(runs, T0 + 54 * SECOND, 0);
    testOk(written.rows == 2 && written.puts == 2, "effects of a person's put are rows of their own (%u rows)",
           written.rows);

    written.rows = written.puts = 0;
    for (unsigned i = 0; i < 50; i++)
        add(runs, 60 * SECOND + i * 10 * MS, 1, "TO", NULL, "p.2");
    ebpfMonHistoryRunsEnd(runs, T0 + 62 * SECOND, 1);
    testOk(written.rows >= 2 && written.rows <= 5 && written.puts == 50,
           "… but at most five a second, and none is missing (%u rows)", written.rows);
    ebpfMonHistoryRunsFree(runs);
}

/* --- minutes --- */

static ebpfMonPublished published; /* large, as the next one */
static ebpfMonClientValues clients;

static void addMinuteRow(void *arg, int automatic, const char *kind, const char *ioc, const char *pv, const char *value)
{
    size_t used = strlen(written.lines);

    snprintf(written.lines + used, sizeof(written.lines) - used, "%d %s %s %s %s\n", automatic, kind, ioc ? ioc : "-",
             pv ? pv : "-", value);
}

static void lookForSeconds(ebpfMonHistoryMinutes *m, uint64_t *now, unsigned seconds)
{
    written.lines[0] = 0;
    for (unsigned i = 0; i < seconds; i++) {
        *now += SECOND;
        ebpfMonHistoryMinutesLook(m, &published, &clients, *now);
    }
}

static int has(const char *line)
{
    if (strstr(written.lines, line))
        return 1;
    testDiag("%s", written.lines);
    return 0;
}

static void testMinutes(void)
{
    ebpfMonHistoryMinutes *m = ebpfMonHistoryMinutesNew(addMinuteRow, NULL);
    ebpfMonIocHealth *h = &published.health.ioc[0];
    ebpfMonChainRow *c = &published.chains.slowest[0];
    uint64_t now = T0;

    strcpy(h->name, "ring");
    strcpy(published.iocs.ioc[0].name, "ring");
    strcpy(c->name, "RING:ROOT");
    strcpy(c->root, "RING:ROOT");
    strcpy(c->ioc, "ring");
    published.isMeasured = 1;
    published.health.iocs = published.iocs.count = published.chains.slowestCount = 1;
    published.iocs.ioc[0].level = ebpfMonLevelChains;
    h->cpu = 2;
    h->mem = 30.04;
    h->clients = -1;
    c->count = 1000;
    c->mean = 100;
    lookForSeconds(m, &now, 61);
    testOk(has("1 minute ring - {\"cpu\":2,\"memory\":30,") && !strstr(written.lines, "clients"), "figures of an IOC");

    published.iocs.ioc[0].procCount = 6000;
    c->count = 2000;
    c->mean = 150; /* so this minute 200 */
    c->max = 900;
    h->hold = 12.5;
    lookForSeconds(m, &now, 30);
    h->hold = 1;
    lookForSeconds(m, &now, 30);
    testOk(has("\"processed_per_s\":100,") && has("\"hold_max_ms\":12.5"), "rates and maxima are those of the minute");
    testOk(has("1 minute ring RING:ROOT {\"chains_per_s\":16.7,\"mean_us\":200,\"max_us\":900}"), "… and of a root");

    published.health.lateNow = 1;
    published.health.lateCount = 3;
    strcpy(published.health.lateText, "IOC ring: scan \"1 second\" takes 4 s");
    published.iocs.ioc[0].level = ebpfMonLevelCounts;
    lookForSeconds(m, &now, 1);
    testOk(has("0 event - - scan late: IOC ring: scan"), "late scans begin");
    testOk(has("0 event ring - IOC ring is watched at level counts, no more at chains"), "a level changes");
    lookForSeconds(m, &now, 1);
    testOk(!written.lines[0], "each is told once");
    published.health.lateNow = 0;
    published.health.lateCount = 5;
    lookForSeconds(m, &now, 1);
    testOk(has("scans are late no more; there were 3 late periods"), "late scans end");

    lookForSeconds(m, &now, 11);
    strcpy(clients.row[0].name, "mila@10.0.0.7:4001");
    strcpy(clients.row[0].ioc, "ring");
    clients.rows = clients.count = 1;
    lookForSeconds(m, &now, 11);
    testOk(has("1 client ring - client mila@10.0.0.7:4001 is connected to IOC ring"), "a client comes");
    clients.count = 2; /* more than there is room for */
    lookForSeconds(m, &now, 11);
    clients.rows = clients.count = 0;
    lookForSeconds(m, &now, 11);
    testOk(!written.lines[0], "if not all clients were published, nobody is said to have left");
}

static void testLosses(void)
{
    ebpfMonHistoryMinutes *m = ebpfMonHistoryMinutesNew(addMinuteRow, NULL);
    uint64_t now = T0;

    published.health.iocs = published.chains.slowestCount = 0;
    lookForSeconds(m, &now, 1);
    strcpy(published.losses.by[1].reason, "event ring full");
    published.losses.by[1].count = 5;
    lookForSeconds(m, &now, 10);
    testOk(has("0 lost - - 5 10000000000 events that the monitor did not see: event ring full (5)\n"), "a loss");
    published.losses.by[1].count = 1; /* after a reset */
    published.packets.lost = 2;
    lookForSeconds(m, &now, 10);
    testOk(!written.lines[0], "what follows …");
    published.packets.lost = 3;
    lookForSeconds(m, &now, 20);
    testOk(has("0 lost - - 4 30000000000 events that the monitor did not see: event ring full (1), packets (3)\n"),
           "… is told when it ends");
}

/* --- the file --- */

#define FILE_NAME "testHistory.sqlite"
#define DAY       (86400 * SECOND)

static char why[400];

static ebpfMonHistoryStore *openFile(unsigned megabytes, unsigned days)
{
    ebpfMonHistoryStore *store = ebpfMonHistoryStoreOpen(FILE_NAME, megabytes, days, why, sizeof(why));

    if (!store)
        testAbort("%s", why);
    return store;
}

static void beginFile(void)
{
    unlink(FILE_NAME);
    unlink(FILE_NAME "-wal");
    unlink(FILE_NAME "-shm");
}

/* A transaction of so many rows with a text of so many bytes. */
static int addRows(ebpfMonHistoryStore *store, unsigned rows, int automatic, uint64_t time, unsigned bytes,
                   uint64_t now)
{
    static char text[4000];

    snprintf(text, sizeof(text), "%*d", (int)bytes, 1);
    if (ebpfMonHistoryStoreBegin(store, why, sizeof(why)))
        return -1;
    for (unsigned i = 0; i < rows; i++)
        if (ebpfMonHistoryStoreAdd(store, &(ebpfMonHistoryRow){ .kind = "put", .automatic = automatic, .time = time + i,
                                   .first = time + i, .n = 1, .pv = "PV", .value = text }, why, sizeof(why)))
            testAbort("%s", why);
    if (ebpfMonHistoryStoreEnd(store, now, 0, why, sizeof(why)))
        testAbort("%s", why);
    return 0;
}

static unsigned askFile(const char *sql)
{
    sqlite3 *db = ebpfMonHistoryStoreOpenReader(FILE_NAME, why, sizeof(why));
    sqlite3_stmt *stmt;
    unsigned n;

    if (!db || sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK || sqlite3_step(stmt) != SQLITE_ROW)
        testAbort("%s: %s", sql, why);
    n = (unsigned)sqlite3_column_int(stmt, 0);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return n;
}

static void testShares(void)
{
    ebpfMonHistoryStore *store;
    uint64_t before, most = 0;
    unsigned people;
    struct stat st;

    beginFile();
    store = openFile(4, 0);
    addRows(store, 3000, 0, T0, 100, T0);
    for (unsigned i = 0; i < 30; i++)
        addRows(store, 300, 1, T0 + SECOND, 3000, T0 + SECOND);
    people = askFile("SELECT count(*) FROM rows WHERE automatic = 0");
    stat(FILE_NAME, &st);
    testOk(people == 3000 && st.st_size <= 4 << 20, "large rows of IOCs do not push people out: %u, %ld bytes", people,
           (long)st.st_size);
    for (unsigned i = 0; i < 30; i++)
        addRows(store, 3000, 0, T0 + 2 * SECOND, 100, T0 + 2 * SECOND);
    testOk(askFile("SELECT count(*) FROM rows WHERE automatic = 1") > 200, "… and people do not push out these");
    ebpfMonHistoryStoreClose(store);

    beginFile();
    store = openFile(64, 0);
    for (unsigned i = 0; i < 12; i++)
        addRows(store, 5000, i & 1, T0 + i, 300, T0);
    ebpfMonHistoryStoreClose(store);
    store = openFile(4, 0);
    before = ebpfMonHistoryStoreCount(store);
    for (unsigned i = 0; i < 20; i++) {
        addRows(store, 1, 0, T0 + SECOND, 10, T0);
        if (before > ebpfMonHistoryStoreCount(store) + most)
            most = before - ebpfMonHistoryStoreCount(store);
        before = ebpfMonHistoryStoreCount(store);
    }
    testOk(most <= 16000 && askFile("SELECT count(*) * 450 FROM rows") <= 4 << 20,
           "a bound that was lowered is reached in steps: %u rows at once, %u left", (unsigned)most, (unsigned)before);
    ebpfMonHistoryStoreClose(store);
}

static void testAge(void)
{
    ebpfMonHistoryStore *store;
    double waited = 0;

    beginFile();
    store = openFile(64, 30);
    addRows(store, 10000, 0, T0, 10, T0);
    for (unsigned i = 0; i < 20; i++)
        addRows(store, 1, 1, T0 + 500 * DAY, 10, T0 + 500 * DAY);
    testOk(ebpfMonHistoryStoreCount(store) == 10020, "a clock that is wrong for a moment makes nothing too old");
    ebpfMonHistoryStoreClose(store);
    beginFile();
    store = openFile(64, 1); /* eight times as fast as they came: 3.7 rows a second */
    addRows(store, 40000, 0, T0, 10, T0);
    for (; ebpfMonHistoryStoreCount(store) >= 40000 && waited < 30; waited += 0.1) {
        epicsThreadSleep(0.1);
        addRows(store, 0, 0, 0, 0, T0 + 2 * DAY);
    }
    testOk(ebpfMonHistoryStoreCount(store) < 40000 && ebpfMonHistoryStoreCount(store) > 39000, "what is too old goes");
    ebpfMonHistoryStoreClose(store);
}

/* What happened is written five seconds later. Until then a request waits, too. */
static void testTriggers(void)
{
    static const char *const events[] = {
        "IOC a ended", "IOC a stands still since 3 s", "thread t of IOC a hangs since 10 s: REC",
        "IOC a: scan late: t waits for a mutex, which u has; u waits for a mutex, which t has: deadlock",
        "scan takes more than twice its period: IOC a", "the last minutes are frozen in /x.tar: a deadlock: deadlock",
        "IOC a: t waits for a mutex, which u has",
    };
    static ebpfMonHistoryFreezer *freezer[NELEMENTS(events)];
    char why[200] = "";

    for (unsigned i = 0; i < NELEMENTS(events); i++) {
        const ebpfMonHistoryRow row = { .kind = "event", .value = events[i] };
        int isTrouble = i < 5;

        freezer[i] = ebpfMonHistoryFreezerNew("/nowhere", 1, why, sizeof(why));
        ebpfMonHistoryFreezerAdd(freezer[i], (const uint8_t *)"", 1, &row);
        ebpfMonHistoryFreezerRequest(freezer[i], "now");
        testOk(ebpfMonHistoryFreezerWork(freezer[i], NULL, why, sizeof(why)) != isTrouble, "%s %s", events[i],
               isTrouble ? "freezes" : "does not");
    }
}

static void testLost(void)
{
    const char *text[1 + EBPFMON_HISTORY_TEXTS] = { "lost", NULL, NULL, "4 30000000000 events: packets (4)" };
    uint8_t buf[EBPFMON_HISTORY_PACKED];
    ebpfMonHistoryRow row;

    ebpfMonHistoryRowPack(T0 + DAY, 0, text, buf);
    ebpfMonHistoryRowUnpack(buf, &row);
    testOk(row.n == 4 && row.time - row.first == 30 * SECOND && strcmp(row.value, "events: packets (4)") == 0,
           "how many, since when");
    text[0] = "put";
    text[3] = "nan";
    ebpfMonHistoryRowPack(T0, 1, text, buf);
    ebpfMonHistoryRowUnpack(buf, &row);
    testOk(!row.isNumber, "of NaN there is no smallest one");
}

static void testReader(void)
{
    ebpfMonHistoryStore *store;
    unsigned rows = 0;
    struct stat st;
    sqlite3 *db;

    beginFile();
    store = openFile(4, 0);
    addRows(store, 1, 0, T0, 10, T0);
    db = ebpfMonHistoryStoreOpenReader(FILE_NAME, why, sizeof(why));
    sqlite3_exec(db, "BEGIN; SELECT count(*) FROM rows", NULL, NULL, NULL);
    while (rows < 100000 && addRows(store, 500, 0, T0, 300, T0) == 0)
        rows += 500;
    stat(FILE_NAME "-wal", &st);
    testOk(strstr(why, "another program reads") && st.st_size < 6 << 20,
           "somebody reads for ever: %u rows, %ld bytes, %s", rows, (long)st.st_size, why);
    sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    testOk(addRows(store, 1, 0, T0, 10, T0) == 0, "… no more");
    sqlite3_close(db);
    rows = (unsigned)ebpfMonHistoryStoreCount(store);
    unlink(FILE_NAME "-wal");
    testOk(addRows(store, 1, 0, T0, 10, T0) && strstr(why, "somebody has removed"), "%s", why);
    ebpfMonHistoryStoreClose(store);
    store = openFile(4, 0);
    testOk(ebpfMonHistoryStoreCount(store) == rows && addRows(store, 1, 0, T0, 10, T0) == 0, "… and no row is lost");
    ebpfMonHistoryStoreClose(store);
    beginFile();
}

static int64_t makeTime(int day, int hour, int minute)
{
    struct tm tm = { .tm_year = 126, .tm_mon = 10, .tm_mday = day, .tm_hour = hour, .tm_min = minute };

    return (int64_t)timegm(&tm) * 1000000000;
}

static void testTimes(void)
{
    const int64_t now = makeTime(30, 2, 43);
    int64_t from = 0, to = 0;

    setenv("TZ", "UTC", 1);
    testOk(!ebpfMonHistoryParseTime("02:40", now, 0, &from) && from == makeTime(30, 2, 40), "a time of today");
    testOk(!ebpfMonHistoryParseTime("03:10:30", now, 0, &from) && from == makeTime(29, 3, 10) + 30ll * 1000000000,
           "a time that is yet to come is that of yesterday");
    testOk(ebpfMonHistoryParseTime("25:10", now, 0, &from) && ebpfMonHistoryParseTime("12", now, 0, &from),
           "no time of a day");
    testOk(!ebpfMonHistoryParseRange("02:40..02:50", now, &from, &to) && from == makeTime(30, 2, 40) &&
           to == makeTime(30, 2, 50), "a range that is not over");
    testOk(!ebpfMonHistoryParseRange("23:50..00:10", now, &from, &to) && from == makeTime(29, 23, 50) &&
           to == makeTime(30, 0, 10), "a range over midnight");
    testOk(!ebpfMonHistoryParseEnd("2026-11-29", now, from, &to) && to < from, "a date stays before the begin");
}

MAIN(testHistory)
{
    testPlan(44);
    testTimes();
    testRuns();
    testMinutes();
    testLosses();
    testShares();
    testAge();
    testTriggers();
    testLost();
    testReader();
    return testDone();
}
