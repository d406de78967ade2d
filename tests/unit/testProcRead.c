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

/* Starts cat in a child, which keeps its pid and start time. */
static void testExec(void)
{
    uint64_t start, before;
    int ends[2], done[2];
    pid_t child;
    char c;

    testDiag("a process that executes another program");
    if (pipe(ends) || pipe(done))
        testAbort("no pipe");
    child = fork();
    if (!child) {
        dup2(ends[0], 0);
        dup2(done[1], 1);
        close(ends[1]);
        if (read(0, &c, 1) == 1)
            execlp("cat", "cat", (char *)NULL);
        _exit(1);
    }
    start = ebpfMonProcStart(child);
    before = ebpfMonProcProgram(child);
    testOk(ebpfMonProcForkedFrom(child) == getpid(), "it runs our program first");
    testOk(ebpfMonProcRuns(child, start, before) && !ebpfMonProcRuns(child, start + 1, before), "it runs the same one");
    if (write(ends[1], "xy", 2) != 2 || read(done[0], &c, 1) != 1 || c != 'y')
        testAbort("cat does not run");
    testOk(ebpfMonProcLives(child, start) && !ebpfMonProcForkedFrom(child), "it lives, and runs a program of its own");
    if (before)
        testOk(!ebpfMonProcRuns(child, start, before) && ebpfMonProcRuns(child, start, ebpfMonProcProgram(child)),
               "which is another one");
    else
        testSkip(1, "we may not trace it");
    testOk(ebpfMonProcRuns(child, start, 0), "without a program to compare with it runs the same one");
    close(ends[1]);
    waitpid(child, NULL, 0);
    testOk(!ebpfMonProcRuns(child, start, before), "it has ended");
    close(ends[0]);
    close(done[0]);
    close(done[1]);
}

MAIN(testProcRead)
{
    testPlan(15);
    testLives();
    testEnded();
    testNoFiles();
    testExec();
    return testDone();
}
