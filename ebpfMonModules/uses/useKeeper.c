/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsAtomic.h>
#include <epicsEvent.h>
#include <epicsMutex.h>
#include <epicsThread.h>
#include <errlog.h>

#include "common/clock.h"
#include "common/text.h"
#include "common/worker.h"
#include "uses/useKeeper.h"
#include "uses/useStore.h"

#define PERIOD  10.0 /* s */
#define RETRY   60.0 /* s, after the file could not be written */
#define BATCH   256  /* notes in one transaction */
#define BATCHES (2 * EBPFMON_USE_NOTES / BATCH) /* enough for all notes, also if some are given back and taken again */
#define IOCS_MAX 256
#define TURNS    16 /* … to make room in a full file */
#define STOP_SECONDS 5.0
#define WHY_SIZE 200
#define MEGABYTES_MAX 100000

typedef struct {
    uint32_t id;
    char     name[EBPFMON_IOCNAME_SIZE];
    int      arePutsSeen;
    uid_t    user;      /* who pays for it: host/procRead.h */
} watchedIoc;

struct ebpfMonUseKeeper {
    const ebpfMonModule *module; /* fixed, as the next five */
    ebpfMonUsageValues *shown;
    ebpfMonTargets   *targets;
    ebpfMonUseNotes  *notes;
    ebpfMonUsageConf  conf;
    ebpfMonUseKeeperCalls calls;
    ebpfMonSharedWorker worker;
    epicsMutexId      asking;   /* held by the thread that waits for a flush */
    epicsEventId      flushed;  /* wakes this thread */
    int               isAsked;  /* atomic: a flush is requested */
    int               isDone;   /* atomic: the last writing wrote all */
    /* only the keeper's thread uses what follows */
    ebpfMonUseStore  *store;    /* NULL: not open */
    double            retryAt;  /* do not write before this time (s, monotonic) */
    int               isReported;   /* the error log has said that the file cannot be written */
    int               isFull;   /* the file has no room for new rows; found out anew each time it is written */
    uint64_t          left;     /* uses that were not written because of that */
    int64_t           full;     /* the user who has most in a full file, and gets no more, or EBPFMON_STORE_NOBODY */
    int64_t           wants;    /* another one who wants more in a full file, or EBPFMON_STORE_NOBODY */
    ebpfMonUse        use[BATCH];
    uint8_t           isLeft[BATCH]; /* of each of them: it was not written because of that … */
    uint8_t           isDropped[BATCH]; /* … and will not be: its user has most */
    watchedIoc        ioc[IOCS_MAX];
    unsigned          iocs;     /* so many of them */
};

int ebpfMonUsageConfSet(ebpfMonUsageConf *conf, const char *file, int megabytes, char *why, size_t size)
{
    if (strlen(file) >= sizeof(conf->file)) {
        snprintf(why, size, "the name of the file has more than %zu characters", sizeof(conf->file) - 1);
        return -1;
    }
    if (megabytes < 0 || megabytes > MEGABYTES_MAX) {
        snprintf(why, size, "%d MB: choose 1 to %d, or 0 for %d", megabytes, MEGABYTES_MAX, EBPFMON_USAGE_MEGABYTES);
        return -1;
    }
    strcpy(conf->file, file);
    conf->megabytes = megabytes ? (unsigned)megabytes : EBPFMON_USAGE_MEGABYTES;
    return 0;
}

ebpfMonUseKeeper *ebpfMonUseKeeperNew(const ebpfMonModule *module, ebpfMonUsageValues *shown, ebpfMonTargets *targets,
                                      ebpfMonUseNotes *notes, const ebpfMonUsageConf *conf,
                                      const ebpfMonUseKeeperCalls *calls)
{
    ebpfMonUseKeeper *k = calloc(1, sizeof(*k));

    if (!k)
        return NULL;
    k->module = module;
    k->shown = shown;
    k->targets = targets;
    k->notes = notes;
    k->conf = *conf;
    k->calls = *calls;
    ebpfMonSharedWorkerInit(&k->worker);
    k->asking = epicsMutexMustCreate();
    k->flushed = epicsEventMustCreate(epicsEventEmpty);
    return k;
}

void ebpfMonUseKeeperFree(ebpfMonUseKeeper *k)
{
    if (!k)
        return;
    ebpfMonUseStoreClose(k->store);
    ebpfMonSharedWorkerDestroy(&k->worker);
    epicsMutexDestroy(k->asking);
    epicsEventDestroy(k->flushed);
    free(k);
}

