/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <epicsThread.h>
#include <errlog.h>

#include "common/clock.h"
#include "common/text.h"
#include "export/log/logThread.h"
#include "export/shared/putPack.h"
#include "model/published.h"

#define TICK       0.02 /* s; while there is something to do */
#define IDLE       1.0  /* s */
#define BUSY_FOR   1.0  /* s; after a put the thread looks by itself for so long, so puts need not wake it */
#define PUBLISH_EVERY 1.0 /* s */
#define QUEUE_FULL_FOR 10.0 /* s; for so long the state tells that the queue was full */

static void endLog(ebpfMonPutLogs *logs, unsigned i, double now, int hasWaited)
{
    ebpfMonPutLog *log = &logs->writer.log[i];

    ebpfMonPutLogClose(log, now, hasWaited);
    epicsMutexMustLock(logs->lock);
    logs->goneLines += log->counts.lines;
    logs->goneLost += log->counts.lost;
    memset(&logs->counts[i], 0, sizeof(logs->counts[i]));
    epicsMutexUnlock(logs->lock);
}

/* Does what the commands want. */
static void applyCommands(ebpfMonPutLogs *logs, double now)
{
    ebpfMonLogWriter *w = &logs->writer;
    unsigned generation, rotations;

    epicsMutexMustLock(logs->lock);
    generation = logs->generation;
    rotations = logs->rotations;
    if (generation != w->generation) {
        memcpy(w->wanted, logs->wanted, sizeof(w->wanted));
        w->labels = logs->labels;
    }
    epicsMutexUnlock(logs->lock);
    for (unsigned i = 0; i < EBPFMON_PUT_LOGS && generation != w->generation; i++) {
        const ebpfMonPutLogConf *wanted = &w->wanted[i], *is = &w->log[i].conf;

        if (is->kind && (!wanted->kind || !ebpfMonPutLogConfIsSame(is, wanted)))
            endLog(logs, i, now, 0);
        if (wanted->kind)
            ebpfMonPutLogConfigure(&w->log[i], wanted, &w->labels, now);
    }
    w->generation = generation;
    for (unsigned i = 0; i < EBPFMON_PUT_LOGS && rotations != w->rotations; i++)
        ebpfMonPutLogRotate(&w->log[i], now);
    w->rotations = rotations;
}

/* Gives the puts of the queue to the logs. Nonzero: there were some. */
static int readQueue(ebpfMonPutLogs *logs)
{
    ebpfMonLogWriter *w = &logs->writer;
    size_t size = ebpfMonRecordQueueRead(logs->queue, w->chunk, sizeof(w->chunk)), at = 0, len;
    double now = ebpfMonClockSeconds();

    /* only now, after the puts were read: a put that came after a command belongs to the log that the command began */
    applyCommands(logs, now);
    while (at < size) {
        memcpy(&len, w->chunk + at, sizeof(len));
        ebpfMonPutUnpack(w->chunk + at + sizeof(len), len, &w->put);
        at += sizeof(len) + len;
        for (unsigned i = 0; i < EBPFMON_PUT_LOGS; i++)
            if (w->log[i].conf.kind)
                ebpfMonPutLogAddPut(&w->log[i], &w->put, now);
    }
    return size > 0;
}

static void publishNewestLine(ebpfMonLogWriter *w)
{
    int changed = 0;
    ebpfMonPublished *published;

    for (unsigned i = 0; i < EBPFMON_PUT_LOGS; i++) {
        if (!w->log[i].changed)
            continue;
        w->log[i].changed = 0;
        published = ebpfMonPublishedLock();
        strcpy(published->log.caPutLogLine, w->log[i].last);
        ebpfMonPublishedUnlock();
        changed = 1;
    }
    if (changed)
        ebpfMonPublishedNotify(ebpfMonGroupPuts);
}

