/* SPDX-License-Identifier: BSD-3-Clause */
#include <epicsMutex.h>
#include <stdlib.h>
#include <string.h>
#include "common/hash.h"
#include "common/worker.h"
#include "export/shared/recordQueue.h"

/* --- the queue --- */

#define SHARE_TIMES 4

/* Stands before each record. */
typedef struct {
    uint32_t len;
    uint32_t owner;
} recordHead;

_Static_assert(sizeof(recordHead) == sizeof(size_t), "the reader gets a size_t in its place");

struct ebpfMonRecordQueue {
    size_t size;             /* bytes of ring; never changes */
    ebpfMonWaiter wake;
    epicsMutexId lock;       /* protects the members below; no other lock is taken under it */
    size_t head, used, peak; /* head: index of the first byte in use */
    uint64_t accepted, dropped;
    int asleep;              /* nonzero: the next record wakes the reader */
    size_t usedOf[EBPFMON_RECORD_QUEUE_SHARES + 1];
    uint8_t ring[];          /* the reader reads bytes in use; other bytes are written under the lock */
};

ebpfMonRecordQueue *ebpfMonRecordQueueNew(size_t size)
{
    ebpfMonRecordQueue *q = malloc(sizeof(*q) + size);

    if (!q)
        return NULL;
    memset(q, 0, sizeof(*q));
    if (ebpfMonWaiterMake(&q->wake)) {
        free(q);
        return NULL;
    }
    q->lock = epicsMutexMustCreate();
    q->size = size;
    return q;
}

void ebpfMonRecordQueueFree(ebpfMonRecordQueue *q)
{
    if (!q)
        return;
    epicsMutexDestroy(q->lock);
    ebpfMonWaiterEnd(&q->wake);
    free(q);
}

