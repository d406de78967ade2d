/* SPDX-License-Identifier: BSD-3-Clause */
/* A reader of a ring: it reads all entries with few wake-ups. It looks when it is woken, and when something is due. */
#include <sys/eventfd.h>
#include <unistd.h>

#include <epicsAtomic.h>
#include <epicsEvent.h>
#include <epicsThread.h>
#include <epicsUnitTest.h>
#include <testMain.h>

#include "common/clock.h"
#include "common/ringReader.h"

#define ENTRIES 20000
#define SLOW    60.0 /* s; longer than any step of this test */

/* A ring that only has a number of entries. Its writer wakes a sleeping reader, as bpf/wake.bpf.h does. */
typedef struct {
    int          file;
    int          written, read, sleeps, wakes, looks, finished, freed; /* atomic */
    size_t       due;   /* atomic: monotonic ns; 0: nothing */
    epicsEventId looked;
} ring;

static void writeEntry(ring *r)
{
    epicsAtomicIncrIntT(&r->written);
    if (epicsAtomicCmpAndSwapIntT(&r->sleeps, 1, 0) == 1) {
        epicsAtomicIncrIntT(&r->wakes);
        eventfd_write(r->file, 1);
    }
}

static unsigned readRing(void *arg)
{
    ring *r = arg;
    int n = epicsAtomicGetIntT(&r->written) - epicsAtomicGetIntT(&r->read);
    eventfd_t value;

    eventfd_read(r->file, &value);
    epicsAtomicAddIntT(&r->read, n);
    epicsAtomicIncrIntT(&r->looks);
    if (epicsAtomicGetSizeT(&r->due) && epicsAtomicGetSizeT(&r->due) <= ebpfMonClockMonotonic())
        epicsAtomicSetSizeT(&r->due, 0);
    epicsEventMustTrigger(r->looked);
    return (unsigned)n;
}

static uint64_t getDue(void *arg)
{
    ring *r = arg;
    size_t due = epicsAtomicGetSizeT(&r->due);

    return due ? due : UINT64_MAX;
}

static int getFile(void *arg)
{
    return ((ring *)arg)->file;
}

static int beginSleep(void *arg)
{
    ring *r = arg;

    epicsAtomicSetIntT(&r->sleeps, 1);
    return epicsAtomicGetIntT(&r->written) == epicsAtomicGetIntT(&r->read);
}

static void endSleep(void *arg)
{
    epicsAtomicSetIntT(&((ring *)arg)->sleeps, 0);
}

static void finish(void *arg)
{
    epicsAtomicSetIntT(&((ring *)arg)->finished, epicsAtomicGetIntT(&((ring *)arg)->looks));
}

static void freeRing(void *arg)
{
    epicsAtomicSetIntT(&((ring *)arg)->freed, 1);
}

/* Nonzero: "value" came up to "wanted" before the deadline. */
static int waitFor(ring *r, const int *value, int wanted)
{
    uint64_t end = ebpfMonClockMonotonic() + (uint64_t)(SLOW * 1e9);

    while (epicsAtomicGetIntT(value) < wanted && ebpfMonClockMonotonic() < end)
        epicsEventWaitWithTimeout(r->looked, 0.1);
    return epicsAtomicGetIntT(value) >= wanted;
}

static void testEntries(ring *r)
{
    int isRead;

    testDiag("Entries, all at once");
    for (int i = 0; i < ENTRIES; i++)
        writeEntry(r);
    isRead = waitFor(r, &r->read, ENTRIES);
    testOk(isRead && epicsAtomicGetIntT(&r->read) == ENTRIES, "all entries are read: %d of %d",
           epicsAtomicGetIntT(&r->read), ENTRIES);
    testOk(epicsAtomicGetIntT(&r->wakes) < ENTRIES / 10, "few wake-ups are enough: %d", epicsAtomicGetIntT(&r->wakes));
}

static void testOthers(ring *r, ebpfMonRingReader *reader)
{
    uint64_t begin = ebpfMonClockMonotonic();
    int looks = epicsAtomicGetIntT(&r->looks), isLooking;
    double silence;

    testDiag("Without an entry");
    ebpfMonRingReaderWake(reader);
    testOk(waitFor(r, &r->looks, looks + 1), "the reader looks when somebody wakes it");
    epicsAtomicSetSizeT(&r->due, (size_t)ebpfMonClockMonotonic() + 5000000);
    ebpfMonRingReaderWake(reader); /* so the reader sees the new time */
    while (epicsAtomicGetSizeT(&r->due) && ebpfMonClockMonotonic() < begin + (uint64_t)(SLOW * 1e9))
        epicsEventWaitWithTimeout(r->looked, 1.0);
    testOk(!epicsAtomicGetSizeT(&r->due), "the reader looks when something is due");
    waitFor(r, &r->sleeps, 1);
    begin = ebpfMonClockMonotonic();
    looks = epicsAtomicGetIntT(&r->looks);
    isLooking = waitFor(r, &r->looks, looks + 1);
    silence = (double)(ebpfMonClockMonotonic() - begin) / 1e9;
    testOk(isLooking && silence > 0.5, "the reader looks by itself after some seconds (%.3f s), also without a wake-up",
           silence);
}

MAIN(testRingReader)
{
    static const ebpfMonRingReaderCalls calls = {
        .name = "testRing", .read = readRing, .getDue = getDue, .getFile = getFile, .beginSleep = beginSleep,
        .endSleep = endSleep, .finish = finish, .free = freeRing,
    };
    ring r = { .file = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), .looked = epicsEventMustCreate(epicsEventEmpty) };
    ebpfMonRingReader *reader;

    testPlan(9);
    reader = ebpfMonRingReaderNew(&calls, &r);
    if (!reader)
        testAbort("no memory");
    ebpfMonRingReaderWake(reader);
    testOk(ebpfMonRingReaderStop(reader) == 0, "a reader that does not run can be woken and stopped");
    testOk(ebpfMonRingReaderStart(reader) == 0, "the reader starts");
    testEntries(&r);
    testOthers(&r, reader);
    testOk(ebpfMonRingReaderStop(reader) == 0 && r.finished == r.looks, "the reader ends after its last look");
    ebpfMonRingReaderFree(reader);
    testOk(r.freed, "what the reader had is freed with it");
    epicsEventDestroy(r.looked);
    close(r.file);
    return testDone();
}
