/* SPDX-License-Identifier: BSD-3-Clause */
/* host/procRead.h: whether a process still lives, tried with this program and with a child. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "host/procRead.h"

/* Only so many files may be opened now. Returns how many were allowed before. */
static rlim_t allowFiles(rlim_t count)
{
    struct rlimit limit = { 0 };
    rlim_t before;

    getrlimit(RLIMIT_NOFILE, &limit);
    before = limit.rlim_cur;
    limit.rlim_cur = count;
    setrlimit(RLIMIT_NOFILE, &limit);
    return before;
}

static void testLives(void)
{
    uint64_t start = ebpfMonProcStart(getpid());

    testDiag("a process that runs");
    testOk(start && ebpfMonProcLives(getpid(), start), "we live");
    testOk(!ebpfMonProcLives(getpid(), start + 1), "another process had our pid before");
}

static void testEnded(void)
{
    pid_t child = fork();
    uint64_t start;
    siginfo_t info;

    testDiag("a process that ends");
    if (!child) {
        alarm(60); /* if this program does not kill it */
        for (;;)
            pause();
    }
    start = ebpfMonProcStart(child);
    testOk(start && ebpfMonProcLives(child, start), "it lives");
    kill(child, SIGKILL);
    waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
    testOk(!ebpfMonProcLives(child, start), "a zombie does not live");
    waitpid(child, NULL, 0);
    testOk(!ebpfMonProcLives(child, start), "a process that is gone does not live");
    testOk(!ebpfMonProcLives(child, 0), "a process that was gone before does not live either");
}

static void testNoFiles(void)
{
    uint64_t start = ebpfMonProcStart(getpid());
    rlim_t before;

    testDiag("no file is left for /proc");
    before = allowFiles(0);
    testOk(!ebpfMonProcStart(getpid()), "the start time cannot be read");
    testOk(ebpfMonProcLives(getpid(), start), "so the process counts as living");
    allowFiles(before);
    testOk(!ebpfMonProcLives(getpid(), start + 1), "with files the truth is known again");
}

MAIN(testProcRead)
{
    testPlan(9);
    testLives();
    testEnded();
    testNoFiles();
    return testDone();
}
