/* SPDX-License-Identifier: BSD-3-Clause */
/* The server of a connection. Functions of the test replace this host, except in one test. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "common/clock.h"
#include "host/procNetns.h"
#include "host/procRead.h"
#include "put/servers.h"

#define SECOND 1000000000ull

static ebpfMonTargets *targets;
static ebpfMonServerSocket sockets[4]; /* sockets of the IOCs */
static unsigned socketCount;
static int sameSockets;                /* nonzero: nothing has changed since they were read */
static unsigned watchedIocs;           /* of the last call of readSockets … */
static pid_t lastPid;                  /* … and its last process */
static pid_t process;                  /* the process that findProcess finds */
static unsigned looks;                 /* number of calls of findProcess */
static uint64_t again;                 /* … which says so … */
static int wasUrgent;                  /* … and was asked so */
static unsigned ports[8], portCount;

static int readSockets(const pid_t *pids, unsigned watched, unsigned count, unsigned max,
                       ebpfMonSocketOwners *owners, ebpfMonServerSocket **list)
{
    watchedIocs = watched;
    lastPid = pids[count - 1];
    if (sameSockets)
        return -1;
    *list = malloc(sizeof(sockets));
    memcpy(*list, sockets, sizeof(sockets));
    return (int)socketCount;
}

static int accepts(const ebpfMonServerSocket *s, const struct ebpfMonPeer *peer)
{
    return s->port == peer->sport;
}

static uint32_t processNetns; /* of "process"; 0: any */

static uint32_t readNetns(pid_t pid)
{
    return processNetns;
}

static pid_t findProcess(ebpfMonHostSockets *host, const struct ebpfMonPeer *peer, ebpfMonHostLook *look)
{
    look->again = again;
    wasUrgent = look->isUrgent;
    looks++;
    return peer->netns && processNetns && peer->netns != processNetns ? 0 : process;
}

static int readName(pid_t pid, char *buf, size_t size)
{
    if (pid == 4713)
        snprintf(buf, size, "iocA");
    else
        snprintf(buf, size, "process %d", (int)pid);
    return pid == 666 ? -1 : 0;
}

static const ebpfMonServerReaders readers = {
    .readSockets = readSockets, .accepts = accepts, .findProcess = findProcess, .readName = readName,
    .readNetns = readNetns,
};

static void onPort(void *arg, uint32_t netns, uint16_t port)
{
    if (portCount < 8)
        ports[portCount++] = port;
}

static struct ebpfMonPeer makePeer(unsigned port)
{
    return (struct ebpfMonPeer){ .addr = htonl(0x0a000001), .saddr = htonl(0x0a000002), .port = htons(999),
                                 .sport = htons((uint16_t)port) };
}

static ebpfMonTarget *addIoc(pid_t pid, const char *name, int isSeen)
{
    ebpfMonTarget *t = calloc(1, sizeof(*t));

    t->pid = pid;
    t->wantedLevel = ebpfMonLevelPuts;
    snprintf(t->name, sizeof(t->name), "%s", name);
    if (isSeen)
        t->probesOn = EBPFMON_BIT(ebpfMonProgPut) | EBPFMON_BIT(ebpfMonProgPutField);
    ebpfMonTargetsAdd(targets, t);
    return t;
}

