/* SPDX-License-Identifier: BSD-3-Clause */
/* watch/iocFinder.h: this test program has dbProcess and pdbbase, so the finder takes it and its children for IOCs. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dbAccess.h>
#include <dbStaticLib.h>
#include <epicsThread.h>
#include <epicsUnitTest.h>
#include <testMain.h>

#include "common/clock.h"
#include "host/foreign.h"
#include "host/procInfo.h"
#include "watch/iocFinder.h"

#define TRIES    10
#define SOON_NS  (3 * EBPFMON_SECOND_NS / 2)
#define DEADLINE (60 * EBPFMON_SECOND_NS)
#define SCANS    20 /* that may be needed. On a busy host each takes many seconds */
#define KNOWN    1024
#define ASIDE    64

/* Keeps both symbols in this program, so its image has them. */
void *volatile keepLibraries[] = { (void *)dbProcess, (void *)&pdbbase };

/* Other IOCs run on this host, too: an IOC that was found once is known. */
static pid_t known[KNOWN];
static unsigned knownCount;

static int isKnown(void *arg, pid_t pid)
{
    for (unsigned i = 0; i < knownCount; i++)
        if (known[i] == pid)
            return 1;
    return 0;
}

static pid_t running; /* an IOC that has started; 0: none */

static int isRunning(void *arg, pid_t pid)
{
    return pid == running;
}

static const struct ebpfMonProgram iocProgram = { .inode = 1, .device = 1 }, sleepProgram = { .inode = 2, .device = 1 };
static int sleepIsPlain, iocIsPlain;

static int setPlain(const struct ebpfMonProgram *program, int isPlain)
{
    *(program->inode == 1 ? &iocIsPlain : &sleepIsPlain) = isPlain;
    return 0;
}

static unsigned scans; /* of all processes, that the last finds() began */

/* Nonzero if the finder found this process before the deadline. */
static int finds(ebpfMonIocFinder *finder, pid_t wanted, uint64_t deadline, ebpfMonImage *image)
{
    uint64_t end = ebpfMonClockMonotonic() + deadline, scanned = ebpfMonIocFinderGetScanned(finder);
    ebpfMonAsideProcess aside[ASIDE];
    pid_t pid;

    scans = 0;
    do {
        double wait = ebpfMonIocFinderFindNext(finder, ebpfMonClockMonotonic(), &pid, image);

        scans += ebpfMonIocFinderGetScanned(finder) != scanned;
        scanned = ebpfMonIocFinderGetScanned(finder);
        if (pid && knownCount < KNOWN)
            known[knownCount++] = pid;
        if (pid == wanted)
            return 1;
        if (!pid)
            epicsThreadSleep(wait < 0.02 ? wait : 0.02);
    } while (ebpfMonClockMonotonic() < end);
    for (unsigned i = 0, n = ebpfMonIocFinderGetAside(finder, aside, ASIDE); i < n; i++)
        testDiag("pid %d (%d is wanted): %s", (int)aside[i].pid, (int)wanted, aside[i].why);
    return 0;
}

/* All IOCs that run now are known. */
static void findAll(ebpfMonIocFinder *finder)
{
    ebpfMonImage image;
    pid_t pid;

    while (ebpfMonIocFinderFindNext(finder, ebpfMonClockMonotonic(), &pid, &image) == 0 && knownCount < KNOWN)
        if (pid)
            known[knownCount++] = pid;
}

static pid_t startChild(void)
{
    pid_t pid = fork();

    if (pid == 0)
        for (;;)
            pause();
    if (pid < 0)
        testAbort("no child");
    return pid;
}

/* A program that is no IOC. */
static pid_t startSleep(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        execlp("sleep", "sleep", "1000", (char *)NULL);
        _exit(1);
    }
    return pid;
}

/* Starts a child of this user: an IOC, or, with "isSleep", a program that is no IOC. */
static pid_t startChildOf(uid_t uid, int isSleep)
{
    pid_t pid = fork();

    if (pid == 0) {
        if (setuid(uid))
            _exit(1);
        if (isSleep)
            execlp("sleep", "sleep", "1000", (char *)NULL);
        for (;;)
            pause();
    }
    while (pid > 0 && ebpfMonProcOwner(pid) != uid && waitpid(pid, NULL, WNOHANG) == 0)
        epicsThreadSleep(0.001);
    return pid;
}

/* Starts an IOC in which the code of libCom is not mapped yet. 0 if this program is linked statically with libCom. */
static pid_t startWithoutCom(void)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    unsigned long start = 0, end = 0, from, to;
    char line[512], flags[8];
    pid_t pid;

    while (maps && fgets(line, sizeof(line), maps))
        if (strstr(line, "/libCom.so") && sscanf(line, "%lx-%lx %7s", &from, &to, flags) == 3 && flags[2] == 'x') {
            start = from;
            end = to;
        }
    if (maps)
        fclose(maps);
    pid = start ? fork() : 0;
    if (start && pid == 0) {
        munmap((void *)start, end - start);
        for (;;)
            pause();
    }
    return pid;
}

