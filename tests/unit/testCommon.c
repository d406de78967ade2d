/* SPDX-License-Identifier: BSD-3-Clause */
#include <limits.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <epicsAtomic.h>
#include <epicsEvent.h>
#include <epicsThread.h>
#include <epicsUnitTest.h>
#include <errlog.h>
#include <testMain.h>

#include "common/array.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/serviceManager.h"
#include "common/text.h"
#include "common/worker.h"

/* --- Common --- */

/* common/: clocks, hashes, texts, arrays that grow, threads of the monitor. */

/* Two clocks with the difference OFFSET, and a thread that gets no CPU for a while between reading them. */
#define OFFSET 1000000000000ull

static uint64_t busyTime;
static unsigned readings, lostAt; /* lostAt: one bit for each reading after which the thread has no CPU for 10 ms */

static uint64_t readBusy(void)
{
    uint64_t now = busyTime += 40;

    if (lostAt >> readings++ % 32 & 1)
        busyTime += 10000000;
    return now;
}

static uint64_t readBusyReal(void)
{
    return readBusy() + OFFSET;
}

static int isOffsetRight(unsigned lost)
{
    int64_t error;

    readings = 0;
    lostAt = lost;
    error = (int64_t)(ebpfMonClockOffsetBetween(readBusy, readBusyReal) - OFFSET);
    return error > -2000 && error < 2000;
}

static void testClockOffset(void)
{
    testOk(isOffsetRight(0), "the offset between two clocks");
    testOk(isOffsetRight(1), "… when the thread loses its CPU before it reads the second clock");
    testOk(isOffsetRight(2), "… after it has read the second clock");
    testOk(isOffsetRight(1 | 2 | 8 | 128), "… again and again");
    isOffsetRight(UINT_MAX);
    testOk(readings < 200, "… each time: it ends in spite of that, after %u readings", readings);
}

static void testClocks(void)
{
    uint64_t monotonic = ebpfMonClockMonotonic();
    epicsTimeStamp now, stamp = ebpfMonClockStamp(POSIX_TIME_AT_EPICS_EPOCH * EBPFMON_SECOND_NS + 42), wall;

    testOk(ebpfMonClockMonotonic() >= monotonic, "the monotonic clock does not go back");
    testOk(stamp.secPastEpoch == 0 && stamp.nsec == 42, "42 ns after the EPICS epoch: %u s %u ns", stamp.secPastEpoch,
           stamp.nsec);
    epicsTimeGetCurrent(&now);
    wall = ebpfMonClockWallTime(ebpfMonClockMonotonic());
    testOk(epicsTimeDiffInSeconds(&wall, &now) < 1 && epicsTimeDiffInSeconds(&wall, &now) > -1,
           "the wall time of now is the current time");
    wall = ebpfMonClockWallTime(ebpfMonClockMonotonic() - 10 * EBPFMON_SECOND_NS);
    testOk(epicsTimeDiffInSeconds(&now, &wall) > 9 && epicsTimeDiffInSeconds(&now, &wall) < 11,
           "ten seconds ago is ten seconds earlier");
}

static void testHashes(void)
{
    /* draft-eastlake-fnv, test vectors of "foobar" */
    testOk1(ebpfMonHashFnv32(EBPFMON_FNV32_BEGIN, "foobar", 6) == 0xbf9cf968u);
    testOk1(ebpfMonHashFnv64(EBPFMON_FNV64_BEGIN, "foobar", 6) == 0x85944171f73967e8ull);
    testOk(ebpfMonHashFnv64(ebpfMonHashFnv64(EBPFMON_FNV64_BEGIN, "foo", 3), "bar", 3) == 0x85944171f73967e8ull,
           "the hash of two parts is that of the whole");
}

static void testTexts(void)
{
    char buf[8], line[12] = "a\nb\x1b[31m";

    testOk(!ebpfMonTextCopy(buf, sizeof(buf), "1234567") && strcmp(buf, "1234567") == 0,
           "a text that fits is copied whole");
    testOk(ebpfMonTextCopy(buf, sizeof(buf), "12345678") && strcmp(buf, "1234...") == 0,
           "a text that is cut ends with dots");
    testOk(ebpfMonTextCopy(buf, sizeof(buf), "123\xc3\xa4" "5678") && strcmp(buf, "123...") == 0,
           "no UTF-8 sequence is cut in two: \"%s\"", buf);
    ebpfMonTextClean(line, sizeof(line));
    testOk(strcmp(line, "a\\x0ab...") == 0, "no control character is left: \"%s\"", line);
}