/* Longer than others: each look finds what the ones before have left. */
static void testFind(ebpfMonServers *servers, ebpfMonTarget *a, ebpfMonTarget *b)
{
    struct ebpfMonPeer peer = makePeer(5064);
    const ebpfMonServer *s;

    testDiag("Servers");
    sockets[0] = (ebpfMonServerSocket){ .pid = a->pid, .port = htons(5064), .netns = 1 };
    sockets[1] = (ebpfMonServerSocket){ .pid = b->pid, .port = htons(6064), .netns = 1 };
    socketCount = 2;
    ebpfMonServersRefresh(servers, onPort, NULL);
    testOk(portCount == 2 && ports[0] == 5064 && ports[1] == 6064, "the ports of all IOCs are reported");
    s = ebpfMonServersFind(servers, &peer, SECOND);
    testOk(s->iocId == a->iocId && s->isSeen && strcmp(s->name, "iocA") == 0 && !s->off,
           "the server is a watched IOC: %s", s->name);
    peer = makePeer(6064);
    s = ebpfMonServersFind(servers, &peer, SECOND);
    testOk(s->iocId == b->iocId && !s->isSeen && strcmp(s->name, "iocB") == 0,
           "the server is an IOC in which not all puts are seen: %s", s->name);
    b->wantedLevel = ebpfMonLevelOff;
    b->probesOn = a->probesOn;
    testOk(!ebpfMonServersFind(servers, &peer, 2 * SECOND)->off, "a server is remembered");
    sameSockets = 1; /* but the IOC is another one */
    ebpfMonServersRefresh(servers, onPort, NULL);
    sameSockets = 0;
    s = ebpfMonServersFind(servers, &peer, 2 * SECOND);
    testOk(s->off && s->isSeen, "… until the IOCs have changed");
    testOk(watchedIocs == 1 && lastPid == b->pid, "an IOC at level off comes behind those that are watched");
    testOk(!looks, "no other process was looked for");

    peer = makePeer(7064);
    s = ebpfMonServersFind(servers, &peer, 3 * SECOND);
    testOk(!s->iocId && !s->off && strcmp(s->name, "10.0.0.2:7064") == 0,
           "a server on another host is named by its address: %s", s->name);
    process = 4711;
    s = ebpfMonServersFind(servers, &peer, 12 * SECOND);
    testOk(strcmp(s->name, "10.0.0.2:7064") == 0 && looks == 1, "a server is remembered for 10 s");
    s = ebpfMonServersFind(servers, &peer, 14 * SECOND);
    testOk(strcmp(s->name, "process 4711") == 0 && looks == 2, "after that another process is found there: %s",
           s->name);
    process = 0;
    s = ebpfMonServersFind(servers, &peer, 30 * SECOND);
    testOk(strcmp(s->name, "process 4711") == 0 && looks == 3,
           "a server that has ended is known while its packets are still read");
    process = 666;
    s = ebpfMonServersFind(servers, &peer, 50 * SECOND);
    testOk(strcmp(s->name, "10.0.0.2:7064") == 0, "a process that ends just now is no server");
    process = getpid();
    s = ebpfMonServersFind(servers, &peer, 70 * SECOND);
    testOk(s->off, "the monitor itself is not watched");
    process = a->pid;
    s = ebpfMonServersFind(servers, &peer, 90 * SECOND);
    testOk(s->iocId == a->iocId && !s->off, "an IOC that has just begun to serve is found");

    process = 4713;
    a->start = 1;
    peer = makePeer(8064);
    s = ebpfMonServersFind(servers, &peer, 40 * SECOND);
    testOk(!s->iocId && strcmp(s->name, "iocA") == 0, "a server may have the name of an IOC that has ended");
    a->pid = getppid(); /* one that lives */
    a->start = ebpfMonProcStart(a->pid);
    peer = makePeer(8065);
    s = ebpfMonServersFind(servers, &peer, 40 * SECOND);
    testOk(!s->iocId && strcmp(s->name, "iocA#4713") == 0, "another process with the name of an IOC gets its pid: %s",
           s->name);
    a->pid = 100;

    process = 4712; /* not a known IOC … */
    peer = makePeer(9064);
    s = ebpfMonServersFind(servers, &peer, 40 * SECOND);
    testOk(!s->iocId && strcmp(s->name, "process 4712") == 0, "a server is no IOC before the follower has found it: %s",
           s->name);
    sockets[2] = (ebpfMonServerSocket){ .pid = a->pid, .port = htons(9064), .netns = 1 };
    socketCount = 3;
    ebpfMonServersRefresh(servers, onPort, NULL);
    s = ebpfMonServersFind(servers, &peer, 40 * SECOND);
    testOk(s->iocId == a->iocId, "… and is an IOC at the next refresh, not after 10 s");
}

