/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that never answer (host/foreign.h): pages that never arrive, files with tables of gigabytes. The hostile
 * processes are children of this program. userfaultfd(2) makes a page that never arrives. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "common/clock.h"
#include "host/foreign.h"
#include "host/memory.h"
#include "host/procInfo.h"
#include "../ioc/hostile.h"

#define NOBODY 60007 /* no other test has processes of this user */

/* Shared with all children, at the same address. */
static struct {
    char good[HOSTILE_PAGE];
    volatile int ready, goOn;
} *shared;
static char *page; /* the address of the page that never arrives in a child; in this process it is readable */

/* Starts a child of user "uid". Its "page" does not arrive until goOn is set. 0 if the child could not be made. */
static pid_t startHostile(uid_t uid)
{
    pid_t pid;

    shared->ready = 0;
    pid = fork();
    if (pid == 0) {
        int fd = hostileTakePageAway(page);

        if (fd < 0 || (uid && setuid(uid)))
            _exit(1);
        shared->ready = 1;
        while (!shared->goOn)
            usleep(1000);
        ioctl(fd, UFFDIO_ZEROPAGE, &(struct uffdio_zeropage){ .range = { (uint64_t)(uintptr_t)page, HOSTILE_PAGE } });
        for (;;)
            pause();
    }
    while (pid > 0 && !shared->ready && waitpid(pid, NULL, WNOHANG) == 0)
        usleep(1000);
    return shared->ready ? pid : 0;
}

static pid_t startIdle(uid_t uid)
{
    pid_t pid = fork();

    if (pid == 0) {
        if (setuid(uid))
            _exit(1);
        for (;;)
            pause();
    }
    while (pid > 0 && ebpfMonProcOwner(pid) != uid && waitpid(pid, NULL, WNOHANG) == 0)
        usleep(1000);
    return pid;
}

static void end(pid_t pid)
{
    if (pid > 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
}

/* Reads the page. Returns the time that this takes, in s. */
static double readPage(pid_t pid, int *failed)
{
    uint64_t begin = ebpfMonClockMonotonic();
    char c;

    *failed = ebpfMonMemReadNow(pid, (uint64_t)(uintptr_t)page, &c, 1) ? errno : 0;
    return (double)(ebpfMonClockMonotonic() - begin) / 1e9;
}

static int waitForReaders(double seconds)
{
    for (double s = 0; s < seconds && ebpfMonForeignCountStuck(); s += 0.01)
        usleep(10000);
    return ebpfMonForeignCountStuck() == 0;
}

static void testPageThatNeverArrives(void)
{
    pid_t pid = startHostile(0), other = fork();
    double first, second;
    char text[8] = "";
    int err;

    if (other == 0)
        for (;;)
            pause();
    first = readPage(pid, &err);
    testOk(err == ETIMEDOUT && first < 2, "a page that never arrives: errno %d after %.3f s", err, first);
    second = readPage(pid, &err);
    testOk(err == ETIMEDOUT && second < 0.05 && ebpfMonForeignIsAside(pid),
           "then the process is not read for a while: %.6f s", second);
    testOk1(ebpfMonForeignCountStuck() == 1);
    testOk(ebpfMonProcProgramInode(pid) == 0 && ebpfMonProcProgramInode(other) != 0,
           "nor is the file of its program looked at: its file system may not answer either");
    strcpy(shared->good, "good");
    testOk(ebpfMonMemReadNow(other, (uint64_t)(uintptr_t)shared->good, text, 5) == 0 && strcmp(text, "good") == 0,
           "another process is read meanwhile");
    shared->goOn = 1;
    testOk(waitForReaders(5), "the page arrives, and the reader returns");
    for (int i = 0; i < 500 && ebpfMonForeignIsAside(pid); i++)
        usleep(10000);
    first = readPage(pid, &err);
    testOk(first < 1 && err == 0, "then the process is read again: errno %d", err);
    shared->goOn = 0;
    end(pid);
    end(other);
}

/* The cost of all processes of one user together. */
static void testUser(void)
{
    enum { N = 24 };
    pid_t pid[N];
    double sum = 0, took, mine;
    int err, all = 1;

    for (int i = 0; i < N; i++)
        all &= (pid[i] = startHostile(60001)) > 0;
    testOk(all, "%d processes of one user with memory that never arrives", N);
    for (int i = 0; i < N; i++) {
        took = readPage(pid[i], &err);
        sum += took;
        all &= err == ETIMEDOUT;
    }
    testOk(all && sum < 2.5, "they make us wait for %.3f s", sum);
    testOk(ebpfMonForeignCountStuck() <= 8 && ebpfMonForeignIsAside(pid[N - 1]), "%u readers are abandoned",
           ebpfMonForeignCountStuck());
    mine = readPage(getpid(), &err);
    testOk(!err && mine < 0.25, "a process of another user is read: %.6f s", mine);
    for (int i = 0; i < N; i++)
        end(pid[i]);
    testOk(waitForReaders(5), "the readers return when the processes end");
}

static void noteScheduler(void *data)
{
    *(int *)data = sched_getscheduler(0);
}

static void runAtRealTime(void *arg)
{
    static const ebpfMonForeignJob job = { noteScheduler, free };
    int *policy = malloc(sizeof(*policy));

    *policy = -1;
    sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ .sched_priority = 10 });
    if (ebpfMonForeignRun(getpid(), 1, &job, policy) == 0) {
        *(int *)arg = *policy;
        free(policy);
    }
    sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){ .sched_priority = 0 });
}

