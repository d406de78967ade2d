/* SPDX-License-Identifier: BSD-3-Clause */
/* ioc/mutexes.h with this process as the IOC: its own mutexes of EPICS Base, behind records that are only made as far
 * as they are read. And lists that are none. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ellLib.h>
#include <epicsMutex.h>
#include <epicsUnitTest.h>
#include <testMain.h>

#include "ioc/mutexes.h"

#define RECORDS 3
#define LSET    8

/* As in Base (dbLockPvt.h), as far as they are read. */
typedef struct { ELLNODE node; ELLLIST records; void *lock; } LockSet;
typedef struct Record Record;
typedef struct { ELLNODE node; LockSet *set; Record *precord; } LockRecord;
struct Record { long pad; LockRecord *lset; };

/* As epicsMutexParm before 7.0.9. */
typedef struct { ELLNODE node; void *id; const char *file; int line; } Mutex;

static Record     record[RECORDS];
static LockRecord lockRecord[RECORDS];
static LockSet    set[2];
static uint64_t   address[RECORDS];

/* Records 0 and 1 are in set 0, where 1 comes first; record 2 is in set 1. */
static void makeRecords(void)
{
    for (int i = 0; i < RECORDS; i++) {
        record[i].lset = &lockRecord[i];
        lockRecord[i] = (LockRecord){ .set = &set[i / 2], .precord = &record[i] };
        address[i] = (uintptr_t)&record[i];
    }
    set[0].records.node.next = &lockRecord[1].node;
    set[1].records.node.next = &lockRecord[2].node;
}

/* The first layout that fits to the mutexes of this process, or else the first of all. */
static const ebpfMonBaseRelease *findLayout(ebpfMonMem *mem)
{
    ebpfMonRecord rec[RECORDS] = { { .addr = address[0] }, { .addr = address[1] }, { .addr = address[2] } };
    const ebpfMonCatalogue cat = { .rec = rec, .count = RECORDS, .common.lset = LSET };
    const ebpfMonBaseRelease *base;

    for (unsigned i = 0; (base = ebpfMonBaseReleaseGet(i)) != NULL; i++)
        if (ebpfMonMutexesAreKnown(mem, &cat, base) > 0)
            return base;
    return ebpfMonBaseReleaseGet(0);
}

/* The mutex of the operating system. */
static uint64_t findFutex(epicsMutexId mutex)
{
    ebpfMonMem *mem = ebpfMonMemNew(getpid());
    const ebpfMonBaseRelease *base = findLayout(mem);

    ebpfMonMemFree(mem);
    return base->mutex.osd ? (uintptr_t)mutex + base->mutex.osd : (uintptr_t)((Mutex *)mutex)->id;
}

static ebpfMonMutexes *readAll(void)
{
    ebpfMonMem *mem = ebpfMonMemNew(getpid());
    ebpfMonMutexes *m = ebpfMonMutexesRead(mem, findLayout(mem), address, RECORDS, LSET);

    ebpfMonMemFree(mem);
    return m;
}

static int isCreatedAt(const ebpfMonMutex *m, int line)
{
    return m && m->line == line && strcmp(strrchr((const char *)(uintptr_t)m->file, '/') ?
           strrchr((const char *)(uintptr_t)m->file, '/') + 1 : (const char *)(uintptr_t)m->file, "testMutexes.c") == 0;
}

static void testReal(void)
{
    epicsMutexId own, gone;
    const ebpfMonMutex *found;
    ebpfMonMutexes *m;
    int line, before;

    set[0].lock = epicsMutexMustCreate();
    set[1].lock = epicsMutexMustCreate();
    ebpfMonMutexesFree(readAll()); /* the first read makes mutexes of its own */
    m = readAll();
    before = m ? (int)ebpfMonMutexesCount(m) : 0;
    ebpfMonMutexesFree(m);
    own = epicsMutexMustCreate(); line = __LINE__;
    gone = epicsMutexMustCreate();
    epicsMutexDestroy(gone);
    m = readAll();
    if (!m)
        testAbort("no list");
    testOk((int)ebpfMonMutexesCount(m) == before + 1, "%zu mutexes: one more than %d", ebpfMonMutexesCount(m), before);
    found = ebpfMonMutexesFind(m, (uintptr_t)own);
    testOk(isCreatedAt(found, line) && !found->record, "found by its epicsMutexId, with file and line");
    testOk(found == ebpfMonMutexesFind(m, findFutex(own)), "… by its futex");
    testOk(found == ebpfMonMutexesFind(m, findFutex(own) + 8), "… and by that of EPICS 3.14");
    found = ebpfMonMutexesFind(m, (uintptr_t)set[0].lock);
    testOk(found && found->record == address[1], "a lock set has its first record");
    found = ebpfMonMutexesFind(m, (uintptr_t)set[1].lock);
    testOk(found && found->record == address[2], "… each its own");
    testOk(!ebpfMonMutexesFind(m, (uintptr_t)gone) && !ebpfMonMutexesFind(m, (uintptr_t)&record),
           "one that was destroyed, and what is no mutex, are not found");
    ebpfMonMutexesFree(m);
}

static size_t countWith(void *lock)
{
    ebpfMonMutexes *m;
    size_t count;

    set[0].lock = set[1].lock = lock;
    m = readAll();
    count = m ? ebpfMonMutexesCount(m) : 0;
    ebpfMonMutexesFree(m);
    return count;
}

static void testHostile(void)
{
    static Mutex ring[3], torn[3];

    for (int i = 0; i < 3; i++) {
        ring[i].node = (ELLNODE){ &ring[(i + 1) % 3].node, &ring[(i + 2) % 3].node };
        torn[i].node = (ELLNODE){ i < 2 ? &torn[i + 1].node : NULL, i ? &torn[i - 1].node : NULL };
    }
    testOk(countWith(ring) == 3, "a ring ends where it began");
    testOk(countWith(torn) == 3, "three in a list");
    torn[2].node.previous = &torn[0].node;
    testOk(countWith(torn) == 2, "what does not lead back is left out");
    testOk(countWith((void *)8) == 0 && countWith(NULL) == 0, "no list");
    record[0].lset = record[1].lset = record[2].lset = NULL;
    testOk(countWith(torn) == 0, "records that are locked by nothing");
}

MAIN(testMutexes)
{
    testPlan(12);
    makeRecords();
    testReal();
    testHostile();
    return testDone();
}