/* Counts the logs in trouble. "first": name and reason of the first one; *count: number of logs. */
static unsigned findTrouble(ebpfMonLogWriter *w, unsigned *count, char *first, size_t size)
{
    unsigned bad = 0;

    *count = 0;
    first[0] = 0;
    for (unsigned i = 0; i < EBPFMON_PUT_LOGS; i++) {
        if (!w->log[i].conf.kind)
            continue;
        ++*count;
        if (ebpfMonPutLogGetCounts(&w->log[i])->trouble && !bad++)
            snprintf(first, size, "%.100s: %s", w->log[i].conf.target, w->log[i].counts.why);
    }
    return bad;
}

/* Each log reports in a line how many puts are missing. */
static void addMissed(ebpfMonLogWriter *w, uint64_t puts)
{
    for (unsigned i = 0; i < EBPFMON_PUT_LOGS; i++)
        if (w->log[i].conf.kind)
            w->log[i].missed += puts;
}

static void noteDropped(ebpfMonLogWriter *w, uint64_t dropped, double now)
{
    if (dropped > w->droppedBefore) {
        addMissed(w, dropped - w->droppedBefore);
        if (!w->droppedBefore)
            errlogSevPrintf(errlogMajor, "ebpfMon: puts come faster than the logs are written, and some are lost; "
                            "LOG_LOST_CNT counts them. Log fewer puts (FILTER_*, mode changes or burst), or to a "
                            "faster disk\n");
        w->queueFullUntil = now + QUEUE_FULL_FOR;
    }
    w->droppedBefore = dropped;
}

/* Adds the counts of all logs since the start, and the losses since the last reset. */
static void countAll(ebpfMonPutLogs *logs, uint64_t dropped, uint64_t *lines, uint64_t *lost)
{
    ebpfMonLogWriter *w = &logs->writer;

    epicsMutexMustLock(logs->lock);
    *lines = logs->goneLines;
    *lost = logs->goneLost + dropped;
    for (unsigned i = 0; i < EBPFMON_PUT_LOGS; i++) {
        if (!w->log[i].conf.kind)
            continue;
        logs->counts[i] = w->log[i].counts;
        *lines += w->log[i].counts.lines;
        *lost += w->log[i].counts.lost;
    }
    *lost -= *lost > logs->lostBase ? logs->lostBase : *lost;
    epicsMutexUnlock(logs->lock);
}

/* Publishes state and counts: once a second, and when the state changes. */
static void publishState(ebpfMonPutLogs *logs, double now, int force)
{
    ebpfMonLogWriter *w = &logs->writer;
    ebpfMonRecordQueueState q;
    unsigned count, bad;
    uint64_t lines, lost;
    char why[512], first[360];
    ebpfMonPublished *published;

    bad = findTrouble(w, &count, first, sizeof(first));
    if (!force && now < w->publishAt && (bad > 0) == w->troubleBefore)
        return;
    w->publishAt = now + PUBLISH_EVERY;
    ebpfMonRecordQueueGetState(logs->queue, &q);
    noteDropped(w, q.dropped, now);
    countAll(logs, q.dropped, &lines, &lost);
    if (bad > 1) {
        snprintf(why, sizeof(why), "%s (and %u more: ebpfMonLogShow)", first, bad - 1);
    } else if (bad) {
        strcpy(why, first);
    } else if (now < w->queueFullUntil) {
        bad = 1;
        snprintf(why, sizeof(why), "queue full, %" PRIu64 " puts lost: log fewer (FILTER_*, mode changes or burst) or "
                 "to a faster disk", q.dropped);
    } else if (count) {
        snprintf(why, sizeof(why), "%u log%s", count, count == 1 ? "" : "s");
    } else {
        strcpy(why, EBPFMON_NO_LOG);
    }
    w->troubleBefore = bad > 0;
    published = ebpfMonPublishedLock();
    published->log.state = bad ? ebpfMonLogTrouble : count ? ebpfMonLogOk : ebpfMonLogNone;
    ebpfMonTextCopy(published->log.message, sizeof(published->log.message), why);
    published->log.written = lines;
    published->log.lost = lost;
    published->log.queue = 100.0 * (double)ebpfMonRecordQueueTakePeak(logs->queue) / EBPFMON_PUT_LOG_QUEUE;
    epicsTimeGetCurrent(&published->time[ebpfMonGroupLog]);
    ebpfMonPublishedUnlock();
    ebpfMonPublishedNotify(ebpfMonGroupLog);
}

