/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/functionSite.h"
#include "common/clock.h"
#include "host/foreign.h"
#include "ioc/baseLayout.h"
#include "queues/queueIoc.h"

#define SETS        3          /* callback.h: NUM_CALLBACK_PRIORITIES */
#define SET_SIZE    48         /* the largest of all layouts … */
#define RING_HEAD   32
#define BYTES_MAX   1024       /* … and all of it */
#define SIZE_MAX_Q  10000000   /* entries of a queue that can be believed */
#define SLOP        16         /* epicsRingBytes.c */
#define ENTRIES_MAX 4096       /* of a queue that are looked at, the newest */
#define OTHERS_MAX  64         /* callbacks that are looked at again, because no record was found */
#define NAMED_MAX   10         /* records that are named */
#define SEARCH_NS   (60 * EBPFMON_SECOND_NS) /* symbols that were not found are looked for again */
#define WITHOUT     UINT32_MAX /* an entry of no known record */

#define QUEUES(...) { __VA_ARGS__ },

static const ebpfMonQueueLayout layouts[] = {
#include "queues/queueLayouts.h"
};

#define LAYOUTS (sizeof(layouts) / sizeof(layouts[0]))

const ebpfMonQueueLayout *ebpfMonQueueLayoutGet(unsigned index)
{
    return index < LAYOUTS ? &layouts[index] : NULL;
}

const char *const ebpfMonQueueNames[ebpfMonQueueCount] = {
    "cbLow", "cbMedium", "cbHigh", "scanOnce", "CA links", "errlog",
};

/* --- where they are ---------------------------------------------------------------------------------------------- */

enum { varSets, varRings, varOnce, varOverruns, varLinks, varCount };
enum { varLog, varOldLog, varLogs };

static int fitsVariables(const ebpfMonQueueLayout *l, const ebpfMonVariable *core, const ebpfMonVariable *log,
                         int hasOnceEntries)
{
    uint64_t sets = core[varSets].address ? core[varSets].size : core[varRings].size;
    const ebpfMonVariable *own = &log[l->logLog ? varLog : varOldLog], *other = &log[l->logLog ? varOldLog : varLog];

    return sets == (uint64_t)SETS * l->setSize && (l->onceEntry != 0) == hasOnceEntries &&
           (own->address || !other->address);
}

static void findQueues(ebpfMonQueueIoc *ioc)
{
    static const char *const names[varCount] = { "callbackQueue", "callbackQ", "onceQ", "onceQOverruns", "workList" };
    static const char *const logNames[varLogs] = { "pvt", "pvtData" };
    const ebpfMonBaseRelease *base = ioc->cat->base;
    ebpfMonVariable core[varCount], log[varLogs], *own;

    ioc->searchedAt = ebpfMonClockMonotonic();
    ebpfMonVariablesFind(ioc->pid, "callbackRequest", names, varCount, core);
    ebpfMonVariablesFind(ioc->pid, "errlogPrintf", logNames, varLogs, log);
    if (!core[varSets].address && !core[varRings].address) {
        snprintf(ioc->why, sizeof(ioc->why), "its files have no symbols for static variables (callbackQueue); the "
                 "command ebpfMonSymbols keeps those of its build");
        return;
    }
    for (size_t i = 0; !ioc->layout && i < LAYOUTS; i++)
        if (fitsVariables(&layouts[i], core, log, base->has.onceLink))
            ioc->layout = &layouts[i];
    if (!ioc->layout) {
        snprintf(ioc->why, sizeof(ioc->why), "its queues lie otherwise than in EPICS Base 3.14.12 to 7.0.10");
        return;
    }
    own = &log[ioc->layout->logLog ? varLog : varOldLog];
    ioc->at.sets = core[varSets].address ? core[varSets].address : core[varRings].address;
    ioc->at.once = core[varOnce].address;
    ioc->at.overruns = core[varOverruns].size == sizeof(int32_t) ? core[varOverruns].address : 0;
    ioc->at.links = core[varLinks].size == sizeof(struct layoutList) ? core[varLinks].address : 0;
    ioc->at.log = own->size == ioc->layout->logSize ? own->address : 0;
    ioc->why[0] = 0;
}

