/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explore.h"
#include "memory.h"

#define ROOM_SIZE   (128 << 10)
#define TABLES_SIZE (2 << 20)
#define PAGE        256
#define CLOCK_STEP  1000 /* ns */
#define IGNORED_MAX 32
#define NAMES_MAX   128
#define WORD        4 /* bytes: what is in one word is used together */

typedef struct {
    uintptr_t at, end;
    size_t element;
    const char *name;
} Range;

/* All memory that threads share: the variables of the programs (bpf_helpers.h), and the arena. */
#pragma clang section bss = "exploreShared"
static struct {
    _Alignas(4096) uint64_t now;
    char room[ROOM_SIZE];
    char tables[TABLES_SIZE]; /* after a run only pages that were written become what they were */
} arena;
#pragma clang section bss = ""

void *__real_memcpy(void *to, const void *from, size_t size);
void exploreSee(const void *at, size_t size, int isWrite, const void *pc);

extern char __start_exploreShared[], __stop_exploreShared[];

static struct {
    size_t used, usedTables;     /* bytes of the arena */
    uint8_t isDirty[TABLES_SIZE / PAGE];
    uint16_t dirty[TABLES_SIZE / PAGE];
    unsigned dirtyCount;
    uint8_t *readers, *writers;  /* by word: the threads that used it, a bit each */
    uint8_t *isPoint;            /* by word: an access to it is a point */
    size_t size, words;
    int learned;                 /* there are more such words than in isPoint */
    char *first;                 /* the memory as setUp left it */
    uintptr_t ignored[IGNORED_MAX][2];
    unsigned ignoredCount;
    Range names[NAMES_MAX];
    unsigned nameCount;
} m;

static void *take(char *room, size_t most, size_t *used, size_t size)
{
    char *at = room + *used;

    size = (size + 63) & ~(size_t)63;
    if (exploreSelf() >= 0 /* it would not be there in the next run */ || *used + size > most)
        abort();
    *used += size;
    return at;
}

void *exploreAlloc(size_t size)
{
    return take(arena.room, sizeof(arena.room), &m.used, size);
}

void *exploreAllocTable(size_t size)
{
    return take(arena.tables, sizeof(arena.tables), &m.usedTables, size);
}

int exploreIsShared(const void *at, size_t size)
{
    return ((char *)at >= arena.room && (char *)at + size <= arena.room + m.used) ||
           ((char *)at >= arena.tables && (char *)at + size <= arena.tables + m.usedTables);
}

static void noteDirty(uintptr_t from, size_t size)
{
    for (size_t page = from / PAGE; page <= (from + size - 1) / PAGE; page++)
        if (!m.isDirty[page]) {
            m.isDirty[page] = 1;
            m.dirty[m.dirtyCount++] = (uint16_t)page;
        }
}

void memoryRestore(void)
{
    const char *tables = m.first + (arena.tables - __start_exploreShared);

    __real_memcpy(__start_exploreShared, m.first, (size_t)(arena.room + m.used - __start_exploreShared));
    for (unsigned i = 0; i < m.dirtyCount; i++) {
        size_t at = (size_t)m.dirty[i] * PAGE;

        __real_memcpy(arena.tables + at, tables + at, PAGE);
        m.isDirty[m.dirty[i]] = 0;
    }
    m.dirtyCount = 0;
}

uint64_t exploreNow(void)
{
    return arena.now += CLOCK_STEP;
}

void exploreIgnore(const void *at, size_t size)
{
    if (m.ignoredCount == IGNORED_MAX)
        abort();
    m.ignored[m.ignoredCount][0] = (uintptr_t)at - (uintptr_t)__start_exploreShared;
    m.ignored[m.ignoredCount++][1] = (uintptr_t)at - (uintptr_t)__start_exploreShared + size;
}

void exploreName(const void *at, size_t size, size_t element, const char *name)
{
    if (m.nameCount == NAMES_MAX)
        abort();
    m.names[m.nameCount++] = (Range){ (uintptr_t)at, (uintptr_t)at + size, element, name };
}

/* Called with each access of a thread. */
void exploreSee(const void *at, size_t size, int isWrite, const void *pc)
{
    size_t from = (uintptr_t)at - (uintptr_t)__start_exploreShared;
    uint8_t bit;
    int isPoint = 0, self = exploreSelf();

    if (from >= m.size || exploreIsLooking())
        return;
    if (isWrite && (char *)at >= arena.tables)
        noteDirty((uintptr_t)((char *)at - arena.tables), size);
    if (self < 0)
        return;
    bit = (uint8_t)(1 << self);
    for (size_t i = from / WORD; i <= (from + size - 1) / WORD && i < m.words; i++) {
        isPoint |= m.isPoint[i];
        if ((m.readers[i] & bit) && (!isWrite || (m.writers[i] & bit)))
            continue;
        m.readers[i] |= bit;
        if (isWrite)
            m.writers[i] |= bit;
        m.learned |= !m.isPoint[i] && m.writers[i] && m.readers[i] & (m.readers[i] - 1);
    }
    if (isPoint)
        exploreOffer(isWrite ? "writes" : "reads", at, pc);
}

void exploreAccess(const void *at, size_t size, int isWrite)
{
    exploreSee(at, size, isWrite, __builtin_return_address(0));
}

unsigned memoryLearn(void)
{
    unsigned n = 0;

    for (size_t i = 0; i < m.words; i++)
        m.isPoint[i] |= m.writers[i] && m.readers[i] & (m.readers[i] - 1);
    for (unsigned k = 0; k < m.ignoredCount; k++)
        memset(m.isPoint + m.ignored[k][0] / WORD, 0, (m.ignored[k][1] - m.ignored[k][0]) / WORD);
    for (size_t i = 0; i < m.words; i++)
        n += m.isPoint[i];
    return n;
}

int memoryHasLearned(void)
{
    unsigned before = 0;

    if (!m.learned)
        return 0;
    m.learned = 0;
    for (size_t i = 0; i < m.words; i++)
        before += m.isPoint[i];
    return memoryLearn() != before; /* not what is ignored */
}

void memoryBegin(void)
{
    if ((char *)(&arena + 1) != __stop_exploreShared)
        abort(); /* memory.o must be linked last */
    m.used = m.usedTables = m.size = 0;
    m.ignoredCount = m.nameCount = 0;
    memset(__start_exploreShared, 0, (size_t)(__stop_exploreShared - __start_exploreShared));
    arena.now = 1000000000000ull;
}

void memoryKeep(void)
{
    m.size = (size_t)(arena.tables + m.usedTables - __start_exploreShared);
    m.words = m.size / WORD + 1;
    m.first = realloc(m.first, m.size);
    m.readers = realloc(m.readers, m.words);
    m.writers = realloc(m.writers, m.words);
    m.isPoint = realloc(m.isPoint, m.words);
    if (!m.first || !m.readers || !m.writers || !m.isPoint)
        abort();
    __real_memcpy(m.first, __start_exploreShared, m.size);
    m.dirtyCount = 0;
    memset(m.isDirty, 0, sizeof(m.isDirty));
    memset(m.readers, 0, m.words);
    memset(m.writers, 0, m.words);
    memset(m.isPoint, 0, m.words);
}

void memoryTell(const void *at)
{
    for (unsigned i = 0; i < m.nameCount; i++) {
        const Range *r = &m.names[i];
        size_t off = (uintptr_t)at - r->at;

        if ((uintptr_t)at < r->at || (uintptr_t)at >= r->end)
            continue;
        printf(r->name, (unsigned)(off / r->element));
        printf("+%zu", off % r->element);
        return;
    }
    printf("%p", at);
}
