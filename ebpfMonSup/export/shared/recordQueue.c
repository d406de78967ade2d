/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include <epicsEvent.h>
#include <epicsMutex.h>

#include "export/shared/recordQueue.h"

struct ebpfMonRecordQueue {
    size_t size;             /* of ring; fixed */
    epicsEventId wake;
    epicsMutexId lock;       /* of what follows; no other lock is taken under it */
    size_t head, used, peak; /* head: first byte in use */
    uint64_t accepted, dropped;
    int asleep;              /* the next record wakes the reader */
    uint8_t ring[];          /* bytes in use are read by the reader, the others written under the lock */
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

void ebpfMonRecordQueueFree(ebpfMonRecordQueue *q)
{
    if (!q)
        return;
    epicsMutexDestroy(q->lock);
    epicsEventDestroy(q->wake);
    free(q);
}

void ebpfMonRecordQueueClear(ebpfMonRecordQueue *q)
{
    epicsMutexMustLock(q->lock);
    q->head = q->used = q->peak = 0;
    epicsMutexUnlock(q->lock);
}

static void copyIn(ebpfMonRecordQueue *q, const void *data, size_t len)
{
    size_t at = (q->head + q->used) % q->size;
    size_t first = q->size - at < len ? q->size - at : len;

    memcpy(q->ring + at, data, first);
    memcpy(q->ring, (const uint8_t *)data + first, len - first);
    q->used += len;
}

static void copyOut(const ebpfMonRecordQueue *q, size_t at, void *data, size_t len)
{
    size_t first = q->size - at < len ? q->size - at : len;

    memcpy(data, q->ring + at, first);
    memcpy((uint8_t *)data + first, q->ring, len - first);
}

void ebpfMonRecordQueueAdd(ebpfMonRecordQueue *q, const void *record, size_t len)
{
    int wake = 0;

    epicsMutexMustLock(q->lock);
    if (q->used + sizeof(len) + len > q->size) {
        q->dropped++;
    } else {
        copyIn(q, &len, sizeof(len));
        copyIn(q, record, len);
        q->accepted++;
        if (q->used > q->peak)
            q->peak = q->used;
        wake = q->asleep;
        q->asleep = 0;
    }
    epicsMutexUnlock(q->lock);
    if (wake)
        epicsEventMustTrigger(q->wake);
}

void ebpfMonRecordQueueWake(ebpfMonRecordQueue *q)
{
    epicsEventMustTrigger(q->wake);
}

/* Nobody writes to what is in use, so it is copied without the lock: whoever adds never waits for that. */
size_t ebpfMonRecordQueueRead(ebpfMonRecordQueue *q, uint8_t *buf, size_t size)
{
    size_t n = 0, len, at, have;

    epicsMutexMustLock(q->lock);
    at = q->head;
    have = q->used;
    epicsMutexUnlock(q->lock);
    while (n < have) {
        copyOut(q, at, &len, sizeof(len));
        if (n + sizeof(len) + len > size)
            break;
        copyOut(q, at, buf + n, sizeof(len) + len);
        n += sizeof(len) + len;
        at = (at + sizeof(len) + len) % q->size;
    }
    epicsMutexMustLock(q->lock);
    q->head = at;
    q->used -= n;
    epicsMutexUnlock(q->lock);
    return n;
}

void ebpfMonRecordQueueWait(ebpfMonRecordQueue *q, double seconds, int untilAdded)
{
    int empty;

    epicsMutexMustLock(q->lock);
    empty = !q->used;
    q->asleep = untilAdded && empty;
    epicsMutexUnlock(q->lock);
    if (!untilAdded || empty)
        epicsEventWaitWithTimeout(q->wake, seconds);
    epicsMutexMustLock(q->lock);
    q->asleep = 0;
    epicsMutexUnlock(q->lock);
}

void ebpfMonRecordQueueGetState(ebpfMonRecordQueue *q, ebpfMonRecordQueueState *state)
{
    epicsMutexMustLock(q->lock);
    state->accepted = q->accepted;
    state->dropped = q->dropped;
    state->used = q->used;
    state->peak = q->peak;
    q->peak = q->used;
    epicsMutexUnlock(q->lock);
}