static void testArrays(void)
{
    uint32_t *list = NULL;
    size_t room = 0;
    int ok = 1;

    for (uint32_t i = 0; i < 1000; i++) {
        ok = ok && ebpfMonArrayGrow(&list, &room, i + 1, 16, sizeof(*list)) == 0 && room > i;
        if (ok)
            list[i] = i;
    }
    for (uint32_t i = 0; ok && i < 1000; i++)
        ok = list[i] == i;
    testOk(ok && room == 1024, "1000 elements, room for %u", (unsigned)room);
    testOk(ebpfMonArrayGrow(&list, &room, SIZE_MAX / 2, 16, sizeof(*list)) < 0 && room == 1024 && list[999] == 999,
           "a size that is too large is refused, and the array stays as it was");
    free(list);
}

typedef struct {
    int rounds, woken; /* atomic */
    epicsEventId begun, go;
    int deaf;          /* until "go" the worker does not see that it should end */
} work;

static void run(ebpfMonWorker *worker, void *arg)
{
    work *w = arg;

    epicsEventMustTrigger(w->begun);
    while (!ebpfMonWorkerIsStopping(worker)) {
        epicsAtomicIncrIntT(&w->rounds);
        if (ebpfMonWorkerWait(worker, 60)) {
            epicsAtomicIncrIntT(&w->woken);
            epicsEventMustTrigger(w->begun);
        }
    }
    if (w->deaf)
        epicsEventMustWait(w->go);
}

static void idle(ebpfMonWorker *worker, void *arg)
{
    while (!ebpfMonWorkerIsStopping(worker))
        ebpfMonWorkerWait(worker, 60);
}

/* Works until "go" without reporting progress, then waits. */
static void runWithoutSign(ebpfMonWorker *worker, void *arg)
{
    work *w = arg;

    epicsEventMustTrigger(w->begun);
    epicsEventMustWait(w->go);
    while (!ebpfMonWorkerIsStopping(worker)) {
        epicsEventMustTrigger(w->begun);
        ebpfMonWorkerWait(worker, 60);
    }
}

static void noteScheduler(ebpfMonWorker *worker, void *arg)
{
    *(int *)arg = sched_getscheduler(0);
}

/* sd_notify(3): one datagram to the socket that NOTIFY_SOCKET names. */
static void testServiceManager(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0), length;
    char name[64], text[64] = "";

    testDiag("Messages to the service manager");
    unsetenv("NOTIFY_SOCKET");
    testOk(ebpfMonServiceTell("READY=1") == -1, "nobody listens: no error");
    length = snprintf(name, sizeof(name), "@ebpfMonTest%d", (int)getpid());
    memcpy(address.sun_path, name, (size_t)length);
    address.sun_path[0] = 0;
    bind(fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)length));
    setenv("NOTIFY_SOCKET", name, 1);
    testOk(ebpfMonServiceTell("STATUS=%d of %s", 3, "5") == 0 && recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT) == 13 &&
           strcmp(text, "STATUS=3 of 5") == 0, "an abstract address: %s", text);
    close(fd);
    testOk(ebpfMonServiceTell("READY=1") == -1, "the service manager does not listen any more");
    unsetenv("NOTIFY_SOCKET");
    setenv("WATCHDOG_USEC", "5000000", 1);
    unsetenv("WATCHDOG_PID");
    testOk1(ebpfMonServiceWatchdog() == 5000000000ull);
    setenv("WATCHDOG_PID", "1", 1);
    testOk(ebpfMonServiceWatchdog() == 0, "a watchdog for another process is ignored");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
}

