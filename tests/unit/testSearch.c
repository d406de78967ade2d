/* SPDX-License-Identifier: BSD-3-Clause */
/* Names that are searched and never found, clients with many searches, beacons, and full tables. Times are invented. */
#include <stdio.h>
#include <string.h>
#include <arpa/inet.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "model/published.h"
#include "search/search.h"

#define MS     1000000ull
#define SECOND (1000 * MS)

static uint64_t now = 1700000000ull * SECOND;
static ebpfMonSearch *search;
static ebpfMonSearches seen;

static ebpfMonSearchHost at(unsigned client)
{
    return (ebpfMonSearchHost){.addr = htonl(0x0a000001 + client), .port = htons((uint16_t)(40000 + client % 1000))};
}

static void ask(unsigned client, uint32_t cid, const char *name)
{
    ebpfMonSearchAddQuestion(search, now, ebpfMonSearchCa, at(client), cid, name);
}

/* Searches as libca does: again 30 ms after the first search, then each time after twice as long. */
static void insist(unsigned client, uint32_t cid, const char *name)
{
    for (uint64_t wait = 30 * MS; wait < 2 * SECOND; wait *= 2) {
        ask(client, cid, name);
        now += wait;
    }
}

static void look(double seconds)
{
    ebpfMonSearchPublish(search, now, seconds);
    seen = ebpfMonPublishedLock()->searches;
    ebpfMonPublishedUnlock();
}

static const ebpfMonSearchRow *row(const char *name)
{
    for (unsigned i = 0; i < seen.names; i++)
        if (strcmp(seen.name[i].name, name) == 0)
            return &seen.name[i];
    return NULL;
}

/* Waits so long that all entries are removed. */
static void forget(void)
{
    now += EBPFMON_SEARCH_FORGET + SECOND;
    look(1);
    testOk(seen.never == 0 && seen.clients == 0 && seen.servers == 0, "after a silence nothing is left (%u, %u, %u)",
           seen.never, seen.clients, seen.servers);
}

/* A name that is searched in vain 50 times a second, and one that is found. */
static void testVain(void)
{
    testDiag("in vain");
    forget();
    insist(1, 1, "NOT:THERE");
    look(1);
    for (int i = 0; i < 20; i++) {
        for (int k = 0; k < 50; k++) {
            ask(1, 1, "NOT:THERE");
            ask(2, 7, "THERE");
            ebpfMonSearchAddAnswer(search, ebpfMonSearchCa, at(2), 7, "THERE");
            now += 20 * MS;
        }
        look(1);
    }
    testOk(seen.neverRate > 49 && seen.neverRate < 51, "%g a second", seen.neverRate);
    testOk(strncmp(seen.worst, "NOT:THERE by ", 13) == 0, "%s", seen.worst);
    for (int i = 0; i < 20; i++)
        look(1);
    testOk(seen.neverRate < 1 && !seen.worst[0], "afterwards %g, \"%s\"", seen.neverRate, seen.worst);
    forget();
}

static void testNever(void)
{
    testDiag("never found");
    look(1);
    testOk1(seen.count == 0 && seen.never == 0 && seen.clients == 0);
    insist(1, 1, "NOT:THERE");
    look(1);
    testOk(seen.never == 1 && row("NOT:THERE"), "a name that is searched for over seconds is listed: %u", seen.never);
    testOk(seen.count == 7 && seen.name[0].count == 7, "each search for the name is counted: %llu",
           (unsigned long long)seen.count);
    testOk(strcmp(seen.name[0].who, "10.0.0.2:40001 CA") == 0, "by %s", seen.name[0].who);
    testOk1(epicsTimeDiffInSeconds(&seen.name[0].last, &seen.name[0].first) > 1);

    for (int i = 0; i < 3; i++, now += 300 * MS)
        ask(1, 2, "ONE:SECOND:TOO:SHORT");
    for (int i = 0; i < 40; i++) {
        ask(1, 3, "COPIES"); /* twice, because there are two addresses */
        if (i == 19)
            now += 2 * SECOND;
    }
    for (unsigned i = 0; i < 50; i++, now += SECOND)
        ask(i, i, "OTHERS:ARE:ANSWERED");
    for (unsigned i = 0; i < 5; i++, now += 10 * SECOND)
        ask(2, 100 + i, "OPENED:AGAIN"); /* a new channel each time */
    look(1);
    testOk(seen.never == 1, "no other: %u, %s", seen.never, seen.never > 1 ? seen.name[1].name : "");

    insist(60, 1, "OTHERS:ARE:ANSWERED");
    look(1);
    testOk(row("OTHERS:ARE:ANSWERED") != NULL, "but one is not");
}

