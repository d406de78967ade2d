/* SPDX-License-Identifier: BSD-3-Clause */
#include <epicsMutex.h>
#include <epicsString.h>
#include <epicsThread.h>
#include <epicsTime.h>
#include <errlog.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/clock.h"
#include "common/files.h"
#include "common/worker.h"
#include "inventory/inventoryFile.h"
#include "shared/iocInventory.h"
#include "export/shared/jsonGen.h"

/* --- writing a file --- */

#define LINE_BYTES (4u << 20) /* a record has 1 MiB of text at most (iocInventory.c), and JSON escapes some
                               * characters */

typedef struct {
    FILE *file;
    ebpfMonWorker *worker;
    const ebpfMonInventoryIoc *ioc;
    ebpfMonJson json;
    char *line;        /* LINE_BYTES */
    unsigned records;
    int   isBad;       /* a line could not be made or written */
} fileWriter;

static void endLine(fileWriter *w)
{
    size_t length = ebpfMonJsonEnd(&w->json);

    if (!length || fwrite(w->line, 1, length, w->file) != length || fputc('\n', w->file) == EOF)
        w->isBad = 1;
}

static void addVariable(void *arg, const char *name, const char *value)
{
    ebpfMonJsonAddText(&((fileWriter *)arg)->json, name, value);
}

/* IOC and record must come first in the line: inventoryDiff.c needs them there. */
static int addRecord(void *arg, const ebpfMonInventoryRecord *record)
{
    fileWriter *w = arg;

    if (ebpfMonJsonBegin(&w->json, w->line, LINE_BYTES)) {
        w->isBad = 1;
        return 1;
    }
    ebpfMonJsonAddText(&w->json, "ioc", w->ioc->name);
    ebpfMonJsonAddText(&w->json, "record", record->name);
    ebpfMonInventoryRecordAddJson(record, &w->json);
    endLine(w);
    w->records++;
    return w->isBad;
}

static void addIoc(fileWriter *w, const ebpfMonInventorySink *sink)
{
    epicsTimeStamp now;
    char text[40];

    if (ebpfMonJsonBegin(&w->json, w->line, LINE_BYTES)) {
        w->isBad = 1;
        return;
    }
    epicsTimeGetCurrent(&now);
    epicsTimeToStrftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S.%03f%z", &now);
    ebpfMonJsonAddText(&w->json, "ioc", w->ioc->name);
    ebpfMonJsonAddText(&w->json, "time", text);
    ebpfMonJsonAddInteger(&w->json, "pid", w->ioc->pid);
    ebpfMonJsonAddText(&w->json, "version", w->ioc->version);
    ebpfMonJsonAddInteger(&w->json, "records", w->ioc->cat->count);
    ebpfMonJsonOpenObject(&w->json, "variables");
    ebpfMonInventoryReadVariables(w->ioc, ebpfMonInventoryVariables, "", sink);
    ebpfMonJsonCloseObject(&w->json);
    endLine(w);
}

/* 0; 1: this IOC cannot be read, and the file has no line of it; -1: the file cannot be written. */
static int writeIoc(fileWriter *w, const ebpfMonInventoryIoc *ioc, char *why, size_t size)
{
    const ebpfMonInventorySink sink = { addVariable, addRecord, w };
    long begin = ftell(w->file);
    char reason[120];
    unsigned before = w->records;

    w->ioc = ioc;
    addIoc(w, &sink);
    if (!w->isBad && ebpfMonInventoryReadRecords(ioc, ebpfMonInventoryFields, w->worker, &sink, reason,
                                                  sizeof(reason)) && !w->isBad) {
        snprintf(why, size, "IOC %s is not in the file: %s", ioc->name, reason);
        w->records = before;
        return fflush(w->file) || ftruncate(fileno(w->file), begin) || fseek(w->file, begin, SEEK_SET) ? -1 : 1;
    }
    if (w->isBad)
        snprintf(why, size, "%s", errno ? strerror(errno) : "out of memory");
    return w->isBad ? -1 : 0;
}

static int writeAll(fileWriter *w, ebpfMonTargets *targets, const char *pattern, ebpfMonInventoryCount *count,
                    char *why, size_t size)
{
    unsigned iocs = 0;
    ebpfMonInventoryIoc *list = ebpfMonIocListTake(targets, NULL, &iocs);
    int status = 0;

    for (unsigned i = 0; i < iocs; i++) {
        if (status >= 0 && epicsStrGlobMatch(list[i].name, pattern)) {
            status = writeIoc(w, &list[i], why, size);
            count->iocs += status == 0;
            count->failed += status == 1;
        }
        ebpfMonCatalogueRelease(list[i].cat);
    }
    free(list);
    count->records = w->records;
    return status < 0 ? -1 : 0;
}

