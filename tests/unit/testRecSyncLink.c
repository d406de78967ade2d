/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <epicsUnitTest.h>
#include <errno.h>
#include <testMain.h>

#include "common/clock.h"
#include "inventory/recSyncLink.h"

/* --- RecSyncLink --- */

/* inventory/recSyncLink.h: a server in this process, a clock that the test moves, and a server without EPICS Base
 * whose PVs packets have shown. */

#define KEY          0x01020304
#define TOOK_TOO_LONG 20.0 /* s of real time */

static const char greeting[] = "RC\200\1\0\0\0\1", allSent[] = "RC\0\5\0\0\0\4\0\0\0";

static ebpfMonPacketServers *servers;
static ebpfMonPacketServer   listed = { .caPort = 5064, .name = "caproto", .isListed = 1 };
static ebpfMonRecSyncLink   *tested;
static struct sockaddr_in    place;
static int listening, peer = -1;
static double now;
static struct {
    char  *bytes;
    size_t length;
} received;

static void addPv(const char *name)
{
    ebpfMonPacketServersAddPv(servers, listed.pid, listed.start, name);
}

static void beginLink(void)
{
    ebpfMonPacketServer copy[EBPFMON_PACKET_SERVERS];
    ebpfMonInventoryIoc ioc = { .pid = getpid(), .name = "caproto", .packetServers = servers, .caPort = 5064 };

    ebpfMonPacketServersCopy(servers, copy);
    ioc.iocId = copy[0].id;
    now = 1000;
    tested = ebpfMonRecSyncLinkNew(&ioc, now);
    if (!tested)
        testAbort("out of memory");
}

static void endLink(void)
{
    ebpfMonRecSyncLinkFree(tested);
    if (peer >= 0)
        close(peer);
    peer = -1;
    received.length = 0;
}

static int work(void)
{
    return ebpfMonRecSyncLinkWork(tested, NULL, "", now);
}

/* Reads at most "most" bytes of what the link has sent. */
static void readSent(size_t most)
{
    size_t end = received.length + most;
    ssize_t n = 1;

    while (n > 0 && received.length < end) {
        received.bytes = realloc(received.bytes, received.length + 65536);
        n = recv(peer, received.bytes + received.length, 65536, MSG_DONTWAIT);
        received.length += n > 0 ? (size_t)n : 0;
    }
}

/* Works until the link has this state; the server reads all meanwhile. 0; or what work() returned, or 1: it takes too
 * long. */
static int workUntil(ebpfMonRecSyncState state)
{
    double end = ebpfMonClockSeconds() + TOOK_TOO_LONG;
    int rc = 0;

    while (!rc && tested->state != state) {
        rc = work();
        if (peer < 0)
            peer = accept(listening, NULL, NULL);
        if (peer >= 0)
            readSent(SIZE_MAX / 2);
        if (ebpfMonClockSeconds() > end)
            return 1;
        poll(NULL, 0, 1);
    }
    return rc;
}

/* Works until the server has received these bytes at the end. */
static int workUntilReceived(const char *bytes, size_t length)
{
    double end = ebpfMonClockSeconds() + TOOK_TOO_LONG;

    while (received.length < length || memcmp(received.bytes + received.length - length, bytes, length) != 0) {
        if (work() || ebpfMonClockSeconds() > end)
            return 0;
        readSent(SIZE_MAX / 2);
        poll(NULL, 0, 1);
    }
    return 1;
}

/* Works until it fails. Nonzero: it failed for this reason, and the connection is closed. */
static int failsWith(const char *why)
{
    double end = ebpfMonClockSeconds() + TOOK_TOO_LONG;

    while (work() == 0 && ebpfMonClockSeconds() < end)
        poll(NULL, 0, 1);
    testDiag("\"%s\"", tested->why);
    return strstr(tested->why, why) && tested->state == ebpfMonRecSyncIdle && tested->file == -1;
}

static void sendBytes(const char *bytes, size_t length)
{
    if (send(peer, bytes, length, MSG_NOSIGNAL) != (ssize_t)length)
        testDiag("send: %s", strerror(errno));
}

