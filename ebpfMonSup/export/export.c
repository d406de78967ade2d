/* SPDX-License-Identifier: BSD-3-Clause */
/* The logs as they are asked for, and the way of a put to the writer. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <epicsAtomic.h>
#include <epicsSignal.h>
#include <epicsThread.h>
#include <errlog.h>
#include <osiSock.h>

#include "export/export.h"
#include "export/otlp/otlp.h"
#include "export/putPack.h"
#include "export/log/logThread.h"

#define META_TOTAL 256  /* bytes: caPutLog's lines are to stay short */
#define SERVER_PORT 7011
#define COMMAND_JSON "ebpfMonJsonLog"
#define COMMAND_CAPUT "ebpfMonCaPutLog"

static ebpfMonLogThreadShare *const share = &ebpfMonLogThread;
static int active; /* puts are taken: atomic */

void ebpfMonExportPut(const ebpfMonPut *put)
{
    uint8_t packed[EBPFMON_PACK_MAX];

    if (epicsAtomicGetIntT(&active))
        ebpfMonRecordQueueAdd(share->queue, packed, ebpfMonPutPack(put, packed));
    ebpfMonOtlpPut(put);
}

static long configure(const char *command, const ebpfMonPutLogConf *conf)
{
    int found = -1, room = -1, logs = 0;

    epicsMutexMustLock(share->lock);
    for (int i = EBPFMON_PUT_LOGS - 1; i >= 0; i--) {
        if (!share->wanted[i].kind)
            room = i;
        else if (ebpfMonPutLogIsSame(&share->wanted[i], conf))
            found = i;
        else if (share->wanted[i].kind == conf->kind && !strcmp(share->wanted[i].target, conf->target))
            found = EBPFMON_PUT_LOGS + i;
    }
    if (conf->mode == ebpfMonLogOff) {
        if (found >= 0 && found < EBPFMON_PUT_LOGS)
            memset(&share->wanted[found], 0, sizeof(share->wanted[found]));
    } else {
        if (found >= EBPFMON_PUT_LOGS || (found < 0 && room < 0)) {
            epicsMutexUnlock(share->lock);
            if (found >= EBPFMON_PUT_LOGS)
                errlogSevPrintf(errlogMajor, "%s: another log writes to %s in another format: switch that off first "
                                "(mode off), or take another target\n", command, conf->target);
            else
                errlogSevPrintf(errlogMajor, "%s: there are %d logs already: switch one off (mode off)\n", command,
                                EBPFMON_PUT_LOGS);
            return -1;
        }
        share->wanted[found >= 0 ? found : room] = *conf;
        if (!share->ended) {
            if (!share->queue && !(share->queue = ebpfMonRecordQueueNew(EBPFMON_QUEUE_SIZE))) {
                memset(share->wanted, 0, sizeof(share->wanted));
                epicsMutexUnlock(share->lock);
                errlogSevPrintf(errlogMajor, "%s: out of memory, nothing is logged\n", command);
                return -1;
            }
            ebpfMonRecordQueueClear(share->queue);
            epicsSignalInstallSigPipeIgnore(); /* a log may be a pipe */
            share->ended = epicsEventMustCreate(epicsEventEmpty);
            epicsThreadMustCreate("ebpfMonExport", epicsThreadPriorityLow,
                                  epicsThreadGetStackSize(epicsThreadStackBig), ebpfMonLogThreadRun, NULL);
        }
    }
    for (int i = 0; i < EBPFMON_PUT_LOGS; i++)
        logs += share->wanted[i].kind != ebpfMonPutLogNone;
    epicsAtomicSetIntT(&active, logs > 0);
    share->generation++;
    if (share->ended)
        ebpfMonRecordQueueWake(share->queue);
    epicsMutexUnlock(share->lock);
    return 0;
}

