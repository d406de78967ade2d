/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host/tcpSockets.h and host/netnsSocket.h: compares the answers of sock_diag(7) about sockets of this
 * program with /proc/net/tcp, in its own network namespace and in another one. No other program can send to the sockets
 * that ask the kernel.
 */
#include <arpa/inet.h>
#include <linux/ipv6.h>
#include <linux/netlink.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "host/netnsSocket.h"
#include "host/tcpSockets.h"

#define CONNECTIONS 300 /* more than fit into one message of the kernel */
#define LISTENING   EBPFMON_TCP_STATE(ebpfMonTcpListen)
#define ESTABLISHED EBPFMON_TCP_STATE(ebpfMonTcpEstablished)

static unsigned long inodeOf(int fd)
{
    struct stat st;

    return fstat(fd, &st) ? 0 : st.st_ino;
}

static int listenAt(int family, struct sockaddr *at, socklen_t size)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, at, size) || listen(fd, CONNECTIONS) || getsockname(fd, at, &size)) {
        close(fd);
        return -1;
    }
    return fd;
}

static int listenHere(struct sockaddr_in *here)
{
    *here = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    return listenAt(AF_INET, (struct sockaddr *)here, sizeof(*here));
}

static const ebpfMonTcpRow *find(const ebpfMonTcpRow *rows, int count, unsigned long inode)
{
    for (int i = 0; i < count; i++)
        if (rows[i].inode == inode)
            return &rows[i];
    return NULL;
}

static void testListening(void)
{
    struct sockaddr_in6 any = { .sin6_family = AF_INET6 }, own6 = { .sin6_family = AF_INET6,
                                                                    .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    struct sockaddr_in here;
    int fd = listenHere(&here), fd6 = listenAt(AF_INET6, (struct sockaddr *)&any, sizeof(any));
    int own = listenAt(AF_INET6, (struct sockaddr *)&own6, sizeof(own6));
    ebpfMonTcpRow *rows;
    int count = ebpfMonTcpDiagRead(0, LISTENING, &rows);
    const ebpfMonTcpRow *row = find(rows, count, inodeOf(fd));

    testDiag("Listening sockets: %d", count);
    testOk(row && row->state == ebpfMonTcpListen && row->v4 && row->local == htonl(INADDR_LOOPBACK) &&
           row->localPort == here.sin_port && row->uid == getuid(), "a listener at 127.0.0.1 is found");
    if (fd6 >= 0 && own >= 0) {
        row = find(rows, count, inodeOf(fd6));
        testOk(row && row->v4 && row->local == 0 && row->localPort == any.sin6_port,
               "a listener at ::, which IPv4 clients reach, is found");
        row = find(rows, count, inodeOf(own));
        testOk(row && !row->v4, "a listener at ::1, which they do not reach, has no IPv4 address");
        testOk(row && row->v6 && memcmp(row->local6, &own6.sin6_addr, sizeof(row->local6)) == 0, "but its own");
    } else {
        testSkip(3, "no IPv6");
    }
    free(rows);
    close(fd);
    close(fd6);
    close(own);
}

/* A client of "family" sends to a server, which listens for both, and goes. */
static void testQueue(int family)
{
    struct sockaddr_in6 any = { .sin6_family = AF_INET6 };
    struct sockaddr_in here, own;
    int listening = family == AF_INET ? listenHere(&here) : listenAt(AF_INET6, (struct sockaddr *)&any, sizeof(any));
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), server;
    struct ebpfMonPeer peer = { .addr = htonl(INADDR_LOOPBACK), .saddr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof(own);
    char data[100] = "";

    testDiag("Bytes that a server has not read, at a socket of %s", family == AF_INET ? "IPv4" : "both");
    if (listening < 0) {
        testSkip(5, "no IPv6");
        return;
    }
    if (family != AF_INET)
        here = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = peer.saddr, .sin_port = any.sin6_port };
    if (connect(client, (struct sockaddr *)&here, sizeof(here)) || getsockname(client, (struct sockaddr *)&own, &size))
        testAbort("no connection: %s", strerror(errno));
    server = accept(listening, NULL, NULL);
    peer.port = own.sin_port;
    peer.sport = here.sin_port;
    testOk1(ebpfMonTcpDiagReadQueue(0, &peer) == 0);
    testOk1(write(client, data, 100) == 100 && ebpfMonTcpDiagReadQueue(0, &peer) == 100);
    close(client);
    testOk(ebpfMonTcpDiagReadQueue(0, &peer) == 101, "the FIN counts as one");
    testOk1(read(server, data, 60) == 60 && ebpfMonTcpDiagReadQueue(0, &peer) == 41);
    close(server);
    testOk(ebpfMonTcpDiagReadQueue(0, &peer) == -1, "the socket is gone: another one listens there, and is not meant");
    close(listening);
}

