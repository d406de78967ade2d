/* SPDX-License-Identifier: BSD-3-Clause */
/* Logs to log servers: Base's own iocLogServer, killed and started again, and a server that does not read. As root
 * in a network namespace of its own. */
#include "logTest.h"
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
    testOk1(ebpfMonExportGetOps(exporter)->caPutLog(exporter, target, port != serverPort, ebpfMonLogAll, "") == 0);
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
    ebpfMonExportStop(exporter, 2);
    testOk(ebpfMonClockSeconds() - since < 3, "the end of the monitor does not wait for it: %.1f s",
           ebpfMonClockSeconds() - since);
    /* three logs; lines that the server without reads did not acknowledge are lost and counted */
    testOk(written() + lost() >= 1200 + 3 * 60000 && lost() > 1000, "%" PRIu64 " + %" PRIu64, written(), lost());
}

static void testServers(void)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(addr);
    int deaf = socket(AF_INET, SOCK_STREAM, 0);

    if (access(IOC_LOG_SERVER, X_OK) != 0 || bind(deaf, (struct sockaddr *)&addr, size) || listen(deaf, 4) ||
        getsockname(deaf, (struct sockaddr *)&addr, &size)) {
        testSkip(14, "no iocLogServer in this Base, or no network");
        return;
    }
    serverPort = 20000 + getpid() % 10000;
    eltc(0);
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
    exporter = ebpfMonExportNew(NULL);
    testServers();
    removeAll(dir);
    return testDone();
}
