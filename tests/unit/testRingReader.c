/* SPDX-License-Identifier: BSD-3-Clause */
/* A reader of a ring: it reads all entries with few wake-ups. It looks when it is woken, and when something is due. One
 * reader helps another one. */
#include <sys/eventfd.h>
#include <unistd.h>

#include <epicsAtomic.h>
#include <epicsEvent.h>
#include <epicsThread.h>
#include <epicsUnitTest.h>
#include <testMain.h>

#include "common/clock.h"
#include "common/pace.h"
#include "common/ringReader.h"
#include "common/duty.h"

#define ENTRIES 20000
#define SLOW    60.0 /* s; longer than any step of this test */

/* A ring that only has a number of entries. Its writer wakes a sleeping reader, as bpf/common/wake.bpf.h does. */
typedef struct ring {
    int          file;
    int          written, read, sleeps, wakes, looks, finished, freed; /* atomic */
    size_t       due;   /* atomic: monotonic ns; 0: nothing */
    epicsEventId looked;
    int          hasMore;              /* after a look that finds many entries there is one more */
    int          isBusy;               /* atomic: after a look that finds an entry there is one more */
    int          isIncomplete;         /* atomic: something that belongs to the entries has not come */
    /* only for the ring whose reader helps */
    struct ring *next;
    int          nextEntries;          /* each look that finds an entry writes so many to "next", … */
    ebpfMonRingReader *self;           /* not NULL: it stops to help before that, and waits until they are read: … */
    int          isReadMeanwhile;      /* … atomic: they were */
    uint64_t     nextDue;              /* … and makes something due there after so many ns; 0: it does not */
} ring;

/* An entry that wakes the helper takes the wake-up from the entries of the other ring (bpf/wire/wireSend.bpf.h). */
static void writeEntry(ring *r)
{
    epicsAtomicIncrIntT(&r->written);
    if (epicsAtomicCmpAndSwapIntT(&r->sleeps, 1, 0) == 1) {
        if (r->next)
            epicsAtomicSetIntT(&r->next->sleeps, 0);
        epicsAtomicIncrIntT(&r->wakes);
        eventfd_write(r->file, 1);
    }
}

/* Nonzero: "value" came up to "wanted" before the deadline. */
static int waitFor(ring *r, const int *value, int wanted)
{
    uint64_t end = ebpfMonClockMonotonic() + (uint64_t)(SLOW * 1e9);

    while (epicsAtomicGetIntT(value) < wanted && ebpfMonClockMonotonic() < end)
        epicsEventWaitWithTimeout(r->looked, 0.1);
    return epicsAtomicGetIntT(value) >= wanted;
}

static void writeNext(ring *r)
{
    if (r->self)
        ebpfMonRingReaderStopHelping(r->self);
    for (int i = 0; i < r->nextEntries; i++)
        writeEntry(r->next);
    if (r->self)
        epicsAtomicSetIntT(&r->isReadMeanwhile,
                           waitFor(r->next, &r->next->read, epicsAtomicGetIntT(&r->next->written)));
    if (r->nextDue)
        epicsAtomicSetSizeT(&r->next->due, (size_t)(ebpfMonClockMonotonic() + r->nextDue));
}