/* What the follower changes is known at the next packet: packets are wanted, or not, from then on. */
static void testChange(ebpfMonServers *servers, ebpfMonTarget *a, ebpfMonTarget *b)
{
    struct ebpfMonPeer peer = makePeer(6064), fresh = makePeer(9100);
    ebpfMonTarget *c;

    testDiag("Changes before the next refresh");
    ebpfMonTargetsLock(targets);
    b->wantedLevel = ebpfMonLevelPuts;
    b->probesOn = 0;
    ebpfMonTargetsUnlock(targets);
    ebpfMonServersRefresh(servers, onPort, NULL);
    testOk(!ebpfMonServersFind(servers, &peer, 100 * SECOND)->isSeen,
           "while probes are missing, puts are not seen in the IOC");
    b->probesOn = a->probesOn;
    ebpfMonTargetsNoteChange(targets);
    testOk(ebpfMonServersFind(servers, &peer, 100 * SECOND)->isSeen,
           "after a change of the probes they are seen at once");
    process = 5000;
    testOk(!ebpfMonServersFind(servers, &fresh, 100 * SECOND)->iocId, "a process that is not listed is no IOC");
    c = addIoc(5000, "iocC", 1);
    ebpfMonTargetsNoteChange(targets);
    testOk(ebpfMonServersFind(servers, &fresh, 100 * SECOND)->iocId == c->iocId, "once it is listed, it is an IOC");
    ebpfMonTargetsRemove(targets, c);
    free(c);
}

/* An IOC at level off in a namespace whose sockets are not read: to look for it takes milliseconds. */
static void testOff(ebpfMonServers *servers, ebpfMonTarget *b)
{
    struct ebpfMonPeer peer = makePeer(9200);
    unsigned before;

    testDiag("An IOC at level off whose sockets are not read");
    b->wantedLevel = ebpfMonLevelOff;
    process = b->pid;
    testOk(ebpfMonServersFind(servers, &peer, 100 * SECOND)->off, "it is found");
    before = looks;
    ebpfMonServersRefresh(servers, onPort, NULL);
    ebpfMonServersFind(servers, &peer, 101 * SECOND);
    testOk(looks == before, "a refresh does not make us look for it again");
    b->wantedLevel = ebpfMonLevelPuts;
    ebpfMonServersRefresh(servers, onPort, NULL);
    testOk(!ebpfMonServersFind(servers, &peer, 101 * SECOND)->off && looks == before + 1,
           "but one does once it is watched");
}

/* Packets of one namespace for a server in another: anybody may have written them. */
static void testNamespaces(ebpfMonServers *servers, ebpfMonTarget *a)
{
    uint32_t own = ebpfMonProcNetns(getpid()), covered[] = { own, own + 1 };
    const uint64_t since[] = { 6 * SECOND, 7 * SECOND };
    struct ebpfMonPeer peer = makePeer(9300);
    const ebpfMonServer *s;

    testDiag("A server in another network namespace than the packets");
    process = 4712;
    processNetns = own + 2;
    ebpfMonServersSetCovered(servers, covered, since, 2);
    peer.netns = own + 2;
    s = ebpfMonServersFind(servers, &peer, 100 * SECOND);
    testOk(s->pid == 4712 && !s->off && !s->isElsewhere && s->netns == own + 2, "its own namespace: they count");
    peer.netns = own + 1;
    s = ebpfMonServersFind(servers, &peer, 100 * SECOND);
    testOk(s->pid == 4712 && s->off, "another one: they do not");
    peer.netns = own;
    s = ebpfMonServersFind(servers, &peer, 100 * SECOND);
    testOk(s->pid == 4712 && !s->off && !s->isElsewhere && s->netns == own + 2,
           "that of the monitor: they do, as long as none are read in that of the server");
    covered[1] = own + 2;
    ebpfMonServersSetCovered(servers, covered, since, 2);
    s = ebpfMonServersFind(servers, &peer, 101 * SECOND);
    testOk(s->isElsewhere && s->elsewhereSince == 7 * SECOND, "from then on they are copies");
    peer = makePeer(9301);
    peer.netns = own;
    process = a->pid;
    processNetns = own + 3;
    s = ebpfMonServersFind(servers, &peer, 100 * SECOND);
    testOk(s->iocId == a->iocId && s->isElsewhere, "a watched IOC is seen inside: they are copies in any case");
    process = 0;
    peer = makePeer(9302);
    peer.netns = own + 1;
    s = ebpfMonServersFind(servers, &peer, 100 * SECOND);
    testOk(!s->pid && !s->off && !s->isElsewhere, "a server on another host: %s", s->name);
    processNetns = 0;
}

