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

static void testOperators(void)
{
    ebpfMonOperators o;
    char text[256], many[1024] = "";

    testDiag("operators");
    ebpfMonOperatorsInit(&o);
    testOk1(ebpfMonOperatorsHasUser(&o, 0) && ebpfMonOperatorsHasUser(&o, geteuid()));
    testOk1(!ebpfMonOperatorsHasUser(&o, OTHER_UID) && !ebpfMonOperatorsHasHost(&o, htonl(0x0a000005)));
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
    testOk1(ebpfMonOperatorsHasHost(&o, htonl(0x0a000005)) && !ebpfMonOperatorsHasHost(&o, htonl(0x0a000007)));
    testOk1(ebpfMonOperatorsSetHosts(&o, "opi1", text, sizeof(text)) != 0);
    testOk1(ebpfMonOperatorsSetHosts(&o, "10.0.5", text, sizeof(text)) != 0); /* inet_aton would accept it */
    testOk1(ebpfMonOperatorsSetHosts(&o, "::1", text, sizeof(text)) != 0);
    ebpfMonOperatorsFormat(&o, text, sizeof(text));
    testOk(strcmp(text, "users daemon, 77; other hosts 10.0.0.5, 10.0.0.6") == 0, "%s", text);
    testOk1(!ebpfMonOperatorsSetHosts(&o, "", text, sizeof(text)) && o.hostCount == 0);
}

/* A client in a process of its own. Each byte that it gets is an order. */
typedef struct {
    pid_t pid;
    int   orders;  /* 'w' shutdown, 'c' close, 'q' end */
    int   done;
    int   accepted;
    struct sockaddr_in peer;
} client;

static void runClient(uid_t uid, const struct sockaddr_in *server, int family, int orders, int done)
{
    struct sockaddr_in6 mapped = { .sin6_family = AF_INET6, .sin6_port = server->sin_port };
    char order;
    int fd;

    if (setuid(uid))
        _exit(1);
    fd = socket(family, SOCK_STREAM, 0);
    inet_pton(AF_INET6, "::ffff:127.0.0.1", &mapped.sin6_addr);
    if (family == AF_INET ? connect(fd, (const struct sockaddr *)server, sizeof(*server))
                          : connect(fd, (const struct sockaddr *)&mapped, sizeof(mapped)))
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

static void startClient(client *c, int listener, uid_t uid, int family)
{
    struct sockaddr_in server;
    socklen_t size = sizeof(server);
    int orders[2], done[2];

    getsockname(listener, (struct sockaddr *)&server, &size);
    if (pipe(orders) || pipe(done))
        testAbort("no pipe");
    c->pid = fork();
    if (!c->pid) {
        close(orders[1]); /* else the client would never see the end of its orders */
        close(done[0]);
        runClient(uid, &server, family, orders[0], done[1]);
    }
    close(orders[0]);
    close(done[1]);
    c->orders = orders[1];
    c->done = done[0];
    size = sizeof(c->peer);
    c->accepted = accept(listener, (struct sockaddr *)&c->peer, &size);
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
    static const int families[] = {AF_INET, AF_INET6};
    ebpfMonPeerUser user;
    client c;

    testDiag("clients of this host");
    for (unsigned i = 0; i < 4; i++) {
        uid_t uid = i % 2 ? 0 : OTHER_UID;

        startClient(&c, listener, uid, families[i / 2]);
        ebpfMonPeerUserFind(&c.peer, &user);
        testOk(user.kind == ebpfMonPeerLocal && user.uid == uid && user.here.sin_port, "%d, uid %u %s", user.kind,
               (unsigned)user.uid, user.why);
        tell(&c, i % 2 ? 'w' : 'c');
        ebpfMonPeerUserFind(&c.peer, &user);
        testOk(user.kind == ebpfMonPeerUnknown && strstr(user.why, "closed its connection"),
               "it has %s the connection: %d, uid %u %s", i % 2 ? "shut down" : "closed", user.kind, (unsigned)user.uid,
               user.why);
        endClient(&c);
    }
    ebpfMonPeerUserFind(&c.peer, &user);
    testOk(user.kind == ebpfMonPeerUnknown && strstr(user.why, "no connection to this client"), "%s", user.why);
}

static void testWithoutFiles(int listener)
{
    struct rlimit before, none;
    ebpfMonPeerUser user;
    int next;
    client c;

    testDiag("no file is left");
    startClient(&c, listener, OTHER_UID, AF_INET);
    getrlimit(RLIMIT_NOFILE, &before);
    next = dup(c.accepted);
    close(next);
    none = (struct rlimit){ .rlim_cur = (rlim_t)next, .rlim_max = before.rlim_max };
    setrlimit(RLIMIT_NOFILE, &none);
    testOk1(dup(c.accepted) < 0);
    ebpfMonPeerUserFind(&c.peer, &user);
    testOk(user.kind == ebpfMonPeerLocal && user.uid == OTHER_UID, "%d, uid %u %s", user.kind, (unsigned)user.uid,
           user.why);
    tell(&c, 'c');
    ebpfMonPeerUserFind(&c.peer, &user);
    testOk(user.kind == ebpfMonPeerUnknown, "it has closed the connection: %d %s", user.kind, user.why);
    setrlimit(RLIMIT_NOFILE, &before);
    endClient(&c);
}

MAIN(testPeerUser)
{
    struct sockaddr_in any = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int listener = socket(AF_INET, SOCK_STREAM, 0);

    testPlan(0);
    testOperators();
    ebpfMonPeerUserInit();
    if (bind(listener, (struct sockaddr *)&any, sizeof(any)) || listen(listener, 4))
        testAbort("no server");
    testClients(listener);
    testWithoutFiles(listener);
    return testDone();
}