static unsigned readRing(void *arg, int *expects)
{
    ring *r = arg;
    int n = epicsAtomicGetIntT(&r->written) - epicsAtomicGetIntT(&r->read);
    eventfd_t value;

    eventfd_read(r->file, &value);
    epicsAtomicAddIntT(&r->read, n);
    if (n && r->next)
        writeNext(r);
    if ((n > 64 && r->hasMore) || (n && epicsAtomicGetIntT(&r->isBusy)))
        writeEntry(r);
    epicsAtomicIncrIntT(&r->looks);
    if (epicsAtomicGetSizeT(&r->due) && epicsAtomicGetSizeT(&r->due) <= ebpfMonClockMonotonic())
        epicsAtomicSetSizeT(&r->due, 0);
    epicsEventMustTrigger(r->looked);
    *expects = n > 0;
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

static int isIncomplete(void *arg)
{
    return epicsAtomicGetIntT(&((ring *)arg)->isIncomplete);
}

/* Returns how often the reader looks after an entry, until it sleeps; a pause is before it (EBPFMON_PACE_SOON_NS). */
static int countLooks(ring *r)
{
    uint64_t later = ebpfMonClockMonotonic() + 2 * EBPFMON_PACE_SOON_NS;
    int before;

    waitFor(r, &r->sleeps, 1);
    while (ebpfMonClockMonotonic() < later)
        ;
    before = epicsAtomicGetIntT(&r->looks);
    writeEntry(r);
    waitFor(r, &r->looks, before + 1);
    waitFor(r, &r->sleeps, 1);
    return epicsAtomicGetIntT(&r->looks) - before;
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

static void testDuty(void)
{
    ebpfMonDuty duty;

    testDiag("A duty");
    ebpfMonDutyInit(&duty);
    testOk(!ebpfMonDutyTake(&duty), "the owner has it: another thread does not get it");
    testOk(!ebpfMonDutyLeaveOwn(&duty, 1000) && ebpfMonDutyLeaveOwn(&duty, 1000),
           "so the owner looks once more before it sleeps");
    testOk(ebpfMonDutyTake(&duty) && !ebpfMonDutyIsWanted(&duty), "the owner sleeps: another thread gets it");
    testOk(!ebpfMonDutyLeave(&duty, 1000), "nothing is due before the owner wakes: it sleeps on");
    testOk(ebpfMonDutyTake(&duty) && ebpfMonDutyLeave(&duty, 999), "something is due earlier: it must be woken");
    testOk(ebpfMonDutyTake(&duty) && !ebpfMonDutyTakeOwn(&duty) && ebpfMonDutyIsWanted(&duty), "the owner wants it");
    testOk(ebpfMonDutyLeave(&duty, 1000) && !ebpfMonDutyTake(&duty) && ebpfMonDutyTakeOwn(&duty),
           "it is woken, and is the next that gets it");
    testOk(!ebpfMonDutyIsWanted(&duty) && !ebpfMonDutyLeaveOwn(&duty, 1000), "another thread asked for it meanwhile");
    testOk(ebpfMonDutyLeaveOwn(&duty, 1000), "what was wanted before is forgotten");
    ebpfMonDutyDestroy(&duty);
}

static ring makeRing(void)
{
    return (ring){
        .file = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), .looked = epicsEventMustCreate(epicsEventEmpty),
    };
}

static void endRing(ring *r)
{
    epicsEventDestroy(r->looked);
    close(r->file);
}

/* A reader that nobody wakes looks by itself after a second or more. */
static int isSoon(uint64_t begin)
{
    return ebpfMonClockMonotonic() - begin < EBPFMON_SECOND_NS;
}

/* A ring of packets, whose entries come before those of a ring of events. */
static void testHelped(ring *packets, ring *events, ebpfMonRingReader *packetReader)
{
    uint64_t begin;
    int entries;

    testDiag("A reader that helps");
    testOk(waitFor(packets, &packets->sleeps, 1) && waitFor(events, &events->sleeps, 1), "both sleep");
    packets->nextEntries = 1;
    begin = ebpfMonClockMonotonic();
    writeEntry(packets);
    testOk(waitFor(events, &events->read, 1) && isSoon(begin), "an event that comes after a packet is read at once");
    testOk(!epicsAtomicGetIntT(&events->wakes), "the event wakes nobody");
    testOk(waitFor(events, &events->sleeps, 1), "then events wake their reader again");
    writeEntry(events);
    testOk(waitFor(events, &events->read, 2) && epicsAtomicGetIntT(&events->wakes) == 1,
           "an event alone wakes the reader of events");
    waitFor(packets, &packets->sleeps, 1);
    waitFor(events, &events->sleeps, 1);
    packets->self = packetReader;
    begin = ebpfMonClockMonotonic();
    writeEntry(packets);
    testOk(waitFor(packets, &packets->isReadMeanwhile, 1) && isSoon(begin),
           "while the reader of packets does long work, the reader of events is woken");
    packets->self = NULL;
    testOk(waitFor(packets, &packets->sleeps, 1) && waitFor(events, &events->sleeps, 1), "both sleep");
    packets->nextEntries = ENTRIES;
    events->hasMore = 1;
    entries = epicsAtomicGetIntT(&events->read) + ENTRIES;
    writeEntry(packets);
    begin = ebpfMonClockMonotonic();
    testOk(waitFor(events, &events->read, entries), "many events after a packet are read");
    testOk(waitFor(events, &events->read, entries + 1) && isSoon(begin), "and one that comes after them");
    packets->nextEntries = 0;
    packets->nextDue = 20000000;
    waitFor(packets, &packets->sleeps, 1);
    waitFor(events, &events->sleeps, 1);
    begin = ebpfMonClockMonotonic();
    writeEntry(packets);
    while (waitFor(packets, &packets->read, 4) && epicsAtomicGetSizeT(&events->due))
        epicsEventWaitWithTimeout(events->looked, 0.1);
    testOk(isSoon(begin),
           "what becomes due while another thread reads is done in time: after %.3f s",
           (double)(ebpfMonClockMonotonic() - begin) / 1e9);
}

/* The owner of the events has something to do at a fixed time. Who helps it before does not wake it for that. */
static void testDueLater(ring *packets, ring *events, ebpfMonRingReader *eventReader)
{
    uint64_t begin = ebpfMonClockMonotonic();
    int looks = epicsAtomicGetIntT(&events->looks), isWoken = 0;

    packets->nextDue = 0;
    epicsAtomicSetSizeT(&events->due, (size_t)(begin + EBPFMON_SECOND_NS / 2));
    ebpfMonRingReaderWake(eventReader); /* so the reader sees the new time */
    waitFor(events, &events->looks, looks + 1);
    waitFor(events, &events->sleeps, 1);
    writeEntry(packets);
    waitFor(packets, &packets->sleeps, 1);
    waitFor(events, &events->sleeps, 1);
    looks = epicsAtomicGetIntT(&events->looks);
    while (!isWoken && ebpfMonClockMonotonic() < begin + EBPFMON_SECOND_NS / 4) {
        epicsEventWaitWithTimeout(events->looked, 0.01);
        isWoken = epicsAtomicGetIntT(&events->looks) > looks;
    }
    testOk(!isWoken, "what is due later wakes nobody now");
}

static void testStopWhileBusy(ring *packets, ring *events, ebpfMonRingReader *eventReader)
{
    uint64_t begin;

    epicsAtomicSetIntT(&packets->isBusy, 1);
    writeEntry(packets);
    waitFor(packets, &packets->looks, epicsAtomicGetIntT(&packets->looks) + 5);
    begin = ebpfMonClockMonotonic();
    testOk(ebpfMonRingReaderStop(eventReader) == 0 && isSoon(begin),
           "the reader of events ends soon, though the one of packets is always awake: after %.3f s",
           (double)(ebpfMonClockMonotonic() - begin) / 1e9);
    testOk(events->finished == events->looks, "it ends after its last look");
    epicsAtomicSetIntT(&packets->isBusy, 0);
}

static void testIncomplete(ebpfMonRingReaderCalls calls)
{
    ebpfMonRingReader *reader;
    ring r = makeRing();

    testDiag("What belongs to an entry");
    calls.isIncomplete = isIncomplete;
    reader = ebpfMonRingReaderNew(&calls, &r);
    if (!reader || ebpfMonRingReaderStart(reader))
        testAbort("no memory");
    testOk(countLooks(&r) == 1, "has come: the reader sleeps at once");
    epicsAtomicSetIntT(&r.isIncomplete, 1);
    testOk(countLooks(&r) == 2, "has not come: the reader looks once more");
    ebpfMonRingReaderStop(reader);
    ebpfMonRingReaderFree(reader);
    endRing(&r);
}

static void testHelp(ebpfMonRingReaderCalls calls)
{
    ring packets = makeRing(), events = makeRing();
    ebpfMonRingReader *packetReader, *eventReader;
    int read;

    calls.name = "testPackets";
    packetReader = ebpfMonRingReaderNew(&calls, &packets);
    calls.name = "testEvents";
    eventReader = ebpfMonRingReaderNew(&calls, &events);
    if (!packetReader || !eventReader)
        testAbort("no memory");
    packets.next = &events;
    ebpfMonRingReaderHelp(packetReader, eventReader);
    if (ebpfMonRingReaderStart(eventReader) || ebpfMonRingReaderStart(packetReader))
        testAbort("no memory");
    testHelped(&packets, &events, packetReader);
    testDueLater(&packets, &events, eventReader);
    testStopWhileBusy(&packets, &events, eventReader);
    waitFor(&packets, &packets.sleeps, 1);
    read = epicsAtomicGetIntT(&packets.read);
    writeEntry(&packets);
    testOk(waitFor(&packets, &packets.read, read + 1) && events.finished == events.looks,
           "nobody looks for it any more");
    testOk(ebpfMonRingReaderStop(packetReader) == 0, "the reader of packets ends");
    ebpfMonRingReaderFree(eventReader);
    ebpfMonRingReaderFree(packetReader);
    endRing(&packets);
    endRing(&events);
}

MAIN(testRingReader)
{
    static const ebpfMonRingReaderCalls calls = {
        .name = "testRing", .read = readRing, .getDue = getDue, .getFile = getFile, .beginSleep = beginSleep,
        .endSleep = endSleep, .finish = finish, .free = freeRing,
    };
    ring r = makeRing();
    ebpfMonRingReader *reader;

    testPlan(35);
    testDuty();
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
    endRing(&r);
    testIncomplete(calls);
    testHelp(calls);
    return testDone();
}
