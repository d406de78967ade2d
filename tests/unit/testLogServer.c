/* SPDX-License-Identifier: BSD-3-Clause */
/* Logs to log servers: Base's own iocLogServer, killed and started again, a server that does not read, and a proxy. As
 * root in a network namespace of its own. */
#include "logTest.h"
#include "export/log/logServer.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/wait.h>

static pid_t server;
static char serverFile[256];
static int serverPort;

static void startServer(void)
{
    char port[16];

    snprintf(port, sizeof(port), "%d", serverPort);
    server = fork();
    if (server == 0) {
        setenv("EPICS_IOC_LOG_PORT", port, 1);
        setenv("EPICS_IOC_LOG_FILE_NAME", serverFile, 1);
        setenv("EPICS_IOC_LOG_FILE_LIMIT", "100000000", 1);
        execl(IOC_LOG_SERVER, "iocLogServer", NULL);
        _exit(127);
    }
}

static void killServer(void)
{
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
}

static unsigned serverFrom, serverTo;

/* Every line of the range, whole. */
static int serverHasAll(const void *tellMissing)
{
    unsigned missing = 0;
    char want[128];
    size_t len;
    char *text = contents(serverFile, &len);

    for (unsigned i = serverFrom; i < serverTo && text; i++) {
        snprintf(want, sizeof(want), " 15-Nov-26 07:28:03 opi1 alice P%u new=%u old=%u\n", i, i, i + 1);
        missing += !strstr(text, want);
    }
    free(text);
    if (tellMissing && missing)
        testDiag("%u missing", missing);
    return text && !missing;
}

static unsigned made; /* puts */

static void startLog(int port)
{
    char target[64];

    snprintf(target, sizeof(target), "127.0.0.1:%d", port);
    testOk1(ebpfMonPutLogsAddCaPutLog(logs, target, port != serverPort, ebpfMonLogAll, "") == 0);
}

static void testKilled(void)
{
    testDiag("iocLogServer");
    snprintf(serverFile, sizeof(serverFile), "%s", pathOf("server.log"));
    begin();
    startLog(serverPort);
    for (; made < 200; made++)
        putNumber(made);
    testOk(until(isInTrouble, "server down"), "a server that is down is a state of the log");
    startServer();
    serverTo = made;
    testOk(until(serverHasAll, NULL), "the server gets all lines from before its start");
    testOk1(until(isFine, NULL));
    for (int round = 0; round < 2; round++) {
        killServer();
        for (unsigned end = made + 500; made < end; made++)
            putNumber(made);
        testOk1(until(isInTrouble, "server down"));
        startServer();
        serverTo = made;
        testOk(until(serverHasAll, NULL), "the server was killed and started again: it has all of %u lines", made);
    }
    writeUntil(made);
    testOk(serverHasAll("") && lost() == 0 && written() == made, "%" PRIu64 " lines", written());
}

static void testDeaf(int deafPort)
{
    double since;

    testDiag("a server that does not read delays nobody");
    startLog(deafPort);
    testOk1(startJsonLog("beside.json", 0, 0, 0) == 0);
    for (unsigned end = made + 60000; made < end; made++) {
        if (made % 10000 == 0)
            epicsThreadSleep(0.3); /* the queue is not what is tested here */
        putNumber(made);
    }
    serverFrom = made - 50;
    serverTo = made;
    testOk1(until(serverHasAll, NULL));
    testOk1(until(isInTrouble, "too slow"));
    since = ebpfMonClockSeconds();
    ebpfMonPutLogsStop(logs, 2);
    testOk(ebpfMonClockSeconds() - since < 3, "the end of the monitor does not wait for it: %.1f s",
           ebpfMonClockSeconds() - since);
    /* three logs; lines that the server without reads did not acknowledge are lost and counted */
    testOk(written() + lost() >= 1200 + 3 * 60000 && lost() > 1000, "%" PRIu64 " + %" PRIu64, written(), lost());
}

