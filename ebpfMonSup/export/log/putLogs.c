/* SPDX-License-Identifier: BSD-3-Clause */
#include <epicsAtomic.h>
#include <epicsSignal.h>
#include <epicsStdio.h>
#include <epicsThread.h>
#include <errlog.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/clock.h"
#include "common/text.h"
#include "export/log/putLogs.h"
#include "model/published.h"

/* --- the thread --- */

#define EBPFMON_PUT_LOG_QUEUE (16u << 20) /* bytes of the queue */

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
    if (bad && lost > published->log.lost)
        ebpfMonTextCopy(published->log.lostCause, sizeof(published->log.lostCause), why);
    else if (!lost)
        published->log.lostCause[0] = 0;
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

/* The function of the thread. "arg": the ebpfMonPutLogs. */
static void runLogThread(ebpfMonWorker *worker, void *arg)
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

/* --- commands --- */

#define CLOSE_SECONDS 0.5 /* s; to close without waiting for what is left */

void ebpfMonPutLogsAddPut(ebpfMonPutLogs *logs, const ebpfMonPut *put)
{
    uint8_t packed[EBPFMON_PUT_PACK_MAX];

    if (epicsAtomicGetIntT(&logs->active))
        ebpfMonRecordQueueAdd(logs->queue, ebpfMonRecordQueueShareOf(put->ioc), packed, ebpfMonPutPack(put, packed));
}

/* Finds the place in wanted[] for this log, under the lock. -1: there is none, and a message was logged. */
static int findPlace(const ebpfMonPutLogs *logs, const ebpfMonPutLogConf *conf)
{
    const char *command = ebpfMonPutLogConfGetCommand(conf);
    int room = -1;

    for (int i = EBPFMON_PUT_LOGS - 1; i >= 0; i--) {
        const ebpfMonPutLogConf *other = &logs->wanted[i];

        if (!other->kind) {
            room = i;
        } else if (ebpfMonPutLogConfIsSame(other, conf)) {
            return i;
        } else if (other->kind == conf->kind && strcmp(other->target, conf->target) == 0) {
            errlogSevPrintf(errlogMajor, "%s: another log writes to %s in another format: switch that off first "
                            "(mode off), or take another target\n", command, conf->target);
            return -1;
        }
    }
    if (room < 0)
        errlogSevPrintf(errlogMajor, "%s: there are %d logs already: switch one off (mode off)\n", command,
                        EBPFMON_PUT_LOGS);
    return room;
}

/* Makes the queue and starts the thread, under the lock. 0; or -1, and a message was logged. */
static int startThread(ebpfMonPutLogs *logs, const char *command)
{
    if (logs->worker)
        return 0;
    if (!logs->queue)
        logs->queue = ebpfMonRecordQueueNew(EBPFMON_PUT_LOG_QUEUE);
    if (logs->queue) {
        ebpfMonRecordQueueClear(logs->queue);
        epicsSignalInstallSigPipeIgnore(); /* because a log may be a pipe */
        logs->worker = ebpfMonWorkerStart("ebpfMonExport", epicsThreadPriorityLow, runLogThread, logs);
    }
    if (logs->worker)
        return 0;
    errlogSevPrintf(errlogMajor, "%s: out of memory, nothing is logged. Free some memory, then try again\n", command);
    return -1;
}

/* Removes the log of this configuration, under the lock. */
static void removeLog(ebpfMonPutLogs *logs, const ebpfMonPutLogConf *conf)
{
    for (unsigned i = 0; i < EBPFMON_PUT_LOGS; i++)
        if (logs->wanted[i].kind && ebpfMonPutLogConfIsSame(&logs->wanted[i], conf))
            memset(&logs->wanted[i], 0, sizeof(logs->wanted[i]));
}

static unsigned countLogs(const ebpfMonPutLogConf *conf)
{
    unsigned count = 0;

    for (unsigned i = 0; i < EBPFMON_PUT_LOGS; i++)
        count += conf[i].kind != ebpfMonPutLogNone;
    return count;
}

/* Begins a log, changes it, or ends it (mode off). 0; or -1, and a message was logged. */
static long configureLog(ebpfMonPutLogs *logs, const ebpfMonPutLogConf *conf)
{
    int place, status = 0;

    epicsMutexMustLock(logs->lock);
    if (conf->mode == ebpfMonLogOff) {
        removeLog(logs, conf);
    } else {
        place = findPlace(logs, conf);
        status = place < 0 ? -1 : startThread(logs, ebpfMonPutLogConfGetCommand(conf));
        if (!status)
            logs->wanted[place] = *conf;
    }
    if (!status) {
        epicsAtomicSetIntT(&logs->active, countLogs(logs->wanted) > 0);
        logs->generation++;
        if (logs->worker)
            ebpfMonRecordQueueWake(logs->queue);
    }
    epicsMutexUnlock(logs->lock);
    return status;
}

long ebpfMonPutLogsSetMetadata(ebpfMonPutLogs *logs, const char *key, const char *value)
{
    int status;

    epicsMutexMustLock(logs->lock);
    status = ebpfMonFormatLabelsSet(&logs->labels, key, value);
    logs->generation += !status;
    epicsMutexUnlock(logs->lock);
    return status;
}

