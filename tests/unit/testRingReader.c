/* SPDX-License-Identifier: BSD-3-Clause */
/* A reader of a ring: it reads all entries with few wake-ups. It looks when it is woken, and when something is due. An
 * entry of one ring takes the wake-up from those of the next. */
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

/* A ring that only has a number of entries. Its writer wakes a sleeping reader, as bpf/common/wake.bpf.h does. */
typedef struct ring {
    int          file;
    int          written, read, sleeps, wakes, looks, finished, freed; /* atomic */
    size_t       due;   /* atomic: monotonic ns; 0: nothing */
    epicsEventId looked;
    int          more;                 /* atomic: so many looks that find an entry write another one */
    struct ring *next;                 /* NULL: none */
} ring;

/* An entry that wakes the reader takes the wake-up from the entries of the next ring (bpf/wire/wireSend.bpf.h). */
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

static void readRing(void *arg, int *expects)
{
    ring *r = arg;
    int n = epicsAtomicGetIntT(&r->written) - epicsAtomicGetIntT(&r->read);
    eventfd_t value;

    eventfd_read(r->file, &value);
    epicsAtomicAddIntT(&r->read, n);
    if (n && epicsAtomicGetIntT(&r->more) > 0) {
        epicsAtomicDecrIntT(&r->more);
        writeEntry(r);
    }
    epicsAtomicIncrIntT(&r->looks);
    if (epicsAtomicGetSizeT(&r->due) && epicsAtomicGetSizeT(&r->due) <= ebpfMonClockMonotonic())
        epicsAtomicSetSizeT(&r->due, 0);
    epicsEventMustTrigger(r->looked);
    *expects = n > 0;
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

static int isAnnounced(void *arg)
{
    return !epicsAtomicGetIntT(&((ring *)arg)->sleeps);
}

static void finish(void *arg)
{
    epicsAtomicSetIntT(&((ring *)arg)->finished, epicsAtomicGetIntT(&((ring *)arg)->looks));
}

static void freeRing(void *arg)
{
    epicsAtomicSetIntT(&((ring *)arg)->freed, 1);
}

/* Returns how often the reader looks after an entry until it sleeps. "more": so many are written, each during the look
 * that reads the one before. */
static int countLooks(ring *r, int more)
{
    int before;

    waitFor(r, &r->sleeps, 1);
    before = epicsAtomicGetIntT(&r->looks);
    epicsAtomicSetIntT(&r->more, more);
    writeEntry(r);
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

static void testLooks(ring *r)
{
    int wakes, looks;

    testDiag("How soon it sleeps");
    waitFor(r, &r->sleeps, 1);
    wakes = epicsAtomicGetIntT(&r->wakes);
    looks = countLooks(r, 0);
    testOk(looks == 2, "after the entry that woke it, it looks once more: %d looks", looks);
    looks = countLooks(r, 5);
    testOk(looks == 7, "while entries come it goes on: %d looks", looks);
    testOk(epicsAtomicGetIntT(&r->wakes) == wakes + 2, "each time it was woken once");
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
static void testNext(ebpfMonRingReaderCalls calls)
{
    ring packets = makeRing(), events = makeRing();
    ebpfMonRingReader *packetReader, *eventReader;
    uint64_t begin;
    int isRead;

    testDiag("An entry that announces one of the next ring");
    calls.name = "testPackets";
    packetReader = ebpfMonRingReaderNew(&calls, &packets);
    calls.name = "testEvents";
    calls.isAnnounced = isAnnounced;
    eventReader = ebpfMonRingReaderNew(&calls, &events);
    if (!packetReader || !eventReader)
        testAbort("no memory");
    packets.next = &events;
    ebpfMonRingReaderSetNext(packetReader, eventReader);
    if (ebpfMonRingReaderStart(eventReader) || ebpfMonRingReaderStart(packetReader))
        testAbort("no memory");
    testOk(waitFor(&packets, &packets.sleeps, 1) && waitFor(&events, &events.sleeps, 1), "both sleep");
    begin = ebpfMonClockMonotonic();
    writeEntry(&packets);
    writeEntry(&events);
    isRead = waitFor(&packets, &packets.read, 1) && waitFor(&events, &events.read, 1);
    testOk(isRead && isSoon(begin), "an event that comes after a packet is read at once");
    testOk(epicsAtomicGetIntT(&events.wakes) == 0, "it wakes nobody itself");
    waitFor(&events, &events.sleeps, 1);
    begin = ebpfMonClockMonotonic();
    writeEntry(&events);
    testOk(waitFor(&events, &events.read, 2) && isSoon(begin) && epicsAtomicGetIntT(&events.wakes) == 1,
           "an event alone wakes the reader of events");
    for (int i = 0, n = 3; i < ENTRIES / 20; i++, n++) { /* the wake-up is taken at any moment */
        writeEntry(&packets);
        writeEntry(&events);
        isRead &= waitFor(&events, &events.read, n) && isSoon(begin);
        begin = ebpfMonClockMonotonic();
    }
    testOk(isRead, "no event is left lying, whenever it comes");
    testOk(ebpfMonRingReaderStop(eventReader) == 0 && events.finished == events.looks, "the reader of events ends");
    testOk(ebpfMonRingReaderStop(packetReader) == 0, "the reader of packets ends");
    ebpfMonRingReaderFree(packetReader);
    ebpfMonRingReaderFree(eventReader);
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

    testPlan(19);
    reader = ebpfMonRingReaderNew(&calls, &r);
    if (!reader)
        testAbort("no memory");
    ebpfMonRingReaderWake(reader);
    testOk(ebpfMonRingReaderStop(reader) == 0, "a reader that does not run can be woken and stopped");
    testOk(ebpfMonRingReaderStart(reader) == 0, "the reader starts");
    testEntries(&r);
    testLooks(&r);
    testOthers(&r, reader);
    testOk(ebpfMonRingReaderStop(reader) == 0 && r.finished == r.looks, "the reader ends after its last look");
    ebpfMonRingReaderFree(reader);
    testOk(r.freed, "what the reader had is freed with it");
    endRing(&r);
    testNext(calls);
    return testDone();
}
