/* SPDX-License-Identifier: BSD-3-Clause */
/* Health: events, periods of scan threads, lives and hangs; /proc of this process; the list of CA clients in memory
 * with any contents. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <epicsThread.h>
#include <epicsUnitTest.h>
#include <errlog.h>
#include <testMain.h>

#include "ebpfMonTable.h"
#include "health/hangs.h"
#include "health/lives.h"
#include "health/scanThreads.h"
#include "host/procStat.h"
#include "ioc/baseLayout.h"
#include "ioc/caServer.h"
#include "model/published.h"

static ebpfMonHealth h;
static ebpfMonLives *lives;
static double seconds; /* monotonic */
static ebpfMonHangs *hangs;
static epicsTimeStamp now = { 1000000, 0 };

static int last(const char *text)
{
    const char *e = ebpfMonHealthEvent(&h, 0);

    if (e && strstr(e, text))
        return 1;
    testDiag("event: %s", e ? e : "none");
    return 0;
}

/* --- scan threads ---------------------------------------------------------------------------------------------- */

static ebpfMonScanSample after(ebpfMonScanSample s, unsigned passes, double period, double busy)
{
    s.passes += passes;
    s.sum += (uint64_t)(passes * period * 1e9);
    s.busy += (uint64_t)(passes * busy * 1e9);
    if ((uint64_t)(period * 1e9) > s.max)
        s.max = (uint64_t)(period * 1e9);
    return s;
}

static int near(double a, double b)
{
    return a > 0.999 * b - 1e-9 && a < 1.001 * b + 1e-9;
}

static void testScan(void)
{
    static ebpfMonScanWindow w;
    ebpfMonScanRow row = { .period = 0.1 };
    ebpfMonScanSample s = { 0, 0, 0, 0, 0 };
    int i;

    testDiag("the periods of a scan thread");
    testOk1(near(ebpfMonScanParsePeriod(".1 second"), 0.1) && near(ebpfMonScanParsePeriod("10 second"), 10));
    testOk1(near(ebpfMonScanParsePeriod("2 minutes"), 120) && near(ebpfMonScanParsePeriod("1 Hour"), 3600));
    testOk1(near(ebpfMonScanParsePeriod("60 Hz"), 1.0 / 60) && near(ebpfMonScanParsePeriod("0.5"), 0.5));
    testOk1(ebpfMonScanParsePeriod("Passive") == 0 && ebpfMonScanParsePeriod("I/O Intr") == 0 &&
            ebpfMonScanParsePeriod("0 second") == 0);

    ebpfMonScanWindowAdd(&w, &s, 0, &row);
    testOk(near(row.period, 0.1) && row.busy == 0, "no period is known yet: %g", row.period);
    for (i = 0; i < 20; i++) {
        s = after(s, 10, 0.1, 0.02);
        ebpfMonScanWindowAdd(&w, &s, 0, &row);
    }
    testOk(near(row.period, 0.1) && near(row.busy, 20) && near(row.worst, 0.1), "periods in time: %g, %g %%",
           row.period, row.busy);
    for (i = 0; i < 5; i++) {
        s = after(s, 5, 0.2, 0.15);
        s.late += 5;
        ebpfMonScanWindowAdd(&w, &s, 0, &row);
    }
    /* 50 passes of 0.1 and 25 of 0.2 s in the last ten seconds */
    testOk(near(row.period, 10.0 / 75) && row.late == 25 && near(row.worst, 0.2),
           "the passes of five seconds of ten are late: %g", row.period);
    for (i = 0; i < 11; i++) {
        s = after(s, 10, 0.1, 0.02);
        ebpfMonScanWindowAdd(&w, &s, 0, &row);
    }
    testOk(near(row.period, 0.1) && near(row.worst, 0.2) && row.late == 25, "in time again: %g, the longest %g",
           row.period, row.worst);
    ebpfMonScanWindowAdd(&w, &s, 3000000000u, &row);
    testOk(near(row.period, 3) && near(row.worst, 3), "a pass that does not end: %g", row.period);

    s = after((ebpfMonScanSample){ 0, 0, 0, 0, 0 }, 4, 0.1, 0);
    ebpfMonScanWindowAdd(&w, &s, 0, &row);
    testOk(near(row.period, 0.1) && row.late == 0, "another thread in its place: all is counted anew: %g", row.period);

    memset(&w, 0, sizeof(w));
    row.period = 10;
    s = (ebpfMonScanSample){ 0, 0, 0, 0, 0 };
    for (i = 0; i < 40; i++) {
        if (i % 10 == 9)
            s = after(s, 1, 10.5, 1);
        ebpfMonScanWindowAdd(&w, &s, 0, &row);
    }
    testOk(near(row.period, 10.5), "one pass in ten seconds: %g", row.period);
}

