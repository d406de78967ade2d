/* SPDX-License-Identifier: BSD-3-Clause */
/* The logs as the monitor uses them: more puts than fit, and several logs side by side. */
#include "logTest.h"

/* The number of puts of which the log has a line of their own. */
static uint64_t countPuts(const char *file)
{
    size_t len;
    char *text = contents(pathOf(file), &len);
    uint64_t reports = 0;

    for (char *at = text; at && (at = strstr(at, "\"lost\":")); at++)
        reports++;
    free(text);
    return written() - reports;
}

static void testLoad(void)
{
    enum { N = 400000, FIT = 50000 };
    ebpfMonPut p = somePut(1);
    double t, putNs = 0, all;

    testDiag("more puts than the queue can hold");
    strcpy(p.peer, "127.0.0.1:50123");
    strcpy(p.server, "127.0.0.1:5064");
    strcpy(p.realUser, "alice");
    strcpy(p.command, "caput");
    strcpy(p.thread, "CAS-client");
    p.peerPid = 4711;
    begin();
    t = ebpfMonClockSeconds();
    for (unsigned i = 0; i < N; i++)
        ebpfMonPutLogsAddPut(logs, &p);
    testDiag("%.1f ns a put without a log", (ebpfMonClockSeconds() - t) * 1e9 / N);
    eltc(0);
    startJsonLog("load.json", 0, 0, 0);
    t = ebpfMonClockSeconds();
    for (unsigned i = 0; i < N; i++) {
        ebpfMonPutLogsAddPut(logs, &p);
        if (i == FIT - 1)
            putNs = (ebpfMonClockSeconds() - t) * 1e9 / FIT; /* later puts may find the queue full, which costs less */
    }
    ebpfMonPutLogsStop(logs, 30);
    all = ebpfMonClockSeconds() - t;
    eltc(1);
    testOk(countPuts("load.json") + lost() == N, "%" PRIu64 " written + %" PRIu64 " lost of %d", written(), lost(), N);
    testDiag("%.0f ns a put, %.0f JSON lines a second written", putNs, (double)written() / all);

    testDiag("one hundred thousand puts per second");
    begin();
    startJsonLog("load2.json", 0, 0, 0);
    t = ebpfMonClockSeconds();
    for (unsigned i = 0; i < 100000; i++) {
        while ((double)i > (ebpfMonClockSeconds() - t) * 100000)
            ;
        ebpfMonPutLogsAddPut(logs, &p);
    }
    ebpfMonPutLogsStop(logs, 30);
    testOk(countPuts("load2.json") + lost() == 100000, "%" PRIu64 " written + %" PRIu64 " lost", written(), lost());
}

static void testBurstLog(void)
{
    ebpfMonPut p = somePut(0);
    uint64_t n;

    testDiag("mode burst, to the PV and a file; the end of the monitor ends bursts");
    begin();
    ebpfMonPutLogsSetMetadata(logs, "lab", "B2");
    testOk1(ebpfMonPutLogsAddCaPutLog(logs, "PV", 1, ebpfMonLogAll, "") == 0);
    testOk1(ebpfMonPutLogsAddCaPutLog(logs, pathOf("burst.log"), 0, ebpfMonLogBurst, "%i ") == 0);
    for (unsigned i = 0; i < 100; i++) {
        p = somePut(i);
        strcpy(p.pv, i % 2 ? "A" : "B");
        ebpfMonPutLogsAddPut(logs, &p);
    }
    ebpfMonPutLogsStop(logs, 5);
    n = written();
    testOk(n == 4, "%" PRIu64 " lines: two first puts, two summaries", n);
    testOk(strcmp(ebpfMonPublishedLock()->log.caPutLogLine, "{\"date\":\"2026-11-15\",\"time\":\"07:28:03.123\","
                  "\"host\":\"opi1\",\"user\":\"alice\",\"lab\":\"B2\",\"pv\":\"A\",\"new\":99,\"old\":100}") == 0,
           "the PV has the last line");
    ebpfMonPublishedUnlock();
    {
        size_t len;
        char *text = contents(pathOf("burst.log"), &len);

        testOk1(text && strstr(text, "vac1 15-Nov-26 07:28:03 opi1 alice A new=99 old=2 min=1 max=99 burst=50 by "
                               "alice@opi1 (50)\n"));
        free(text);
    }
}

/* Each has its own logs: nothing of one comes to the other. */
static void testTwo(void)
{
    ebpfMonPutLogs *other = ebpfMonPutLogsNew();
    ebpfMonPut p = somePut(1);

    testDiag("two exports in one process");
    startJsonLog("one.json", 0, 0, 0);
    testOk1(ebpfMonPutLogsAddJson(other, pathOf("other.json"), 0, 0, 0, ebpfMonLogAll) == 0);
    ebpfMonPutLogsAddPut(other, &p);
    ebpfMonPutLogsAddPut(other, &p);
    ebpfMonPutLogsAddPut(logs, &p);
    ebpfMonPutLogsStop(logs, 5);
    ebpfMonPutLogsStop(other, 5);
    testOk1(readLines(pathOf("one.json"), NULL, 0) == 1 && readLines(pathOf("other.json"), NULL, 0) == 2);
    ebpfMonPutLogsFree(other);
}

MAIN(testExport)
{
    testPlan(0);
    makeLogFolder("testExport");
    logs = ebpfMonPutLogsNew();
    testBurstLog();
    testLoad();
    testTwo();
    ebpfMonPutLogsFree(logs);
    removeAll(dir);
    return testDone();
}
