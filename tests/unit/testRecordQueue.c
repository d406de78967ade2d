/* SPDX-License-Identifier: BSD-3-Clause */
/* Records in a queue to a thread, and puts packed for this queue. */
#include <string.h>

#include <epicsEvent.h>
#include <epicsThread.h>
#include <epicsUnitTest.h>
#include <testMain.h>

#include "export/shared/recordQueue.h"
#include "putTest.h"

static void testPack(void)
{
    static ebpfMonPut p, q;
    static uint8_t buf[EBPFMON_PUT_PACK_MAX];
    size_t len;
    ebpfMonPut small = somePut(1);

    memset(&p, 0x41, sizeof(p)); /* texts without an end, too */
    len = ebpfMonPutPack(&p, buf);
    ebpfMonPutUnpack(buf, len, &q);
    testOk(len <= sizeof(buf) && strlen(q.val) == sizeof(q.val) - 1 && strlen(q.rule) == sizeof(q.rule) - 1 &&
           q.number == p.number && q.peerUid == p.peerUid, "the largest put fits: %u bytes", (unsigned)len);
    len = ebpfMonPutPack(&small, buf);
    ebpfMonPutUnpack(buf, len, &q);
    testOk(len < 200 && strcmp(q.pv, small.pv) == 0 && strcmp(q.host, "opi1") == 0 && !q.rule[0] &&
           q.time.nsec == 123456789 && q.oldCount == 1, "a usual put is small: %u bytes", (unsigned)len);
}

static void testRing(void)
{
    ebpfMonRecordQueue *q = ebpfMonRecordQueueNew(100);
    ebpfMonRecordQueueState state;
    unsigned written = 0, read = 0, wrong = 0;
    uint8_t buf[64];
    size_t size, len, n;

    testDiag("the ring");
    testOk1(ebpfMonRecordQueueRead(q, buf, sizeof(buf)) == 0);
    for (unsigned round = 0; round < 1000 && read < 1000; round++) {
        for (unsigned i = 0; i < 3 && written < 1000; i++, written++) { /* 1 to 15 bytes, each of the record's number */
            uint8_t record[15];

            memset(record, (int)written, sizeof(record));
            ebpfMonRecordQueueAdd(q, 0, record, 1 + written % 15);
        }
        size = ebpfMonRecordQueueRead(q, buf, sizeof(buf));
        for (n = 0; n + sizeof(len) < size; n += sizeof(len) + len, read++) {
            memcpy(&len, buf + n, sizeof(len));
            if (len != 1 + read % 15) {
                wrong++;
                break;
            }
            wrong += buf[n + sizeof(len)] != (uint8_t)read ||
                     buf[n + sizeof(len) + len - 1] != (uint8_t)read;
        }
    }
    testOk(!wrong && read == 1000, "all records come out in order: %u, %u wrong", read, wrong);
    ebpfMonRecordQueueGetState(q, &state);
    testOk1(state.accepted == 1000 && state.dropped == 0 && state.used == 0);
    testOk1(ebpfMonRecordQueueTakePeak(q) > 0 && ebpfMonRecordQueueTakePeak(q) == 0);
    for (unsigned i = 0; i < 10; i++)
        ebpfMonRecordQueueAdd(q, 0, buf, 20);
    ebpfMonRecordQueueGetState(q, &state);
    testOk(state.accepted == 1003 && state.dropped == 7 && state.used == 84,
           "a full queue counts what it drops: %u", (unsigned)state.dropped);
    testOk(ebpfMonRecordQueueRead(q, buf, sizeof(buf)) == 56, "a read gives whole records only");
    ebpfMonRecordQueueGetState(q, &state);
    testOk(ebpfMonRecordQueueTakePeak(q) == 84 && ebpfMonRecordQueueTakePeak(q) == 28,
           "a look at the state leaves the maximum as it is");
    ebpfMonRecordQueueClear(q);
    testOk1(ebpfMonRecordQueueRead(q, buf, sizeof(buf)) == 0);
    ebpfMonRecordQueueFree(q);
    ebpfMonRecordQueueFree(NULL);
}

static uint64_t countAccepted(ebpfMonRecordQueue *q)
{
    ebpfMonRecordQueueState state;

    ebpfMonRecordQueueGetState(q, &state);
    return state.accepted;
}