int ebpfMonInventoryFileWrite(ebpfMonTargets *targets, const char *path, const char *pattern, ebpfMonWorker *worker,
                              ebpfMonInventoryCount *count, char *why, size_t size)
{
    fileWriter w = { .line = malloc(LINE_BYTES), .worker = worker };
    char temporary[1024];
    int status = -1;

    memset(count, 0, sizeof(*count));
    why[0] = 0;
    errno = 0;
    if ((size_t)snprintf(temporary, sizeof(temporary), "%s.new", path) < sizeof(temporary) && w.line)
        w.file = ebpfMonNewFileMake(temporary);
    if (!w.file) {
        snprintf(why, size, "%s", errno ? strerror(errno) : "the path is too long, or there is no memory");
        free(w.line);
        return -1;
    }
    status = writeAll(&w, targets, pattern, count, why, size);
    if (fclose(w.file) && status == 0) {
        snprintf(why, size, "%s", strerror(errno));
        status = -1;
    }
    if (status == 0 && rename(temporary, path)) {
        snprintf(why, size, "%s", strerror(errno));
        status = -1;
    }
    if (status)
        unlink(temporary);
    ebpfMonJsonFree(&w.json);
    free(w.line);
    return status;
}

/* --- keeping a file --- */

#define IDLE_SECONDS   3600.0 /* the thread is woken when there is something to do */
#define SETTLE_SECONDS 2.0    /* wait so long after a change: IOCs that start together are written together */

struct ebpfMonInventoryKeeper {
    ebpfMonTargets *targets;
    ebpfMonSharedWorker worker; /* the thread */
    epicsMutexId   lock;       /* guards what follows */
    ebpfMonInventoryConf wanted; /* the newest configuration */
    int            isNew;      /* … and the thread has not taken it */
    char           message[640]; /* the result of the last writing; empty: there was none */
    /* only the keeper's thread uses what follows; times in s, monotonic */
    ebpfMonInventoryConf conf; /* the configuration in use */
    ebpfMonInventoryIoc *seen; /* the IOCs of the file; their catalogues are held */
    unsigned       seenCount;
    int            isPlaced;   /* FILE was written for them: the file before it is FILE.1 */
    int            isCurrent;  /* … and has all of them */
    double         changedAt;  /* when the IOCs were first seen to differ from the file; 0: they do not */
    double         notBefore;  /* do not write before this time */
    int            hasTrouble; /* the error log has said that the file cannot be written */
};

static void releaseIocs(ebpfMonInventoryIoc *list, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        ebpfMonCatalogueRelease(list[i].cat);
    free(list);
}

/* Nonzero: these are the same IOCs with the same databases as at the last writing. An IOC with a new database has
 * another catalogue. "seen" holds the old catalogues, so a new one cannot have the same address. */
static int hasSameIocs(const ebpfMonInventoryKeeper *k, const ebpfMonInventoryIoc *list, unsigned count)
{
    if (count != k->seenCount)
        return 0;
    for (unsigned i = 0; i < count; i++) {
        unsigned j = 0;

        while (j < k->seenCount && (k->seen[j].iocId != list[i].iocId || k->seen[j].cat != list[i].cat))
            j++;
        if (j == k->seenCount)
            return 0;
    }
    return 1;
}

/* Renames FILE.1 to FILE.2 and so on, and links FILE as FILE.1; the oldest file is lost. FILE itself stays until the
 * new one replaces it. On a file system without links, FILE is renamed. 0, or -1: errno says why. */
static int rotateFiles(const ebpfMonInventoryConf *conf)
{
    char from[300], to[300];

    for (unsigned n = conf->keep; n > 0; n--) {
        snprintf(to, sizeof(to), "%s.%u", conf->file, n);
        if (n > 1)
            snprintf(from, sizeof(from), "%s.%u", conf->file, n - 1);
        else
            snprintf(from, sizeof(from), "%s", conf->file);
        if ((n > 1 || link(from, to)) && rename(from, to) && errno != ENOENT)
            return -1;
    }
    return 0;
}

static void setMessage(ebpfMonInventoryKeeper *k, const char *text)
{
    epicsMutexMustLock(k->lock);
    snprintf(k->message, sizeof(k->message), "%s", text);
    epicsMutexUnlock(k->lock);
}

/* Writes to the error log when trouble begins, and when it ends. "why" empty: there is none. */
static void setTrouble(ebpfMonInventoryKeeper *k, const char *why)
{
    if (why[0] && !k->hasTrouble)
        errlogSevPrintf(errlogMajor, "ebpfMon: the inventory cannot be kept in %s (tried again every %u s): %s\n",
                        k->conf.file, k->conf.seconds, why);
    else if (!why[0] && k->hasTrouble)
        errlogSevPrintf(errlogInfo, "ebpfMon: the inventory is kept in %s again\n", k->conf.file);
    k->hasTrouble = why[0] != 0;
}

/* The new file has another name until it is complete, so nobody reads half a file. If an IOC could not be read, FILE is
 * written again for the same IOCs; then it replaces the last one, for otherwise the older files would soon be gone. */