/* --- life and death -------------------------------------------------------------------------------------------- */

static ebpfMonLife life(uint32_t id, const char *name, int gone, int watched, int fresh)
{
    ebpfMonLife l = {
        .id = id, .pid = (int32_t)(1000 + id), .gone = gone, .watched = watched, .fresh = fresh, .uptime = 60};

    snprintf(l.name, sizeof(l.name), "%s", name);
    return l;
}

static void pass(double time)
{
    epicsTimeAddSeconds(&now, time);
    seconds += time;
}

static void update(const ebpfMonLife *l, unsigned n)
{
    pass(1);
    ebpfMonLivesUpdate(lives, l, n, &now, seconds, &h);
}

/* Longer than others: each look finds what the ones before have left. */
static void testLives(void)
{
    ebpfMonLife l[4];
    unsigned i, before;

    testDiag("starts and ends of IOCs");
    testOk1(ebpfMonHealthEvent(&h, 0) == NULL && !ebpfMonHealthHasTrouble(&h));
    l[0] = life(1, "a", 0, 1, 0);
    l[1] = life(2, "b", 0, 0, 1);
    update(l, 2);
    testOk(h.events == 0, "an IOC that is found running, or is not watched: no event");
    l[1].watched = 1;
    update(l, 2);
    testOk1(h.events == 1 && last("IOC b (pid 1002) started"));
    l[0].gone = 1;
    update(l, 2);
    testOk(h.events == 1, "how it ended may come a second later");
    update(l, 2);
    testOk1(h.events == 2 && last("IOC a (pid 1001) ended; it ran 60 s") && h.gone == 1 && ebpfMonHealthHasTrouble(&h));
    l[2] = life(3, "a", 0, 0, 1);
    epicsTimeAddSeconds(&now, 1200); /* somebody sets the clock: no time has passed */
    update(l, 3);
    testOk(h.gone == 1 && h.events == 2, "the IOC runs again, but is not watched yet");
    l[2].watched = 1;
    update(l, 3);
    testOk1(h.events == 3 && last("IOC a (pid 1003) restarted; it was away 3 s (pid 1001)") && h.gone == 0 &&
            h.restarts == 1);
    update(l, 3);
    testOk(h.events == 3 && h.gone == 0, "its former process is still listed: no new event");

    l[0] = life(4, "c", 1, 1, 1);
    l[3] = l[0];
    l[0] = life(2, "b", 0, 0, 0);
    l[1] = l[2];
    l[2] = l[3];
    update(l, 3);
    testOk(h.events == 5 && last("IOC c (pid 1004) ended") && h.gone == 1,
           "an IOC that starts and ends between two looks");
    l[0].gone = 1;
    update(l, 3);
    testOk(h.events == 5 && h.gone == 1, "an IOC that is not watched any more ends: no event");
    update(l + 1, 1); /* forgotten before it was seen to have ended */
    l[1].gone = l[1].hasExit = 1;
    l[1].exitCode = SIGSEGV | 0x80; /* WCOREDUMP */
    l[1].uptime = 1.24;
    update(l + 1, 1);
    testOk(h.gone == 2 && strstr(h.goneIoc[0].note, " (signal 11, core dump)") && strlen(h.goneIoc[0].note) < 40,
           "all of it fits into IOC_NOTES: %s", h.goneIoc[0].note);
    testOk1(last("IOC a (pid 1003) ended (signal 11, core dump); it ran 1.2 s"));
    pass(100000);
    update(NULL, 0);
    testOk(h.gone == 2 && h.goneRows == 2 && strstr(h.goneIoc[0].note, "gone since ") &&
               strlen(h.goneIoc[0].note) < 40, "it stays missing: %s", h.goneText);
    ebpfMonLivesAcknowledge(lives);
    update(NULL, 0);
    testOk(h.gone == 0 && h.goneRows == 0 && !ebpfMonHealthHasTrouble(&h), "until it is acknowledged");

    l[0] = life(50, "early", 0, 0, 1); /* it is found first, and watched last */
    l[1] = life(51, "late", 0, 1, 1);
    update(l, 2);
    l[0].gone = l[0].watched = 1;
    update(l, 2);
    testOk(last("IOC early (pid 1050) ended"), "an IOC that ends before it is seen as watched, after a later one is");
    before = h.eventHead;
    update(l, 2);
    testOk(h.eventHead == before, "… and is told once");
    ebpfMonLivesAcknowledge(lives);
    update(l, 1);
    testOk(h.eventHead != before && h.gone == 1, "only the other one has ended now");
    ebpfMonLivesAcknowledge(lives);

    before = h.events;
    for (i = 0; i < 3000; i++) {
        char name[20];

        snprintf(name, sizeof(name), "many%u", i);
        l[0] = life(100 + i, name, 1, 1, 1);
        ebpfMonLivesUpdate(lives, l, 1, &now, seconds, &h);
    }
    testOk(h.gone <= 2 * EBPFMON_TARGETS_MAX && h.gone >= EBPFMON_TARGETS_MAX,
           "of thousands of IOCs that end %u are kept (%u)", h.gone, before);
    testOk1(h.events == EBPFMON_HEALTH_EVENTS && ebpfMonHealthEvent(&h, EBPFMON_HEALTH_EVENTS) == NULL);
    testOk1(last("IOC many2999 (pid 4099) ended") &&
            strstr(ebpfMonHealthEvent(&h, 49), "many2975 (pid 4075) started") != NULL);
    ebpfMonLivesAcknowledge(lives);
    update(NULL, 0);
}

