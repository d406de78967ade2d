/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands of the logs, and the queue of puts to the log thread. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsAtomic.h>
#include <epicsSignal.h>
#include <epicsThread.h>
#include <errlog.h>

#include "common/clock.h"
#include "export/log/logThread.h"
#include "export/log/putLogs.h"
#include "export/shared/putPack.h"

#define CLOSE_SECONDS 0.5 /* s; to close without waiting for what is left */

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
        logs->worker = ebpfMonWorkerStart("ebpfMonExport", epicsThreadPriorityLow, ebpfMonLogThreadRun, logs);
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

int ebpfMonPutLogsConfigure(ebpfMonPutLogs *logs, const ebpfMonPutLogConf *conf)
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

int ebpfMonPutLogsSetMetadata(ebpfMonPutLogs *logs, const char *key, const char *value)
{
    int status;

    epicsMutexMustLock(logs->lock);
    status = ebpfMonFormatLabelsSet(&logs->labels, key, value);
    logs->generation += !status;
    epicsMutexUnlock(logs->lock);
    return status;
}

int ebpfMonPutLogsRotate(ebpfMonPutLogs *logs)
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
        printf("    %s: %s, mode %s: %" PRIu64 " lines written, %" PRIu64 " lost%s%s\n", conf[i].target,
               formats[conf[i].format], ebpfMonLogModeName(conf[i].mode), c->lines, c->lost,
               c->trouble ? "; " : "", c->trouble ? c->why : "");
        if (level > 0)
            printf("      %" PRIu64 " puts joined, %" PRIu64 " summaries, %" PRIu64 " unchanged ones skipped; rotated "
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