/* Reads the symbols of its files, once: milliseconds. */
static void searchSymbols(ebpfMonQueueIoc *ioc)
{
    uint64_t before = ebpfMonForeignGetCpu();

    if (ebpfMonForeignIsUserCharged(ioc->user))
        return;
    findQueues(ioc);
    ioc->searchCpu = ebpfMonForeignGetCpu() - before;
    ebpfMonForeignChargeCpu(ioc->user, ioc->searchCpu);
}

static uint32_t addPart(ebpfMonQueueIoc *ioc, uint64_t at, uint32_t size)
{
    uint32_t place = ioc->bytes;

    ioc->part[ioc->parts++] = (ebpfMonMemPart){ at, size };
    ioc->bytes += size;
    return place;
}

/* Base makes the rings in iocInit, and keeps them until the IOC ends. -1: they are not there yet. */
static int findRings(ebpfMonQueueIoc *ioc)
{
    char sets[SETS * SET_SIZE];
    uint64_t once = 0;

    if (ebpfMonMemReadNow(ioc->pid, ioc->at.sets, sets, (size_t)SETS * ioc->layout->setSize) ||
        (ioc->at.once && ebpfMonMemReadNow(ioc->pid, ioc->at.once, &once, sizeof(once))))
        return -1;
    for (unsigned i = 0; i < SETS; i++)
        ioc->queue[i].ring = ebpfMonMemNumberAt(sets, i * ioc->layout->setSize + ioc->layout->setQueue);
    ioc->queue[ebpfMonQueueOnce].ring = once;
    if (!ioc->queue[0].ring || !ioc->queue[1].ring || !ioc->queue[2].ring || (ioc->at.once && !once))
        return -1;
    ioc->parts = ioc->bytes = 0;
    addPart(ioc, ioc->at.sets, (uint32_t)SETS * ioc->layout->setSize);
    for (unsigned i = 0; i <= ebpfMonQueueOnce; i++)
        if (ioc->queue[i].ring)
            ioc->queue[i].place = addPart(ioc, ioc->queue[i].ring, RING_HEAD);
    if (ioc->at.overruns)
        ioc->overruns = addPart(ioc, ioc->at.overruns, sizeof(int32_t));
    if (ioc->at.links)
        ioc->queue[ebpfMonQueueLinks].place = addPart(ioc, ioc->at.links, sizeof(struct layoutList));
    if (ioc->at.log)
        ioc->queue[ebpfMonQueueLog].place = addPart(ioc, ioc->at.log, ioc->layout->logSize);
    return 0;
}

/* --- who fills a queue -------------------------------------------------------------------------------------------- */

typedef struct {
    uint32_t record;        /* index in the catalogue, WITHOUT: not known */
    int      isList;        /* it is a scan list, and this is the first record in it */
    unsigned count;
} filler;

static int compareAddresses(const void *left, const void *right)
{
    uint64_t l = *(const uint64_t *)left, r = *(const uint64_t *)right;

    return (l > r) - (l < r);
}

static int compareFillers(const void *left, const void *right)
{
    const filler *l = left, *r = right;

    if (l->count != r->count)
        return l->count < r->count ? 1 : -1;
    return (l->record > r->record) - (l->record < r->record);
}

static uint32_t findRecord(const ebpfMonQueueIoc *ioc, uint64_t precord)
{
    long index = precord ? ebpfMonCatalogueFindAddr(ioc->cat, precord) : -1;

    return index < 0 ? WITHOUT : (uint32_t)index;
}

/* The first record of a scan list (dbScan.c), to which each element leads back. */
static uint32_t findRecordOfList(const ebpfMonQueueIoc *ioc, uint64_t at)
{
    struct layoutScanElement element;
    struct layoutScanList list;

    if (!at || ebpfMonMemReadNow(ioc->pid, at, &list, sizeof(list)) || list.list.count <= 0 ||
        ebpfMonMemReadNow(ioc->pid, list.list.first, &element, sizeof(element)) || element.pscan_list != at)
        return WITHOUT;
    return findRecord(ioc, element.precord);
}

/* Of a callback, the bytes of which were read: its user is a record, or one stands behind it (bo, busy: struct
 * myCallback); else its user is the list of an event, or that of an I/O Intr scan stands behind it. */