static void publishState(ebpfMonUseKeeper *k, ebpfMonLogState state, const char *message)
{
    int64_t rows = k->store ? ebpfMonUseStoreCount(k->store) : -1;
    ebpfMonUsageValues values = { .state = state, .lost = ebpfMonUseNotesCountLost(k->notes) };
    int isChanged;

    ebpfMonTextCopy(values.message, sizeof(values.message), message);
    ebpfMonModuleLock();
    values.rows = rows >= 0 ? rows : k->shown->rows;
    isChanged = values.state != k->shown->state || values.rows != k->shown->rows || values.lost != k->shown->lost ||
                strcmp(values.message, k->shown->message) != 0;
    *k->shown = values;
    ebpfMonModuleUnlock();
    if (isChanged)
        ebpfMonModuleShow(k->module);
}

static void reportTrouble(ebpfMonUseKeeper *k, const char *why)
{
    char text[256];

    snprintf(text, sizeof(text), "%.100s: %.150s", k->conf.file, why);
    publishState(k, ebpfMonLogTrouble, text);
    if (!k->isReported)
        errlogSevPrintf(errlogMajor, "ebpfMon: uses are not kept (tried again each minute): %s\n", text);
    k->isReported = 1;
    k->retryAt = ebpfMonClockSeconds() + RETRY;
    ebpfMonUseStoreClose(k->store);
    k->store = NULL;
}

static void reportSuccess(ebpfMonUseKeeper *k)
{
    char text[sizeof(k->conf.file) + 80];

    if (k->isReported)
        errlogSevPrintf(errlogInfo, "ebpfMon: uses are kept again: %.200s\n", k->conf.file);
    k->isReported = 0;
    if (k->full == EBPFMON_STORE_NOBODY)
        snprintf(text, sizeof(text), "kept in %.200s", k->conf.file);
    else if (k->full < 0)
        snprintf(text, sizeof(text), "kept in %.200s, which is full: no more of IOCs whose user is not known",
                 k->conf.file);
    else
        snprintf(text, sizeof(text), "kept in %.200s, which is full: no more of user %lld, who has most",
                 k->conf.file, (long long)k->full);
    publishState(k, ebpfMonLogOk, text);
}

static void listWatched(ebpfMonUseKeeper *k)
{
    unsigned n = 0;

    ebpfMonTargetsLock(k->targets);
    for (const ebpfMonTarget *t = ebpfMonTargetsGetFirst(k->targets); t && n < IOCS_MAX; t = t->next) {
        if (t->gone || !t->cat || t->level == ebpfMonLevelOff)
            continue;
        k->ioc[n].id = t->iocId;
        k->ioc[n].arePutsSeen = t->putsSince != UINT64_MAX;
        k->ioc[n].user = t->user;
        memcpy(k->ioc[n++].name, t->name, sizeof(t->name));
    }
    ebpfMonTargetsUnlock(k->targets);
    k->iocs = n;
}

/* Writes who pays for each IOC, before its uses. */
static void writePayers(ebpfMonUseKeeper *k)
{
    char why[WHY_SIZE];
    int status = ebpfMonUseStoreBegin(k->store, why, sizeof(why));

    for (unsigned i = 0; i < k->iocs && status == 0; i++)
        status = ebpfMonUseStoreSetPayer(k->store, k->ioc[i].name, k->ioc[i].user, why, sizeof(why));
    if (status || ebpfMonUseStoreEnd(k->store, why, sizeof(why)))
        ebpfMonUseStoreCancel(k->store); /* whatever it is, uses cannot be written either, and that is told */
}

/* Writes in which ways each IOC is watched now. 0, EBPFMON_STORE_FULL, or -1: "why" says what is wrong. */
static int writeWatched(ebpfMonUseKeeper *k, char *why, size_t size)
{
    int arePacketsSeen, status = 0;

    arePacketsSeen = ebpfMonPublishedLock()->packets.state == ebpfMonWireOn;
    ebpfMonPublishedUnlock();
    for (unsigned i = 0; i < k->iocs && status == 0; i++) {
        int ways = k->calls.findWays(k->calls.arg, k->ioc[i].id);

        ways |= (k->ioc[i].arePutsSeen ? EBPFMON_WATCHED_PUTS : 0) | (arePacketsSeen ? EBPFMON_WATCHED_PACKETS : 0);
        if (!arePacketsSeen)
            ways &= ~EBPFMON_WATCHED_CONNECTIONS;
        if (ebpfMonUseStoreGetPayer(k->store, k->ioc[i].name) == k->full)
            continue; /* a gap: some of his uses are not written */
        status = ebpfMonUseStoreAddWatched(k->store, k->ioc[i].name, ways, ebpfMonClockUnixSeconds(), why, size);
        if (status == EBPFMON_STORE_FULL)
            k->wants = ebpfMonUseStoreGetPayer(k->store, k->ioc[i].name);
    }
    return status;
}