static int listenHere(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    return listen(fd, 1) ? -1 : fd; /* at any address and port */
}

/* The sockets of this process, from the kernel and from /proc. */
static void testSockets(void)
{
    pid_t pid = getpid();
    ebpfMonSocketOwners *owners = ebpfMonSocketOwnersNew();
    ebpfMonServerSocket *list;
    int fd = listenHere(), other, n = ebpfMonServerSocketsRead(&pid, 1, 1, 10, owners, &list);

    testDiag("Sockets that a process listens on");
    testOk(n == 1 && list[0].pid == pid && list[0].addr == 0 && list[0].netns,
           "the listening socket of a process is found");
    free(list);
    testOk(ebpfMonServerSocketsRead(&pid, 1, 1, 10, owners, &list) == -1 && !list,
           "without a change nothing is listed");
    other = listenHere();
    n = ebpfMonServerSocketsRead(&pid, 1, 1, 10, owners, &list);
    testOk(n == 2, "a new socket is found: %d", n);
    free(list);
    close(fd);
    n = ebpfMonServerSocketsRead(&pid, 1, 1, 10, owners, &list);
    testOk(n == 1, "a closed socket is gone: %d", n);
    free(list);
    ebpfMonSocketOwnersForget(owners);
    n = ebpfMonServerSocketsRead(&pid, 1, 1, 10, owners, &list);
    testOk(n == 1, "all is read again if the caller wants it: %d", n);
    free(list);
    close(other);
    ebpfMonSocketOwnersFree(owners);
}

static void testRunning(ebpfMonServers *servers, ebpfMonTarget *a)
{
    testDiag("An IOC may still make a put");
    testOk1(ebpfMonServersIsRunning(servers, a->iocId));
    a->gone = 1;
    testOk(!ebpfMonServersIsRunning(servers, a->iocId), "an IOC that has ended makes no put any more");
    testOk(!ebpfMonServersIsRunning(servers, 12345), "an IOC that is not known makes none either");
}

static void testMany(ebpfMonServers *servers)
{
    unsigned before = looks;

    process = 0;
    for (unsigned i = 0; i < 20000; i++) {
        struct ebpfMonPeer peer = makePeer(10000 + i);

        ebpfMonServersFind(servers, &peer, (100 + i) * SECOND);
    }
    testOk(looks - before == 20000, "more servers than are remembered: each is looked for");
}

static void testOldAnswer(ebpfMonServers *servers)
{
    struct ebpfMonPeer peer = makePeer(9400);
    unsigned before = looks;

    testDiag("A server was looked for in what was read some time ago");
    process = 0;
    again = 203 * SECOND;
    ebpfMonServersFind(servers, &peer, 202 * SECOND);
    again = 0;
    process = 4712;
    testOk(!ebpfMonServersFind(servers, &peer, 202 * SECOND + 1)->pid && looks == before + 1, "it is not read at once");
    testOk(ebpfMonServersFind(servers, &peer, 203 * SECOND)->pid == 4712, "but when that may be done again");
    testOk(!wasUrgent && ebpfMonServersFind(servers, &peer, 220 * SECOND) && wasUrgent,
           "where a server was, all is read in any case");
}

