/* SPDX-License-Identifier: BSD-3-Clause */
/* Users who may write to the monitor, and the process at the other end of a connection. As root, because the clients
 * are processes of other users. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "access/operators.h"
#include "access/client.h"

#define OTHER_UID 65534

static int hasHost(const ebpfMonOperators *operators, const char *address)
{
    struct in_addr in = { 0 };
    struct in6_addr in6 = { 0 };
    uint32_t addr6[4];

    if (strchr(address, ':'))
        inet_pton(AF_INET6, address, &in6);
    else
        inet_pton(AF_INET, address, &in);
    memcpy(addr6, &in6, sizeof(addr6));
    return ebpfMonOperatorsHasHost(operators, in.s_addr ? in.s_addr : ebpfMonShortAddress(addr6), addr6);
}

static void testOperators(void)
{
    ebpfMonOperators o;
    char text[256], many[1024] = "";

    testDiag("operators");
    ebpfMonOperatorsInit(&o);
    testOk1(ebpfMonOperatorsHasUser(&o, 0) && ebpfMonOperatorsHasUser(&o, geteuid()));
    testOk1(!ebpfMonOperatorsHasUser(&o, OTHER_UID) && !hasHost(&o, "10.0.0.5"));
    testOk1(!ebpfMonOperatorsSetUsers(&o, " daemon,\t77 77 ", text, sizeof(text)));
    testOk1(!ebpfMonOperatorsHasUser(&o, 0) && ebpfMonOperatorsHasUser(&o, 1) && ebpfMonOperatorsHasUser(&o, 77));
    testOk(ebpfMonOperatorsSetUsers(&o, "root nosuchuser", text, sizeof(text)) && strstr(text, "no user 'nosuchuser'"),
           "%s", text);
    testOk1(ebpfMonOperatorsSetUsers(&o, "4294967295", text, sizeof(text)) != 0); /* (uid_t)-1 */
    testOk1(ebpfMonOperatorsSetUsers(&o, "4294967296", text, sizeof(text)) != 0); /* 0 if it is cut to 32 bits */
    testOk1(ebpfMonOperatorsSetUsers(&o, "-1", text, sizeof(text)) != 0);
    testOk1(!ebpfMonOperatorsHasUser(&o, 0) && ebpfMonOperatorsHasUser(&o, 77));
    for (int i = 0; i <= EBPFMON_OPERATORS_MAX; i++)
        sprintf(many + strlen(many), "%d ", 1000 + i);
    testOk(ebpfMonOperatorsSetUsers(&o, many, text, sizeof(text)) && strstr(text, "more than"), "%s", text);
    testOk1(!ebpfMonOperatorsSetHosts(&o, "10.0.0.5, 10.0.0.6", text, sizeof(text)));
    testOk1(hasHost(&o, "10.0.0.5") && !hasHost(&o, "10.0.0.7"));
    testOk1(ebpfMonOperatorsSetHosts(&o, "opi1", text, sizeof(text)) != 0);
    testOk1(ebpfMonOperatorsSetHosts(&o, "10.0.5", text, sizeof(text)) != 0); /* inet_aton would accept it */
    testOk1(ebpfMonOperatorsSetHosts(&o, "fe80::1", text, sizeof(text)) != 0); /* each network has one */
    testOk1(ebpfMonOperatorsSetHosts(&o, "::ffff:10.0.0.8", text, sizeof(text)) != 0);
    testOk1(!ebpfMonOperatorsSetHosts(&o, "10.0.0.5 fd00:0::5", text, sizeof(text)));
    testOk1(hasHost(&o, "fd00::5") && !hasHost(&o, "fd00::6") && hasHost(&o, "10.0.0.5") && !hasHost(&o, "10.0.0.6"));
    ebpfMonOperatorsFormat(&o, text, sizeof(text));
    testOk(strcmp(text, "users daemon, 77; other hosts 10.0.0.5, fd00::5") == 0, "%s", text);
    testOk1(!ebpfMonOperatorsSetHosts(&o, "", text, sizeof(text)) && o.hostCount == 0);
}

/* A client in a process of its own. Each byte that it gets is an order. */
typedef struct {
    pid_t pid;
    int   orders;  /* 'w' shutdown, 'c' close, 'q' end */
    int   done;
    int   accepted;
    char  peer[INET6_ADDRSTRLEN + 10]; /* as a server of pvAccess tells it */
} client;

/* How it connects: IPv4; IPv4 from a socket of IPv6; IPv6. */
static const char *const ways[] = { "127.0.0.1", "::ffff:127.0.0.1", "::1" };