static void testNames(void)
{
    unsigned about;
    char text[100];

    testDiag("many clients, for days, odd names");
    for (unsigned c = 0; c < 20; c++)
        ask(c, 7, "MANY:CLIENTS");
    for (int i = 0; i < 8; i++, now += 200 * MS)
        for (unsigned c = 0; c < 20; c++)
            ask(c, 7, "MANY:CLIENTS");
    look(1);
    testOk1(row("MANY:CLIENTS") == &seen.name[0] && seen.name[0].count == 180);
    about = 0;
    testOk(sscanf(seen.name[0].who, "10.0.0.20:40019 CA, ~%u clients", &about) == 1 && about > 12 && about < 30,
           "%s", seen.name[0].who);

    for (int i = 0; i < 4; i++)
        for (unsigned c = 0; c < 6; c++, now += 50 * SECOND)
            ask(c, 8, "FOR:DAYS");
    look(1);
    testOk(row("FOR:DAYS") != NULL, "every five minutes by six clients");
    testOk(!row("NOT:THERE"), "names of clients that are silent are gone: %u", seen.never);

    memset(text, 'N', sizeof(text) - 1);
    text[99] = 0;
    insist(1, 20, text);
    insist(1, 21, "BAD\x1b[2J\n\x7f");
    look(1);
    memset(text + 76, '.', 3);
    text[79] = 0;
    testOk1(row(text) != NULL);
    testOk1(row("BAD\\x1b[2J\\x0a\\x7f") != NULL);
    forget();
}

static void testFound(void)
{
    testDiag("answers");
    insist(1, 1, "BY:NAME");
    insist(1, 2, "BY:NUMBER");
    insist(2, 1, "BY:NUMBER:TOO");
    ebpfMonSearchAddQuestion(search, now, ebpfMonSearchPva, at(1), 2, "BY:NUMBER");
    look(1);
    testOk1(seen.never == 3);
    ebpfMonSearchAddAnswer(search, ebpfMonSearchCa, at(1), 99, "BY:NAME");
    look(1);
    testOk1(seen.never == 2 && !row("BY:NAME"));
    ebpfMonSearchAddAnswer(search, ebpfMonSearchPva, at(1), 2, "");
    ebpfMonSearchAddAnswer(search, ebpfMonSearchCa, at(3), 2, "");
    ebpfMonSearchAddAnswer(search, ebpfMonSearchCa, at(1), 3, "");
    ebpfMonSearchAddAnswer(search, ebpfMonSearchCa, at(1), 3, "NEVER:ASKED");
    look(1);
    testOk(seen.never == 2, "a reply to another protocol, client or number answers nothing");
    ebpfMonSearchAddAnswer(search, ebpfMonSearchCa, at(1), 2, "");
    look(1);
    testOk1(seen.never == 1 && row("BY:NUMBER:TOO"));
    insist(1, 2, "BY:NUMBER");
    look(1);
    testOk1(seen.never == 2);
    testOk(row("BY:NUMBER")->count == 7, "searches count from the moment when the server had gone: %llu",
           (unsigned long long)row("BY:NUMBER")->count);
    forget();
}

static void testClients(void)
{
    char name[32];

    testDiag("loud clients");
    for (unsigned c = 0; c < 3; c++)
        for (unsigned n = 0; n < 10 * (c + 1); n++) {
            sprintf(name, "C%u:%u", c, n);
            insist(c, n, name);
        }
    look(1);
    for (unsigned i = 0; i < 30; i++) {
        now += SECOND;
        ask(0, 0, "C0:0");
        ask(0, 1, "C0:1");
        ask(1, 1, "C1:1");
        look(1);
    }
    testOk1(seen.clients == 3 && strcmp(seen.client[0].name, "10.0.0.1:40000 CA") == 0);
    testOk(seen.client[0].rate > 1.9 && seen.client[0].rate < 2.1, "the rate of a client is %.2f a second",
           seen.client[0].rate);
    testOk1(seen.client[0].count == 130 && seen.client[0].never == 10 && seen.client[1].never == 20);
    testOk1(strcmp(seen.client[2].name, "10.0.0.3:40002 CA") == 0 && seen.client[2].count == 210);
    testOk(seen.rate > 2.9 && seen.rate < 3.1, "the rate of all clients is %.2f a second", seen.rate);
    forget();

    for (uint64_t wait = 30 * MS; wait < 2 * SECOND; wait *= 2, now += wait) {
        for (uint32_t cid = 1; cid <= 3; cid++) /* three links of an IOC to one PV */
            ask(1, cid, "THRICE");
        ask(2, 1, "THRICE");
    }
    look(1);
    testOk1(seen.clients == 2 && strcmp(seen.client[0].name, "10.0.0.2:40001 CA") == 0);
    testOk(seen.client[0].never == 1 && seen.client[1].never == 1,
           "a name counts once for each client, however many channels it has: %u, %u", seen.client[0].never,
           seen.client[1].never);
    forget();
}

