/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "ioc/baseLayout.h"
#include "ioc/mutexes.h"

#define MUTEXES_MAX 262144 /* each lock set has one */
#define WALKS       3      /* the IOC may change the list while we read it: then we walk again */
#define STARTS      32     /* records that are tried for a first mutex */
#define OLD_FUTEX   8      /* EPICS 3.14: struct epicsMutexOSD begins with the attributes */

#define MUTEX_BYTES 40     /* of an epicsMutexParm, as far as they are read */
#define LINES_MAX   100000 /* of a source file */

struct ebpfMonMutexes {
    const ebpfMonBaseRelease *base;
    ebpfMonMutex *mutex; /* by "node" */
    size_t count, room;
    const ebpfMonMutex **byId;
};

static int compareNodes(const void *a, const void *b)
{
    uint64_t x = ((const ebpfMonMutex *)a)->node, y = ((const ebpfMonMutex *)b)->node;

    return (x > y) - (x < y);
}

static int compareIds(const void *a, const void *b)
{
    uint64_t x = (*(const ebpfMonMutex *const *)a)->id, y = (*(const ebpfMonMutex *const *)b)->id;

    return (x > y) - (x < y);
}

/* Reads the lock set of a record. 0, or -1. */
static int readLockSet(ebpfMonMem *mem, uint64_t record, uint16_t lset, struct layoutLockSet *set)
{
    struct layoutLockRecord lock;
    uint64_t at = ebpfMonMemPtr(mem, record + lset);

    return at && !ebpfMonMemRead(mem, at, &lock, sizeof(lock)) && lock.precord == record &&
           !ebpfMonMemRead(mem, lock.plockSet, set, sizeof(*set)) ? 0 : -1;
}

/* Reads a mutex, and its neighbours. 0, or -1. */
static int readMutex(ebpfMonMem *mem, const ebpfMonBaseRelease *base, uint64_t at, struct layoutNode *node,
                     ebpfMonMutex *mutex)
{
    char bytes[MUTEX_BYTES];

    if (ebpfMonMemRead(mem, at, bytes, sizeof(bytes)))
        return -1;
    memcpy(node, bytes, sizeof(*node));
    *mutex = (ebpfMonMutex){ .node = at, .file = ebpfMonMemNumberAt(bytes, base->mutex.pFileName),
                             .id = base->mutex.osd ? at + base->mutex.osd : ebpfMonMemNumberAt(bytes, base->mutex.id) };
    memcpy(&mutex->line, bytes + base->mutex.lineno, sizeof(mutex->line));
    return 0;
}

/* Adds the mutexes from "at" on in one direction. "came": the one before, 0: none. 0; -1: the list has changed
 * meanwhile, or is none. A ring comes back to where it began, because each mutex leads back to the one before it. */
static int walkList(ebpfMonMutexes *m, ebpfMonMem *mem, uint64_t at, uint64_t came, int isForward)
{
    const uint64_t begin = at;
    struct layoutNode node;
    ebpfMonMutex mutex;

    while (at && m->count < MUTEXES_MAX) {
        if (readMutex(mem, m->base, at, &node, &mutex) || (came && (isForward ? node.prev : node.next) != came) ||
            ebpfMonArrayGrow(&m->mutex, &m->room, m->count + 1, 256, sizeof(*m->mutex)))
            return -1;
        m->mutex[m->count++] = mutex;
        came = at;
        at = isForward ? node.next : node.prev;
        if (at == begin)
            return -1;
    }
    return at ? -1 : 0;
}

/* Walks the whole list from one of its mutexes. 0 or -1, as walkList. */
static int walkBothWays(ebpfMonMutexes *m, ebpfMonMem *mem, uint64_t start)
{
    struct layoutNode node;

    m->count = 0;
    ebpfMonMemFlush(mem);
    return ebpfMonMemRead(mem, start, &node, sizeof(node)) || walkList(m, mem, start, 0, 1) ? -1
         : walkList(m, mem, node.prev, start, 0);
}