static int hasReceived(const char *bytes, size_t length)
{
    return memmem(received.bytes, received.length, bytes, length) != NULL;
}

/* Connects, and waits until the server has all. */
static void upload(void)
{
    if (ebpfMonRecSyncLinkConnect(tested, &place, KEY, now) || workUntil(ebpfMonRecSyncGreets))
        testAbort("no connection: %s", tested->why);
    while (peer < 0)
        peer = accept(listening, NULL, NULL);
    sendBytes(greeting, 9);
    if (workUntil(ebpfMonRecSyncDone) || !workUntilReceived(allSent, 12))
        testAbort("no upload: %s", tested->why);
}

static void testUpload(void)
{
    testDiag("an upload");
    beginLink();
    testOk(tested->deadline == now + EBPFMON_RECSYNC_SETTLE, "a server gets some time to open its ports");
    upload();
    testOk(memcmp(received.bytes, "RC\0\1\0\0\0\10\0\0\0\0\1\2\3\4", 16) == 0,
           "the greeting comes first, with the key of the announcement");
    testOk(tested->records == 2 && hasReceived("unknownP:A", 10) && hasReceived("unknownP:B", 10),
           "it has the PVs that packets have shown");
    testOk(hasReceived("IOCNAMEcaproto", 14) && hasReceived("RSRV_SERVER_PORT5064", 20), "... and the variables");
    testOk(tested->out.bytes == NULL, "its bytes take no memory any more");
    now += EBPFMON_RECSYNC_PING - 1;
    sendBytes("RC\200\2\0\0\0\4\0\0\0\7", 12);
    testOk(workUntilReceived("RC\0\2\0\0\0\4\0\0\0\7", 12), "a ping is answered with its number");
    now += EBPFMON_RECSYNC_PING - 1;
    testOk(work() == 0 && tested->state == ebpfMonRecSyncDone, "it stays while pings come");
    now += 2;
    testOk(failsWith("no pings"), "without pings the server counts as gone");
    endLink();
}

/* Each new upload is much work for the receiver, so the pauses become longer. */
static void testNewPvs(void)
{
    double pause = 20;
    unsigned wrong = 0;
    char name[16];

    testDiag("more PVs");
    beginLink();
    upload();
    tested->deadline = 1e9; /* as if pings came */
    now += pause - 1;
    addPv("P:C");
    testOk(work() == 0 && tested->state == ebpfMonRecSyncDone, "new PVs are not looked for before 20 s");
    for (int i = 0; i < 10; i++) {
        now += 1;
        wrong += work() || tested->state != ebpfMonRecSyncIdle || tested->why[0];
        close(peer);
        peer = -1;
        upload();
        tested->deadline = 1e9;
        wrong += tested->records != 3 + (unsigned)i;
        pause = pause < 1280 ? 2 * pause : 1280;
        now += pause - 1;
        sprintf(name, "P:D%d", i);
        addPv(name);
        wrong += work() || tested->state != ebpfMonRecSyncDone;
    }
    testOk(wrong == 0, "then all is sent again, and the next look comes after twice as long, up to %g s: %u wrong",
           pause, wrong);
    now += 1;
    work();
    close(peer);
    peer = -1;
    upload();
    tested->deadline = 1e9;
    now += pause;
    testOk(work() == 0 && tested->state == ebpfMonRecSyncDone && tested->lookAt == now + pause,
           "while there are no new ones, the connection stays");
    pthread_setname_np(pthread_self(), "reccaster");
    now += pause;
    testOk(work() == 0 && tested->state == ebpfMonRecSyncIdle && tested->isOwn && !tested->why[0],
           "it ends without a complaint if the process has got a RecSync client of its own");
    pthread_setname_np(pthread_self(), "testRecSyncLink");
    testOk1(ebpfMonRecSyncLinkLookForClient(tested) == 0);
    endLink();
}