static void findRecordOfCallback(const ebpfMonQueueIoc *ioc, uint64_t callback, const char *bytes, int isLook,
                                 filler *to)
{
    uint64_t user = ebpfMonMemNumberAt(bytes, ioc->layout->callbackUser);

    to->record = findRecord(ioc, user);
    if (to->record == WITHOUT)
        to->record = findRecord(ioc, ebpfMonMemNumberAt(bytes, ioc->layout->callbackSize));
    if (to->record != WITHOUT || !isLook)
        return;
    to->record = findRecordOfList(ioc, user);
    if (to->record == WITHOUT)
        to->record = findRecordOfList(ioc, callback + ioc->layout->callbackSize);
    to->isList = to->record != WITHOUT;
}

static void findRecordsOfCallbacks(const ebpfMonQueueIoc *ioc, const uint64_t *callback, unsigned count, filler *to)
{
    size_t size = ioc->layout->callbackSize + sizeof(uint64_t);
    ebpfMonMemPart *part = malloc(count * sizeof(*part));
    char *bytes = malloc(count * size);
    unsigned looks = 0;
    int isRead;

    for (unsigned i = 0; part && i < count; i++)
        part[i] = (ebpfMonMemPart){ callback[i], (uint32_t)size };
    isRead = part && bytes && !ebpfMonMemReadParts(ioc->pid, part, count, bytes, count * size);
    for (unsigned i = 0; isRead && i < count; i++) {
        findRecordOfCallback(ioc, callback[i], bytes + i * size, looks < OTHERS_MAX, &to[i]);
        looks += to[i].record == WITHOUT || to[i].isList;
    }
    free(part);
    free(bytes);
}

/* The newest "count" entries of a ring, the pointers in them. Returns how many there are. */
static unsigned readEntries(const ebpfMonQueueIoc *ioc, int isOnce, const char *ring, uint64_t at, unsigned count,
                            uint64_t *to)
{
    const ebpfMonQueueLayout *l = ioc->layout;
    int isBytes = isOnce && l->onceEntry;
    size_t entry = isBytes ? l->onceEntry : sizeof(uint64_t), unit = isBytes ? 1 : entry, bytes = count * entry;
    int32_t next, size;
    size_t all, begin, first;
    char *part = malloc(bytes + 1);
    unsigned found = 0;

    memcpy(&next, ring + (isBytes ? l->bytesPut : l->ringPush), sizeof(next));
    memcpy(&size, ring + (isBytes ? l->bytesSize : l->ringSize), sizeof(size));
    all = (size_t)size * unit;
    begin = ((size_t)next * unit + all - bytes) % all;
    first = bytes < all - begin ? bytes : all - begin; /* the rest stands at the begin of the ring */
    at = isBytes ? at + l->bytesBuffer : ebpfMonMemNumberAt(ring, l->ringBuffer);
    if (!part || ebpfMonMemReadNow(ioc->pid, at + begin, part, first) ||
        (first < bytes && ebpfMonMemReadNow(ioc->pid, at, part + first, bytes - first)))
        count = 0;
    for (unsigned i = 0; i < count; i++) {
        to[found] = ebpfMonMemNumberAt(part, (unsigned)(i * entry));
        found += to[found] != 0;
    }
    free(part);
    return found;
}

static unsigned countFillers(const ebpfMonQueueIoc *ioc, int isOnce, uint64_t *entry, unsigned entries, filler *to)
{
    unsigned kinds = 0, kept = 0;

    qsort(entry, entries, sizeof(*entry), compareAddresses);
    for (unsigned i = 0; i < entries; i++)
        if (kinds && entry[kinds - 1] == entry[i]) {
            to[kinds - 1].count++;
        } else {
            entry[kinds] = entry[i];
            to[kinds++] = (filler){ WITHOUT, 0, 1 };
        }
    if (!isOnce)
        findRecordsOfCallbacks(ioc, entry, kinds, to);
    for (unsigned i = 0; isOnce && i < kinds; i++)
        to[i].record = findRecord(ioc, entry[i]);
    for (unsigned i = 0; i < kinds; i++) { /* a record may have several callbacks; the first one collects them */
        unsigned n = 0;

        while (n < kept && (to[n].record != to[i].record || to[n].isList != to[i].isList))
            n++;
        if (n < kept)
            to[n].count += to[i].count;
        else if (kept < ENTRIES_MAX)
            to[kept++] = to[i];
    }
    qsort(to, kept, sizeof(*to), compareFillers);
    return kept;
}

