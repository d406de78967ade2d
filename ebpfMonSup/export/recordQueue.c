/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include <epicsEvent.h>
#include <epicsMutex.h>

#include "export/recordQueue.h"

struct ebpfMonRecordQueue {
    epicsMutexId lock; /* of what follows; leaf */
    size_t head, used, peak; /* head: first byte in use */
    uint64_t taken, dropped;
    int asleep;
    epicsEventId wake;
    size_t size;
    uint8_t ring[];
};

ebpfMonRecordQueue *ebpfMonRecordQueueNew(size_t size)
{
    ebpfMonRecordQueue *q = malloc(sizeof(*q) + size);

    if (!q)
        return NULL;
    memset(q, 0, sizeof(*q));
    q->lock = epicsMutexMustCreate();
    q->wake = epicsEventMustCreate(epicsEventEmpty);
    q->size = size;
    return q;
}

void ebpfMonRecordQueueClear(ebpfMonRecordQueue *q)
{
    epicsMutexMustLock(q->lock);
    q->head = q->used = q->peak = 0;
    epicsMutexUnlock(q->lock);
}

static void in(ebpfMonRecordQueue *q, const void *data, size_t len)
{
    size_t at = (q->head + q->used) % q->size;
    size_t first = q->size - at < len ? q->size - at : len;

    memcpy(q->ring + at, data, first);
    memcpy(q->ring, (const uint8_t *)data + first, len - first);
    q->used += len;
}

static void look(const ebpfMonRecordQueue *q, size_t at, void *data, size_t len)
{
    size_t first = q->size - at < len ? q->size - at : len;

    memcpy(data, q->ring + at, first);
    memcpy((uint8_t *)data + first, q->ring, len - first);
}

void ebpfMonRecordQueueAdd(ebpfMonRecordQueue *q, const void *record, size_t len)
{
    int rouse = 0;

    epicsMutexMustLock(q->lock);
    if (q->used + sizeof(len) + len > q->size) {
        q->dropped++;
    } else {
        in(q, &len, sizeof(len));
        in(q, record, len);
        q->taken++;
        if (q->used > q->peak)
            q->peak = q->used;
        rouse = q->asleep;
        q->asleep = 0;
    }
    epicsMutexUnlock(q->lock);
    if (rouse)
        epicsEventMustTrigger(q->wake);
}

void ebpfMonRecordQueueWake(ebpfMonRecordQueue *q)
{
    epicsEventMustTrigger(q->wake);
}

/* What is in use is written by nobody, so it is copied without the lock: whoever adds never waits for that. */
size_t ebpfMonRecordQueueTake(ebpfMonRecordQueue *q, uint8_t *buf, size_t size)
{
    size_t n = 0, len, at, have;

    epicsMutexMustLock(q->lock);
    at = q->head;
    have = q->used;
    epicsMutexUnlock(q->lock);
    while (n < have) {
        look(q, at, &len, sizeof(len));
        if (n + sizeof(len) + len > size)
            break;
        look(q, at, buf + n, sizeof(len) + len);
        n += sizeof(len) + len;
        at = (at + sizeof(len) + len) % q->size;
    }
    epicsMutexMustLock(q->lock);
    q->head = at;
    q->used -= n;
    epicsMutexUnlock(q->lock);
    return n;
}

void ebpfMonRecordQueueWait(ebpfMonRecordQueue *q, double seconds, int deep)
{
    int empty;

    epicsMutexMustLock(q->lock);
    empty = !q->used;
    q->asleep = deep && empty;
    epicsMutexUnlock(q->lock);
    if (!deep || empty)
        epicsEventWaitWithTimeout(q->wake, seconds);
    epicsMutexMustLock(q->lock);
    q->asleep = 0;
    epicsMutexUnlock(q->lock);
}

void ebpfMonRecordQueueGetState(ebpfMonRecordQueue *q, ebpfMonRecordQueueState *state)
{
    epicsMutexMustLock(q->lock);
    state->taken = q->taken;
    state->dropped = q->dropped;
    state->used = q->used;
    state->peak = q->peak;
    q->peak = q->used;
    epicsMutexUnlock(q->lock);
}
