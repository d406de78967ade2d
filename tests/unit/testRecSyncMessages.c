/* SPDX-License-Identifier: BSD-3-Clause */
/* The messages of RecSync, byte by byte, and messages that are received in pieces. */
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "inventory/recSyncLink.h"

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

MAIN(testRecSyncMessages)
{
    testPlan(7 + 5 + 3 + 4);
    testSent();
    testReceived();
    testAnnouncements();
    return testDone();
}
