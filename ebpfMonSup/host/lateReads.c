/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "host/lateReads.h"
#include "host/memory.h"

#define FIRST 16 /* results for which there is room at first */

typedef struct {
    ebpfMonLateReadFn read;
    size_t   keySize, size;
    int      status; /* what "read" returned */
    uint64_t key[EBPFMON_LATE_KEY / sizeof(uint64_t)];
    char     result[EBPFMON_LATE_SIZE];
} lateRead;

struct ebpfMonLateReads {
    lateRead *read;
    size_t    room, count;
    size_t    made; /* the first ones; those behind them are wanted */
};

typedef struct {
    uint64_t addr;
    uint64_t pid;
} memoryKey;

ebpfMonLateReads *ebpfMonLateReadsNew(void)
{
    return calloc(1, sizeof(ebpfMonLateReads));
}

void ebpfMonLateReadsFree(ebpfMonLateReads *reads)
{
    if (!reads)
        return;
    free(reads->read);
    free(reads);
}

void ebpfMonLateReadsBegin(ebpfMonLateReads *reads)
{
    reads->count = reads->made = 0;
}

static lateRead *findRead(ebpfMonLateReads *reads, ebpfMonLateReadFn read, const void *key, size_t keySize, size_t size)
{
    for (size_t i = 0; i < reads->count; i++) {
        lateRead *r = &reads->read[i];

        if (r->read == read && r->keySize == keySize && r->size == size && memcmp(r->key, key, keySize) == 0)
            return r;
    }
    return NULL;
}

static void noteWanted(ebpfMonLateReads *reads, ebpfMonLateReadFn read, const void *key, size_t keySize, size_t size)
{
    lateRead *r;

    if (reads->count == EBPFMON_LATE_MAX || keySize > sizeof(r->key) || size > sizeof(r->result) ||
        ebpfMonArrayGrow(&reads->read, &reads->room, reads->count + 1, FIRST, sizeof(*reads->read)))
        return;
    r = &reads->read[reads->count++];
    r->read = read;
    r->keySize = keySize;
    r->size = size;
    memcpy(r->key, key, keySize);
}

int ebpfMonLateReadsGet(ebpfMonLateReads *reads, ebpfMonLateReadFn read, const void *key, size_t keySize, void *buf,
                        size_t size)
{
    const lateRead *r;

    if (!reads)
        return read(key, buf, size);
    r = findRead(reads, read, key, keySize, size);
    if (!r)
        noteWanted(reads, read, key, keySize, size);
    if (!r || (size_t)(r - reads->read) >= reads->made)
        return -1;
    if (r->status == 0)
        memcpy(buf, r->result, size);
    return r->status;
}

static int readBytesThere(const void *key, void *buf, size_t size)
{
    const memoryKey *k = key;

    return ebpfMonMemReadNow((pid_t)k->pid, k->addr, buf, size);
}

static int readTextThere(const void *key, void *buf, size_t size)
{
    const memoryKey *k = key;

    return ebpfMonMemTextNow((pid_t)k->pid, k->addr, buf, size) < 0 ? -1 : 0;
}

int ebpfMonLateReadsGetBytes(ebpfMonLateReads *reads, pid_t pid, uint64_t addr, void *buf, size_t len)
{
    memoryKey key = { .addr = addr, .pid = (uint64_t)pid };

    return ebpfMonLateReadsGet(reads, readBytesThere, &key, sizeof(key), buf, len);
}

int ebpfMonLateReadsGetText(ebpfMonLateReads *reads, pid_t pid, uint64_t addr, char *buf, size_t size)
{
    memoryKey key = { .addr = addr, .pid = (uint64_t)pid };

    return ebpfMonLateReadsGet(reads, readTextThere, &key, sizeof(key), buf, size);
}

int ebpfMonLateReadsAreWanted(const ebpfMonLateReads *reads)
{
    return reads && reads->made < reads->count;
}

int ebpfMonLateReadsMake(ebpfMonLateReads *reads)
{
    if (!ebpfMonLateReadsAreWanted(reads))
        return 0;
    for (; reads->made < reads->count; reads->made++) {
        lateRead *r = &reads->read[reads->made];

        r->status = r->read(r->key, r->result, r->size);
    }
    return 1;
}