static void testHangs(void)
{
    ebpfMonLife l = life(9001, "h", 0, 1, 0);
    ebpfMonHang a = { 9001, 17, 5, 6, "", "IOC h (pid 1): thread scan-1 (17) in record R", "sleeping in futex" };
    static ebpfMonHang many[EBPFMON_HANGS_MAX + 10];
    unsigned events;

    testDiag("hangs");
    update(&l, 1);
    ebpfMonHangsUpdate(hangs, &a, 1, lives, &now, &h);
    testOk1(h.hangs == 1 && ebpfMonHealthHasTrouble(&h) &&
            last("thread scan-1 (17) in record R hangs since 6 s: sleeping in futex"));
    events = h.eventHead;
    a.since = 9;
    ebpfMonHangsUpdate(hangs, &a, 1, lives, &now, &h);
    testOk(h.hangs == 1 && h.eventHead == events, "a hang is published once");
    a.begin = 6;
    a.since = 6;
    ebpfMonHangsUpdate(hangs, &a, 1, lives, &now, &h);
    testOk(h.hangs == 1 && last("hangs since 6 s") && h.eventHead == (events + 2) % EBPFMON_HEALTH_EVENTS,
           "a second hang is published again");
    ebpfMonHangsUpdate(hangs, NULL, 0, lives, &now, &h);
    testOk1(h.hangs == 0 && last("hangs no more, after 6 s") && !ebpfMonHealthHasTrouble(&h));
    ebpfMonHangsUpdate(hangs, &a, 1, lives, &now, &h);
    events = h.eventHead;
    strcpy(a.now, "S");
    strcpy(a.who, "IOC h (pid 1): thread scan-1 (17) in record R, at S");
    a.since = 7;
    ebpfMonHangsUpdate(hangs, &a, 1, lives, &now, &h);
    testOk(last("in record R, at S hangs since 7 s") && h.eventHead == (events + 1) % EBPFMON_HEALTH_EVENTS,
           "its record becomes known later");
    a.now[0] = 0;
    ebpfMonHangsUpdate(hangs, &a, 1, lives, &now, &h);
    strcpy(a.now, "T");
    ebpfMonHangsUpdate(hangs, &a, 1, lives, &now, &h);
    testOk(h.eventHead == (events + 1) % EBPFMON_HEALTH_EVENTS, "this is published once");
    l.gone = l.hasExit = 1;
    update(&l, 1);
    ebpfMonHangsUpdate(hangs, NULL, 0, lives, &now, &h);
    testOk(h.hangs == 0 && last("ended"), "the hang of an IOC that ended does not end as if it went on");
    ebpfMonHangsUpdate(hangs, many, EBPFMON_HANGS_MAX + 10, lives, &now, &h);
    testOk1(h.hangs == EBPFMON_HANGS_MAX);
}

/* --- /proc ----------------------------------------------------------------------------------------------------- */

static void sleeper(void *arg)
{
    *(volatile pid_t *)arg = (pid_t)syscall(SYS_gettid);
    for (;;)
        epicsThreadSleep(100);
}