static double proxyTime; /* invented */

static int isUp(const void *s)
{
    ebpfMonLogServerTick((ebpfMonLogServer *)s, proxyTime);
    return ((const ebpfMonLogServer *)s)->up;
}

static int isDown(const void *s)
{
    return !isUp(s);
}

static int hasSent(const void *s)
{
    return isUp(s) && ((const ebpfMonLogServer *)s)->sent == ((const ebpfMonLogServer *)s)->len;
}

static void testProxy(int listener, const struct sockaddr_in *addr)
{
    const struct linger atOnce = {.l_onoff = 1};
    ebpfMonLogServer *s = ebpfMonLogServerOpen("proxy", addr);
    int fd;

    testDiag("a proxy accepts connections, but the server behind it is down");
    proxyTime = 100;
    for (double wait = 1; wait <= 8; wait *= 2) {
        testOk1(until(isUp, s) && until(hasSent, s) && s->out.trouble == (wait > 1));
        fd = accept(listener, NULL, NULL);
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &atOnce, sizeof(atOnce));
        close(fd);
        testOk1(until(isDown, s) && s->out.trouble);
        testOk(s->out.retryAt - proxyTime == wait, "the next try comes after %g s: %g", wait,
               s->out.retryAt - proxyTime);
        ebpfMonLogServerAdd(s, "line", 4, proxyTime);
        proxyTime = s->out.retryAt;
    }
    testOk(until(isUp, s) && until(hasSent, s) && s->out.lines == 0 && s->len == 4 * strlen("line\n"),
           "lines that the proxy took are kept");
    fd = accept(listener, NULL, NULL);
    proxyTime += 4.9;
    testOk1(isUp(s) && s->out.trouble);
    proxyTime += 0.2;
    testOk1(isUp(s) && !s->out.trouble && s->out.lines == 4 && !s->len);
    ebpfMonLogServerClose(s, proxyTime, 0);
    close(fd);
    free(s);
}

static void testEndAfterTrouble(int listener, const struct sockaddr_in *addr)
{
    ebpfMonLogServer *s = ebpfMonLogServerOpen("back", addr);
    char line[16];
    int fd;

    testDiag("the log ends just after the server came back");
    ebpfMonDestinationSetTrouble(&s->out, proxyTime, 30, "server down");
    s->out.retryAt = proxyTime;
    ebpfMonLogServerAdd(s, "line", 4, proxyTime);
    testOk1(until(hasSent, s) && s->out.trouble);
    fd = accept(listener, NULL, NULL);
    testOk1(recv(fd, line, sizeof(line), 0) == 5);
    ebpfMonLogServerClose(s, proxyTime, 1);
    testOk(s->out.lines == 1 && s->out.lost == 0, "a line that the server has is written: %llu, lost %llu",
           (unsigned long long)s->out.lines, (unsigned long long)s->out.lost);
    close(fd);
    free(s);
}

static void testServers(void)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(addr);
    int deaf = socket(AF_INET, SOCK_STREAM, 0);

    if (access(IOC_LOG_SERVER, X_OK) != 0 || bind(deaf, (struct sockaddr *)&addr, size) || listen(deaf, 4) ||
        getsockname(deaf, (struct sockaddr *)&addr, &size)) {
        testSkip(31, "no iocLogServer in this Base, or no network");
        return;
    }
    serverPort = 20000 + getpid() % 10000;
    eltc(0);
    testProxy(deaf, &addr);
    testEndAfterTrouble(deaf, &addr);
    testKilled();
    testDeaf(ntohs(addr.sin_port));
    eltc(1);
    killServer();
    close(deaf);
}

MAIN(testLogServer)
{
    testPlan(0);
    makeLogFolder("testLogServer");
    useOwnNamespaces();
    logs = ebpfMonPutLogsNew();
    testServers();
    removeAll(dir);
    return testDone();
}