static void testFailures(void)
{
    struct sockaddr_in nobody = place;
    int file = socket(AF_INET, SOCK_STREAM, 0);
    socklen_t size = sizeof(nobody);

    testDiag("servers that fail");
    nobody.sin_port = 0;
    if (bind(file, (struct sockaddr *)&nobody, size) || getsockname(file, (struct sockaddr *)&nobody, &size))
        testAbort("bind: %s", strerror(errno));
    beginLink();
    testOk(ebpfMonRecSyncLinkConnect(tested, &nobody, KEY, now) || failsWith("cannot be reached"), "nobody listens");
    close(file);
    endLink();

    beginLink();
    ebpfMonRecSyncLinkConnect(tested, &place, KEY, now);
    testOk1(workUntil(ebpfMonRecSyncGreets) == 0);
    now += EBPFMON_RECSYNC_ANSWER + 1;
    testOk(failsWith("does not answer"), "no greeting comes");
    endLink();

    for (int isClosed = 0; isClosed < 2; isClosed++) {
        beginLink();
        ebpfMonRecSyncLinkConnect(tested, &place, KEY, now);
        workUntil(ebpfMonRecSyncGreets);
        while (peer < 0)
            peer = accept(listening, NULL, NULL);
        if (isClosed)
            shutdown(peer, SHUT_RDWR);
        else
            sendBytes("HTTP/1.1 400 Bad Request\r\n", 26);
        testOk(failsWith(isClosed ? "closed the connection" : "not a RecSync server"),
               isClosed ? "the server closes the connection" : "another program answers");
        endLink();
    }
}

/* The server greets, but the IOC has no database. */
static void testUnreadable(void)
{
    ebpfMonInventoryIoc ioc = { .pid = getpid(), .name = "broken" };
    unsigned wrong = 0;
    double again = 5;

    testDiag("an IOC that cannot be read");
    ioc.cat = calloc(1, sizeof(*ioc.cat));
    if (!ioc.cat)
        testAbort("out of memory");
    ioc.cat->refs = 1;
    tested = ebpfMonRecSyncLinkNew(&ioc, now);
    for (int i = 0; i < 10; i++) {
        ebpfMonRecSyncLinkConnect(tested, &place, KEY, now);
        wrong += tested->isUnreadable;
        workUntil(ebpfMonRecSyncGreets);
        while (peer < 0)
            peer = accept(listening, NULL, NULL);
        sendBytes(greeting, 9);
        wrong += !failsWith("its memory cannot be read") || !tested->isUnreadable || tested->deadline != now + again;
        close(peer);
        peer = -1;
        now = tested->deadline;
        again = again < 320 ? 2 * again : 320;
    }
    testOk(wrong == 0, "it is tried again after 5 s, and then after twice as long, up to %g s: %u wrong", again, wrong);
    endLink();

    beginLink();
    ebpfMonRecSyncLinkConnect(tested, &place, KEY, now);
    workUntil(ebpfMonRecSyncGreets);
    now += EBPFMON_RECSYNC_ANSWER + 1;
    testOk(failsWith("does not answer") && !tested->isUnreadable,
           "a server that does not answer is not the IOC's fault");
    endLink();
}

/* Sends so many pings. Returns how many the kernel took. */
static unsigned sendPings(unsigned count)
{
    unsigned sent = 0;

    while (sent < count && send(peer, "RC\200\2\0\0\0\4\0\0\0\7", 12, MSG_NOSIGNAL | MSG_DONTWAIT) == 12)
        sent++;
    return sent;
}