static void testProc(void)
{
    ebpfMonProcStat a, b;
    char name[16], what[100];
    volatile pid_t tid = 0;
    int fd, i, ok;

    testDiag("/proc");
    testOk1(ebpfMonProcStatGet(getpid(), &a) == 0);
    testOk(a.rss > 1e5 && a.threads >= 1 && a.fds >= 3 && a.fdLimit >= 64 && a.start,
           "this process has %g bytes, %u threads, %u of %u files", a.rss, a.threads, a.fds, a.fdLimit);
    testOk1(a.uptime >= 0 && a.uptime < 3600);
    fd = open("/dev/null", O_RDONLY);
    do
        ebpfMonProcStatGet(getpid(), &b);
    while (b.cpu < a.cpu + 0.05 && b.uptime < a.uptime + 60);
    testOk(b.fds == a.fds + 1 && b.cpu >= a.cpu + 0.05 && b.uptime > a.uptime, "%u files, %g s", b.fds, b.cpu - a.cpu);
    close(fd);
    testOk1(ebpfMonProcStatGet(0x3fffffff, &b) == -1);
    epicsThreadMustCreate("sleeps (or so)", 50, epicsThreadGetStackSize(epicsThreadStackSmall), sleeper, (void *)&tid);
    for (i = ok = 0; i < 1000 && !ok; i++) {
        epicsThreadSleep(0.01);
        ok = tid && ebpfMonProcThread(getpid(), tid, name, what, sizeof(what)) == 0 && strstr(what, "sleeping in ");
    }
    testOk(ok && strncmp(name, "sleeps (or so)", 14) == 0, "thread %s: %s", name, what);
    testOk1(ebpfMonProcThread(getpid(), getpid(), name, what, sizeof(what)) == 0 && strcmp(what, "running") == 0);
    testOk1(ebpfMonProcThread(getpid(), 0x3fffffff, name, what, sizeof(what)) == -1);
}

/* --- the CA server's clients ----------------------------------------------------------------------------------- */

static struct {
    struct layoutNode node;
    char before[80];
    struct layoutList chans, pending;
} client[3];
static struct layoutList queue;

static uint64_t at(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

static void makeClients(void)
{
    memset(client, 0, sizeof(client));
    for (int i = 0; i < 3; i++) {
        client[i].node.next = i < 2 ? at(&client[i + 1]) : 0;
        client[i].node.prev = i ? at(&client[i - 1]) : 0;
        client[i].chans.count = 10 + i;
        client[i].pending.count = 100;
    }
    queue = (struct layoutList){ at(&client[0]), at(&client[2]), 3, 0 };
}

static int count(unsigned *clients, unsigned *channels)
{
    *clients = *channels = 77;
    return ebpfMonCaServerCount(getpid(), at(&queue), ebpfMonBaseReleaseGet(0), clients, channels);
}

static void testClients(void)
{
    unsigned clients, channels, wrong = 0;
    uint64_t seed = 42;

    testDiag("CA clients");
    makeClients();
    testOk1(count(&clients, &channels) == 0 && clients == 3 && channels == 333);
    queue = (struct layoutList){ 0, 0, 0, 0 };
    testOk1(count(&clients, &channels) == 0 && clients == 0 && channels == 0);
    makeClients();
    queue.count = 2;
    testOk(count(&clients, &channels) == -1, "the list has more clients than it says");
    queue.count = 4;
    testOk(count(&clients, &channels) == -1, "the list has fewer clients than it says");
    queue.count = -1;
    testOk1(count(&clients, &channels) == -1);
    queue.count = 2147483647;
    testOk1(count(&clients, &channels) == -1);
    makeClients();
    client[2].node.next = at(&client[0]);
    testOk(count(&clients, &channels) == -1, "the clients form a ring");
    makeClients();
    client[1].node.prev = at(&client[2]);
    testOk(count(&clients, &channels) == -1, "a client does not lead back to its neighbour");
    makeClients();
    client[1].node.next = 16;
    testOk(count(&clients, &channels) == -1, "a client leads to an address that cannot be read");
    client[1].node.next = ~(uint64_t)0;
    testOk1(count(&clients, &channels) == -1);
    makeClients();
    client[1].chans.count = -5;
    testOk1(count(&clients, &channels) == -1);
    testOk1(ebpfMonCaServerCount(getpid(), 0, ebpfMonBaseReleaseGet(0), &clients, &channels) == -1);
    for (int i = 0; i < 20000; i++) { /* any contents of the memory */
        makeClients();
        for (int k = 0; k < 4; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            ((uint8_t *)client)[(seed >> 33) % sizeof(client)] = (uint8_t)(seed >> 24);
        }
        if (count(&clients, &channels) == 0)
            wrong += clients != 3;
        else
            wrong += clients != 77;
    }
    testOk(!wrong, "20,000 times garbage: %u wrong", wrong);
}

MAIN(testHealth)
{
    testPlan(0);
    eltc(0); /* events are printed, too */
    lives = ebpfMonLivesNew();
    hangs = ebpfMonHangsNew();
    testScan();
    testLives();
    testHangs();
    ebpfMonHangsFree(hangs);
    ebpfMonLivesFree(lives);
    testProc();
    testClients();
    return testDone();
}