/* Nonzero: lines wait for a server. */
static int tickAll(ebpfMonLogWriter *w, double now)
{
    int pending = 0;

    for (unsigned i = 0; i < EBPFMON_PUT_LOGS; i++) {
        if (!w->log[i].conf.kind)
            continue;
        ebpfMonPutLogTick(&w->log[i], now);
        pending |= ebpfMonPutLogIsPending(&w->log[i]);
    }
    return pending;
}

/* Takes the puts that are left in the queue out of it, and counts them as lost. */
static void countLeft(ebpfMonPutLogs *logs)
{
    ebpfMonLogWriter *w = &logs->writer;
    ebpfMonRecordQueueState q;
    uint64_t left = 0;
    size_t size, len;

    while ((size = ebpfMonRecordQueueRead(logs->queue, w->chunk, sizeof(w->chunk))) > 0)
        for (size_t at = 0; at < size; at += sizeof(len) + len, left++)
            memcpy(&len, w->chunk + at, sizeof(len));
    ebpfMonRecordQueueGetState(logs->queue, &q);
    noteDropped(w, q.dropped, ebpfMonClockSeconds());
    if (!left)
        return;
    addMissed(w, left);
    epicsMutexMustLock(logs->lock);
    logs->goneLost += left;
    epicsMutexUnlock(logs->lock);
    errlogSevPrintf(errlogMajor, "ebpfMon: the monitor ends before the logs are written: %" PRIu64 " puts are not in "
                    "them\n", left);
}

/* Ends all logs: writes what waits in them, not later than "by", and closes. */
static void finishLogs(ebpfMonPutLogs *logs, double by)
{
    ebpfMonLogWriter *w = &logs->writer;

    countLeft(logs);
    for (unsigned i = 0; i < EBPFMON_PUT_LOGS; i++)
        if (w->log[i].conf.kind)
            ebpfMonPutLogEndBursts(&w->log[i], ebpfMonClockSeconds());
    while (ebpfMonClockSeconds() < by && tickAll(w, ebpfMonClockSeconds()))
        epicsThreadSleep(TICK);
    for (unsigned i = 0; i < EBPFMON_PUT_LOGS; i++) {
        if (!w->log[i].conf.kind)
            continue;
        endLog(logs, i, ebpfMonClockSeconds(), 1);
        if (w->log[i].counts.lost)
            errlogSevPrintf(errlogMajor, "ebpfMon: log %s: %" PRIu64 " lines were lost in all\n",
                            w->log[i].conf.target, w->log[i].counts.lost);
    }
    publishNewestLine(w);
    publishState(logs, ebpfMonClockSeconds(), 1);
}

void ebpfMonLogThreadRun(ebpfMonWorker *worker, void *arg)
{
    ebpfMonPutLogs *logs = arg;
    double busyUntil = 0, by, now;
    int more, last;

    ebpfMonWorkerWaitsForOthers(worker); /* it may wait for the disk of a log */
    for (;;) { /* ends by "stopping", which has a time limit */
        ebpfMonWorkerGiveSign(worker);
        epicsMutexMustLock(logs->lock);
        last = logs->stopping; /* read before we see that the queue is empty */
        by = logs->stopBy;
        epicsMutexUnlock(logs->lock);
        more = readQueue(logs);
        now = ebpfMonClockSeconds();
        if (more)
            busyUntil = now + BUSY_FOR;
        if (tickAll(&logs->writer, now))
            busyUntil = now + TICK;
        publishNewestLine(&logs->writer);
        publishState(logs, now, 0);
        if (more && !(last && now >= by))
            continue;
        if (last)
            break;
        ebpfMonRecordQueueWait(logs->queue, now < busyUntil ? TICK : IDLE, now >= busyUntil);
    }
    finishLogs(logs, by);
}
