/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/array.h"
#include "common/hash.h"
#include "common/text.h"
#include "device/asynLayout.h"
#include "device/deviceRows.h"
#include "host/memory.h"
#include "ioc/baseLayout.h"
#include "ioc/baseLink.h"
#include "ioc/catalogue.h"
#include "probe/hist.h"
#include "probe/kernelTables.h"

/* --- records of ports ---
 *
 * Finds the record for which a user of a port works. asynUser.userPvt and the DPVT of a record both point to private
 * structs of device support. Three cases are known:
 * - asyn's own device support: DPVT and userPvt are equal.
 * - asyn's own device support and the asyn record: the struct begins with the address of the record.
 * - StreamDevice: its AsynDriverInterface points to a part of the object to which DPVT points.
 *
 * In all other cases no record is shown. */

typedef struct ebpfMonDeviceRecords ebpfMonDeviceRecords;

#define PVT_WORDS 16 /* words of a private struct that are searched for a pointer */
#define PART_MAX  24 /* A pointer may lead to a base class, which begins at most so many bytes behind the begin of
                      * its object. malloc never gives two objects so near to each other */

typedef struct {
    uint64_t dpvt;
    uint32_t index;
} Private;

struct ebpfMonDeviceRecords {
    pid_t    pid;
    ebpfMonCatalogue *cat;
    Private *list; /* sorted by dpvt */
    uint32_t count;
};

static int comparePrivates(const void *a, const void *b)
{
    const Private *x = a, *y = b;

    return x->dpvt < y->dpvt ? -1 : x->dpvt > y->dpvt;
}

/* Reads the DPVT of all records, and holds a reference of the catalogue. NULL without memory. */
static ebpfMonDeviceRecords *newDeviceRecords(pid_t pid, ebpfMonCatalogue *cat)
{
    ebpfMonDeviceRecords *r = calloc(1, sizeof(*r));
    ebpfMonMem *mem = ebpfMonMemNew(pid);

    if (r)
        r->list = calloc(cat->count + 1, sizeof(*r->list));
    if (!r || !r->list || !mem) {
        free(r);
        ebpfMonMemFree(mem);
        return NULL;
    }
    r->pid = pid;
    r->cat = ebpfMonCatalogueHold(cat);
    for (uint32_t i = 0; i < cat->count; i++) {
        const ebpfMonField *f = ebpfMonCatalogueFieldNamed(cat, cat->rec[i].rtype, "DPVT");
        uint64_t dpvt = f ? ebpfMonMemPtr(mem, cat->rec[i].addr + f->offset) : 0;

        if (dpvt)
            r->list[r->count++] = (Private){ dpvt, i };
    }
    ebpfMonMemFree(mem);
    qsort(r->list, r->count, sizeof(*r->list), comparePrivates);
    return r;
}

static void freeDeviceRecords(ebpfMonDeviceRecords *r)
{
    if (!r)
        return;
    ebpfMonCatalogueRelease(r->cat);
    free(r->list);
    free(r);
}

static ebpfMonCatalogue *getCatalogue(const ebpfMonDeviceRecords *r)
{
    return r->cat;
}

/* The index of the record with its DPVT at "at", or up to "part" bytes before it. -1: there is none; -2: several
 * records have this DPVT. */
static long findPrivate(const ebpfMonDeviceRecords *r, uint64_t at, uint64_t part)
{
    uint32_t low = 0, high = r->count;

    while (low < high) { /* find the first one above "at" */
        uint32_t middle = low + (high - low) / 2;

        if (r->list[middle].dpvt <= at)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low || at - r->list[low - 1].dpvt > part)
        return -1;
    if (low > 1 && r->list[low - 2].dpvt == r->list[low - 1].dpvt)
        return -2;
    return r->list[low - 1].index;
}

