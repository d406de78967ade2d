/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/array.h"
#include "common/clock.h"
#include "common/text.h"
#include "host/tcpSockets.h"
#include "host/syscallName.h"
#include "ioc/mutexes.h"
#include "query/queryFileText.h"
#include "query/queryKeyText.h"
#include "query/querySpec.h"

/* --- names of locks --- */

typedef struct {
    uint64_t record;      /* it is the lock of a lock set, of which this is the first record; else 0 */
    char     creator[64]; /* the file and line that created it: "drvAsyn.c:123" */
} ebpfMonQueryLock;

typedef enum {
    ebpfMonQueryLockFound,
    ebpfMonQueryLockUnknown, /* it is no mutex of EPICS Base */
    ebpfMonQueryLockLater    /* the mutexes were not read since "seen": ask again at the next look */
} ebpfMonQueryLockAnswer;

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

/* Finds a lock by the address of its futex, or by its epicsMutexId. "seen": when it was first seen (monotonic s). Takes
 * the targets lock; reads memory of the IOC. */
static ebpfMonQueryLockAnswer findQueryLocks(ebpfMonQueryLocks *locks, uint32_t iocId, uint64_t address, double seen,
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

/* --- keys --- */

static void nameIoc(uint32_t iocId, ebpfMonTargets *targets, char *text, size_t size)
{
    const ebpfMonTarget *t;

    snprintf(text, size, iocId ? "IOC %u" : "-", (unsigned)iocId);
    if (!targets || !iocId)
        return;
    ebpfMonTargetsLock(targets);
    t = ebpfMonTargetsFindById(targets, iocId);
    if (t)
        ebpfMonTextCopy(text, size, t->name);
    ebpfMonTargetsUnlock(targets);
}

static void nameRecord(uint32_t iocId, uint64_t precord, ebpfMonTargets *targets, char *text, size_t size)
{
    const ebpfMonTarget *t;
    long index;

    if (!precord) {
        snprintf(text, size, "-");
        return;
    }
    snprintf(text, size, "0x%" PRIx64, precord);
    if (!targets)
        return;
    ebpfMonTargetsLock(targets);
    t = ebpfMonTargetsFindById(targets, iocId);
    index = t && t->cat ? ebpfMonCatalogueFindAddr(t->cat, precord) : -1;
    if (index >= 0)
        ebpfMonTextCopy(text, size, ebpfMonCatalogueName(t->cat, (uint32_t)index));
    ebpfMonTargetsUnlock(targets);
}

/* Writes "RECORD.FIELD", or "RECORD" if the field is VAL. */
static void namePut(const uint64_t n[3], ebpfMonTargets *targets, char *text, size_t size)
{
    const ebpfMonField *field;
    const ebpfMonTarget *t;
    size_t used;

    nameRecord((uint32_t)n[0], n[1], targets, text, size);
    if (!n[1] || !targets)
        return;
    used = strlen(text);
    ebpfMonTargetsLock(targets);
    t = ebpfMonTargetsFindById(targets, (uint32_t)n[0]);
    field = t && t->cat ? ebpfMonCatalogueField(t->cat, n[2]) : NULL;
    if (field && strcmp(field->name, "VAL") != 0)
        snprintf(text + used, size - used, ".%s", field->name);
    ebpfMonTargetsUnlock(targets);
}

static void nameWho(const uint8_t *key, char *text, size_t size)
{
    struct ebpfMonQueryWho who;
    uint32_t addr6[4];
    char raw[80];

    memcpy(&who, key, sizeof(who));
    switch (who.kind) {
    case EBPFMON_QUERY_BY_CA:
        snprintf(raw, sizeof(raw), "%.15s@%.19s", who.user, who.host);
        break;
    case EBPFMON_QUERY_BY_PEER:
        memcpy(addr6, who.host, sizeof(addr6));
        ebpfMonPeerTextEnd(who.peer.addr, addr6, who.peer.port, raw, sizeof(raw));
        break;
    case EBPFMON_QUERY_BY_THREAD:
        snprintf(raw, sizeof(raw), "%.15s", who.comm);
        break;
    default:
        snprintf(raw, sizeof(raw), "-");
    }
    ebpfMonTextCopy(text, size, raw);
}

static void nameFile(const uint8_t *key, char *text, size_t size)
{
    struct ebpfMonQueryFile file;

    memcpy(&file, key, sizeof(file));
    ebpfMonQueryFileText(&file, text, size);
}

static void nameFunction(uint32_t iocId, uint64_t address, const ebpfMonQueryNames *names, char *text, size_t size)
{
    snprintf(text, size, "0x%" PRIx64, address);
    for (size_t i = 0; i < names->functions; i++)
        if (names->function[i].iocId == iocId && names->function[i].address == address) {
            ebpfMonTextCopy(text, size, names->function[i].name);
            return;
        }
}

/* As ebpfMonQueryKeyText. */
static int nameLock(const uint64_t n[3], const ebpfMonQueryNames *names, double seen, char *text, size_t size)
{
    ebpfMonQueryLockAnswer answer = ebpfMonQueryLockUnknown;
    ebpfMonQueryLock lock = { .record = 0 };

    if (names->locks && n[1])
        answer = findQueryLocks(names->locks, (uint32_t)n[0], n[1], seen, &lock);
    if (answer != ebpfMonQueryLockFound) {
        snprintf(text, size, "0x%" PRIx64, n[1]);
    } else if (lock.record) {
        size_t used;

        nameRecord((uint32_t)n[0], lock.record, names->targets, text, size);
        used = strlen(text);
        snprintf(text + used, size - used, " (lock set)");
    } else {
        ebpfMonTextCopy(text, size, lock.creator);
    }
    return answer == ebpfMonQueryLockLater;
}

int ebpfMonQueryKeyText(const struct ebpfMonQueryField *f, const uint8_t *key, const ebpfMonQueryNames *names,
                        double seen, char *text, size_t size)
{
    ebpfMonTargets *targets = names->targets;
    uint64_t n[3] = { 0, 0, 0 };
    double number;

    memcpy(n, key, f->size < sizeof(n) ? f->size : sizeof(n));
    if (ebpfMonQueryIsWho(f))
        nameWho(key, text, size);
    else if (ebpfMonQueryIsFile(f))
        nameFile(key, text, size);
    else if (f->what == EBPFMON_QUERY_FUNCTION)
        nameFunction((uint32_t)n[0], n[1], names, text, size);
    else if (f->what == EBPFMON_QUERY_SITE)
        snprintf(text, size, "%s", ebpfMonQuerySitesGetName(names->sites, n[0]));
    else if (f->what == EBPFMON_QUERY_PUT)
        namePut(n, targets, text, size);
    else if (ebpfMonQueryIsText(f))
        ebpfMonTextCopyBytes(text, size, (const char *)key, f->size);
    else if (ebpfMonQueryIsRecord(f))
        nameRecord((uint32_t)n[0], n[1], targets, text, size);
    else if (ebpfMonQueryIsLock(f))
        return nameLock(n, names, seen, text, size);
    else if (f->what == EBPFMON_QUERY_IOC)
        nameIoc((uint32_t)n[0], targets, text, size);
    else if (f->what == EBPFMON_QUERY_SYSCALL)
        ebpfMonSyscallName((long)n[0], text, size);
    else if (f->what == EBPFMON_QUERY_PREEMPTED)
        snprintf(text, size, "%s", n[0] ? "preempted" : "woken");
    else if (ebpfMonQueryIsDouble(f))
        snprintf(text, size, "%.10g", (memcpy(&number, n, sizeof(number)), number));
    else if (ebpfMonQueryIsSigned(f))
        snprintf(text, size, "%" PRId64, (int64_t)n[0]);
    else
        snprintf(text, size, "%" PRIu64, n[0]);
    return 0;
}