static int listenAt(struct sockaddr_in *in)
{
    int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t size = sizeof(*in);

    bind(file, (struct sockaddr *)in, sizeof(*in));
    listen(file, 1);
    getsockname(file, (struct sockaddr *)in, &size);
    return file;
}

/* Anybody can send packets with many addresses. */
static void testManyQuestions(void)
{
    struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct ebpfMonPeer peer = { .addr = in.sin_addr.s_addr, .saddr = in.sin_addr.s_addr,
                                .netns = ebpfMonProcNetns(getpid()) };
    ebpfMonHostSockets *host = ebpfMonHostSocketsNew();
    unsigned asked = 0, read = 0, found = 0;
    ebpfMonHostLook look;
    uint64_t end;
    int file;

    testDiag("Which process listens is asked again and again");
    peer.sport = htons(1);
    for (; asked < 2000; asked++) {
        look = (ebpfMonHostLook){ .isRead = 0 };
        found += ebpfMonHostSocketsFind(host, &peer, &look) != 0;
        read += look.isRead;
    }
    testOk(!found && read && read < asked / 4, "all that listen were read %u times for %u questions", read, asked);
    file = listenAt(&in);
    peer.sport = in.sin_port;
    end = ebpfMonClockMonotonic() + 60 * SECOND;
    do {
        look = (ebpfMonHostLook){ .isRead = 0 };
        found = ebpfMonHostSocketsFind(host, &peer, &look) == getpid();
    } while (!found && look.again && ebpfMonClockMonotonic() < end);
    testOk(found, "a server that has begun meanwhile is found when they are read again");
    close(file);
    ebpfMonHostSocketsFree(host);
}

/* With the real /proc: this process listens. */
static void testProc(void)
{
    struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct ebpfMonPeer peer = {
        .addr = in.sin_addr.s_addr, .saddr = in.sin_addr.s_addr, .netns = ebpfMonProcNetns(getpid())};
    ebpfMonServers *servers = ebpfMonServersNew(targets, NULL);
    ebpfMonTarget *t = addIoc(getpid(), "iocC", 1);
    const ebpfMonServer *s;
    int server = listenAt(&in), found = 0;

    testDiag("This host");
    peer.sport = in.sin_port;
    t->gone = 1; /* not an IOC yet */
    s = ebpfMonServersFind(servers, &peer, SECOND);
    testOk(!s->iocId && s->off, "a server is found by its socket: %s", s->name);
    t->gone = 0;
    portCount = 0;
    ebpfMonServersRefresh(servers, onPort, NULL);
    for (unsigned i = 0; i < portCount; i++)
        found |= ports[i] == ntohs(in.sin_port);
    testOk(found, "the port on which the IOC listens is reported");
    s = ebpfMonServersFind(servers, &peer, 20 * SECOND);
    testOk(s->iocId == t->iocId && strcmp(s->name, "iocC") == 0, "the server is a watched IOC now: %s", s->name);
    close(server);
    ebpfMonServersFree(servers);
}

MAIN(testServers)
{
    ebpfMonTarget *a, *b;
    ebpfMonServers *servers;

    testPlan(48);
    targets = ebpfMonTargetsNew();
    a = addIoc(100, "iocA", 1);
    b = addIoc(101, "iocB", 0);
    servers = ebpfMonServersNew(targets, &readers);
    testFind(servers, a, b);
    testChange(servers, a, b);
    testOff(servers, b);
    testNamespaces(servers, a);
    testSockets();
    testRunning(servers, a);
    testMany(servers);
    testOldAnswer(servers);
    testManyQuestions();
    ebpfMonServersFree(servers);
    a->gone = b->gone = 1;
    testProc();
    return testDone();
}