long ebpfMonPutLogsRotate(ebpfMonPutLogs *logs)
{
    unsigned files = 0;

    epicsMutexMustLock(logs->lock);
    for (unsigned i = 0; i < EBPFMON_PUT_LOGS; i++)
        files += logs->wanted[i].kind == ebpfMonPutLogFile;
    logs->rotations += files > 0;
    if (files)
        ebpfMonRecordQueueWake(logs->queue);
    epicsMutexUnlock(logs->lock);
    if (files)
        return 0;
    errlogSevPrintf(errlogMajor, "ebpfMon: no log is a file: nothing to rotate\n");
    return -1;
}

void ebpfMonPutLogsResetLost(ebpfMonPutLogs *logs)
{
    ebpfMonRecordQueueState q = {0};

    epicsMutexMustLock(logs->lock);
    if (logs->queue)
        ebpfMonRecordQueueGetState(logs->queue, &q);
    logs->lostBase = logs->goneLost + q.dropped;
    for (unsigned i = 0; i < EBPFMON_PUT_LOGS; i++)
        logs->lostBase += logs->counts[i].lost;
    if (logs->worker)
        ebpfMonRecordQueueWake(logs->queue);
    epicsMutexUnlock(logs->lock);
}

void ebpfMonPutLogsReport(ebpfMonPutLogs *logs, int level)
{
    static const char *const formats[] = {"JSON", "caPutLog text", "caPutLog JSON"};
    ebpfMonPutLogConf conf[EBPFMON_PUT_LOGS];
    ebpfMonPutLogCounts count[EBPFMON_PUT_LOGS];
    ebpfMonRecordQueueState q = {0};
    unsigned n;

    epicsMutexMustLock(logs->lock);
    memcpy(conf, logs->wanted, sizeof(conf));
    memcpy(count, logs->counts, sizeof(count));
    if (logs->worker)
        ebpfMonRecordQueueGetState(logs->queue, &q);
    epicsMutexUnlock(logs->lock);
    n = countLogs(conf);
    if (!n) {
        printf("  logs: none\n");
        return;
    }
    printf("  logs: %u, %" PRIu64 " puts queued since the start, %" PRIu64 " lost with the queue full; queue at "
           "%.1f %%\n", n, q.accepted, q.dropped, 100.0 * (double)q.used / EBPFMON_PUT_LOG_QUEUE);
    for (unsigned i = 0; i < EBPFMON_PUT_LOGS; i++) {
        const ebpfMonPutLogCounts *c = &count[i];

        if (!conf[i].kind)
            continue;
        printf("    %s: %s, mode %s%s: %" PRIu64 " lines written, %" PRIu64 " lost%s%s\n", conf[i].target,
               formats[conf[i].format], ebpfMonLogModeName(conf[i].mode), conf[i].people ? " people" : "", c->lines,
               c->lost, c->trouble ? "; " : "", c->trouble ? c->why : "");
        if (level > 0)
            printf("      %" PRIu64 " puts joined, %" PRIu64 " summaries, %" PRIu64 " skipped by the mode; rotated "
                   "at %.1f MB, %.1f hours, %u kept\n", c->joined, c->summaries, c->skipped,
                   (double)conf[i].limits.maxBytes / 1e6, conf[i].limits.maxAge / 3600, conf[i].limits.keep);
    }
}

void ebpfMonPutLogsStop(ebpfMonPutLogs *logs, double seconds)
{
    ebpfMonWorker *worker;

    epicsAtomicSetIntT(&logs->active, 0);
    epicsMutexMustLock(logs->lock);
    worker = logs->worker;
    logs->stopBy = ebpfMonClockSeconds() + seconds;
    logs->stopping = worker != NULL;
    if (worker)
        ebpfMonRecordQueueWake(logs->queue);
    epicsMutexUnlock(logs->lock);
    if (!worker)
        return;
    /* without the lock, which the thread takes */
    if (ebpfMonWorkerStop(&worker, seconds + CLOSE_SECONDS)) {
        errlogSevPrintf(errlogMajor, "ebpfMon: the logs did not end in time (does a disk hang?): the queued lines are "
                        "lost\n");
        return;
    }
    epicsMutexMustLock(logs->lock);
    memset(logs->wanted, 0, sizeof(logs->wanted));
    logs->worker = NULL;
    logs->stopping = 0;
    epicsMutexUnlock(logs->lock);
}

long ebpfMonPutLogsAddJson(ebpfMonPutLogs *logs, const char *file, double maxMB, double hours, int keep,
                           ebpfMonLogMode mode)
{
    ebpfMonPutLogConf conf;

    return ebpfMonPutLogConfSetJson(&conf, file, maxMB, hours, keep, mode) ? -1 : configureLog(logs, &conf);
}

long ebpfMonPutLogsAddCaPutLog(ebpfMonPutLogs *logs, const char *target, int asJson, ebpfMonLogMode mode,
                               const char *prefix)
{
    ebpfMonPutLogConf conf;

    return ebpfMonPutLogConfSetCaPutLog(&conf, target, asJson, mode, prefix) ? -1 : configureLog(logs, &conf);
}

ebpfMonPutLogs *ebpfMonPutLogsNew(void)
{
    ebpfMonPutLogs *logs = calloc(1, sizeof(*logs));

    if (logs)
        logs->lock = epicsMutexMustCreate();
    return logs;
}

void ebpfMonPutLogsFree(ebpfMonPutLogs *logs)
{
    if (!logs || logs->worker)
        return;
    ebpfMonRecordQueueFree(logs->queue);
    epicsMutexDestroy(logs->lock);
    free(logs);
}
