/* SPDX-License-Identifier: BSD-3-Clause */
/* Who has a listening socket: this process and its children open sockets, inherit them, hand them over, and end. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "host/serverSockets.h"

/* A child that does what it is told by one letter, and answers with the number of a file. */
typedef struct {
    pid_t pid;
    int   pipe; /* our end of the connection with it */
} child;

static int listenAnywhere(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    return fd < 0 || listen(fd, 1) ? -1 : fd;
}

/* Sends a socket to another process (unix(7), SCM_RIGHTS). */
static void giveSocket(int pipe, int fd)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = { .head = { .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
    char letter = 't';
    struct iovec data = { .iov_base = &letter, .iov_len = 1 };
    struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control,
                              .msg_controllen = sizeof(control) };

    memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
    if (sendmsg(pipe, &message, 0) != 1)
        testAbort("a socket could not be sent");
}

/* Reads a letter, and a socket if one comes with it. */
static char readOrder(int pipe, int *fd)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    char letter = 0;
    struct iovec data = { .iov_base = &letter, .iov_len = 1 };
    struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control,
                              .msg_controllen = sizeof(control) };

    if (recvmsg(pipe, &message, 0) != 1)
        return 0;
    if (CMSG_FIRSTHDR(&message))
        memcpy(fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(*fd));
    return letter;
}

/* 'l': listens; 't': takes the socket that comes with the letter; 'g': gives its last socket; 'c': closes it. */
static void runChild(int pipe)
{
    int fd = -1;
    char letter;

    while ((letter = readOrder(pipe, &fd)) != 0) {
        if (letter == 'l')
            fd = listenAnywhere();
        if (letter == 'g')
            giveSocket(pipe, fd);
        if (letter == 'c')
            close(fd);
        if (letter != 'g' && write(pipe, &fd, sizeof(fd)) != sizeof(fd))
            break;
    }
    _exit(0);
}

static child startChild(void)
{
    int pair[2];
    child c;

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
        testAbort("no connection with a child");
    c.pid = fork();
    if (c.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(pair[0]);
        runChild(pair[1]);
    }
    close(pair[1]);
    c.pipe = pair[0];
    return c;
}

static int readAnswer(const child *c)
{
    int fd = -1;

    if (read(c->pipe, &fd, sizeof(fd)) != sizeof(fd))
        testAbort("a child does not answer");
    return fd;
}

static int order(const child *c, char letter)
{
    if (write(c->pipe, &letter, 1) != 1)
        testAbort("a child takes no order");
    return readAnswer(c);
}

static void endChild(const child *c)
{
    kill(c->pid, SIGKILL);
    waitpid(c->pid, NULL, 0);
    close(c->pipe);
}

static unsigned long inodeOf(int fd)
{
    struct stat st;

    return fstat(fd, &st) ? 0 : (unsigned long)st.st_ino;
}

/* Who has the socket: 0 nobody of these, -1 nothing has changed. */
static pid_t findOwner(ebpfMonSocketOwners *owners, const pid_t *pids, unsigned count, unsigned long inode)
{
    ebpfMonServerSocket *list;
    int n = ebpfMonServerSocketsRead(pids, count, count, 1000, owners, &list);
    pid_t found = n < 0 ? -1 : 0;

    for (int i = 0; i < n; i++)
        if (list[i].inode == inode)
            found = list[i].pid;
    free(list);
    return found;
}

static unsigned long inodeOfChild(const child *c, int fd)
{
    char path[48];
    struct stat st;

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)c->pid, fd);
    return stat(path, &st) ? 0 : (unsigned long)st.st_ino;
}

static void testFork(void)
{
    ebpfMonSocketOwners *owners = ebpfMonSocketOwnersNew();
    int own = listenAnywhere();
    unsigned long inode = inodeOf(own), other;
    child c;
    pid_t pids[2] = { getpid() };

    testDiag("A server, and its child");
    testOk(findOwner(owners, pids, 1, inode) == getpid(), "a process has the socket that it opened");
    testOk(findOwner(owners, pids, 1, inode) == -1, "nothing has changed");
    c = startChild();
    pids[1] = c.pid;
    testOk(findOwner(owners, pids, 2, inode) == getpid(), "a child inherits the socket: the parent is the server");
    other = inodeOfChild(&c, order(&c, 'l'));
    testOk(findOwner(owners, pids, 2, other) == c.pid, "the child opens a socket of its own");
    ebpfMonSocketOwnersForget(owners);
    testOk(findOwner(owners, pids, 2, inode) == getpid(),
           "nothing is known, and both have the socket: the parent is the server");
    close(own);
    own = listenAnywhere(); /* a change */
    testOk(findOwner(owners, pids, 2, inode) == c.pid, "the parent closes its socket: the child has it still");
    endChild(&c);
    testOk(findOwner(owners, pids, 2, inode) == 0, "the child has ended: the socket is gone");
    close(own);
    ebpfMonSocketOwnersFree(owners);
}

/* Takes the last socket of a child, which has it still. */
static int takeSocket(const child *c)
{
    char letter = 'g';
    int fd = -1;

    if (write(c->pipe, &letter, 1) != 1 || readOrder(c->pipe, &fd) != 't')
        testAbort("a child gives no socket");
    return fd;
}

static void testHandOver(void)
{
    ebpfMonSocketOwners *owners = ebpfMonSocketOwnersNew();
    child c = startChild();
    pid_t pids[] = { getpid(), c.pid };
    unsigned long inode = inodeOfChild(&c, order(&c, 'l')), next;
    int fd, again;

    testDiag("A socket that is handed over");
    testOk(findOwner(owners, pids, 2, inode) == c.pid, "who opened it has it");
    fd = takeSocket(&c);
    order(&c, 'c');
    order(&c, 'l'); /* a change */
    testOk(findOwner(owners, pids, 2, inode) == getpid(), "another process has it, which was known before");
    close(fd);
    again = listenAnywhere();
    next = inodeOf(again);
    testOk(again == fd && findOwner(owners, pids, 2, next) == getpid(), "the same number of a file is another socket");
    testOk(findOwner(owners, pids, 2, inode) <= 0, "… and the socket that was closed is gone");
    close(again);
    endChild(&c);
    ebpfMonSocketOwnersFree(owners);
}

/* What saves the work, and what it costs. */
static void testNobodys(void)
{
    ebpfMonSocketOwners *owners = ebpfMonSocketOwnersNew();
    child stranger = startChild(), c = startChild();
    pid_t pids[] = { getpid(), c.pid };
    unsigned long inode = inodeOfChild(&stranger, order(&stranger, 'l'));
    int fd;

    testDiag("A socket of a process that is not in the list");
    testOk(findOwner(owners, pids, 1, inode) == 0, "nobody has it");
    fd = takeSocket(&stranger);
    testOk(findOwner(owners, pids, 2, inode) == 0,
           "a known process is not gone through again because another one is new");
    ebpfMonSocketOwnersForget(owners);
    testOk(findOwner(owners, pids, 2, inode) == getpid(), "… but when nothing is known any more");
    ebpfMonSocketOwnersForget(owners);
    testOk(findOwner(owners, &c.pid, 1, inode) == 0, "nobody in a shorter list has it");
    testOk(findOwner(owners, pids, 2, inode) == getpid(), "a process that is new in the list has it");
    close(fd);
    endChild(&stranger);
    endChild(&c);
    ebpfMonSocketOwnersFree(owners);
}

MAIN(testSocketOwners)
{
    testPlan(16);
    testFork();
    testHandOver();
    testNobodys();
    return testDone();
}