/* A connection to a link-local address, in a network namespace of its own: 100 bytes that its server has not read. */
static long readLinkLocal(void)
{
    struct sockaddr_in6 any = { .sin6_family = AF_INET6 }, here = { .sin6_family = AF_INET6, .sin6_scope_id = 1 }, own;
    struct in6_ifreq address = { .ifr6_prefixlen = 64, .ifr6_ifindex = 1 };
    struct ifreq up = { .ifr_name = "lo", .ifr_flags = IFF_UP };
    int client = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), listening = -1;
    struct ebpfMonPeer peer = { .netns = 0 };
    socklen_t size = sizeof(own);
    uint64_t received = 0;
    char data[100] = "";
    int failed = 1;

    inet_pton(AF_INET6, "fe80::1", &here.sin6_addr);
    address.ifr6_addr = here.sin6_addr;
    if (ioctl(client, SIOCSIFFLAGS, &up) || ioctl(client, SIOCSIFADDR, &address) ||
        (listening = listenAt(AF_INET6, (struct sockaddr *)&any, sizeof(any))) < 0)
        return -2;
    here.sin6_port = any.sin6_port;
    for (int i = 0; i < 500 && failed; i++) { /* the address is tentative at first */
        failed = connect(client, (struct sockaddr *)&here, sizeof(here));
        usleep(failed ? 10000 : 0);
    }
    if (failed || accept(listening, NULL, NULL) < 0 ||
        getsockname(client, (struct sockaddr *)&own, &size) || write(client, data, sizeof(data)) != sizeof(data))
        return -2;
    peer.port = own.sin6_port;
    peer.sport = here.sin6_port;
    memcpy(peer.addr6, &own.sin6_addr, sizeof(peer.addr6));
    memcpy(peer.saddr6, &here.sin6_addr, sizeof(peer.saddr6));
    peer.addr = ebpfMonShortAddress(peer.addr6); /* perhaps of ::1: the other address is tentative at first */
    peer.saddr = ebpfMonShortAddress(peer.saddr6);
    for (int i = 0; i < 500 && received != sizeof(data); i++) { /* on a busy host a thread of the kernel delivers it */
        if (ebpfMonTcpBytesFindReceived(0, &peer, &received) != 1)
            return -1;
        usleep(received == sizeof(data) ? 0 : 10000);
    }
    return received == sizeof(data) ? ebpfMonTcpDiagReadQueue(0, &peer) : -1;
}

static void testLinkLocal(void)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0)
        _exit(unshare(CLONE_NEWNET) ? 1 : readLinkLocal() == 100 ? 0 : 2);
    waitpid(pid, &status, 0);
    if (WEXITSTATUS(status) == 1)
        testSkip(1, "a network namespace of our own needs root");
    else
        testOk(status == 0, "the socket of a link-local address is not the one that listens");
}

typedef struct {
    const ebpfMonTcpRow *rows;
    int count, found;
} comparison;

/* The same socket in /proc/net/tcp. Its line has more columns; only these are compared. */
static void compareLine(comparison *c, const char *line)
{
    unsigned local, localPort, remote, remotePort, state, uid;
    unsigned long inode;
    const ebpfMonTcpRow *row;

    if (sscanf(line, " %*u: %8X:%X %8X:%X %X %*x:%*x %*x:%*x %*x %u %*u %lu", &local, &localPort, &remote, &remotePort,
               &state, &uid, &inode) != 7)
        return;
    row = find(c->rows, c->count, inode);
    c->found += row && row->v4 && row->local == local && row->remote == remote && ntohs(row->localPort) == localPort &&
                ntohs(row->remotePort) == remotePort && row->state == state && row->uid == uid;
}

static void testEstablished(void)
{
    struct sockaddr_in here;
    int listening = listenHere(&here), fd[2 * CONNECTIONS], mine = 0;
    comparison c = { .rows = NULL };
    ebpfMonTcpRow *rows;
    FILE *table;
    char line[512];

    for (int i = 0; i < CONNECTIONS; i++) {
        fd[2 * i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(fd[2 * i], (struct sockaddr *)&here, sizeof(here)) ||
            (fd[2 * i + 1] = accept(listening, NULL, NULL)) < 0)
            testAbort("no connection %d: %s", i, strerror(errno));
    }
    c.count = ebpfMonTcpDiagRead(0, ESTABLISHED, &rows);
    c.rows = rows;
    table = fopen("/proc/net/tcp", "re");
    while (table && fgets(line, sizeof(line), table))
        compareLine(&c, line);
    if (table)
        fclose(table);
    for (int i = 0; i < 2 * CONNECTIONS; i++) {
        mine += find(rows, c.count, inodeOf(fd[i])) != NULL;
        close(fd[i]);
    }
    testDiag("Connections: %d", c.count);
    testOk(mine == 2 * CONNECTIONS, "both ends of each of %d connections are found: %d", CONNECTIONS, mine);
    testOk(c.found >= mine, "the rows are those of /proc/net/tcp: %d", c.found);
    testOk(!find(rows, c.count, inodeOf(listening)), "no listener is among the connections");
    free(rows);
    close(listening);
}