static void testProgress(void)
{
    work w = { .begun = epicsEventMustCreate(epicsEventEmpty), .go = epicsEventMustCreate(epicsEventEmpty) };
    int policy = -1;
    char text[100];
    ebpfMonWorker *worker, *other;

    testDiag("A worker that makes no progress");
    worker = ebpfMonWorkerStart("testStuck", epicsThreadPriorityLow, runWithoutSign, &w);
    other = ebpfMonWorkerStart("testIdle", epicsThreadPriorityLow, idle, NULL);
    epicsEventMustWait(w.begun);
    testOk(ebpfMonWorkersFindStuck(60, text, sizeof(text)) == 0 && !text[0], "the worker is not stuck yet");
    for (int i = 0; i < 500 && ebpfMonWorkersFindStuck(0.2, text, sizeof(text)) == 0; i++)
        epicsThreadSleep(0.01);
    testOk(strncmp(text, "testStuck since ", 16) == 0 && !strstr(text, "testIdle"), "%s", text);
    testOk(ebpfMonWorkersCountOursStuck(0.2) == 1, "a restart of the process could help it");
    ebpfMonWorkerWaitsForOthers(worker);
    testOk(ebpfMonWorkersFindStuck(0.2, text, sizeof(text)) == 1 && ebpfMonWorkersCountOursStuck(0.2) == 0,
           "one that waits for others is stuck, too, but a restart could not help it");
    epicsEventMustTrigger(w.go);
    epicsEventMustWait(w.begun);
    testOk(ebpfMonWorkersFindStuck(0.2, text, sizeof(text)) == 0, "the worker goes on, and is not stuck any more");
    testOk1(ebpfMonWorkerStop(&worker, 10) == 0 && ebpfMonWorkerStop(&other, 10) == 0);
    worker = ebpfMonWorkerStart("testPriority", epicsThreadPriorityHigh, noteScheduler, &policy);
    ebpfMonWorkerStop(&worker, 10);
    testOk(policy == SCHED_OTHER, "a worker runs at ordinary priority");
    epicsEventDestroy(w.begun);
    epicsEventDestroy(w.go);
}

/* There is no room for another stack: the caller must get an error. The first workers may get stacks of threads that
 * have ended, because the C library keeps these. */
static void testNoThread(void)
{
    struct rlimit before, least;
    ebpfMonWorker *worker[100];
    unsigned long pages;
    unsigned n = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    testDiag("A thread that cannot be started");
    eltc(0); /* starts the thread of errlog, too */
    if (!f || fscanf(f, "%lu", &pages) != 1 || getrlimit(RLIMIT_AS, &before))
        testAbort("no memory limit");
    fclose(f);
    least = (struct rlimit){ .rlim_max = before.rlim_max,
                             .rlim_cur = pages * (rlim_t)sysconf(_SC_PAGESIZE) + (256u << 10) };
    setrlimit(RLIMIT_AS, &least);
    while (n < 100 && (worker[n] = ebpfMonWorkerStart("testMany", epicsThreadPriorityLow, idle, NULL)))
        n++;
    setrlimit(RLIMIT_AS, &before);
    errlogFlush();
    eltc(1);
    testOk(n < 100, "after %u threads no other can be started", n);
    while (n)
        ebpfMonWorkerStop(&worker[--n], 10);
}

static void testWorkers(void)
{
    work w = { .begun = epicsEventMustCreate(epicsEventEmpty), .go = epicsEventMustCreate(epicsEventEmpty) };
    ebpfMonWorker *worker = ebpfMonWorkerStart("testWorker", epicsThreadPriorityLow, run, &w), *none = NULL;

    testOk(worker != NULL && epicsEventWaitWithTimeout(w.begun, 10) == epicsEventOK, "a worker begins");
    ebpfMonWorkerWake(worker);
    testOk(epicsEventWaitWithTimeout(w.begun, 10) == epicsEventOK && epicsAtomicGetIntT(&w.woken) == 1, "it wakes");
    testOk(ebpfMonWorkerStop(&worker, 10) == 0 && !worker, "it ends when it is asked to, although it sleeps");
    testOk(ebpfMonWorkerStop(&none, 0) == 0, "there is no worker: that counts as ended");
    ebpfMonWorkerWake(NULL);

    w.deaf = 1;
    worker = ebpfMonWorkerStart("testDeaf", epicsThreadPriorityLow, run, &w);
    testOk(epicsEventWaitWithTimeout(w.begun, 10) == epicsEventOK && ebpfMonWorkerStop(&worker, 0.01) < 0 && worker,
           "a worker that does not end is left alone");
    epicsEventMustTrigger(w.go);
    testOk(ebpfMonWorkerStop(&worker, 10) == 0 && !worker, "... until it ends");
    epicsEventDestroy(w.begun);
    epicsEventDestroy(w.go);
}

