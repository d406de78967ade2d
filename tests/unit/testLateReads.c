/* SPDX-License-Identifier: BSD-3-Clause */
/* host/lateReads.h: reads that are made without the lock of their caller. */
#include <string.h>
#include <unistd.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "host/lateReads.h"

static ebpfMonLateReads *reads;
static unsigned calls;

/* A read whose result is its key, and that fails for 0. */
static int readNumber(const void *key, void *buf, size_t size)
{
    calls++;
    memcpy(buf, key, size);
    return *(const uint64_t *)key ? 0 : -1;
}

static int readTwice(const void *key, void *buf, size_t size)
{
    uint64_t twice = 2 * *(const uint64_t *)key;

    memcpy(buf, &twice, size);
    return 0;
}

/* UINT64_MAX: it fails. */
static uint64_t get(ebpfMonLateReadFn read, uint64_t key)
{
    uint64_t result = 0;

    return ebpfMonLateReadsGet(reads, read, &key, sizeof(key), &result, sizeof(result)) ? UINT64_MAX : result;
}

static void testOnce(void)
{
    testDiag("a read is made between two tries");
    ebpfMonLateReadsBegin(reads);
    testOk(!ebpfMonLateReadsAreWanted(reads) && !ebpfMonLateReadsMake(reads), "at first nothing is wanted");
    testOk(get(readNumber, 5) == UINT64_MAX && calls == 0, "the first try does not read");
    testOk1(ebpfMonLateReadsAreWanted(reads));
    testOk(ebpfMonLateReadsMake(reads) && calls == 1, "then it is read");
    testOk(get(readNumber, 5) == 5 && calls == 1, "the second try gets the result");
    testOk(!ebpfMonLateReadsAreWanted(reads) && !ebpfMonLateReadsMake(reads), "and no third one is needed");
    testOk(get(readTwice, 5) == UINT64_MAX, "another function with the same key is another read");
    testOk(get(readNumber, 6) == UINT64_MAX && get(readNumber, 6) == UINT64_MAX, "so is another key");
    testOk(ebpfMonLateReadsMake(reads) && calls == 2 && get(readTwice, 5) == 10 && get(readNumber, 6) == 6 &&
           get(readNumber, 5) == 5, "each is read once, and the earlier result stays");
    ebpfMonLateReadsBegin(reads);
    testOk(get(readNumber, 5) == UINT64_MAX, "the next work begins without results");
    ebpfMonLateReadsMake(reads);
}

static void testFailures(void)
{
    char large[EBPFMON_LATE_SIZE + 1];
    uint64_t key = 1;
    unsigned before;

    testDiag("reads that fail");
    ebpfMonLateReadsBegin(reads);
    testOk1(get(readNumber, 0) == UINT64_MAX && ebpfMonLateReadsMake(reads));
    testOk(get(readNumber, 0) == UINT64_MAX && !ebpfMonLateReadsMake(reads),
           "a failure is a result, too: it is not read again");
    testOk(ebpfMonLateReadsGet(reads, readNumber, &key, sizeof(key), large, sizeof(large)) == -1 &&
           !ebpfMonLateReadsMake(reads), "what is too large fails");
    ebpfMonLateReadsBegin(reads);
    for (key = 1; key <= EBPFMON_LATE_MAX + 1; key++)
        get(readNumber, key);
    before = calls;
    testOk(ebpfMonLateReadsMake(reads) && calls - before == EBPFMON_LATE_MAX, "there is a limit: %u reads",
           calls - before);
    testOk(get(readNumber, EBPFMON_LATE_MAX) == EBPFMON_LATE_MAX &&
               get(readNumber, EBPFMON_LATE_MAX + 1) == UINT64_MAX && !ebpfMonLateReadsMake(reads),
           "the work ends all the same, without the rest");
}

static void testMemory(void)
{
    static const char text[] = "DEMO:VALVE";
    uint64_t at = (uint64_t)(uintptr_t)text;
    char bytes[4] = "", got[32] = "";

    testDiag("the memory of a process");
    ebpfMonLateReadsBegin(reads);
    testOk1(ebpfMonLateReadsGetBytes(reads, getpid(), at, bytes, sizeof(bytes)) == -1 &&
            ebpfMonLateReadsGetText(reads, getpid(), at, got, sizeof(got)) == -1);
    testOk1(ebpfMonLateReadsMake(reads));
    testOk(ebpfMonLateReadsGetBytes(reads, getpid(), at, bytes, sizeof(bytes)) == 0 && memcmp(bytes, text, 4) == 0,
           "bytes");
    testOk(ebpfMonLateReadsGetText(reads, getpid(), at, got, sizeof(got)) == 0 && strcmp(got, text) == 0, "a text: %s",
           got);
    testOk(ebpfMonLateReadsGetText(NULL, getpid(), at, got, sizeof(got)) == 0, "without a list it is read at once");
    testOk(ebpfMonLateReadsGetBytes(NULL, getpid(), 16, bytes, sizeof(bytes)) == -1, "there is no such address");
}

MAIN(testLateReads)
{
    testPlan(21);
    reads = ebpfMonLateReadsNew();
    testOnce();
    testFailures();
    testMemory();
    ebpfMonLateReadsFree(reads);
    return testDone();
}