void ebpfMonRecordQueueClear(ebpfMonRecordQueue *q)
{
    epicsMutexMustLock(q->lock);
    q->head = q->used = q->peak = 0;
    memset(q->usedOf, 0, sizeof(q->usedOf));
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

void ebpfMonRecordQueueAdd(ebpfMonRecordQueue *q, unsigned owner, const void *record, size_t len)
{
    const recordHead head = { .len = (uint32_t)len, .owner = owner };
    size_t whole = sizeof(head) + len;
    int wake = 0;

    epicsMutexMustLock(q->lock);
    if (q->used + whole > q->size || (owner && q->usedOf[owner] + whole > SHARE_TIMES * (q->size - q->used))) {
        q->dropped++;
    } else {
        copyIn(q, &head, sizeof(head));
        copyIn(q, record, len);
        q->usedOf[owner] += whole;
        q->accepted++;
        if (q->used > q->peak)
            q->peak = q->used;
        wake = q->asleep;
        q->asleep = 0;
    }
    epicsMutexUnlock(q->lock);
    if (wake)
        ebpfMonWaiterWake(&q->wake);
}

size_t ebpfMonRecordQueueGetRoom(ebpfMonRecordQueue *q)
{
    size_t room;

    epicsMutexMustLock(q->lock);
    room = q->size - q->used;
    epicsMutexUnlock(q->lock);
    return room;
}

unsigned ebpfMonRecordQueueShareOf(const char *name)
{
    size_t length = name ? strlen(name) : 0;

    return 1 + ebpfMonHashFnv32(EBPFMON_FNV32_BEGIN, name, length) % EBPFMON_RECORD_QUEUE_SHARES;
}

void ebpfMonRecordQueueWake(ebpfMonRecordQueue *q)
{
    ebpfMonWaiterWake(&q->wake);
}

/* Nobody writes bytes in use, so they are copied without the lock: a thread that adds never waits for that. */
size_t ebpfMonRecordQueueRead(ebpfMonRecordQueue *q, uint8_t *buf, size_t size)
{
    uint32_t taken[EBPFMON_RECORD_QUEUE_SHARES + 1] = { 0 };
    size_t n = 0, len, at, have;
    recordHead head;

    epicsMutexMustLock(q->lock);
    at = q->head;
    have = q->used;
    epicsMutexUnlock(q->lock);
    while (n < have) {
        copyOut(q, at, &head, sizeof(head));
        len = head.len;
        if (n + sizeof(len) + len > size)
            break;
        memcpy(buf + n, &len, sizeof(len));
        copyOut(q, (at + sizeof(head)) % q->size, buf + n + sizeof(len), len);
        n += sizeof(len) + len;
        taken[head.owner] += (uint32_t)(sizeof(head) + len);
        at = (at + sizeof(head) + len) % q->size;
    }
    epicsMutexMustLock(q->lock);
    q->head = at;
    q->used -= n;
    for (unsigned i = 0; n && i <= EBPFMON_RECORD_QUEUE_SHARES; i++)
        q->usedOf[i] -= taken[i];
    epicsMutexUnlock(q->lock);
    return n;
}

void ebpfMonRecordQueueWait(ebpfMonRecordQueue *q, double seconds, int untilAdded)
{
    int empty, woken;

    epicsMutexMustLock(q->lock);
    empty = !q->used;
    q->asleep = untilAdded && empty;
    epicsMutexUnlock(q->lock);
    if (!untilAdded || empty)
        ebpfMonWaiterWait(&q->wake, -1, seconds, &woken);
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
    epicsMutexUnlock(q->lock);
}

size_t ebpfMonRecordQueueTakePeak(ebpfMonRecordQueue *q)
{
    size_t peak;

    epicsMutexMustLock(q->lock);
    peak = q->peak;
    q->peak = q->used;
    epicsMutexUnlock(q->lock);
    return peak;
}

/* --- puts in it --- */

typedef struct {
    epicsTimeStamp time;
    uint64_t at;
    double   number, oldNumber;
    int64_t  count, oldCount, status;
    uint64_t hash, took;
    uint32_t pid, uid, gatewayClients;
    epicsTimeStamp gatewayTime;
    uint8_t  hasOld, isNumber, oldIsNumber, isText, oldIsText, through, result, seen, unexpected, isUnsure, isPartly;
    uint8_t  byProgram, trace[16];
} fixedMembers;

#define TEXT(member) {offsetof(ebpfMonPut, member), sizeof(((ebpfMonPut *)0)->member)}

static const struct {
    size_t at, size;
} texts[] = {
    TEXT(ioc), TEXT(pv), TEXT(channel), TEXT(val), TEXT(old), TEXT(after), TEXT(user), TEXT(host), TEXT(peer),
    TEXT(server), TEXT(realUser), TEXT(command), TEXT(container), TEXT(thread), TEXT(link), TEXT(linkIoc),
    TEXT(root), TEXT(cause), TEXT(message), TEXT(rule), TEXT(group), TEXT(published),
    TEXT(gateway), TEXT(gatewayServer), TEXT(authority),
};

size_t ebpfMonPutPack(const ebpfMonPut *put, uint8_t *buf)
{
    fixedMembers f = {
        .time = put->time, .at = put->at, .number = put->number, .oldNumber = put->oldNumber, .count = put->count,
        .oldCount = put->oldCount, .status = put->status, .hash = put->hash, .took = put->took, .pid = put->peerPid,
        .uid = put->peerUid, .hasOld = !!put->hasOld, .isNumber = !!put->isNumber,
        .oldIsNumber = !!put->oldIsNumber, .isText = !!put->isText, .oldIsText = !!put->oldIsText,
        .through = (uint8_t)put->through, .result = (uint8_t)put->result,
        .seen = (uint8_t)put->seen, .unexpected = !!put->unexpected, .isUnsure = !!put->isUnsure,
        .isPartly = !!put->isPartly, .gatewayClients = put->gatewayClients, .gatewayTime = put->gatewayTime,
        .byProgram = !!put->byProgram,
    };
    uint8_t *to = buf;

    memcpy(f.trace, put->trace, sizeof(f.trace));
    memcpy(to, &f, sizeof(f));
    to += sizeof(f);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const char *text = (const char *)put + texts[i].at;
        size_t len = text[0] ? strnlen(text, texts[i].size - 1) : 0;

        memcpy(to, text, len);
        to += len;
        *to++ = 0;
    }
    return (size_t)(to - buf);
}

void ebpfMonPutUnpack(const uint8_t *buf, size_t len, ebpfMonPut *put)
{
    const uint8_t *from = buf + sizeof(fixedMembers), *end = buf + len;
    fixedMembers f;

    memcpy(&f, buf, sizeof(f));
    put->time = f.time;
    put->at = f.at;
    put->number = f.number;
    put->oldNumber = f.oldNumber;
    put->count = (long)f.count;
    put->oldCount = (long)f.oldCount;
    put->status = (long)f.status;
    put->hash = f.hash;
    put->took = f.took;
    put->peerPid = f.pid;
    put->peerUid = f.uid;
    put->hasOld = f.hasOld;
    put->isNumber = f.isNumber;
    put->oldIsNumber = f.oldIsNumber;
    put->isText = f.isText;
    put->oldIsText = f.oldIsText;
    put->through = f.through;
    put->result = f.result;
    put->seen = f.seen;
    put->unexpected = f.unexpected;
    put->isUnsure = f.isUnsure;
    put->isPartly = f.isPartly;
    put->gatewayClients = f.gatewayClients;
    put->gatewayTime = f.gatewayTime;
    put->byProgram = f.byProgram;
    memcpy(put->trace, f.trace, sizeof(put->trace));
    put->who[0] = put->origin[0] = 0;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        char *text = (char *)put + texts[i].at;
        size_t size = strnlen((const char *)from, (size_t)(end - from)) + 1;

        memcpy(text, from, size);
        from += size;
    }
}