/* "pvt": asynUser.userPvt. Returns the index of the record in the catalogue; -1: no record, or more than one. */
static long findDeviceRecords(const ebpfMonDeviceRecords *r, uint64_t pvt)
{
    long found = findPrivate(r, pvt, 0);
    uint64_t word[PVT_WORDS];

    if (found != -1 || ebpfMonMemReadNow(r->pid, pvt, word, sizeof(word)))
        return found >= 0 ? found : -1;
    if ((found = ebpfMonCatalogueFindAddr(r->cat, word[0])) >= 0)
        return found;
    for (unsigned i = 0; i < PVT_WORDS; i++) {
        long index = word[i] ? findPrivate(r, word[i], PART_MAX) : -1;

        if (index == -2 || (index >= 0 && found >= 0 && index != found))
            return -1;
        if (index >= 0)
            found = index;
    }
    return found;
}

/* --- ports that do not answer --- */

#define USERS_MOST 4096

typedef struct {
    struct ebpfMonDeviceKey user;
    uint64_t ended, left; /* at the first look */
    uint64_t before;      /* "ended" at the look before: "left" has all requests that made these records end */
    uint64_t most;        /* "left" may be ahead of "before"; the number does not go back then */
} First;

struct ebpfMonDeviceSilence {
    First *first;
    size_t count, room;
};

ebpfMonDeviceSilence *ebpfMonDeviceSilenceNew(void)
{
    return calloc(1, sizeof(ebpfMonDeviceSilence));
}

void ebpfMonDeviceSilenceFree(ebpfMonDeviceSilence *s)
{
    if (s)
        free(s->first);
    free(s);
}

static First *findFirst(ebpfMonDeviceSilence *s, const struct ebpfMonDeviceKey *user, uint64_t ended, uint64_t left)
{
    for (size_t i = 0; i < s->count; i++)
        if (memcmp(&s->first[i].user, user, sizeof(*user)) == 0)
            return &s->first[i];
    if (s->count == USERS_MOST || ebpfMonArrayGrow(&s->first, &s->room, s->count + 1, 32, sizeof(*s->first)))
        return NULL;
    s->first[s->count] = (First){ *user, ended, left, ended, 0 };
    return &s->first[s->count++];
}

uint64_t ebpfMonDeviceSilenceCount(ebpfMonDeviceSilence *s, const struct ebpfMonDeviceKey *user, uint64_t ended,
                                   uint64_t left)
{
    First *f = findFirst(s, user, ended, left);
    uint64_t more;

    if (!f)
        return UINT64_MAX;
    if (ended < f->ended) /* the IOC was looked at anew: the record's count began at 0 again */
        *f = (First){ *user, ended, left, ended, f->most };
    more = f->before - f->ended > left - f->left ? f->before - f->ended - (left - f->left) : 0;
    f->before = ended;
    if (more > f->most)
        f->most = more;
    return f->most;
}

void ebpfMonDeviceSilenceForget(ebpfMonDeviceSilence *s, uint32_t tgid)
{
    size_t kept = 0;

    for (size_t i = 0; i < s->count; i++)
        if (s->first[i].user.tgid != tgid)
            s->first[kept++] = s->first[i];
    s->count = kept;
}

/* --- rows --- */

#define MS(ns) ((double)(ns) / 1e6)
#define IOCS   64 /* IOCs for which DPVTs are kept */
#define NAMED  4096 /* users for which names are kept; a power of two */

typedef struct {
    struct ebpfMonDeviceKey  key;
    struct ebpfMonDeviceStat stat;
} User;

/* The records of an IOC. Device support sets their DPVTs while iocInit runs; a list that was made before has not
 * all. */
typedef struct {
    uint32_t tgid;
    int      isComplete; /* it was made when iocInit was done */
    uint64_t number;     /* each list has another one */
    ebpfMonDeviceRecords *records;
} List;

/* The names of a user. They are kept, because finding them takes several reads of the IOC's memory, and they change
 * only with the list. */