static void testPriority(void)
{
    int policy = -1;

    runAtRealTime(&policy);
    testOk(policy == SCHED_OTHER, "a reader runs at ordinary priority: policy %d", policy);
}

static void testCost(void)
{
    enum { N = 20000 };
    uint64_t begin = ebpfMonClockMonotonic();
    int err, all = 1;

    for (int i = 0; i < N; i++) {
        readPage(getpid(), &err);
        all &= !err;
    }
    testOk(all, "%d reads, %.1f us each", N, (double)(ebpfMonClockMonotonic() - begin) / 1e3 / N);
}

/* Uses 30 ms of CPU time, and sleeps once for a short time. */
static void work(void *data)
{
    uint64_t until = ebpfMonClockThreadCpu() + 30000000;

    usleep(1000);
    while (ebpfMonClockThreadCpu() < until)
        ;
}

static void testBusyHost(void)
{
    enum { BUSY = 12, JOBS = 16 };
    static const ebpfMonForeignJob job = { work, work };
    uint64_t begin = ebpfMonClockMonotonic();
    pid_t busy[BUSY], child;
    cpu_set_t one, all;
    int failed = 0;

    testDiag("a host with busy CPUs");
    sched_getaffinity(0, sizeof(all), &all);
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof(one), &one); /* the readers that start now inherit this CPU */
    child = startIdle(NOBODY);
    for (int i = 0; i < BUSY; i++)
        if ((busy[i] = fork()) == 0)
            for (;;)
                ;
    for (int i = 0; i < JOBS; i++)
        failed += ebpfMonForeignRun(child, 5, &job, NULL) != 0;
    for (int i = 0; i < BUSY; i++)
        end(busy[i]);
    sched_setaffinity(0, sizeof(all), &all);
    testOk(!failed && !ebpfMonForeignIsCharged(child), "%d jobs of %.2f s took %.1f s", JOBS, 0.03,
           (double)(ebpfMonClockMonotonic() - begin) / 1e9);
    end(child);
}

static void doNothing(void *data)
{
}

/* Runs a child that may make no more threads, from the begin, or ("hasReader") after its reader was idle for long.
 * Returns its exit status: 1: a job was refused; 2: ebpfMonForeignLacksThreads is true; 3: both. */
static int runWithoutThreads(int hasReader)
{
    static const ebpfMonForeignJob job = { doNothing, doNothing };
    pid_t pid = fork();
    int status = -1;

    if (pid == 0) {
        if (setuid(NOBODY + 1))
            _exit(9);
        if (hasReader) {
            ebpfMonForeignRun(getpid(), 5, &job, NULL);
            sleep(8); /* a reader without a job ends after 5 s */
        }
        setrlimit(RLIMIT_NPROC, &(struct rlimit){ 1, 1 });
        status = ebpfMonForeignRun(getpid(), 5, &job, NULL) != 0 && errno == EAGAIN;
        _exit(status | ebpfMonForeignLacksThreads() << 1);
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void testNoThreads(void)
{
    testDiag("no more threads can be started");
    testOk1(runWithoutThreads(0) == 3);
    testOk(runWithoutThreads(1) == 0, "one reader without a job stays");
}

MAIN(testForeign)
{
    int fd;

    testPlan(17);
    shared = mmap(NULL, 2 * HOSTILE_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    page = mmap(NULL, HOSTILE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *page = 1;
    if (getuid())
        testSkip(2, "not root");
    else
        testNoThreads(); /* before this process has a reader: a child forked later would take this reader for its own */
    testCost();
    fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    if (fd < 0 || getuid()) {
        testSkip(14, "no userfaultfd, or not root");
        return testDone();
    }
    close(fd);
    testBusyHost();
    testPriority();
    testPageThatNeverArrives();
    testUser();
    return testDone();
}