static long json(const char *file, double maxMB, double hours, int keep, ebpfMonLogMode mode)
{
    ebpfMonPutLogConf c = {.kind = ebpfMonPutLogFile, .format = ebpfMonFormatJson, .mode = mode};
    struct stat st;

    if (strlen(file) >= sizeof(c.target) - 8) {
        errlogSevPrintf(errlogMajor, COMMAND_JSON ": the name of the file is longer than %d characters\n",
                        (int)sizeof(c.target) - 9);
        return -1;
    }
    if (!(maxMB >= 0) || maxMB > 1e6 || !(hours >= 0) || hours > 1e6 || keep < 0 || keep > 1000) {
        errlogSevPrintf(errlogMajor, COMMAND_JSON ": maxMB and hours from 0 (never) to 1000000, keep from 0 to 1000\n");
        return -1;
    }
    if (stat(file, &st) == 0 && S_ISDIR(st.st_mode)) {
        errlogSevPrintf(errlogMajor, COMMAND_JSON ": %s is a folder: give the name of a file\n", file);
        return -1;
    }
    strcpy(c.target, file);
    c.limits.maxBytes = (uint64_t)(maxMB * 1e6);
    c.limits.maxAge = hours * 3600;
    c.limits.keep = (unsigned)keep;
    return configure(COMMAND_JSON, &c);
}

static long caPutLog(const char *target, int asJson, ebpfMonLogMode mode, const char *prefix)
{
    ebpfMonPutLogConf c = {
        .kind = strchr(target, '/') ? ebpfMonPutLogFile : strcmp(target, "PV") == 0 ? ebpfMonPutLogPv : ebpfMonPutLogServer,
        .format = asJson ? ebpfMonFormatCaPutJson : ebpfMonFormatCaPutText, .mode = mode,
        .limits = {.maxBytes = 100000000, .keep = 10},
    };
    struct stat st;

    if (strlen(target) >= sizeof(c.target) - 8 || strlen(prefix) >= sizeof(c.prefix)) {
        errlogSevPrintf(errlogMajor, COMMAND_CAPUT ": target or prefix is too long (%d and %d characters)\n",
                        (int)sizeof(c.target) - 9, (int)sizeof(c.prefix) - 1);
        return -1;
    }
    if (c.kind == ebpfMonPutLogFile && stat(target, &st) == 0 && S_ISDIR(st.st_mode)) {
        errlogSevPrintf(errlogMajor, COMMAND_CAPUT ": %s is a folder: give the name of a file\n", target);
        return -1;
    }
    /* here, not in the writer: asking for a name's address may take long */
    if (c.kind == ebpfMonPutLogServer && mode != ebpfMonLogOff && aToIPAddr(target, SERVER_PORT, &c.addr)) {
        errlogSevPrintf(errlogMajor, COMMAND_CAPUT ": no address is known for \"%s\": give HOST, HOST:PORT, a file "
                        "with a \"/\" in its name, or PV; one a command\n", target);
        return -1;
    }
    strcpy(c.target, target);
    strcpy(c.prefix, prefix);
    return configure(COMMAND_CAPUT, &c);
}

static long metadata(const char *key, const char *value)
{
    static const char *const own[] = {"date", "time", "host", "user", "pv", "new", "new-size", "old", "old-size", "min",
                                      "max", "burst", "writers", "others", "result"};
    size_t total = strlen(key) + strlen(value);
    ebpfMonFormatMore *meta = &share->meta;
    unsigned i, at = EBPFMON_META_MAX;

    for (i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        if (strcmp(key, own[i]) == 0) {
            errlogSevPrintf(errlogMajor, "ebpfMonLogMetadata: \"%s\" is a key of caPutLog's own: take another\n", key);
            return -1;
        }
    }
    epicsMutexMustLock(share->lock);
    for (i = 0; i < meta->metas; i++) {
        if (strcmp(meta->meta[i].key, key) == 0)
            at = i;
        else
            total += strlen(meta->meta[i].key) + strlen(meta->meta[i].value);
    }
    if (!value[0]) {
        if (at < meta->metas) {
            memmove(&meta->meta[at], &meta->meta[at + 1], (meta->metas - at - 1) * sizeof(meta->meta[0]));
            meta->metas--;
        }
    } else if (strlen(key) >= sizeof(meta->meta[0].key) || strlen(value) >= sizeof(meta->meta[0].value) ||
               total > META_TOTAL || (at == EBPFMON_META_MAX && meta->metas == EBPFMON_META_MAX)) {
        epicsMutexUnlock(share->lock);
        errlogSevPrintf(errlogMajor, "ebpfMonLogMetadata: at most %d keys of %d characters, values of %d, together "
                        "%d\n", EBPFMON_META_MAX, (int)sizeof(meta->meta[0].key) - 1,
                        (int)sizeof(meta->meta[0].value) - 1, META_TOTAL);
        return -1;
    } else {
        if (at == EBPFMON_META_MAX)
            at = meta->metas++;
        strcpy(meta->meta[at].key, key);
        strcpy(meta->meta[at].value, value);
    }
    share->generation++;
    epicsMutexUnlock(share->lock);
    return 0;
}