static void runClient(uid_t uid, in_port_t port, const char *address, int orders, int done)
{
    int is4 = !strchr(address, ':'), fd;
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = port };
    struct sockaddr_in6 at6 = { .sin6_family = AF_INET6, .sin6_port = port };
    char order;

    if (setuid(uid))
        _exit(1);
    fd = socket(is4 ? AF_INET : AF_INET6, SOCK_STREAM, 0);
    inet_pton(is4 ? AF_INET : AF_INET6, address, is4 ? (void *)&at.sin_addr : (void *)&at6.sin6_addr);
    if (is4 ? connect(fd, (const struct sockaddr *)&at, sizeof(at))
            : connect(fd, (const struct sockaddr *)&at6, sizeof(at6)))
        _exit(2);
    while (read(orders, &order, 1) == 1 && order != 'q') {
        if (order == 'w')
            shutdown(fd, SHUT_WR);
        else if (order == 'c')
            close(fd);
        if (write(done, &order, 1) != 1)
            break;
    }
    _exit(0);
}

/* "listener": of IPv4 and IPv6. */
static void startClient(client *c, int listener, uid_t uid, const char *address)
{
    struct sockaddr_in6 server, peer;
    socklen_t size = sizeof(server);
    int orders[2], done[2];
    char text[INET6_ADDRSTRLEN];

    getsockname(listener, (struct sockaddr *)&server, &size);
    if (pipe(orders) || pipe(done))
        testAbort("no pipe");
    c->pid = fork();
    if (!c->pid) {
        close(orders[1]); /* else the client would never see the end of its orders */
        close(done[0]);
        runClient(uid, server.sin6_port, address, orders[0], done[1]);
    }
    close(orders[0]);
    close(done[1]);
    c->orders = orders[1];
    c->done = done[0];
    size = sizeof(peer);
    c->accepted = accept(listener, (struct sockaddr *)&peer, &size);
    inet_ntop(AF_INET6, &peer.sin6_addr, text, sizeof(text));
    snprintf(c->peer, sizeof(c->peer), strcmp(address, "127.0.0.1") ? "[%s]:%u" : "%s:%u",
             strcmp(address, "127.0.0.1") ? text : address, ntohs(peer.sin6_port));
}

static ebpfMonPeerUser findUser(const client *c)
{
    ebpfMonAccessClient found;

    ebpfMonAccessClientFindPva(c->peer, &found);
    return found.user;
}

static void tell(client *c, char order)
{
    char answer;

    if (write(c->orders, &order, 1) != 1 || read(c->done, &answer, 1) != 1)
        testFail("the client has ended");
}

static void endClient(client *c)
{
    close(c->orders);
    close(c->done);
    waitpid(c->pid, NULL, 0);
    close(c->accepted);
}

static void testClients(int listener)
{
    ebpfMonPeerUser user;
    client c;

    testDiag("clients of this host");
    for (unsigned i = 0; i < 6; i++) {
        uid_t uid = i % 2 ? 0 : OTHER_UID;

        startClient(&c, listener, uid, ways[i / 2]);
        user = findUser(&c);
        testOk(user.kind == ebpfMonPeerLocal && user.uid == uid && user.connection.sport, "%s: %d, uid %u %s", c.peer,
               user.kind, (unsigned)user.uid, user.why);
        tell(&c, i % 2 ? 'w' : 'c');
        user = findUser(&c);
        testOk(user.kind == ebpfMonPeerUnknown && strstr(user.why, "closed its connection"),
               "it has %s the connection: %d, uid %u %s", i % 2 ? "shut down" : "closed", user.kind, (unsigned)user.uid,
               user.why);
        endClient(&c);
    }
    user = findUser(&c);
    testOk(user.kind == ebpfMonPeerUnknown && strstr(user.why, "no connection to this client"), "%s", user.why);
    strcpy(c.peer, "[::1%lo]:5");
    user = findUser(&c);
    testOk(user.kind == ebpfMonPeerUnknown && strstr(user.why, "does not tell"), "%s", user.why);
}

static void testWithoutFiles(int listener, const char *address)
{
    struct rlimit before, none;
    ebpfMonPeerUser user;
    int next;
    client c;

    testDiag("no file is left");
    startClient(&c, listener, OTHER_UID, address);
    getrlimit(RLIMIT_NOFILE, &before);
    next = dup(c.accepted);
    close(next);
    none = (struct rlimit){ .rlim_cur = (rlim_t)next, .rlim_max = before.rlim_max };
    setrlimit(RLIMIT_NOFILE, &none);
    testOk1(dup(c.accepted) < 0);
    user = findUser(&c);
    testOk(user.kind == ebpfMonPeerLocal && user.uid == OTHER_UID, "%d, uid %u %s", user.kind, (unsigned)user.uid,
           user.why);
    tell(&c, 'c');
    user = findUser(&c);
    testOk(user.kind == ebpfMonPeerUnknown, "it has closed the connection: %d %s", user.kind, user.why);
    setrlimit(RLIMIT_NOFILE, &before);
    endClient(&c);
}

MAIN(testPeerUser)
{
    struct sockaddr_in6 any = { .sin6_family = AF_INET6 };
    int listener = socket(AF_INET6, SOCK_STREAM, 0);

    testPlan(0);
    testOperators();
    ebpfMonPeerUserInit();
    if (bind(listener, (struct sockaddr *)&any, sizeof(any)) || listen(listener, 4))
        testAbort("no server");
    testClients(listener);
    testWithoutFiles(listener, ways[0]);
    testWithoutFiles(listener, ways[2]);
    return testDone();
}