/* A child in a network namespace of its own, with the inode of its listening socket. */
static pid_t startAway(unsigned long *inode)
{
    int ready[2];
    pid_t pid;

    if (pipe(ready))
        testAbort("no pipe");
    pid = fork();
    if (pid == 0) {
        struct sockaddr_in any = { .sin_family = AF_INET };
        unsigned long own = 0;

        if (!unshare(CLONE_NEWNET))
            own = inodeOf(listenAt(AF_INET, (struct sockaddr *)&any, sizeof(any)));
        if (write(ready[1], &own, sizeof(own)) == sizeof(own))
            pause();
        _exit(0);
    }
    close(ready[1]);
    if (read(ready[0], inode, sizeof(*inode)) != sizeof(*inode))
        *inode = 0;
    close(ready[0]);
    return pid;
}

static void testAway(void)
{
    unsigned long inode = 0;
    pid_t pid = startAway(&inode);
    ebpfMonTcpRow *rows = NULL;
    struct stat before, after;
    uint32_t netns = 0;
    int count, fd;

    testDiag("Another network namespace");
    if (!inode) {
        testSkip(5, "a network namespace of our own needs root");
    } else {
        stat("/proc/thread-self/ns/net", &before);
        count = ebpfMonTcpDiagRead(pid, LISTENING, &rows);
        testOk(count == 1 && rows[0].inode == inode, "the only socket of another namespace is found");
        free(rows);
        count = ebpfMonTcpDiagRead(0, LISTENING, &rows);
        testOk(count >= 0 && !find(rows, count, inode), "our own namespace does not have that socket");
        free(rows);
        fd = ebpfMonNetnsSocketOpen(pid, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0, &netns);
        testOk(fd >= 0 && netns && netns != before.st_ino, "a socket is made in the other namespace");
        close(fd);
        stat("/proc/thread-self/ns/net", &after);
        testOk(before.st_ino == after.st_ino, "this thread is in its own namespace again");
        fd = ebpfMonNetnsSocketOpen(0, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0, &netns);
        testOk(fd >= 0 && netns == before.st_ino, "a socket is made in our own namespace");
        close(fd);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    testOk(ebpfMonTcpDiagRead(pid, LISTENING, &rows) == -1 && !rows, "a process that is gone has no rows");
}

/* Sends an end of an answer to a netlink socket, as root of a container can. Nonzero: the socket does not take it. */
static int isRefused(int file, int protocol)
{
    struct nlmsghdr done = { .nlmsg_len = sizeof(done), .nlmsg_type = NLMSG_DONE };
    struct sockaddr_nl name;
    socklen_t size = sizeof(name);
    int from = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol), err = 0;

    if (getsockname(file, (struct sockaddr *)&name, &size) ||
        sendto(from, &done, sizeof(done), 0, (struct sockaddr *)&name, sizeof(name)) < 0)
        err = errno;
    testDiag("port %u of netlink: %s", name.nl_pid, err ? strerror(err) : "taken");
    close(from);
    return err == ECONNREFUSED;
}

/* The socket of this program that asks for network devices: it has no groups. -1: there is none. */
static int findAsking(void)
{
    for (int file = 3; file < 64; file++) {
        struct sockaddr_nl name;
        socklen_t size = sizeof(name);

        if (getsockname(file, (struct sockaddr *)&name, &size) == 0 && name.nl_family == AF_NETLINK && !name.nl_groups)
            return file;
    }
    return -1;
}

static int countSocket(void *arg, const struct inet_diag_msg *one, size_t bytes)
{
    ++*(int *)arg;
    return 0;
}

static void testForged(void)
{
    const ebpfMonSockDiagRequest request = { .family = AF_UNSPEC, .states = LISTENING };
    int first = 0, second = 0, index[64], devices, file = ebpfMonSockDiagOpen(0, 1);
    struct sockaddr_in here;
    int listening = listenHere(&here);
    ebpfMonNetDevices *d;

    testDiag("Answers that are not the kernel's");
    testOk1(ebpfMonSockDiagRead(file, &request, countSocket, &first) == 0 && first > 0);
    if (geteuid()) {
        testSkip(1, "only root can send to other sockets");
    } else {
        testOk(isRefused(file, NETLINK_SOCK_DIAG), "the socket that asks for sockets takes none");
    }
    testOk(ebpfMonSockDiagRead(file, &request, countSocket, &second) == 0 && second == first,
           "the next answer is complete: %d, %d", first, second);
    close(file);
    close(listening);
    d = ebpfMonNetDevicesOpen(0);
    devices = ebpfMonNetDevicesList(d, index, 64);
    if (geteuid())
        testSkip(1, "only root can send to other sockets");
    else
        testOk(isRefused(findAsking(), NETLINK_ROUTE), "the socket that asks for devices takes none");
    testOk(devices >= 0 && ebpfMonNetDevicesList(d, index, 64) == devices, "%d devices, as before", devices);
    ebpfMonNetDevicesClose(d);
}

MAIN(testTcpDiag)
{
    testPlan(29);
    testListening();
    testQueue(AF_INET);
    testQueue(AF_INET6);
    testLinkLocal();
    testEstablished();
    testAway();
    testForged();
    return testDone();
}