static void testPings(void)
{
    unsigned sent = 0;
    size_t most = 0;
    int small = 1;
    double end;

    testDiag("a server that only sends pings");
    beginLink();
    ebpfMonRecSyncLinkConnect(tested, &place, KEY, now);
    workUntil(ebpfMonRecSyncGreets);
    while (peer < 0)
        peer = accept(listening, NULL, NULL);
    now += EBPFMON_RECSYNC_ANSWER - 1;
    sendPings(1);
    testOk1(workUntilReceived("RC\0\2\0\0\0\4\0\0\0\7", 12));
    now += 2;
    testOk(failsWith("does not answer"), "a ping is no greeting");
    endLink();

    beginLink();
    upload();
    tested->lookAt = 0;
    end = ebpfMonClockSeconds() + TOOK_TOO_LONG;
    setsockopt(tested->file, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
    while (work() == 0 && sent < 200000 && ebpfMonClockSeconds() < end) {
        sent += sendPings(100);
        most = tested->out.length - tested->sent > most ? tested->out.length - tested->sent : most;
    }
    testOk(failsWith("does not read") && most < 8192,
           "it ends when the server does not read: %u pings, %zu bytes waited", sent, most);
    endLink();
}

/* The server reads a part, and then no more. */
static void testSlow(void)
{
    char name[240];
    size_t before;
    int small = 65536, steps = 0;

    testDiag("a server that reads slowly");
    for (int i = 0; i < 20000; i++) {
        snprintf(name, sizeof(name), "LONG:%0200d", i);
        addPv(name);
    }
    beginLink();
    if (ebpfMonRecSyncLinkConnect(tested, &place, KEY, now) || workUntil(ebpfMonRecSyncGreets))
        testAbort("no connection: %s", tested->why);
    while (peer < 0)
        peer = accept(listening, NULL, NULL);
    setsockopt(tested->file, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
    sendBytes(greeting, 9);
    for (int i = 0; i < 50 && tested->state != ebpfMonRecSyncSends; i++, poll(NULL, 0, 10))
        work();
    testOk(tested->state == ebpfMonRecSyncSends && tested->sent < tested->out.length,
           "the kernel does not take all at once");
    do {
        before = tested->sent;
        now += EBPFMON_RECSYNC_ANSWER - 1;
        readSent(1 << 18);
        poll(NULL, 0, 10);
    } while (work() == 0 && tested->sent > before && ++steps < 5);
    testOk(steps == 5 && tested->state == ebpfMonRecSyncSends,
           "it goes on as long as a part is taken every 20 s: %zu bytes", tested->sent);
    while (tested->sent != before) { /* until nothing more fits */
        before = tested->sent;
        work();
        poll(NULL, 0, 10);
    }
    now += EBPFMON_RECSYNC_ANSWER + 1;
    testOk(failsWith("does not answer") && !tested->out.bytes, "it ends if nothing is taken any more");
    endLink();
}

static void runRecSyncLink(void)
{
    socklen_t size = sizeof(place);
    int small = 65536;

    listed.pid = getpid();
    servers = ebpfMonPacketServersNew();
    listening = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    place = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    setsockopt(listening, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    if (!servers || bind(listening, (struct sockaddr *)&place, size) || listen(listening, 4) ||
        getsockname(listening, (struct sockaddr *)&place, &size))
        testAbort("listen: %s", strerror(errno));
    ebpfMonPacketServersWantPvs(servers, 1);
    ebpfMonPacketServersSetList(servers, &listed, 1);
    addPv("P:A");
    addPv("P:B");
    testUpload();
    testNewPvs();
    testFailures();
    testUnreadable();
    testPings();
    testSlow();
    ebpfMonPacketServersFree(servers);
    free(received.bytes);
    close(listening);
}

/* --- RecSyncMessages --- */

/* The messages of RecSync, byte by byte, and messages that are received in pieces. */

static void isSent(ebpfMonRecSyncOut *out, const char *what, const void *bytes, size_t length)
{
    testOk(out->length == length && memcmp(out->bytes, bytes, length) == 0, "%s: %zu bytes", what, length);
    ebpfMonRecSyncOutFree(out);
}

static void testSent(void)
{
    static char longName[300];
    ebpfMonRecSyncOut out = {0};

    ebpfMonRecSyncAddGreeting(&out, 0x01020304);
    isSent(&out, "greeting", "RC\0\1\0\0\0\10\0\0\0\0\1\2\3\4", 16);
    ebpfMonRecSyncAddPong(&out, 0xfffefdfc);
    isSent(&out, "pong", "RC\0\2\0\0\0\4\377\376\375\374", 12);
    ebpfMonRecSyncAddRecord(&out, 258, "ai", "X:Y");
    isSent(&out, "record", "RC\0\3\0\0\0\15\0\0\1\2\0\2\0\3aiX:Y", 21);
    ebpfMonRecSyncAddAlias(&out, 258, "X:Z");
    isSent(&out, "alias", "RC\0\3\0\0\0\13\0\0\1\2\1\0\0\3X:Z", 19);
    ebpfMonRecSyncAddInfo(&out, 0, "IOC", "vac");
    isSent(&out, "info", "RC\0\6\0\0\0\16\0\0\0\0\3\0\0\3IOCvac", 22);
    ebpfMonRecSyncAddDone(&out);
    isSent(&out, "all sent", "RC\0\5\0\0\0\4\0\0\0\0", 12);
    memset(longName, 'x', sizeof(longName) - 1);
    ebpfMonRecSyncAddInfo(&out, 1, longName, "value");
    ebpfMonRecSyncAddInfo(&out, 1, "", "value");
    testOk(out.length == 0 && !out.isFull, "names that no message can have are left out");
}

/* Passes the bytes in pieces of this size, and notes the messages. */
static void feed(const char *bytes, size_t length, size_t step, char *taken, uint32_t *nonce)
{
    static const char letters[] = "-gpob";
    ebpfMonRecSyncIn in = {{0}};
    int message = ebpfMonRecSyncNothing;

    for (size_t at = 0; at < length && message != ebpfMonRecSyncBad; ) {
        size_t room;
        uint8_t *to = ebpfMonRecSyncInGetRoom(&in, &room);

        room = room < step ? room : step;
        room = room < length - at ? room : length - at;
        memcpy(to, bytes + at, room);
        at += room;
        ebpfMonRecSyncInAdd(&in, room);
        while ((message = ebpfMonRecSyncInTake(&in, nonce)) != ebpfMonRecSyncNothing) {
            *taken++ = letters[message];
            if (message == ebpfMonRecSyncBad)
                break;
        }
    }
    *taken = 0;
}

static void testReceived(void)
{
    static const char bytes[] = "RC\200\1\0\0\0\1\0" "RC\200\2\0\0\0\4\1\2\3\4" "RC\200\11\0\0\0\144"
        "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
        "RC\200\2\0\0\0\6\0\0\0\7xy";
    char taken[32];
    uint32_t nonce = 0;

    for (size_t step = 1; step < 200; step = step * 3 + 1) {
        feed(bytes, sizeof(bytes) - 1, step, taken, &nonce);
        testOk(strcmp(taken, "gpop") == 0 && nonce == 7, "in pieces of %zu: %s, %u", step, taken, nonce);
    }
    feed("HTTP/1.1 400 Bad Request", 24, 24, taken, &nonce);
    testOk(strcmp(taken, "b") == 0, "a message of another protocol is not taken");
    feed("RC\200\2\0\0\0\3abc", 11, 11, taken, &nonce);
    testOk(strcmp(taken, "b") == 0, "a ping that is too short is not taken");
    feed("RC\200\3\377\0\0\0abc", 11, 11, taken, &nonce);
    testOk(strcmp(taken, "b") == 0, "a message of 4 GB is not taken");
}

static void testAnnouncements(void)
{
    ebpfMonRecSyncServer server;
    const uint8_t *good = (const uint8_t *)"RC\0\0\177\0\0\1\23\271\0\0\0\0\1\2";

    testOk1(ebpfMonRecSyncParseAnnouncement(good, 16, &server) == 0 && server.key == 258 &&
            memcmp(&server.address, "\177\0\0\1", 4) == 0 && memcmp(&server.port, "\23\271", 2) == 0);
    testOk(ebpfMonRecSyncParseAnnouncement(good, 15, &server) == -1, "an announcement that is too short is refused");
    testOk(ebpfMonRecSyncParseAnnouncement((const uint8_t *)"RC\0\1\177\0\0\1\23\271\0\0\0\0\1\2", 16, &server) == -1,
           "an announcement of another version is refused");
    testOk(ebpfMonRecSyncParseAnnouncement((const uint8_t *)"RC\0\0\177\0\0\1\0\0\0\0\0\0\1\2", 16, &server) == -1,
           "an announcement without port is refused");
}

static void runRecSyncMessages(void)
{
    testSent();
    testReceived();
    testAnnouncements();
}

MAIN(testRecSyncLink)
{
    testPlan(8 + 5 + 5 + 2 + 3 + 3 + 7 + 5 + 3 + 4);
    runRecSyncLink();
    runRecSyncMessages();
    return testDone();
}