/* A source that adds too much leaves room for the others. */
static void testShares(void)
{
    enum { SIZE = 9000, RECORD = 22, WHOLE = RECORD + 8 };
    ebpfMonRecordQueue *q = ebpfMonRecordQueueNew(SIZE);
    uint8_t record[RECORD] = { 1 }, buf[2000];
    unsigned first = ebpfMonRecordQueueShareOf("flood"), second = ebpfMonRecordQueueShareOf("other"), before;
    uint64_t n;

    testDiag("shares");
    testOk1(first != second && first && second && first <= EBPFMON_RECORD_QUEUE_SHARES &&
            ebpfMonRecordQueueShareOf(""));
    testOk(ebpfMonRecordQueueShareOf(NULL) == ebpfMonRecordQueueShareOf(""), "rows about no IOC");
    for (unsigned i = 0; i < 1000; i++)
        ebpfMonRecordQueueAdd(q, first, record, RECORD);
    n = countAccepted(q);
    testOk(n == SIZE / WHOLE * 4 / 5, "the first sender gets four fifths of the room: %u", (unsigned)n);
    for (unsigned i = 0; i < 1000; i++)
        ebpfMonRecordQueueAdd(q, second, record, RECORD);
    n = countAccepted(q) - n;
    testOk(n == SIZE / WHOLE * 4 / 25, "the second sender gets four fifths of what is left: %u", (unsigned)n);
    before = (unsigned)countAccepted(q);
    for (unsigned round = 0; round < 200; round++) {
        ebpfMonRecordQueueRead(q, buf, sizeof(buf));
        for (unsigned i = 0; i < 1000; i++)
            ebpfMonRecordQueueAdd(q, first, record, RECORD);
        ebpfMonRecordQueueAdd(q, ebpfMonRecordQueueShareOf("quiet"), record, RECORD);
        ebpfMonRecordQueueAdd(q, 0, record, RECORD);
    }
    while (ebpfMonRecordQueueRead(q, buf, sizeof(buf)))
        ;
    testOk(countAccepted(q) - before > 400, "the shares hold while the queue is read, too");
    n = countAccepted(q);
    for (unsigned i = 0; i < 1000; i++)
        ebpfMonRecordQueueAdd(q, first, record, RECORD);
    testOk(countAccepted(q) - n == SIZE / WHOLE * 4 / 5, "what was read does not count for a share any more");
    ebpfMonRecordQueueClear(q);
    n = countAccepted(q);
    for (unsigned i = 0; i < 1000; i++)
        ebpfMonRecordQueueAdd(q, 0, record, RECORD);
    testOk(countAccepted(q) - n == SIZE / WHOLE, "what has no sender may take all of the room");
    ebpfMonRecordQueueFree(q);
}

static epicsEventId reading, ended;

static void runReader(void *arg)
{
    ebpfMonRecordQueue *q = arg;
    uint8_t buf[64];

    epicsEventMustTrigger(reading);
    while (!ebpfMonRecordQueueRead(q, buf, sizeof(buf)))
        ebpfMonRecordQueueWait(q, 30.0, 1);
    epicsEventMustTrigger(ended);
}

static void testWaking(void)
{
    ebpfMonRecordQueue *q = ebpfMonRecordQueueNew(100);
    epicsTimeStamp before, after;

    testDiag("sleep and wake");
    reading = epicsEventMustCreate(epicsEventEmpty);
    ended = epicsEventMustCreate(epicsEventEmpty);
    epicsThreadMustCreate("reader", epicsThreadPriorityLow, epicsThreadGetStackSize(epicsThreadStackSmall), runReader,
                          q);
    epicsEventMustWait(reading);
    ebpfMonRecordQueueAdd(q, 0, "x", 1);
    testOk(epicsEventWaitWithTimeout(ended, 10.0) == epicsEventOK, "a record wakes the reader");
    ebpfMonRecordQueueWake(q);
    epicsTimeGetCurrent(&before);
    ebpfMonRecordQueueWait(q, 10.0, 0);
    epicsTimeGetCurrent(&after);
    testOk(epicsTimeDiffInSeconds(&after, &before) < 5, "a wake-up before the wait is remembered");
    ebpfMonRecordQueueAdd(q, 0, "x", 1);
    ebpfMonRecordQueueWait(q, 10.0, 1);
    epicsTimeGetCurrent(&after);
    testOk(epicsTimeDiffInSeconds(&after, &before) < 5, "the reader does not sleep while there is a record");
    epicsEventDestroy(reading);
    epicsEventDestroy(ended);
    ebpfMonRecordQueueFree(q);
}

MAIN(testRecordQueue)
{
    testPlan(0);
    testPack();
    testRing();
    testShares();
    testWaking();
    return testDone();
}
