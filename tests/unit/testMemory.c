/* SPDX-License-Identifier: BSD-3-Clause */
/* host/memory.h: what may be read of a process, which grows with the memory that it really has; what the caller does
 * during a long reading. The processes are children of this test. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "common/clock.h"
#include "host/foreign.h"
#include "host/memory.h"
#include "host/procRead.h"

#define MIB  ((size_t)1 << 20)
#define ROOM (1024 * MIB)
#define PART 8 /* a user who has cost too much gets this part of all, so that this test reads less */
#define CPU_NS (2 * EBPFMON_SECOND_NS) /* of CPU time: the least budget of all */

static char *room; /* of this process and of its children; no page of it is there */

/* A child that has so much memory of its own, and shares as much more with this process. */
static pid_t startChild(size_t own, size_t shared, uid_t uid)
{
    int ready[2];
    pid_t pid = -1;
    char c;

    if (pipe(ready) || (pid = fork()) < 0)
        testAbort("no child");
    if (pid == 0) {
        char *a = mmap(NULL, own, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        char *b = mmap(NULL, shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        memset(a, 1, own);
        memset(b, 1, shared);
        if (setuid(uid))
            _exit(1);
        if (write(ready[1], "", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    if (read(ready[0], &c, 1) != 1)
        testAbort("no child");
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static void endChild(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* MiB of the room that can be read. */
static size_t readRoom(ebpfMonMem *mem)
{
    size_t at = 0;
    char c;

    while (at < ROOM && ebpfMonMemRead(mem, (uint64_t)(uintptr_t)room + at, &c, 1) == 0)
        at += 4096;
    return at / MIB;
}

/* The same, if the bytes end it. The budget has CPU time, too, of which this needs half; a busy host makes a thread
 * take more for the same work. So what ended after that time does not count: it begins again. */
static size_t readBytes(ebpfMonMem *mem, unsigned times)
{
    uint64_t most = CPU_NS * times / PART, end = ebpfMonClockMonotonic() + 60 * EBPFMON_SECOND_NS, cpu;
    size_t mib;

    do {
        ebpfMonMemFlush(mem);
        cpu = ebpfMonClockThreadCpu();
        mib = readRoom(mem);
        cpu = ebpfMonClockThreadCpu() - cpu;
    } while (cpu >= most && ebpfMonClockMonotonic() < end);
    return mib;
}

/* What may be read of a child with so much memory, which should be so many times the least budget. */
static size_t findBudget(size_t own, size_t shared, unsigned times)
{
    pid_t pid = startChild(own, shared, getuid() ? getuid() : 60007); /* no system user: those are not charged */
    ebpfMonMem *mem = ebpfMonMemNew(pid);
    size_t most;

    ebpfMonForeignCharge(pid, 100 * EBPFMON_SECOND_NS);
    most = readBytes(mem, times);
    testOk(errno == EDQUOT && ebpfMonMemIsOver(mem), "with %zu MiB of its own and %zu MiB that it shares: %zu MiB",
           own / MIB, shared / MIB, most);
    ebpfMonMemFlush(mem);
    testOk(!ebpfMonMemIsOver(mem) && readBytes(mem, times) == most, "the same again after a flush");
    ebpfMonMemFree(mem);
    endChild(pid);
    return most;
}

static void testBudget(void)
{
    size_t least = 1024 / PART, most;

    testDiag("what may be read");
    most = findBudget(MIB, MIB, 1);
    testOk1(most <= least && most >= least - 1);
    most = findBudget(MIB, 300 * MIB, 1);
    testOk(most <= least, "memory that is shared costs nothing, and buys nothing");
    most = findBudget(260 * MIB, MIB, 2);
    testOk1(most <= 2 * least && most >= 2 * least - 1);
    testOk1(ebpfMonProcOwnMemory(getpid()) > 0 && ebpfMonProcOwnMemory(getpid()) < ROOM / 2 &&
            ebpfMonProcOwnMemory(-1) == 0);
}

typedef struct {
    ebpfMonMem *mem;
    unsigned count;
    uint64_t spin; /* ns of CPU time for which each of them takes the thread */
} pauses;

static void onPause(void *arg)
{
    pauses *p = arg;
    uint64_t until = ebpfMonClockThreadCpu() + p->spin;

    p->count++;
    while (ebpfMonClockThreadCpu() < until)
        ;
}

static void testPauses(void)
{
    pid_t pid = startChild(MIB, MIB, getuid());
    pauses p = { .mem = ebpfMonMemNew(pid) };
    uint64_t begin, took;
    int failed = 0;
    char c;

    testDiag("pauses");
    ebpfMonMemSetPause(p.mem, onPause, &p);
    readRoom(p.mem);
    testOk(p.count == 0 && ebpfMonMemGetPaused(p.mem) == 0, "none where the caller does not allow it");
    ebpfMonMemFlush(p.mem);
    ebpfMonMemAllowPause(p.mem, 1);
    begin = ebpfMonClockMonotonic();
    for (size_t at = 0; !p.count && at < ROOM && ebpfMonClockMonotonic() - begin < 60 * EBPFMON_SECOND_NS;
         at += 32768) {
        if (ebpfMonMemRead(p.mem, (uint64_t)(uintptr_t)room + at, &c, 1)) {
            ebpfMonMemFlush(p.mem);
            at = 0;
        }
    }
    took = ebpfMonClockMonotonic() - begin;
    testOk(p.count == 1 && took >= 100000000, "the first one after %.3f s", (double)took / 1e9);
    /* it takes more CPU time than may be spent on this process */
    p.spin = 400000000;
    p.count = 0;
    ebpfMonMemFlush(p.mem);
    begin = ebpfMonClockMonotonic();
    for (size_t at = 0; !p.count && ebpfMonClockMonotonic() - begin < 60 * EBPFMON_SECOND_NS;
         at = (at + 32768) % ROOM) {
        failed = ebpfMonMemRead(p.mem, (uint64_t)(uintptr_t)room + at, &c, 1);
        if (failed && !p.count) /* by its bytes */
            ebpfMonMemFlush(p.mem);
    }
    testOk(p.count == 1 && !failed, "its CPU time is no cost of the process");
    testOk1(ebpfMonMemGetPaused(p.mem) >= p.spin);
    ebpfMonMemAllowPause(p.mem, 0);
    ebpfMonMemFree(p.mem);
    endChild(pid);
}

/* --- the memory of this process ---------------------------------------------------------------------------------- */

static int writeFile(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    return f && fputs(text, f) >= 0 && fclose(f) == 0 ? 0 : -1;
}

/* Control groups of version 2 (cgroup-v2.rst), of which only the outer one has a limit, in mounts of this process. */
static int makeGroups(const char *limit)
{
    return unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
           mount("none", "/sys/fs/cgroup", "tmpfs", 0, NULL) || mkdir("/sys/fs/cgroup/a", 0755) ||
           mkdir("/sys/fs/cgroup/a/b", 0755) || writeFile("/sys/fs/cgroup/own", "0::/a/b\n") ||
           writeFile("/sys/fs/cgroup/a/memory.max", limit) ||
           writeFile("/sys/fs/cgroup/a/memory.current", "6291456\n") ||
           writeFile("/sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 1048576\nactive_file 7\n") ||
           writeFile("/sys/fs/cgroup/a/b/memory.max", "max\n") ||
           writeFile("/sys/fs/cgroup/a/b/memory.current", "4096\n") ||
           mount("/sys/fs/cgroup/own", "/proc/self/cgroup", NULL, MS_BIND, NULL) ? -1 : 0;
}

/* MiB that are left there, 255 for all that is more; -1: no such mounts can be made. */
static int countLeft(const char *limit)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        uint64_t left = makeGroups(limit) ? 254 * MIB : ebpfMonOwnMemoryLeft();

        _exit(left > 255 * MIB ? 255 : (int)(left / MIB));
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) == 254)
        return -1;
    return WEXITSTATUS(status);
}

static void testGroups(void)
{
    int left = countLeft("8388608\n"), all = countLeft("max\n");

    if (left < 0 || all < 0) {
        testSkip(2, "no mounts of its own");
        return;
    }
    testOk(left == 3, "control groups 2: 8 MiB, less 6 of which 1 can be given back: %d", left);
    testOk(all == 255, "without a limit: all that the host has");
}

MAIN(testMemory)
{
    testPlan(16);
    room = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        testAbort("no room");
    testBudget();
    testPauses();
    testGroups();
    return testDone();
}