static void writeFile(ebpfMonInventoryKeeper *k, ebpfMonWorker *worker)
{
    ebpfMonInventoryCount count;
    epicsTimeStamp now;
    char made[300], why[240], when[40], text[640];
    int status;

    snprintf(made, sizeof(made), "%s.next", k->conf.file);
    status = ebpfMonInventoryFileWrite(k->targets, made, "*", worker, &count, why, sizeof(why));
    if (status == 0 && ((!k->isPlaced && rotateFiles(&k->conf)) || rename(made, k->conf.file))) {
        snprintf(why, sizeof(why), "%s", strerror(errno));
        status = -1;
    }
    epicsTimeGetCurrent(&now);
    epicsTimeToStrftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &now);
    if (status)
        snprintf(text, sizeof(text), "%s could not be written at %s: %s", k->conf.file, when, why);
    else if (count.failed)
        snprintf(text, sizeof(text), "%s: %u IOCs, %u records, at %s; %u IOCs could not be read. %s", k->conf.file,
                 count.iocs, count.records, when, count.failed, why);
    else
        snprintf(text, sizeof(text), "%s: %u IOCs, %u records, at %s", k->conf.file, count.iocs, count.records, when);
    setMessage(k, text);
    setTrouble(k, status ? why : "");
    k->isPlaced |= !status;
    k->isCurrent = !status && !count.failed; /* else the thread tries again */
}

static void applyConf(ebpfMonInventoryKeeper *k)
{
    epicsMutexMustLock(k->lock);
    if (k->isNew) {
        k->conf = k->wanted;
        k->isNew = 0;
        k->isPlaced = k->isCurrent = 0;
        k->changedAt = k->notBefore = 0;
        k->hasTrouble = 0;
        k->message[0] = 0;
    }
    epicsMutexUnlock(k->lock);
}

/* Writes the file if it is due. Returns after how many seconds the next call is needed. */
static double writeIfDue(ebpfMonInventoryKeeper *k, ebpfMonWorker *worker)
{
    double now = ebpfMonClockSeconds(), due;
    ebpfMonInventoryIoc *list;
    unsigned count = 0;
    int isSame;

    if (!k->conf.file[0])
        return IDLE_SECONDS;
    list = ebpfMonIocListTake(k->targets, NULL, &count);
    isSame = hasSameIocs(k, list, count);
    if (isSame && k->isCurrent) {
        releaseIocs(list, count);
        k->changedAt = 0;
        return IDLE_SECONDS;
    }
    if (k->changedAt <= 0)
        k->changedAt = now;
    due = k->changedAt + SETTLE_SECONDS;
    if (due < k->notBefore)
        due = k->notBefore;
    if (now < due) {
        releaseIocs(list, count);
        return due - now;
    }
    releaseIocs(k->seen, k->seenCount);
    k->seen = list; /* the IOCs before the writing: a change during it is a new change */
    k->seenCount = count;
    k->isPlaced &= isSame;
    k->changedAt = 0;
    k->notBefore = now + k->conf.seconds;
    writeFile(k, worker);
    return 0;
}

static void runKeeper(ebpfMonWorker *worker, void *arg)
{
    ebpfMonInventoryKeeper *k = arg;

    ebpfMonWorkerWaitsForOthers(worker); /* for a disk */
    while (!ebpfMonWorkerIsStopping(worker)) {
        double wait;

        applyConf(k);
        wait = writeIfDue(k, worker);
        if (wait > 0)
            ebpfMonWorkerWait(worker, wait);
    }
    releaseIocs(k->seen, k->seenCount);
    k->seen = NULL;
    k->seenCount = 0;
}

ebpfMonInventoryKeeper *ebpfMonInventoryKeeperNew(void)
{
    ebpfMonInventoryKeeper *k = calloc(1, sizeof(*k));

    if (!k)
        return NULL;
    k->lock = epicsMutexMustCreate();
    ebpfMonSharedWorkerInit(&k->worker);
    return k;
}

int ebpfMonInventoryKeeperBegin(ebpfMonInventoryKeeper *k, ebpfMonTargets *targets)
{
    k->targets = targets;
    return ebpfMonSharedWorkerSet(&k->worker,
                                  ebpfMonWorkerStart("ebpfMonInvent", epicsThreadPriorityLow, runKeeper, k));
}

void ebpfMonInventoryKeeperConfigure(ebpfMonInventoryKeeper *k, const ebpfMonInventoryConf *conf)
{
    epicsMutexMustLock(k->lock);
    k->wanted = *conf;
    k->isNew = 1;
    epicsMutexUnlock(k->lock);
    ebpfMonSharedWorkerWake(&k->worker);
}

void ebpfMonInventoryKeeperWake(ebpfMonInventoryKeeper *k)
{
    ebpfMonSharedWorkerWake(&k->worker);
}

void ebpfMonInventoryKeeperReport(ebpfMonInventoryKeeper *k, ebpfMonTextReport *report)
{
    epicsMutexMustLock(k->lock);
    if (!k->wanted.file[0])
        ebpfMonTextReportAdd(report, "No inventory is kept.\n");
    else
        ebpfMonTextReportAdd(report, "%s\n", k->message[0] ? k->message : "The inventory was not written yet.");
    epicsMutexUnlock(k->lock);
}

int ebpfMonInventoryKeeperStop(ebpfMonInventoryKeeper *k, double seconds)
{
    return ebpfMonSharedWorkerStop(&k->worker, seconds);
}