static ebpfMonLazyMutex lazy = EBPFMON_LAZY_MUTEX;
static int sum;

static void add(ebpfMonWorker *worker, void *arg)
{
    for (int i = 0; i < 10000; i++) {
        ebpfMonLazyMutexLock(&lazy);
        sum++;
        ebpfMonLazyMutexUnlock(&lazy);
    }
    epicsEventMustTrigger(arg);
}

static void testLazyMutex(void)
{
    epicsEventId done[2] = { epicsEventMustCreate(epicsEventEmpty), epicsEventMustCreate(epicsEventEmpty) };
    ebpfMonWorker *worker[2];

    for (int i = 0; i < 2; i++)
        worker[i] = ebpfMonWorkerStart("testMutex", epicsThreadPriorityLow, add, done[i]);
    for (int i = 0; i < 2; i++) {
        epicsEventWaitWithTimeout(done[i], 30);
        ebpfMonWorkerStop(&worker[i], 10);
        epicsEventDestroy(done[i]);
    }
    testOk(sum == 20000, "two threads count to %d", sum);
}

static void runCommon(void)
{
    testClockOffset();
    testClocks();
    testHashes();
    testTexts();
    testArrays();
    testWorkers();
    testProgress();
    testServiceManager();
    testNoThread();
    testLazyMutex();
}

/* --- ClockSteps --- */

/* Whether the clock of the host was set back. The test does not set it: other programs need it. tests/kernels does so
 * in an emulated machine. */

#define MS 1000000ull

static void runClockSteps(void)
{
    ebpfMonClockSteps steps;
    uint64_t since, begin = ebpfMonClockReal();

    ebpfMonClockStepsBegin(&steps);
    testOk(steps.info >= 0, "the kernel tells how often the clock was set");
    testOk(!ebpfMonClockStepsLook(&steps, &since) && !ebpfMonClockStepsLook(&steps, &since), "nobody set it");
    testOk(since > begin - 10 * MS && since < ebpfMonClockReal(), "the time of the look before");
    ebpfMonClockStepsEnd(&steps);
    testOk(steps.file == -1 && steps.info == -1, "its files are closed");
    testOk(!ebpfMonClockStepsLook(&steps, &since), "it works without the files, too");

    steps.offset = 5000 * MS;
    testOk(!ebpfMonClockStepsJudge(&steps, 1, 5100 * MS), "set to a later time: no stamp is repeated");
    testOk(!ebpfMonClockStepsJudge(&steps, 1, 5100 * MS + 1000), "by a microsecond, too");
    testOk(!ebpfMonClockStepsJudge(&steps, 1, 5100 * MS + 900), "set to the time that it had, about");
    testOk(ebpfMonClockStepsJudge(&steps, 1, 5100 * MS) == ebpfMonClockSetBack, "set back by a microsecond");
    testOk(ebpfMonClockStepsJudge(&steps, 1, 4101 * MS) == ebpfMonClockSetBack, "by nearly a second");
    testOk(ebpfMonClockStepsJudge(&steps, 1, 3101 * MS) == ebpfMonClockWentBack, "by a second");
    testOk(ebpfMonClockStepsJudge(&steps, 2, 3101 * MS) == ebpfMonClockWentBack, "set twice: perhaps forward and back");
    testOk(ebpfMonClockStepsJudge(&steps, 2, 9000 * MS) == ebpfMonClockWentBack, "later in the end: further, and back");
    testOk(!ebpfMonClockStepsJudge(&steps, 0, 9000 * MS - MS / 2), "readings of two clocks differ a little");
    testOk(ebpfMonClockStepsJudge(&steps, 0, 8900 * MS) == ebpfMonClockWentBack, "back, and the kernel says nothing");
}

MAIN(testCommon)
{
    testPlan(38 + 15);
    runCommon();
    runClockSteps();
    return testDone();
}