/* There is no room for this use. */
static void leaveOut(ebpfMonUseKeeper *k, unsigned i)
{
    int64_t payer = ebpfMonUseStoreGetPayer(k->store, k->use[i].ioc);

    k->isLeft[i] = 1;
    k->isDropped[i] = payer == k->full;
    if (payer != k->full)
        k->wants = payer;
}

/* Writes k->use[from … to-1] in one transaction, without those that are left. If the file turns out to be full,
 * nothing is written: EBPFMON_STORE_FULL; with k->isFull the next try leaves out one more of what has no room. 0, or
 * -1: "why" says what is wrong. */
static int tryUses(ebpfMonUseKeeper *k, unsigned from, unsigned to, char *why, size_t size)
{
    int status = ebpfMonUseStoreBegin(k->store, why, size);

    for (unsigned i = from; i < to && status == 0; i++) {
        if (k->isLeft[i])
            continue;
        status = k->isFull ? ebpfMonUseStoreUpdateUse(k->store, &k->use[i], why, size)
                           : ebpfMonUseStoreAddUse(k->store, &k->use[i], why, size);
        if (k->isFull && (status == 1 || status == EBPFMON_STORE_FULL))
            leaveOut(k, i);
        status = status == 1 ? 0 : status;
    }
    if (status == 0)
        status = ebpfMonUseStoreEnd(k->store, why, size);
    if (status)
        ebpfMonUseStoreCancel(k->store);
    return status;
}

/* Writes the first n of k->use. Many need many pages at once, so if they have no room, they are written one by one
 * until one has none: only then the file is full, and few pages are left, as ebpfMonUseStoreMakeRoom expects. *written:
 * so many are written, also if it fails. */
static int writeUses(ebpfMonUseKeeper *k, unsigned n, unsigned *written, char *why, size_t size)
{
    int status = tryUses(k, 0, n, why, size);

    *written = 0;
    if (status == EBPFMON_STORE_FULL && !k->isFull) {
        while (*written < n && (status = tryUses(k, *written, *written + 1, why, size)) == 0)
            ++*written;
        k->isFull = status == EBPFMON_STORE_FULL;
    }
    while (status == EBPFMON_STORE_FULL) /* it ends, because each time one more is left */
        status = tryUses(k, *written, n, why, size);
    return status;
}

/* Writes at most BATCH notes. What is not written is noted again. Returns the number of notes, or -1: some are not
 * written, and "why" says what is wrong. */
static int writeBatch(ebpfMonUseKeeper *k, size_t *cursor, int all, char *why, size_t size)
{
    unsigned n = ebpfMonUseNotesTake(k->notes, cursor, ebpfMonClockUnixSeconds(), all, k->use, BATCH);
    unsigned written;
    int status;

    if (!n)
        return 0;
    memset(k->isLeft, 0, sizeof(k->isLeft));
    memset(k->isDropped, 0, sizeof(k->isDropped));
    status = writeUses(k, n, &written, why, size);
    for (unsigned i = 0; i < n; i++)
        if (!status && k->isDropped[i]) {
            ebpfMonUseNotesAddLost(k->notes, 1);
        } else if ((status && i >= written) || k->isLeft[i]) {
            ebpfMonUseNotesGiveBack(k->notes, &k->use[i], 1);
            k->left++;
        }
    return status ? -1 : (int)n;
}

/* The file is full, and not only for the user who has most in it. Nonzero: there is more room now, or this user is
 * known. */
static int makeRoom(ebpfMonUseKeeper *k, char *why, size_t size)
{
    int64_t full = k->full;
    int made;

    if (k->wants == EBPFMON_STORE_NOBODY || ebpfMonUseStoreBegin(k->store, why, size))
        return 0;
    made = ebpfMonUseStoreMakeRoom(k->store, k->wants, &full, why, size);
    if (made < 0 || ebpfMonUseStoreEnd(k->store, why, size)) {
        ebpfMonUseStoreCancel(k->store);
        return 0;
    }
    if (made)
        k->isFull = 0;
    else if (full == k->wants)
        k->full = full;
    return made || full == k->wants;
}