typedef struct {
    struct ebpfMonDeviceKey key;
    uint64_t list;                /* the number of the list in which its record was looked for; 0: none */
    char port[sizeof(((ebpfMonDeviceRow *)0)->port)];
    char user[EBPFMON_NAME_SIZE]; /* its record; empty: not known */
    char link[EBPFMON_NAME_SIZE]; /* the record's hardware link; empty: not known */
    long index;                   /* of this record; -1: not known */
} Named;

struct ebpfMonDeviceRows {
    User     top[EBPFMON_DEVICE_ROWS];
    unsigned count;
    uint64_t requests, timeouts;
    ebpfMonTargets *targets;
    ebpfMonDeviceSilence *silence;
    List     list[IOCS];     /* at index tgid % IOCS */
    uint64_t lists;          /* lists that were made so far */
    Named    named[NAMED];   /* at the index that the hash of the key gives */
};

ebpfMonDeviceRows *ebpfMonDeviceRowsNew(void)
{
    ebpfMonDeviceRows *r = calloc(1, sizeof(*r));

    if (r && !(r->silence = ebpfMonDeviceSilenceNew())) {
        free(r);
        return NULL;
    }
    return r;
}

void ebpfMonDeviceRowsFree(ebpfMonDeviceRows *r)
{
    for (unsigned i = 0; r && i < IOCS; i++)
        freeDeviceRecords(r->list[i].records);
    if (r)
        ebpfMonDeviceSilenceFree(r->silence);
    free(r);
}

void ebpfMonDeviceRowsForget(ebpfMonDeviceRows *r, pid_t pid)
{
    uint32_t tgid = (uint32_t)pid;
    List *l = &r->list[tgid % IOCS];

    ebpfMonDeviceSilenceForget(r->silence, tgid);
    for (unsigned i = 0; i < NAMED; i++)
        if (r->named[i].key.tgid == tgid)
            memset(&r->named[i].key, 0, sizeof(r->named[i].key));
    if (l->tgid == tgid) {
        freeDeviceRecords(l->records);
        l->records = NULL;
    }
}

static uint64_t sumTimes(const struct ebpfMonDeviceStat *s)
{
    return s->waitSum + s->serveSum;
}

/* Inserts a user into the list, which is sorted by the time that its requests took in all, the longest first. */
static void insertRow(void *arg, const struct ebpfMonDeviceKey *key, const struct ebpfMonDeviceStat *stat)
{
    ebpfMonDeviceRows *r = arg;
    unsigned i = r->count;

    r->requests += stat->count;
    r->timeouts += stat->timeouts;
    if (i == EBPFMON_DEVICE_ROWS && sumTimes(stat) <= sumTimes(&r->top[i - 1].stat))
        return;
    i = i < EBPFMON_DEVICE_ROWS ? r->count++ : i - 1;
    for (; i > 0 && sumTimes(&r->top[i - 1].stat) < sumTimes(stat); i--)
        r->top[i] = r->top[i - 1];
    r->top[i] = (User){ *key, *stat };
}

/* Returns the catalogue of a process, which the caller releases, and copies the name of its IOC. NULL: it is not
 * watched. *slot: of its first record; UINT32_MAX: asynchronous records are not counted. *running: as in
 * ebpfMonTarget. */
static ebpfMonCatalogue *holdCatalogue(const ebpfMonDeviceRows *r, uint32_t tgid, char *ioc, size_t size,
                                       uint32_t *slot, int *running)
{
    ebpfMonCatalogue *cat = NULL;
    const ebpfMonTarget *t;

    *slot = UINT32_MAX;
    *running = 0;
    ebpfMonTargetsLock(r->targets);
    t = ebpfMonTargetsFindByPid(r->targets, (pid_t)tgid);
    if (t) {
        cat = ebpfMonCatalogueHold(t->cat);
        ebpfMonTextCopy(ioc, size, t->name);
        *slot = t->level >= ebpfMonLevelChains ? t->slot : UINT32_MAX;
        *running = t->running;
    }
    ebpfMonTargetsUnlock(r->targets);
    return cat;
}

