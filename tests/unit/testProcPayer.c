/* SPDX-License-Identifier: BSD-3-Clause */
/* host/procRead.h: who pays for a process and for its network namespace. Children become other users, in user
 * namespaces of their own or not. */
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "host/procNetns.h"
#include "host/procRead.h"

#define SOMEONE 54321 /* no user of the host needs to have this id */

/* Makes new namespaces. 0, or -1. */
typedef int (*becomeFn)(void);

static int becomeSomeone(void)
{
    return setgroups(0, NULL) || setgid(SOMEONE) || setuid(SOMEONE) || prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

static int writeMap(const char *name, const char *text)
{
    int fd = open(name, O_WRONLY), failed;

    failed = fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text);
    if (fd >= 0)
        close(fd);
    return failed ? -1 : 0;
}

/* Someone's namespace, and in it one of somebody else of it: here, of the same. */
static int unshareTwice(void)
{
    char map[40];

    snprintf(map, sizeof(map), "0 %d 1", SOMEONE);
    return becomeSomeone() || unshare(CLONE_NEWUSER) || writeMap("/proc/self/uid_map", map) ||
           unshare(CLONE_NEWUSER | CLONE_NEWNET);
}

/* As a container that root makes: its processes have other user ids. */
static int unshareByRoot(void)
{
    return unshare(CLONE_NEWUSER | CLONE_NEWNET);
}

static int unshareNet(void)
{
    return unshare(CLONE_NEWNET) || becomeSomeone();
}

static void look(becomeFn become, uid_t user, uid_t netnsUser, const char *what)
{
    int ready[2];
    char done = 0;
    pid_t pid;

    if (pipe(ready))
        testAbort("no pipe");
    pid = fork();
    if (pid == 0) {
        done = become() ? 'f' : 'd';
        if (write(ready[1], &done, 1) == 1)
            pause();
        _exit(0);
    }
    if (read(ready[0], &done, 1) == 1 && done == 'd')
        testOk(ebpfMonProcPayer(pid) == user && ebpfMonProcNetnsPayer(pid) == netnsUser, "%s: %d and %d", what,
               (int)ebpfMonProcPayer(pid), (int)ebpfMonProcNetnsPayer(pid));
    else
        testSkip(1, "this host does not allow it");
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(ready[0]);
    close(ready[1]);
}

MAIN(testProcPayer)
{
    testPlan(6);
    testOk1(ebpfMonProcPayer(getpid()) == getuid() && ebpfMonProcNetnsPayer(getpid()) == 0);
    if (getuid()) {
        testSkip(5, "needs root");
        return testDone();
    }
    look(becomeSomeone, SOMEONE, 0, "a process of a user, in our network");
    look(unshareNet, SOMEONE, 0, "in a network that root has made");
    look(unshareTwice, SOMEONE, SOMEONE, "in a user namespace within one of the user");
    look(unshareByRoot, 0, 0, "in one that root has made");
    testOk1(ebpfMonProcPayer(0x7fffffff) == 0);
    return testDone();
}
