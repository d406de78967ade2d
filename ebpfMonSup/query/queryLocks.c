/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/clock.h"
#include "common/text.h"
#include "ioc/mutexes.h"
#include "query/queryLocks.h"

#define LEAST_PAUSE 1.0 /* s between two readings of one IOC … */
#define PAUSE_PART  20  /* … and so many times as long as a reading took */

/* The mutexes of one IOC at the last reading. */
typedef struct {
    uint32_t iocId;
    double   readAt, dueAt;  /* monotonic s */
    ebpfMonMutexes *mutexes; /* NULL: they cannot be read */
} Reading;

struct ebpfMonQueryLocks {
    ebpfMonTargets *targets;
    Reading *reading;
    size_t   count, room;
};

ebpfMonQueryLocks *ebpfMonQueryLocksNew(ebpfMonTargets *targets)
{
    ebpfMonQueryLocks *locks = calloc(1, sizeof(*locks));

    if (locks)
        locks->targets = targets;
    return locks;
}

void ebpfMonQueryLocksFree(ebpfMonQueryLocks *locks)
{
    if (!locks)
        return;
    for (size_t i = 0; i < locks->count; i++)
        ebpfMonMutexesFree(locks->reading[i].mutexes);
    free(locks->reading);
    free(locks);
}

/* Copies the addresses of the IOC's records, because its memory is not read under the lock. Returns the pid, 0: the IOC
 * has ended, or its records are not known. The caller frees *record. */
static pid_t copyRecords(ebpfMonTargets *targets, uint32_t iocId, const ebpfMonBaseRelease **base, uint64_t **record,
                         uint32_t *count, uint16_t *lset)
{
    const ebpfMonTarget *t;
    pid_t pid = 0;

    ebpfMonTargetsLock(targets);
    t = ebpfMonTargetsFindById(targets, iocId);
    if (t && !t->gone && t->cat)
        *record = malloc(t->cat->count * sizeof(**record));
    if (*record) {
        pid = t->pid;
        *count = t->cat->count;
        *lset = t->cat->common.lset;
        *base = t->cat->base;
        for (uint32_t i = 0; i < *count; i++)
            (*record)[i] = t->cat->rec[i].addr;
    }
    ebpfMonTargetsUnlock(targets);
    return pid;
}

static void readMutexes(const ebpfMonQueryLocks *locks, Reading *r)
{
    const ebpfMonBaseRelease *base = NULL;
    uint64_t *record = NULL;
    uint32_t count = 0;
    uint16_t lset = 0;
    pid_t pid;

    ebpfMonMutexesFree(r->mutexes);
    r->mutexes = NULL;
    r->readAt = ebpfMonClockSeconds();
    pid = copyRecords(locks->targets, r->iocId, &base, &record, &count, &lset);
    if (pid) {
        ebpfMonMem *mem = ebpfMonMemNew(pid);

        if (mem)
            r->mutexes = ebpfMonMutexesRead(mem, base, record, count, lset);
        ebpfMonMemFree(mem);
    }
    free(record);
    r->dueAt = r->readAt + fmax(LEAST_PAUSE, PAUSE_PART * (ebpfMonClockSeconds() - r->readAt));
}

/* The reading of an IOC; a new one was not read yet. NULL: no memory. */
static Reading *findReading(ebpfMonQueryLocks *locks, uint32_t iocId)
{
    for (size_t i = 0; i < locks->count; i++)
        if (locks->reading[i].iocId == iocId)
            return &locks->reading[i];
    if (ebpfMonArrayGrow(&locks->reading, &locks->room, locks->count + 1, 4, sizeof(*locks->reading)))
        return NULL;
    locks->reading[locks->count] = (Reading){ .iocId = iocId };
    return &locks->reading[locks->count++];
}

static pid_t findPid(ebpfMonTargets *targets, uint32_t iocId)
{
    const ebpfMonTarget *t;
    pid_t pid;

    ebpfMonTargetsLock(targets);
    t = ebpfMonTargetsFindById(targets, iocId);
    pid = t && !t->gone ? t->pid : 0;
    ebpfMonTargetsUnlock(targets);
    return pid;
}

static void describeCreator(pid_t pid, const ebpfMonMutex *mutex, char *text, size_t size)
{
    char path[256], raw[300];
    const char *slash;

    if (!pid || ebpfMonMemTextNow(pid, mutex->file, path, sizeof(path)) <= 0)
        strcpy(path, "epicsMutex");
    slash = strrchr(path, '/');
    snprintf(raw, sizeof(raw), "%s:%d", slash ? slash + 1 : path, (int)mutex->line);
    ebpfMonTextCopy(text, size, raw);
}

ebpfMonQueryLockAnswer ebpfMonQueryLocksFind(ebpfMonQueryLocks *locks, uint32_t iocId, uint64_t address, double seen,
                                             ebpfMonQueryLock *found)
{
    Reading *r = findReading(locks, iocId);
    const ebpfMonMutex *mutex = r && r->mutexes ? ebpfMonMutexesFind(r->mutexes, address) : NULL;

    if (!r)
        return ebpfMonQueryLockUnknown;
    if (!mutex && r->readAt < seen) {
        if (ebpfMonClockSeconds() < r->dueAt)
            return ebpfMonQueryLockLater;
        readMutexes(locks, r);
        mutex = r->mutexes ? ebpfMonMutexesFind(r->mutexes, address) : NULL;
    }
    if (!mutex)
        return ebpfMonQueryLockUnknown;
    found->record = mutex->record;
    describeCreator(findPid(locks->targets, iocId), mutex, found->creator, sizeof(found->creator));
    return ebpfMonQueryLockFound;
}