/* The list of a process; NULL: it has no catalogue, or there is no memory. */
static const List *findList(ebpfMonDeviceRows *r, uint32_t tgid, ebpfMonCatalogue *cat, int running)
{
    List *l = &r->list[tgid % IOCS];

    if (!cat)
        return NULL;
    if (l->records && l->tgid == tgid && getCatalogue(l->records) == cat &&
        (l->isComplete || !running))
        return l;
    freeDeviceRecords(l->records);
    *l = (List){ tgid, running, ++r->lists, newDeviceRecords((pid_t)tgid, cat) };
    return l->records ? l : NULL;
}

/* Copies the text of a hardware link, INP or OUT: all types of links are such links, but the first ones. */
static void copyLink(pid_t pid, const ebpfMonCatalogue *cat, uint32_t index, char *text, size_t size)
{
    static const char *const names[] = { "INP", "OUT" };
    char raw[EBPFMON_NAME_SIZE];
    ebpfMonLink link;

    for (size_t i = 0; i < 2; i++) {
        const ebpfMonField *f = ebpfMonCatalogueFieldNamed(cat, cat->rec[index].rtype, names[i]);

        if (f && !ebpfMonLinkReadNow(pid, cat->base, cat->rec[index].addr + f->offset, &link) &&
            link.type == EBPFMON_LINK_INST && ebpfMonMemTextNow(pid, link.value, raw, sizeof(raw)) > 0)
            ebpfMonTextCopy(text, size, raw);
    }
}

/* Sets the name of the record for which a user works; empty: no record is known. Returns its index, or -1. */
static long nameRecord(const ebpfMonDeviceRecords *records, uint64_t pvt, char *name, size_t size)
{
    long index = records ? findDeviceRecords(records, pvt) : -1;

    name[0] = 0;
    if (index >= 0)
        ebpfMonTextCopy(name, size, ebpfMonCatalogueName(getCatalogue(records), (uint32_t)index));
    return index;
}

/* Finds the names of a user; NULL: the name of its port cannot be read. */
static const Named *findNames(ebpfMonDeviceRows *r, const User *u, const List *list)
{
    Named *n = &r->named[ebpfMonHashFnv64(EBPFMON_FNV64_BEGIN, &u->key, sizeof(u->key)) & (NAMED - 1)];
    int isKnown = memcmp(&n->key, &u->key, sizeof(n->key)) == 0;
    pid_t pid = (pid_t)u->key.tgid;

    if (isKnown && (!list || n->list == list->number))
        return n;
    if (!isKnown && ebpfMonAsynNamePort(pid, u->key.port, u->stat.device, n->port, sizeof(n->port))) {
        memset(&n->key, 0, sizeof(n->key));
        return NULL;
    }
    n->list = list ? list->number : 0;
    n->index = nameRecord(list ? list->records : NULL, u->key.pvt, n->user, sizeof(n->user));
    n->link[0] = 0;
    if (n->index >= 0)
        copyLink(pid, getCatalogue(list->records), (uint32_t)n->index, n->link, sizeof(n->link));
    n->key = u->key;
    return n;
}

/* Names the user of the same port for which this user waited longest. */
static void nameBehind(ebpfMonDeviceRows *r, const User *u, const ebpfMonCatalogue *cat,
                       const ebpfMonDeviceRecords *records, char *name, size_t size)
{
    name[0] = 0;
    if (!u->stat.behind)
        return;
    nameRecord(records, u->stat.behind, name, size);
    for (unsigned i = 0; !name[0] && i < r->count; i++)
        if (r->top[i].key.pvt == u->stat.behind && r->top[i].key.tgid == u->key.tgid && r->top[i].stat.root && cat) {
            long index = ebpfMonCatalogueFindAddr(cat, r->top[i].stat.root);

            if (index >= 0)
                snprintf(name, size, "[%.57s]", ebpfMonCatalogueName(cat, (uint32_t)index));
        }
    if (!name[0])
        snprintf(name, size, "0x%" PRIx64, (uint64_t)u->stat.behind);
}