/* Returns the mutex of the first lock set that can be read; 0: there is none. */
static uint64_t findStart(ebpfMonMem *mem, const uint64_t *record, uint32_t count, uint16_t lset)
{
    struct layoutLockSet set;

    for (uint32_t i = 0; i < count && i < STARTS; i++)
        if (readLockSet(mem, record[i], lset, &set) == 0 && set.lock)
            return set.lock;
    return 0;
}

static ebpfMonMutex *findNode(const ebpfMonMutexes *m, uint64_t node)
{
    const ebpfMonMutex wanted = { .node = node };

    return m->count ? bsearch(&wanted, m->mutex, m->count, sizeof(*m->mutex), compareNodes) : NULL;
}

static void nameLockSets(ebpfMonMutexes *m, ebpfMonMem *mem, const uint64_t *record, uint32_t count, uint16_t lset)
{
    struct layoutLockRecord first;
    struct layoutLockSet set;
    ebpfMonMutex *mutex;

    for (uint32_t i = 0; i < count && !ebpfMonMemIsOver(mem); i++) {
        if (readLockSet(mem, record[i], lset, &set))
            continue;
        mutex = findNode(m, set.lock);
        if (mutex && !mutex->record && ebpfMonMemRead(mem, set.records.first, &first, sizeof(first)) == 0)
            mutex->record = first.precord;
    }
}

int ebpfMonMutexesAreKnown(ebpfMonMem *mem, const ebpfMonCatalogue *cat, const ebpfMonBaseRelease *base)
{
    uint64_t record[STARTS], start;
    struct layoutNode node;
    ebpfMonMutex mutex;
    uint32_t count = 0;
    char file[1024];

    for (; count < STARTS && count < cat->count; count++)
        record[count] = cat->rec[count].addr;
    start = findStart(mem, record, count, cat->common.lset);
    if (!start)
        return 0;
    return readMutex(mem, base, start, &node, &mutex) == 0 && mutex.line > 0 && mutex.line < LINES_MAX &&
           ebpfMonMemStr(mem, mutex.file, file, sizeof(file)) >= 0 && strchr(file, '.') ? 1 : -1;
}

ebpfMonMutexes *ebpfMonMutexesRead(ebpfMonMem *mem, const ebpfMonBaseRelease *base, const uint64_t *record,
                                   uint32_t count, uint16_t lset)
{
    ebpfMonMutexes *m = calloc(1, sizeof(*m));
    uint64_t start = m ? findStart(mem, record, count, lset) : 0;

    if (m)
        m->base = base;
    for (int i = 0; start && i < WALKS && walkBothWays(m, mem, start); i++)
        ;
    if (m && m->count)
        m->byId = malloc(m->count * sizeof(*m->byId));
    if (!m || !m->byId) {
        ebpfMonMutexesFree(m);
        return NULL;
    }
    qsort(m->mutex, m->count, sizeof(*m->mutex), compareNodes);
    nameLockSets(m, mem, record, count, lset);
    for (size_t i = 0; i < m->count; i++)
        m->byId[i] = &m->mutex[i];
    qsort(m->byId, m->count, sizeof(m->byId[0]), compareIds);
    return m;
}

void ebpfMonMutexesFree(ebpfMonMutexes *m)
{
    if (!m)
        return;
    free(m->mutex);
    free(m->byId);
    free(m);
}

size_t ebpfMonMutexesCount(const ebpfMonMutexes *m)
{
    return m->count;
}

const ebpfMonMutex *ebpfMonMutexesFind(const ebpfMonMutexes *m, uint64_t address)
{
    const ebpfMonMutex *found = findNode(m, address);

    for (int old = 0; !found && old <= OLD_FUTEX; old += OLD_FUTEX) {
        const ebpfMonMutex wanted = { .id = address - (uint64_t)old }, *key = &wanted;
        const ebpfMonMutex **at = bsearch(&key, m->byId, m->count, sizeof(m->byId[0]), compareIds);

        found = at ? *at : NULL;
    }
    return found;
}