static void describeFillers(const ebpfMonQueueIoc *ioc, const filler *f, unsigned kinds, unsigned entries, char *text,
                            size_t size)
{
    unsigned rest = entries, named = 0;
    size_t n = 0;

    for (unsigned i = 0; i < kinds && named < NAMED_MAX && n + 100 < size; i++) {
        if (f[i].record == WITHOUT)
            continue;
        n += (size_t)snprintf(text + n, size - n, "%s%s%s %u", n ? ", " : "", f[i].isList ? "scan list with " : "",
                              ebpfMonCatalogueName(ioc->cat, f[i].record), f[i].count);
        rest -= f[i].count;
        named++;
    }
    if (rest)
        snprintf(text + n, size - n, "%s%s %u", n ? ", " : "", named ? "others" : "not known", rest);
}

/* Names those who fill the queue, or had filled it: what was taken out of a ring stays there until another takes its
 * place. */
static void findFillers(const ebpfMonQueueIoc *ioc, ebpfMonQueueKind kind, ebpfMonQueue *q, const char *ring)
{
    double wanted = q->used > q->size / 2 ? q->used : q->lately ? q->size : q->high;
    unsigned entries = wanted < ENTRIES_MAX ? (unsigned)wanted : ENTRIES_MAX, kinds;
    uint64_t *entry = calloc(entries + 1, sizeof(*entry));
    filler *f = calloc(entries + 1, sizeof(*f));

    q->fillers[0] = 0;
    if (entry && f) {
        entries = readEntries(ioc, kind == ebpfMonQueueOnce, ring, q->ring, entries, entry);
        kinds = countFillers(ioc, kind == ebpfMonQueueOnce, entry, entries, f);
        describeFillers(ioc, f, kinds, entries, q->fillers, sizeof(q->fillers));
    }
    free(entry);
    free(f);
}

/* --- an update ---------------------------------------------------------------------------------------------------- */

static double intAt(const char *bytes, unsigned offset)
{
    int32_t n;

    memcpy(&n, bytes + offset, sizeof(n));
    return n;
}

/* What Base counts, as a difference; at the first update all, if they are new. */
static void noteOverflows(const ebpfMonQueueIoc *ioc, ebpfMonQueue *q, double overflows)
{
    double before = ioc->updatedAt ? q->overflows : ioc->isNew ? 0 : overflows;

    q->lately = overflows > before ? (unsigned)(overflows - before) : 0;
    q->overflows = overflows;
}

static void noteFill(const ebpfMonQueueIoc *ioc, ebpfMonQueue *q, double used, double size, double high)
{
    double before = ioc->updatedAt ? q->high : ioc->isNew ? 0 : high;

    q->isKnown = 1;
    q->used = used;
    q->size = size;
    q->high = high;
    q->isOverHalf = used > size / 2 || (high > before && high > size / 2);
}

/* A ring of pointers or bytes. -1: it cannot be believed. */
static int takeRing(const ebpfMonQueueIoc *ioc, ebpfMonQueue *q, const char *ring, int isBytes)
{
    const ebpfMonQueueLayout *l = ioc->layout;
    double in = intAt(ring, isBytes ? l->bytesPut : l->ringPush), out = intAt(ring, isBytes ? l->bytesGet : l->ringPop);
    double size = intAt(ring, isBytes ? l->bytesSize : l->ringSize), used = in < out ? in - out + size : in - out;
    unsigned high = isBytes ? l->bytesHigh : l->ringHigh;
    double entry = isBytes ? l->onceEntry : 1, spare = isBytes ? SLOP : 1;

    if (size <= spare || size > SIZE_MAX_Q * entry + spare || in < 0 || out < 0 || in >= size || out >= size)
        return -1;
    q->moved = (uint64_t)in << 32 | (uint64_t)out;
    noteFill(ioc, q, floor(used / entry), (size - spare) / entry, high ? floor(intAt(ring, high) / entry) : NAN);
    return 0;
}

static int takeRings(ebpfMonQueueIoc *ioc, const char *bytes)
{
    const ebpfMonQueueLayout *l = ioc->layout;

    for (unsigned i = 0; i <= ebpfMonQueueOnce; i++) {
        ebpfMonQueue *q = &ioc->queue[i];
        int isOnce = i == ebpfMonQueueOnce;

        if (!q->place)
            continue;
        if (takeRing(ioc, q, bytes + q->place, isOnce && l->onceEntry))
            return -1;
        if (!isOnce && l->setOverflows)
            noteOverflows(ioc, q, intAt(bytes, i * l->setSize + l->setOverflows));
        else if (isOnce && ioc->overruns)
            noteOverflows(ioc, q, intAt(bytes, ioc->overruns));
        else
            q->overflows = NAN;
    }
    return 0;
}