static void nameUser(const User *u, const Named *n, const ebpfMonCatalogue *cat, char *name, size_t size)
{
    long root = cat && u->stat.root ? ebpfMonCatalogueFindAddr(cat, u->stat.root) : -1;

    if (n->user[0])
        snprintf(name, size, "%s", n->user);
    else if (root >= 0)
        snprintf(name, size, "[%.57s]", ebpfMonCatalogueName(cat, (uint32_t)root));
    else
        snprintf(name, size, "0x%" PRIx64, (uint64_t)u->key.pvt);
}

static void fillNumbers(const struct ebpfMonDeviceStat *s, ebpfMonDeviceRow *row)
{
    uint64_t waits[EBPFMON_BUCKETS] = { 0 };

    ebpfMonHistAdd(waits, s->waitHist, EBPFMON_BUCKETS);
    row->count = s->count;
    row->timeouts = s->timeouts;
    row->waitMean = s->waits ? MS(s->waitSum) / (double)s->waits : NAN;
    row->waitP99 = ebpfMonHistQuantile(waits, EBPFMON_BUCKETS, 0.99, (double)s->waitMax) / 1e6;
    row->waitMax = s->waits ? MS(s->waitMax) : NAN;
    row->serveMean = s->count ? MS(s->serveSum) / (double)s->count : NAN;
    row->serveMax = MS(s->serveMax);
}

/* How often the device of a user did not answer; NaN: it is not known. slot: of the IOC's first record. */
static double countSilence(ebpfMonDeviceRows *r, const User *u, const Named *n, uint32_t slot)
{
    uint64_t count = UINT64_MAX;

    if (n->index >= 0 && slot != UINT32_MAX)
        count = ebpfMonDeviceSilenceCount(r->silence, &u->key, ebpfMonKernelCountTimeouts(slot + (uint32_t)n->index),
                                          u->stat.timeouts);
    return count == UINT64_MAX ? NAN : (double)count;
}

/* 0, or -1: the name of its port cannot be read. */
static int fillRow(ebpfMonDeviceRows *r, const User *u, ebpfMonDeviceRow *row)
{
    ebpfMonCatalogue *cat;
    const List *list;
    const Named *n;
    uint32_t slot;
    int running;

    memset(row, 0, sizeof(*row));
    cat = holdCatalogue(r, u->key.tgid, row->ioc, sizeof(row->ioc), &slot, &running);
    list = findList(r, u->key.tgid, cat, running);
    n = findNames(r, u, list);
    if (n) {
        snprintf(row->port, sizeof(row->port), "%s", n->port);
        nameUser(u, n, cat, row->user, sizeof(row->user));
        nameBehind(r, u, cat, list ? list->records : NULL, row->behind, sizeof(row->behind));
        row->reason = u->key.reason;
        fillNumbers(&u->stat, row);
        memcpy(row->link, n->link, sizeof(row->link));
        row->silent = countSilence(r, u, n, slot);
    }
    ebpfMonCatalogueRelease(cat);
    return n ? 0 : -1;
}

unsigned ebpfMonDeviceRowsMake(ebpfMonDeviceRows *r, ebpfMonDevicePrograms *programs, ebpfMonTargets *targets,
                               ebpfMonDeviceValues *values)
{
    unsigned nameless = 0;

    r->targets = targets;
    r->count = 0;
    r->requests = r->timeouts = 0;
    ebpfMonDeviceProgramsEachUser(programs, insertRow, r);
    values->rows = 0;
    for (unsigned i = 0; i < r->count; i++) {
        if (fillRow(r, &r->top[i], &values->row[values->rows]))
            nameless++;
        else
            values->rows++;
    }
    values->requests = r->requests;
    values->timeouts = r->timeouts;
    return nameless;
}
