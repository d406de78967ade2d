/* SPDX-License-Identifier: BSD-3-Clause */
/* Was the clock set back before the monitor began to count? The records lie in this process: time stamps of all kinds,
 * which then move. */
#include <string.h>
#include <unistd.h>

#include <epicsTime.h>
#include <epicsUnitTest.h>
#include <testMain.h>

#include "common/clock.h"
#include "watch/aheadStamps.h"

#define RECORDS 1000u
#define SECONDS (int64_t)EBPFMON_SECOND_NS

static uint64_t records[RECORDS]; /* each is its time stamp alone */
static ebpfMonRecord rec[RECORDS];
static ebpfMonCatalogue cat = { .count = RECORDS, .rec = rec };
static ebpfMonAheadStamps ahead;

/* As it lies in a record (epicsTimeStamp). */
static uint64_t makeStamp(int64_t fromNow)
{
    uint64_t at = ebpfMonClockReal() + (uint64_t)fromNow;

    return (at / EBPFMON_SECOND_NS - POSIX_TIME_AT_EPICS_EPOCH) | (at % EBPFMON_SECOND_NS) << 32;
}

/* The record begins to be counted with this time stamp. */
static void begin(uint32_t i, int64_t fromNow)
{
    records[i] = makeStamp(fromNow);
    ebpfMonAheadStampsAdd(&ahead, i, records[i]);
}

static int wentBack(void)
{
    return ebpfMonAheadStampsWentBack(&ahead, getpid(), &cat);
}

static void testOne(void)
{
    begin(0, -5 * SECONDS);
    begin(1, 1 * SECONDS);
    testOk(ahead.count == 0 && !wentBack(), "a stamp that is not ahead, or hardly, is not remembered");
    begin(2, 3600 * SECONDS);
    testOk(!wentBack() && ahead.count == 1, "a stamp that is ahead is remembered until the record processes");
    records[2] = makeStamp(0);
    testOk(wentBack(), "the record has processed, with an earlier stamp: the clock was set back");
    testOk(ahead.count == 0 && !wentBack(), "that is said once");
}

static void testRunsAhead(void)
{
    begin(3, 3600 * SECONDS);
    records[3] = makeStamp(3601 * SECONDS);
    testOk(!wentBack() && ahead.count == 0, "a later stamp: the clock of the IOC runs ahead");
}

/* More records than one look has. The last one is found by a later look. */
static void testMany(void)
{
    unsigned looks = 0;

    for (uint32_t i = 0; i < RECORDS; i++)
        begin(i, 3600 * SECONDS);
    testOk(!wentBack() && ahead.count == RECORDS, "none of %u has processed", RECORDS);
    records[RECORDS - 1] = makeStamp(0);
    while (looks++ < 4 && !wentBack())
        ;
    testOk(looks == 1 || looks == 2, "one of them has: %u looks", looks);
}

static void testNoAnswer(void)
{
    begin(5, 3600 * SECONDS);
    rec[5].addr = 8; /* no memory */
    testOk(!wentBack() && ahead.count == 1, "a record that cannot be read says nothing");
    cat.count = 5;
    testOk(!wentBack() && ahead.count == 1, "nor does one that the database has no more");
    ebpfMonAheadStampsClear(&ahead);
    testOk(ahead.count == 0 && !ahead.of, "all are forgotten");
}

MAIN(testAheadStamps)
{
    testPlan(10);
    for (uint32_t i = 0; i < RECORDS; i++)
        rec[i].addr = (uint64_t)(uintptr_t)&records[i];
    testOne();
    testRunsAhead();
    testMany();
    testNoAnswer();
    return testDone();
}
