/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include <epicsEvent.h>
#include <epicsMutex.h>

#include "export/pack.h"
#include "export/queue.h"

static epicsMutexId lock; /* of what follows; leaf */
static uint8_t *ring;     /* once made it stays: a put may be on its way in */
static size_t head, used, peak; /* head: first byte in use */
static uint64_t taken, dropped;
static int asleep;
static epicsEventId wake;

int ebpfMonQueueInit(void)
{
    if (!ring) {
        lock = epicsMutexMustCreate();
        wake = epicsEventMustCreate(epicsEventEmpty);
        ring = malloc(EBPFMON_QUEUE_SIZE);
        if (!ring)
            return -1;
    }
    epicsMutexMustLock(lock);
    head = used = peak = 0;
    epicsMutexUnlock(lock);
    return 0;
}

static void in(const void *data, size_t len)
{
    size_t at = (head + used) % EBPFMON_QUEUE_SIZE;
    size_t first = EBPFMON_QUEUE_SIZE - at < len ? EBPFMON_QUEUE_SIZE - at : len;

    memcpy(ring + at, data, first);
    memcpy(ring, (const uint8_t *)data + first, len - first);
    used += len;
}

static void look(size_t at, void *data, size_t len)
{
    size_t first = EBPFMON_QUEUE_SIZE - at < len ? EBPFMON_QUEUE_SIZE - at : len;

    memcpy(data, ring + at, first);
    memcpy((uint8_t *)data + first, ring, len - first);
}

void ebpfMonQueuePut(const ebpfMonPut *put)
{
    uint8_t packed[EBPFMON_PACK_MAX];
    size_t len = ebpfMonPack(put, packed);
    int rouse = 0;

    epicsMutexMustLock(lock);
    if (used + sizeof(len) + len > EBPFMON_QUEUE_SIZE) {
        dropped++;
    } else {
        in(&len, sizeof(len));
        in(packed, len);
        taken++;
        if (used > peak)
            peak = used;
        rouse = asleep;
        asleep = 0;
    }
    epicsMutexUnlock(lock);
    if (rouse)
        epicsEventMustTrigger(wake);
}

void ebpfMonQueueWake(void)
{
    epicsEventMustTrigger(wake);
}

/* What is in use is written by nobody, so it is copied without the lock: whoever puts never waits for that. */
size_t ebpfMonQueueTake(uint8_t *buf, size_t size)
{
    size_t n = 0, len, at, have;

    epicsMutexMustLock(lock);
    at = head;
    have = used;
    epicsMutexUnlock(lock);
    while (n < have) {
        look(at, &len, sizeof(len));
        if (n + sizeof(len) + len > size)
            break;
        look(at, buf + n, sizeof(len) + len);
        n += sizeof(len) + len;
        at = (at + sizeof(len) + len) % EBPFMON_QUEUE_SIZE;
    }
    epicsMutexMustLock(lock);
    head = at;
    used -= n;
    epicsMutexUnlock(lock);
    return n;
}

void ebpfMonQueueWait(double seconds, int deep)
{
    int empty;

    epicsMutexMustLock(lock);
    empty = !used;
    asleep = deep && empty;
    epicsMutexUnlock(lock);
    if (!deep || empty)
        epicsEventWaitWithTimeout(wake, seconds);
    epicsMutexMustLock(lock);
    asleep = 0;
    epicsMutexUnlock(lock);
}

void ebpfMonQueueLook(ebpfMonQueueState *state)
{
    epicsMutexMustLock(lock);
    state->taken = taken;
    state->dropped = dropped;
    state->used = used;
    state->peak = peak;
    peak = used;
    epicsMutexUnlock(lock);
}