static void takeLinks(ebpfMonQueueIoc *ioc, const char *bytes)
{
    ebpfMonQueue *q = &ioc->queue[ebpfMonQueueLinks];
    struct layoutList list;

    memcpy(&list, bytes + q->place, sizeof(list));
    q->isKnown = q->place && list.count >= 0 && (list.count > 0) == (list.first != 0);
    q->used = list.count;
    q->size = q->high = q->overflows = NAN;
    q->moved = list.last;
}

/* Base counts lost messages until it prints how many, and then from 0 again. */
static void takeLog(ebpfMonQueueIoc *ioc, const char *bytes)
{
    const ebpfMonQueueLayout *l = ioc->layout;
    ebpfMonQueue *q = &ioc->queue[ebpfMonQueueLog];
    const char *log = bytes + q->place;
    double lost = l->logLog ? (double)ebpfMonMemNumberAt(log, l->logLost) : intAt(log, l->logLost);
    double room = l->logLog ? (double)ebpfMonMemNumberAt(log, l->logRoom) : intAt(log, l->logRoom), used = NAN;
    double before = ioc->updatedAt ? (double)q->moved : ioc->isNew ? 0 : lost;
    uint64_t buffer = l->logLog ? ebpfMonMemNumberAt(log, l->logLog) - ioc->at.log : 0;

    if (!q->place || (l->logLog && room > 0 && buffer != l->logBufs && buffer != l->logBufs + 16u)) {
        q->isKnown = 0;
        return;
    }
    if (l->logLog && room > 0) /* buffer_t: base, pos */
        used = (double)ebpfMonMemNumberAt(log, (unsigned)buffer + 8);
    noteFill(ioc, q, used, room > 0 ? room : NAN, NAN);
    q->lately = lost > before ? (unsigned)(lost - before) : lost < before ? (unsigned)lost : 0;
    q->overflows = (ioc->updatedAt ? q->overflows : 0) + q->lately;
    q->moved = (uint64_t)lost;
}

static int takeQueues(ebpfMonQueueIoc *ioc, const char *bytes)
{
    uint64_t before[ebpfMonQueueCount];

    for (unsigned i = 0; i < ebpfMonQueueCount; i++)
        before[i] = ioc->queue[i].moved;
    if (takeRings(ioc, bytes))
        return -1;
    takeLinks(ioc, bytes);
    takeLog(ioc, bytes);
    for (unsigned i = 0; i < ebpfMonQueueCount; i++)
        ioc->hasMoved |= ioc->queue[i].moved != before[i];
    return 0;
}

static void judgeQueues(ebpfMonQueueIoc *ioc, const char *bytes, uint64_t now)
{
    for (unsigned i = 0; i < ebpfMonQueueCount; i++) {
        ebpfMonQueue *q = &ioc->queue[i];

        if (q->isOverHalf)
            q->halfAt = now;
        if (q->lately)
            q->overflowAt = now;
        if ((q->isOverHalf || q->lately) && i <= ebpfMonQueueOnce)
            findFillers(ioc, (ebpfMonQueueKind)i, q, bytes + q->place);
    }
}

void ebpfMonQueueIocUpdate(ebpfMonQueueIoc *ioc, uint64_t now)
{
    char bytes[BYTES_MAX];

    ioc->isRead = ioc->hasMoved = 0;
    ioc->searchCpu = 0;
    if (!ioc->layout && (!ioc->searchedAt || now - ioc->searchedAt > SEARCH_NS))
        searchSymbols(ioc);
    if (!ioc->layout || (!ioc->parts && findRings(ioc)))
        return;
    if (ebpfMonMemReadParts(ioc->pid, ioc->part, ioc->parts, bytes, ioc->bytes))
        return;
    if (takeQueues(ioc, bytes)) {
        snprintf(ioc->why, sizeof(ioc->why), "its queues lie otherwise than in EPICS Base 3.14.12 to 7.0.10");
        return;
    }
    ioc->why[0] = 0;
    ioc->isRead = 1;
    judgeQueues(ioc, bytes, now);
    ioc->updatedAt = now;
}