static void beacon(unsigned server)
{
    ebpfMonSearchAddBeacon(search, now, ebpfMonSearchCa, at(server));
}

static void start(unsigned server)
{
    for (uint64_t wait = 20 * MS; wait < 15 * SECOND; wait *= 2, now += wait)
        beacon(server);
}

static void testBeacons(void)
{
    testDiag("beacons");
    start(1);
    for (int i = 0; i < 20; i++) {
        beacon(1);
        now += MS;
        beacon(1); /* to another address */
        now += (i == 10 ? 45 : 15) * SECOND; /* two beacons were lost */
    }
    ebpfMonSearchAddBeacon(search, now, ebpfMonSearchPva, at(2));
    look(1);
    testOk1(seen.servers == 2 && strcmp(seen.server[0].name, "10.0.0.3:40002 PVA") == 0);
    testOk(seen.server[1].restarts == 0 && seen.server[1].count == 50, "beacons and restarts are counted: %llu, %llu",
           (unsigned long long)seen.server[1].count, (unsigned long long)seen.server[1].restarts);
    start(1);
    beacon(1);
    look(1);
    testOk(seen.server[0].restarts == 1, "each restart of a server is counted: %llu",
           (unsigned long long)seen.server[0].restarts);
    testOk(strcmp(seen.server[0].name, "10.0.0.2:40001 CA") == 0, "first is now %s", seen.server[0].name);
    testOk1(seen.beacons == 62 && seen.heard == 2);
    forget();
}

/* Beacons as of a pvAccess server that has just started: ten every 15 s, the next ones every 180 s. */
static void startPva(unsigned server, unsigned slow)
{
    for (unsigned i = 0; i < 10 + slow; i++, now += (i < 10 ? 15 : 180) * SECOND)
        ebpfMonSearchAddBeacon(search, now, ebpfMonSearchPva, at(server));
}

static void testPauses(void)
{
    testDiag("a network that pauses");
    start(1);
    for (int i = 0; i < 20; i++) {
        beacon(1);
        now += (i == 10 ? 75 : 15) * SECOND;
    }
    look(1);
    testOk(seen.server[0].restarts == 0, "one pause of a minute is no restart: %llu",
           (unsigned long long)seen.server[0].restarts);
    now += 60 * SECOND; /* the server is down */
    start(1);
    look(1);
    testOk(seen.server[0].restarts == 1, "a server that was down for a minute has restarted: %llu",
           (unsigned long long)seen.server[0].restarts);
    forget();

    startPva(2, 3);
    now += 300 * SECOND;
    startPva(2, 0);
    look(1);
    testOk(seen.servers == 1 && seen.server[0].restarts == 1, "PVA: %llu restart",
           (unsigned long long)seen.server[0].restarts);
    now += 60 * SECOND;
    startPva(2, 0);
    look(1);
    testOk(seen.server[0].restarts == 1, "a pause while it sends fast is none: %llu",
           (unsigned long long)seen.server[0].restarts);
    forget();
}