/* As writeWatched, in a transaction. */
static int writeAllWatched(ebpfMonUseKeeper *k, char *why, size_t size)
{
    int status = ebpfMonUseStoreBegin(k->store, why, size);

    if (status)
        return status;
    status = writeWatched(k, why, size);
    if (status == 0)
        status = ebpfMonUseStoreEnd(k->store, why, size);
    if (status)
        ebpfMonUseStoreCancel(k->store);
    return status;
}

/* Writes all that is due. Each batch is a transaction of its own, so a later batch that fails does not undo it. Only if
 * all is written, the time until now counts as watched. */
static int writeAll(ebpfMonUseKeeper *k, ebpfMonWorker *worker, int all, char *why, size_t size)
{
    size_t cursor = 0;
    int n = 1, status;

    k->isFull = 0;
    k->full = k->wants = EBPFMON_STORE_NOBODY;
    if (!k->store)
        k->store = ebpfMonUseStoreOpen(k->conf.file, 1, k->conf.megabytes, why, size);
    if (!k->store)
        return -1;
    listWatched(k);
    writePayers(k);
    for (unsigned turn = 0; turn < TURNS && (turn == 0 || makeRoom(k, why, size)); turn++) {
        cursor = 0;
        n = 1;
        k->left = 0;
        k->wants = EBPFMON_STORE_NOBODY;
        for (unsigned i = 0; n > 0 && i < BATCHES; i++) {
            n = writeBatch(k, &cursor, all, why, size);
            ebpfMonWorkerGiveSign(worker);
        }
    }
    if (n < 0 || k->left)
        return -1;
    k->wants = EBPFMON_STORE_NOBODY;
    do
        status = writeAllWatched(k, why, size);
    while (status == EBPFMON_STORE_FULL && makeRoom(k, why, size));
    return status ? -1 : 0;
}

static void writeDueNotes(ebpfMonUseKeeper *k, ebpfMonWorker *worker, int isEnd)
{
    int isAsked = epicsAtomicCmpAndSwapIntT(&k->isAsked, 1, 0), status = -1;
    char why[WHY_SIZE] = "";

    if (isAsked || isEnd || ebpfMonClockSeconds() >= k->retryAt) {
        status = writeAll(k, worker, isAsked || isEnd, why, sizeof(why));
        if (status)
            reportTrouble(k, why);
        else
            reportSuccess(k);
        ebpfMonUseNotesForget(k->notes, ebpfMonClockUnixSeconds());
    }
    epicsAtomicSetIntT(&k->isDone, status == 0);
    if (isAsked)
        epicsEventMustTrigger(k->flushed);
}

static void runKeeper(ebpfMonWorker *worker, void *arg)
{
    ebpfMonUseKeeper *k = arg;

    while (!ebpfMonWorkerIsStopping(worker)) {
        writeDueNotes(k, worker, 0);
        ebpfMonWorkerWait(worker, PERIOD);
    }
    writeDueNotes(k, worker, 1);
    ebpfMonUseStoreClose(k->store);
    k->store = NULL;
}

int ebpfMonUseKeeperStart(ebpfMonUseKeeper *k)
{
    if (!k->conf.file[0])
        return 0;
    ebpfMonUseNotesSetWanted(k->notes, 1);
    return ebpfMonSharedWorkerSet(&k->worker, ebpfMonWorkerStart("ebpfMonUsage", epicsThreadPriorityLow, runKeeper, k));
}

int ebpfMonUseKeeperStop(ebpfMonUseKeeper *k)
{
    return k ? ebpfMonSharedWorkerStop(&k->worker, STOP_SECONDS) : 0;
}

int ebpfMonUseKeeperFlush(ebpfMonUseKeeper *k, double seconds)
{
    int status = -1;

    if (!k->conf.file[0])
        return -1;
    epicsMutexMustLock(k->asking);
    epicsEventTryWait(k->flushed); /* clears the event of an earlier flush that ended after its caller gave up */
    epicsAtomicSetIntT(&k->isAsked, 1);
    ebpfMonSharedWorkerWake(&k->worker);
    if (epicsEventWaitWithTimeout(k->flushed, seconds) == epicsEventOK)
        status = epicsAtomicGetIntT(&k->isDone) ? 0 : -1;
    epicsMutexUnlock(k->asking);
    return status;
}
