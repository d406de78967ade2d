/* SPDX-License-Identifier: BSD-3-Clause */
/* The reader of a BPF ring. The test plays the kernel's side, as kernel/bpf/ringbuf.c does it. */
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include <linux/bpf.h>

#include "probe/ring.h"

#define SIZE 4096

static unsigned long consumer, producer;
static volatile uint32_t sleeps;
static uint64_t data[SIZE / 8], joined[64];
static ebpfMonRing ring = {
    .consumer = &consumer, .producer = &producer, .data = (const uint8_t *)data, .size = SIZE, .sleeps = &sleeps,
    .joined = (uint8_t *)joined, .longest = sizeof(joined), .fd = -1,
};

/* The entries that were handed over: their sizes, and a check of their bytes. */
static unsigned sizes[SIZE], count, isGood = 1;

static void onEvent(void *arg, const void *event, size_t size)
{
    const uint8_t *byte = event;

    isGood &= arg == &ring;
    for (size_t i = 0; i < size; i++)
        isGood &= byte[i] == (uint8_t)(size + i);
    sizes[count++] = (unsigned)size;
}

static unsigned readAll(int *isWhole)
{
    count = 0;
    return ebpfMonRingRead(&ring, onEvent, &ring, isWhole);
}

static uint32_t *headerAt(unsigned long at)
{
    return (uint32_t *)((uint8_t *)data + (at & (SIZE - 1)));
}

/* Returns where it is. */
static unsigned long reserve(unsigned size)
{
    unsigned long at = producer;

    *headerAt(at) = size | BPF_RINGBUF_BUSY_BIT;
    for (unsigned i = 0; i < size; i++)
        ((uint8_t *)data)[(at + BPF_RINGBUF_HDR_SZ + i) & (SIZE - 1)] = (uint8_t)(size + i);
    producer += (size + BPF_RINGBUF_HDR_SZ + 7) / 8 * 8;
    return at;
}

static void commit(unsigned long at)
{
    *headerAt(at) &= ~BPF_RINGBUF_BUSY_BIT;
}

static void discard(unsigned long at)
{
    *headerAt(at) = (*headerAt(at) & ~BPF_RINGBUF_BUSY_BIT) | BPF_RINGBUF_DISCARD_BIT;
}

static void testReading(void)
{
    unsigned long first, second;
    int isWhole;

    testDiag("Reading");
    testOk(readAll(&isWhole) == 0 && isWhole, "an empty ring is read whole");
    commit(reserve(24));
    commit(reserve(13));
    discard(reserve(8));
    commit(reserve(40));
    testOk(readAll(&isWhole) == 3 && isWhole && sizes[0] == 24 && sizes[1] == 13 && sizes[2] == 40 && isGood,
           "three events are read, and the one that was discarded is not");
    testOk(consumer == producer, "the room of read events is free again");
    first = reserve(16);
    second = reserve(32);
    commit(second);
    testOk(readAll(&isWhole) == 0 && !isWhole, "if a program still writes an event before others, not all is read");
    commit(first);
    testOk(readAll(&isWhole) == 2 && isWhole && sizes[0] == 16 && sizes[1] == 32,
           "… when it is done, both events are read in order");
    commit(reserve(16));
    ebpfMonRingSetEnd(&ring);
    commit(reserve(32));
    testOk(readAll(&isWhole) == 1 && isWhole && sizes[0] == 16, "up to where it ended before, if that is wanted");
    testOk1(readAll(&isWhole) == 1 && isWhole && sizes[0] == 32);
}

static void testTheEnd(void)
{
    unsigned n = 0;
    int isWhole;

    testDiag("Across the end of the data");
    while (producer < 10 * SIZE) {
        commit(reserve(200 + n % 31));
        n += readAll(&isWhole);
    }
    testOk(n > 150 && isGood, "events are whole across the end of the data: %u", n);
    for (n = 0; producer - consumer <= SIZE - 256; n++)
        commit(reserve(240));
    testOk(readAll(&isWhole) == n && isWhole && isGood, "a full ring is read whole: %u events", n);
    commit(reserve(sizeof(joined) + 8));
    commit(reserve(24));
    testOk(readAll(&isWhole) == 1 && sizes[0] == 24 && isWhole,
           "an event that is longer than any of ours is passed over");
}

static void onAndOn(void *arg, const void *event, size_t size)
{
    ++*(unsigned *)arg;
    commit(reserve(120));
}

static void testFlood(void)
{
    unsigned n = 0;
    int isWhole;

    testDiag("Events come as fast as they are read");
    commit(reserve(120));
    ebpfMonRingRead(&ring, onAndOn, &n, &isWhole);
    testOk(n == SIZE / 128, "one look reads as much as the ring holds, and no more: %u events", n);
    testOk(isWhole, "all that came before the look is read");
    readAll(&isWhole);
}

static void testSleep(void)
{
    unsigned long first, second;
    int isWhole;

    testDiag("Sleeping");
    testOk(ebpfMonRingBeginSleep(&ring, EBPFMON_RING_ALL) && sleeps == EBPFMON_RING_ALL,
           "the reader of an empty ring may sleep, and events wake it");
    ebpfMonRingEndSleep(&ring);
    testOk1(!sleeps);
    commit(reserve(8));
    testOk(!ebpfMonRingBeginSleep(&ring, EBPFMON_RING_ALL), "the reader may not sleep if an event came since its look");
    ebpfMonRingEndSleep(&ring);
    readAll(&isWhole);
    discard(reserve(8));
    testOk(!ebpfMonRingBeginSleep(&ring, EBPFMON_RING_ALL),
           "somebody has woken it since: his empty event may be all that is left of that");
    ebpfMonRingEndSleep(&ring);
    readAll(&isWhole);
    first = reserve(8);
    testOk(ebpfMonRingBeginSleep(&ring, EBPFMON_RING_ALL),
           "the reader may sleep while a program writes: it looks at the flag when it is done");
    ebpfMonRingEndSleep(&ring);
    second = reserve(8);
    commit(second);
    testOk(!ebpfMonRingBeginSleep(&ring, EBPFMON_RING_ALL + 1),
           "… but not if some events wake nobody: this one may be of that kind, and the one behind it would lie there");
    ebpfMonRingEndSleep(&ring);
    commit(first);
    testOk1(readAll(&isWhole) == 2 && isWhole);
}

MAIN(testRing)
{
    testPlan(19);
    testReading();
    testTheEnd();
    testFlood();
    testSleep();
    return testDone();
}