static void testFull(void)
{
    uint64_t before = seen.replaced;
    unsigned never;
    char name[32];

    testDiag("a flood of invented names and clients");
    for (int i = 0; i < 3; i++)
        insist(1, 1, "REAL");
    for (unsigned i = 0; i < 3 * EBPFMON_SEARCH_NAMES; i++) {
        sprintf(name, "FLOOD:%u", i);
        ask(100 + i, i, name);
        ebpfMonSearchAddBeacon(search, now, ebpfMonSearchCa, at(i));
    }
    for (int i = 0; i < 20; i++, now += SECOND)
        ask(1, 1, "REAL");
    look(1);
    testOk1(seen.never == 1 && row("REAL"));
    testOk1(seen.clients == EBPFMON_TOP_MAX && strcmp(seen.client[0].name, "10.0.0.2:40001 CA") == 0);
    testOk(seen.client[0].count == 3 * 7 + 20 && seen.name[0].count == 3 * 7 + 20,
           "clients and names that were known before keep their counts: %llu, %llu",
           (unsigned long long)seen.client[0].count, (unsigned long long)seen.name[0].count);
    testOk1(seen.servers == EBPFMON_TOP_MAX && seen.heard == EBPFMON_SEARCH_SERVERS);
    testOk(seen.replaced - before >= 2 * (EBPFMON_SEARCH_NAMES + EBPFMON_SEARCH_CLIENTS + EBPFMON_SEARCH_SERVERS),
           "a full table counts what was replaced: %llu", (unsigned long long)(seen.replaced - before));

    testDiag("more names that nobody has than places");
    for (int round = 0; round < 4; round++, now += SECOND)
        for (unsigned i = 0; i < EBPFMON_SEARCH_NAMES; i++) {
            sprintf(name, "LOST:%u", i);
            ask(1, i, name);
        }
    look(1);
    testOk(seen.never >= EBPFMON_SEARCH_NAMES / 2, "at least half of them are known: %u", seen.never);
    for (unsigned i = 0; i < 2 * EBPFMON_SEARCH_NAMES; i++) {
        sprintf(name, "FLOOD:%u", i);
        ask(2, i, name);
    }
    never = seen.never;
    look(1);
    testOk(seen.never == never && seen.names == EBPFMON_TOP_MAX, "a flood of names does not change the list: %u",
           seen.never);
    now -= 3600 * SECOND; /* the clock is set back */
    ask(1, 1, "REAL");
    look(1);
    testOk1(seen.never > 0);
    now += 3600 * SECOND;
    forget();
}

typedef struct {
    ebpfMonKeyHead head;
    int value;
} Thing;

static void testTable(void)
{
    static Thing things[8];
    uint32_t buckets[8];
    ebpfMonKeyTable table;
    Thing *thing;
    unsigned n = 0;

    testDiag("the table");
    ebpfMonKeyTableInit(&table, things, sizeof(*things), 8, buckets, 1);
    testOk1(!ebpfMonKeyTableFind(&table, 0) && !ebpfMonKeyTableGetNext(&table, 0, NULL));
    for (unsigned i = 0; i < 8; i++) {
        thing = ebpfMonKeyTableGet(&table, i, i);
        testOk(thing->value == 0, "new: %d", thing->value);
        thing->value = (int)i + 1;
    }
    ebpfMonKeyTableRaise(&table, ebpfMonKeyTableFind(&table, 0));
    ebpfMonKeyTableGet(&table, 1, 10);
    thing = ebpfMonKeyTableGet(&table, 8, 11);
    testOk(thing->value == 0 && table.replaced == 1, "zero again");
    testOk1(ebpfMonKeyTableFind(&table, 0) && ebpfMonKeyTableFind(&table, 1) && !ebpfMonKeyTableFind(&table, 2));
    for (const Thing *t = NULL; (t = ebpfMonKeyTableGetNext(&table, 0, t)) != NULL; n++)
        ;
    testOk1(n == 7);
    ebpfMonKeyTableRemove(&table, thing);
    testOk1(!ebpfMonKeyTableFind(&table, 8));
    ebpfMonKeyTableExpire(&table, 15, 10);
    testOk(!ebpfMonKeyTableFind(&table, 0) && !ebpfMonKeyTableFind(&table, 4) && ebpfMonKeyTableFind(&table, 5),
           "by age");
    for (unsigned i = 0; i < 100; i++)
        ebpfMonKeyTableRaise(&table, ebpfMonKeyTableGet(&table, 100 + i, 20 + i));
    testOk(table.list[0].members + table.list[1].members == 8 && ebpfMonKeyTableFind(&table, 199), "all raised");
}

MAIN(testSearch)
{
    testPlan(0);
    search = ebpfMonSearchNew();
    testTable();
    testNever();
    testNames();
    testFound();
    testClients();
    testBeacons();
    testPauses();
    testVain();
    testFull();
    ebpfMonSearchFree(search);
    return testDone();
}