static long rotate(void)
{
    unsigned files = 0;

    epicsMutexMustLock(share->lock);
    for (unsigned i = 0; i < EBPFMON_PUT_LOGS; i++)
        files += share->wanted[i].kind == ebpfMonPutLogFile;
    share->rotations++;
    epicsMutexUnlock(share->lock);
    if (!files) {
        errlogSevPrintf(errlogMajor, "ebpfMon: no log is a file: nothing to rotate\n");
        return -1;
    }
    ebpfMonRecordQueueWake(share->queue);
    return 0;
}

static void resetLost(void)
{
    ebpfMonRecordQueueState q = {0};

    epicsMutexMustLock(share->lock);
    if (share->ended)
        ebpfMonRecordQueueGetState(share->queue, &q);
    share->lostBase = share->goneLost + q.dropped;
    for (unsigned i = 0; i < EBPFMON_PUT_LOGS; i++)
        share->lostBase += share->counts[i].lost;
    epicsMutexUnlock(share->lock);
    if (share->ended)
        ebpfMonRecordQueueWake(share->queue);
    ebpfMonOtlpResetLost();
}

static void report(int level)
{
    static const char *const formats[] = {"JSON", "caPutLog text", "caPutLog JSON"};
    ebpfMonPutLogConf conf[EBPFMON_PUT_LOGS];
    ebpfMonPutLogCounts count[EBPFMON_PUT_LOGS];
    ebpfMonRecordQueueState q = {0};
    unsigned logs = 0;

    epicsMutexMustLock(share->lock);
    memcpy(conf, share->wanted, sizeof(conf));
    memcpy(count, share->counts, sizeof(count));
    if (share->ended)
        ebpfMonRecordQueueGetState(share->queue, &q);
    epicsMutexUnlock(share->lock);
    for (unsigned i = 0; i < EBPFMON_PUT_LOGS; i++)
        logs += conf[i].kind != ebpfMonPutLogNone;
    if (!logs) {
        printf("  logs: none\n");
        ebpfMonOtlpReport(level);
        return;
    }
    printf("  logs: %u, %" PRIu64 " puts queued since the start, %" PRIu64 " lost with the queue full; queue at "
           "%.1f %%\n", logs, q.taken, q.dropped, 100.0 * (double)q.used / EBPFMON_QUEUE_SIZE);
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
    ebpfMonOtlpReport(level);
}

static const ebpfMonLogOps ops = {
    .json = json, .caPutLog = caPutLog, .metadata = metadata, .rotate = rotate, .resetLost = resetLost,
    .report = report, .otlp = ebpfMonOtlpCommand, .zipkin = ebpfMonZipkinCommand,
    .otlpReport = ebpfMonOtlpReport,
};

void ebpfMonExportRegister(void)
{
    if (!share->lock)
        share->lock = epicsMutexMustCreate();
    ebpfMonOtlpInit();
    ebpfMonLogOpsRegister(&ops);
}

void ebpfMonExportStart(void)
{
    ebpfMonOtlpStart();
}

static void stopLogs(double seconds)
{
    epicsEventId done;

    if (!share->lock)
        return;
    epicsAtomicSetIntT(&active, 0);
    epicsMutexMustLock(share->lock);
    done = share->ended;
    epicsMutexUnlock(share->lock);
    if (!done)
        return;
    epicsMutexMustLock(share->lock);
    share->stopBy = ebpfMonLogThreadNow() + seconds;
    share->stopping = 1;
    epicsMutexUnlock(share->lock);
    ebpfMonRecordQueueWake(share->queue);
    /* half a second to close what was not to be waited for */
    if (epicsEventWaitWithTimeout(done, seconds + 0.5) != epicsEventOK) {
        errlogSevPrintf(errlogMajor, "ebpfMon: a log does not take its lines (does a disk hang?): what is queued is "
                        "lost\n");
        return;
    }
    epicsMutexMustLock(share->lock);
    memset(share->wanted, 0, sizeof(share->wanted));
    share->ended = NULL;
    share->stopping = 0;
    epicsMutexUnlock(share->lock);
    epicsEventDestroy(done);
}

void ebpfMonExportStop(double seconds)
{
    ebpfMonOtlpStopBegin(seconds); /* beside the logs */
    stopLogs(seconds);
    ebpfMonOtlpStopWait();
}