static void endChild(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* Whether the finder finds the child before it looks at all processes again, which is after 2 s. */
static int isFoundSoon(ebpfMonIocFinder *finder, pid_t child, pid_t other, ebpfMonImage *image)
{
    uint64_t begin;

    knownCount = 0;
    finds(finder, -1, 0, image); /* the look at all processes is over */
    while (finds(finder, child, 0, image))
        ;
    knownCount = 0;
    ebpfMonIocFinderNoteExec(finder, other, &sleepProgram, 0);
    ebpfMonIocFinderNoteExec(finder, child, &iocProgram, 1);
    begin = ebpfMonClockMonotonic();
    return finds(finder, child, DEADLINE, image) && ebpfMonClockMonotonic() - begin < SOON_NS;
}

static void testNew(void)
{
    pid_t child = startChild(), other = startSleep();
    ebpfMonIocFinder *finder = NULL;
    ebpfMonImage image = { 0 };
    int isSoon = 0;

    testDiag("programs that were just started");
    for (int i = 0; i < TRIES && !isSoon; i++) { /* on a busy host it takes longer sometimes */
        ebpfMonIocFinderFree(finder);
        finder = ebpfMonIocFinderNew(0, isKnown, isRunning, NULL, setPlain);
        isSoon = isFoundSoon(finder, child, other, &image);
    }
    testOk(isSoon, "the child is found before the next scan");
    testOk1(image.pdbbase != 0 && image.core != NULL && image.openPath[0] && image.com != NULL);
    testOk(!ebpfMonIocFinderTakeExec(finder, child), "its start is not reported again");
    ebpfMonIocFinderNoteExec(finder, child, &iocProgram, 1);
    testOk(ebpfMonIocFinderTakeExec(finder, child) && !ebpfMonIocFinderTakeExec(finder, child),
           "a later start is reported once");
    ebpfMonIocFinderNoteExec(finder, child, &iocProgram, 1);
    for (pid_t pid = 1; pid <= 2 * EBPFMON_PID_NOTES; pid++)
        ebpfMonIocFinderNoteExec(finder, pid == child ? other : pid, &sleepProgram, 0);
    testOk(ebpfMonIocFinderTakeExec(finder, child) && !ebpfMonIocFinderTakeExec(finder, other),
           "... also if other processes of the host started many programs since");
    testOk(!finds(finder, other, EBPFMON_SECOND_NS / 2, &image), "sleep is no IOC");
    ebpfMonIocFinderFree(finder);
    endChild(child);
    endChild(other);
}

static void testPlain(void)
{
    ebpfMonIocFinder *finder = ebpfMonIocFinderNew(0, isKnown, isRunning, NULL, setPlain);
    ebpfMonImage image;

    testDiag("programs that are no IOCs");
    knownCount = 0;
    iocIsPlain = sleepIsPlain = 0;
    for (int i = 0; i < 3; i++) {
        pid_t other = startSleep(), child = startChild();

        ebpfMonIocFinderNoteExec(finder, other, &sleepProgram, 0);
        ebpfMonIocFinderNoteExec(finder, child, &iocProgram, 1);
        finds(finder, child, DEADLINE, &image);
        finds(finder, -1, EBPFMON_SECOND_NS / 10, &image); /* some looks at sleep */
        endChild(other);
        endChild(child);
    }
    testOk(!sleepIsPlain, "sleep was looked at three times, but never to the end");
    for (int i = 0; i < 20 && !sleepIsPlain; i++) /* the host may be busy */
        finds(finder, -1, EBPFMON_SECOND_NS, &image);
    testOk(sleepIsPlain && !iocIsPlain, "now it is plain; a program that was an IOC is not");
    ebpfMonIocFinderFree(finder);
}

static void testLoading(void)
{
    ebpfMonIocFinder *finder = ebpfMonIocFinderNew(0, isKnown, isRunning, NULL, setPlain);
    ebpfMonImage image;
    pid_t child = startWithoutCom();

    testDiag("a program whose libraries are not loaded yet");
    knownCount = 0;
    if (child > 0) {
        ebpfMonIocFinderNoteExec(finder, child, &iocProgram, 1);
        testOk(!finds(finder, child, EBPFMON_SECOND_NS, &image), "without libCom the program is looked at again");
        testOk(finds(finder, child, DEADLINE, &image) && !image.com, "... but not for ever");
        endChild(child);
    } else {
        testSkip(2, "libCom is no library of its own");
    }
    ebpfMonIocFinderFree(finder);
}

static int isDenied(pid_t pid)
{
    char path[32];
    int fd, denied;

    sprintf(path, "/proc/%d/maps", (int)pid);
    fd = open(path, O_RDONLY);
    denied = fd < 0 && (errno == EACCES || errno == EPERM);
    if (fd >= 0)
        close(fd);
    return denied;
}

static unsigned countDenied(void)
{
    pid_t *pids;
    int n = ebpfMonProcList(&pids);
    unsigned denied = 0;

    for (int i = 0; i < n; i++)
        denied += (unsigned)isDenied(pids[i]);
    free(pids);
    return denied;
}

static void testScan(void)
{
    pid_t child = startChild(), late;
    ebpfMonIocFinder *finder = ebpfMonIocFinderNew(0, isKnown, isRunning, NULL, setPlain);
    ebpfMonImage image;
    unsigned count;
    pid_t first;

    testDiag("a scan of all processes");
    knownCount = 0;
    testOk(finds(finder, child, DEADLINE, &image), "an IOC that was there before is found by a scan");
    testOk(!finds(finder, child, EBPFMON_SECOND_NS / 2, &image), "... and is found once, because it is known then");
    late = startChild(); /* nobody notes it */
    testOk(finds(finder, late, DEADLINE, &image), "a later scan finds a later IOC");
    testOk(!isKnown(NULL, getpid()), "we ourselves are not watched");
    count = ebpfMonIocFinderCountDenied(finder, &first);
    testOk(count == countDenied() && (!count || isDenied(first)), "this process may not read %u processes", count);
    ebpfMonIocFinderFree(finder);
    endChild(child);
    endChild(late);
}

/* A user with processes that have cost too much: the finder looks at them one after the other, and at each of them
 * once. */
static void testCharged(void)
{
    enum { OTHERS = 3, USER = 60008 };
    ebpfMonIocFinder *finder = ebpfMonIocFinderNew(0, isKnown, isRunning, NULL, setPlain);
    pid_t other[OTHERS], child;
    ebpfMonImage image;
    uint64_t begin;
    int found;

    testDiag("processes of a user who has cost too much");
    if (getuid()) {
        testSkip(2, "not root");
        ebpfMonIocFinderFree(finder);
        return;
    }
    knownCount = 0;
    findAll(finder);
    for (int i = 0; i < OTHERS; i++)
        other[i] = startChildOf(USER, 1);
    child = startChildOf(USER, 0);
    ebpfMonForeignCharge(child, 20 * EBPFMON_SECOND_NS);
    testOk1(ebpfMonForeignIsCharged(child));
    begin = ebpfMonClockMonotonic();
    found = finds(finder, child, 4 * DEADLINE, &image);
    testOk(found && scans <= SCANS, "the IOC among %d others is found, after %.1f s and %u scans", OTHERS,
           (double)(ebpfMonClockMonotonic() - begin) / 1e9, scans);
    for (int i = 0; i < OTHERS; i++)
        endChild(other[i]);
    endChild(child);
    ebpfMonIocFinderFree(finder);
}

/* A child that forks another one, and goes on, or ends. *second: the child of the child. */
static pid_t startTwo(int goesOn, pid_t *second)
{
    int ends[2];
    pid_t pid;

    if (pipe(ends))
        testAbort("no pipe");
    pid = fork();
    if (pid == 0) {
        pid_t child = startChild();

        if (write(ends[1], &child, sizeof(child)) != sizeof(child) || !goesOn)
            _exit(0);
        for (;;)
            pause();
    }
    close(ends[1]);
    if (pid < 0 || read(ends[0], second, sizeof(*second)) != sizeof(*second))
        testAbort("no child of a child");
    close(ends[0]);
    if (!goesOn)
        waitpid(pid, NULL, 0);
    return pid;
}

/* This program is the IOC. */
static void testForks(void)
{
    ebpfMonIocFinder *finder = ebpfMonIocFinderNew(0, isKnown, isRunning, NULL, setPlain);
    pid_t child, ofChild, daemon;
    ebpfMonImage image;

    testDiag("processes that an IOC forked");
    knownCount = 0;
    running = getpid();
    child = startTwo(1, &ofChild);
    startTwo(0, &daemon); /* the last of them, so the scan that finds it has looked at the others */
    testOk(finds(finder, daemon, DEADLINE, &image), "one that left its parent is an IOC");
    testOk(!isKnown(NULL, child) && !isKnown(NULL, ofChild), "a child is none, and a child of a child is none");
    running = 0;
    testOk(finds(finder, child, DEADLINE, &image), "the IOC has ended: a child that goes on may be one");
    kill(daemon, SIGKILL);
    kill(ofChild, SIGKILL);
    endChild(child);
    ebpfMonIocFinderFree(finder);
}

static void testSelf(void)
{
    ebpfMonIocFinder *finder = ebpfMonIocFinderNew(1, isKnown, isRunning, NULL, setPlain);
    ebpfMonImage image;

    knownCount = 0;
    testOk(finds(finder, getpid(), DEADLINE, &image) && image.pdbbase == (uint64_t)(uintptr_t)&pdbbase,
           "this process is found if that is wanted, with the address of its pdbbase");
    ebpfMonIocFinderFree(finder);
    ebpfMonIocFinderFree(NULL);
}

MAIN(testIocFinder)
{
    testPlan(21);
    testNew();
    testPlain();
    testLoading();
    testScan();
    testCharged();
    testForks();
    testSelf();
    return testDone();
}
