/* SPDX-License-Identifier: BSD-3-Clause */
/* health/scanThreads.h with a menuScan in our own memory, health/healthCollector.h, and health/healthCollector.h. */
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "health/healthCollector.h"
#include "health/scanThreads.h"
#include "ioc/baseLayout.h"
#include "targetTest.h"

#define S   1000000000ull
#define NOW (100000 * S)

static const char *const names[] = { "R:TOP", "R:LATE", "R:NOW", NULL };
static const char choices[][40] = { "Passive", "10 second", "1 second", ".1 second" };
static ebpfMonTargets *targets;
static ebpfMonScanThreads *scans;
static ebpfMonHealth health;

static uint64_t at(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

static struct ebpfMonThread scanThread(double period, uint64_t passes)
{
    struct ebpfMonThread t = { .tgid = 1 };

    t.scan.period = (uint64_t)(period * 1e9);
    t.scan.begin = NOW - t.scan.period / 2;
    t.scan.end = NOW;
    t.scan.passes = passes;
    t.scan.sum = passes * t.scan.period;
    t.scan.topRoot = TARGETTEST_ADDR(0);
    t.scan.lateTopRoot = TARGETTEST_ADDR(1);
    return t;
}

static void publish(const ebpfMonScanIoc *ioc, const struct ebpfMonThread *t, unsigned n, uint64_t now)
{
    ebpfMonScanThreadsBegin(scans);
    for (unsigned i = 0; i < n; i++)
        ebpfMonScanThreadsAdd(scans, ioc, 100 + i, &t[i], now);
    ebpfMonScanThreadsPublish(scans, targets, &health);
}

static void testScans(uint32_t id)
{
    uint64_t pointers[4];
    struct layoutMenu menu = { .nChoice = 4, .papChoiceValue = at(pointers) };
    ebpfMonScanIoc ioc = { .id = id, .pid = getpid(), .scanMenu = at(&menu), .name = "vac" };
    struct ebpfMonThread t[3] = { scanThread(10, 5), scanThread(0.1, 100), scanThread(7, 3) };

    testDiag("scan threads");
    for (int i = 0; i < 4; i++)
        pointers[i] = at(choices[i]);
    publish(&ioc, t, 3, NOW);
    testOk(health.scans == 3 && strcmp(health.scan[2].name, "10 second") == 0 &&
               strcmp(health.scan[1].name, ".1 second") == 0,
           "the fastest thread (started last) comes first, named as in the menu");
    testOk(strcmp(health.scan[0].name, "7 second") == 0, "a period that is not in the menu is named by its seconds: %s",
           health.scan[0].name);
    testOk1(strcmp(health.scan[0].ioc, "vac") == 0 && strcmp(health.scan[0].topRoot, "R:TOP") == 0);
    testOk(health.lateCount == 0 && health.scan[1].period > 0.0999 && health.scan[1].period < 0.1001, "%g s",
           health.scan[1].period);
    t[1].scan.late = 2;
    publish(&ioc, t, 3, NOW);
    testOk(health.lateCount == 2 && health.scan[1].late == 2 && strcmp(health.scan[1].topRoot, "R:LATE") == 0 &&
               strstr(health.lateText, " was late in the last 10 s"), "in time again at once: %s", health.lateText);
    publish(&ioc, t, 3, NOW + 11 * S);
    testOk1(health.lateCount == 2 && strcmp(health.scan[0].topRoot, "R:TOP") == 0);
    t[0].heldCount = 1;
    t[0].held[0] = (struct ebpfMonHeld){ .root = TARGETTEST_ADDR(2), .begin = NOW };
    t[0].scan.begin = NOW;
    publish(&ioc, t, 2, NOW + 20 * S);
    testOk(health.scans == 1 && strcmp(health.scan[0].topRoot, "R:NOW") == 0 && health.scan[0].period > 19.9,
           "a pass that does not end is shown with its time and record: %g s, by %s", health.scan[0].period,
           health.scan[0].topRoot);
    t[0].heldCount = 0;
    publish(&ioc, t, 2, NOW + 100 * S);
    testOk(health.scans == 0 && health.lateCount == 2, "a thread that has nothing to scan any more is not listed");
    t[1].scan.begin = t[1].scan.end = NOW + 101 * S;
    t[1].scan.late = 3;
    publish(&ioc, t, 2, NOW + 101 * S);
    testOk(health.scans == 1 && health.lateCount == 3, "it scans again: what was counted is not counted again: %llu",
           (unsigned long long)health.lateCount);
}

static void testMeters(void)
{
    ebpfMonCpuMeters *meters = ebpfMonCpuMetersNew(2, 0.4);
    double percent, last;
    uint64_t at;

    testDiag("CPU");
    testOk(isnan(ebpfMonCpuMetersGet(meters, 1, &at)) && !at, "nothing was read");
    testOk(isnan(ebpfMonCpuMetersAdd(meters, 1, 10, NOW)), "the load is not known at the first reading");
    testOk(isnan(ebpfMonCpuMetersGet(meters, 1, &at)) && at == NOW, "nor after it");
    testOk(isnan(ebpfMonCpuMetersAdd(meters, 1, 10, NOW)), "the load is not known at the same moment");
    percent = ebpfMonCpuMetersAdd(meters, 1, 10.5, NOW + S);
    testOk(percent == 50, "half a core is half a core: %g %%", percent);
    percent = ebpfMonCpuMetersAdd(meters, 1, 11.5, NOW + 2 * S);
    testOk(percent > 69 && percent < 71, "a whole core after that is smoothed: %g %%", percent);
    last = ebpfMonCpuMetersGet(meters, 1, &at);
    testOk(last == percent && at == NOW + 2 * S, "the last reading can be had again: %g %%", last);
    last = ebpfMonCpuMetersAdd(meters, 1, 1, NOW + 3 * S);
    testOk(last == percent, "threads that ended take their time along, so the load stays: %g %%", last);
    last = ebpfMonCpuMetersAdd(meters, 1, 1.5, NOW + 4 * S);
    testOk(last > percent - 9 && last < percent, "then it goes on: %g %%", last);
    ebpfMonCpuMetersAdd(meters, 2, 0, NOW + 5 * S);
    ebpfMonCpuMetersAdd(meters, 3, 0, NOW + 6 * S);
    testOk(isnan(ebpfMonCpuMetersAdd(meters, 1, 2, NOW + 7 * S)), "the oldest process gave its place, and begins anew");
    testOk(ebpfMonCpuMetersAdd(meters, 3, 1, NOW + 7 * S) == 100, "the other processes stay");
    ebpfMonCpuMetersFree(meters);
}

static void testDelays(void)
{
    struct ebpfMonQueues q = { .q[1].count = 0 };
    struct ebpfMonThread t = { .tgid = 1 };
    ebpfMonIocHealth row = { .name = "" };
    ebpfMonHealth highest = { .iocs = 0 };
    uint64_t root = 0;

    testDiag("delays");
    ebpfMonRecentAdd(&q.q[1].wait, NOW, 5000000, 0);
    ebpfMonRecentAdd(&q.q[EBPFMON_QUEUE_ONCE].wait, NOW, 7000000, 0);
    ebpfMonDelaysSetQueues(&q, NOW, &row);
    testOk1(row.callback[0] == 0 && row.callback[1] == 5 && row.once == 7);
    ebpfMonDelaysSetQueues(&q, NOW + 30 * S, &row);
    testOk(row.callback[1] == 0 && row.once == 0, "a process is forgotten after some windows");
    ebpfMonRecentAdd(&t.hold, NOW, 3000000, 42);
    ebpfMonDelaysAddHold(&t, NOW, &row, &root);
    t.hold.max = 2000000;
    t.hold.who = 43;
    ebpfMonDelaysAddHold(&t, NOW, &row, &root);
    testOk1(row.hold == 3 && root == 42);
    row.cas = 9;
    ebpfMonDelaysAddToHighest(&row, &highest);
    row.hold = 1;
    ebpfMonDelaysAddToHighest(&row, &highest);
    testOk1(highest.holdMax.value == 3 && highest.casMax == 9);
}

MAIN(testScanThreads)
{
    ebpfMonTarget *t;

    testPlan(0);
    targets = ebpfMonTargetsNew();
    t = targetTestNew(targets, "vac", getpid(), 0, names);
    scans = ebpfMonScanThreadsNew();
    testScans(t->iocId);
    ebpfMonScanThreadsFree(scans);
    testMeters();
    testDelays();
    return testDone();
}
