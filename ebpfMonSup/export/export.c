/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The logs: what is asked for (any thread, under the lock), and the writer thread, which alone has the sinks. A hanging
 * disk holds the writer and nobody else: commands leave what they want in wanted[], and read counts[].
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <epicsAtomic.h>
#include <epicsEvent.h>
#include <epicsMutex.h>
#include <epicsSignal.h>
#include <epicsThread.h>
#include <errlog.h>
#include <osiSock.h>

#include "export/export.h"
#include "export/pack.h"
#include "export/queue.h"
#include "export/sink.h"
#include "model/board.h"
#include "model/logControl.h"

#define SINKS      8
#define CHUNK      (256u << 10) /* bytes of puts between two looks at the sinks */
#define TICK       0.02 /* s, while there is something to do */
#define IDLE       1.0  /* s */
#define BUSY_FOR   1.0  /* s after the last put the writer looks by itself, and nobody pays for waking it */
#define TELL_EVERY 1.0  /* s, the PVs */
#define QUEUE_TOLD 10.0 /* s that a full queue is told of */
#define META_TOTAL 256  /* bytes: caPutLog's lines are to stay short */
#define SERVER_PORT 7011
#define COMMAND_JSON "ebpfMonJsonLog"
#define COMMAND_CAPUT "ebpfMonCaPutLog"

static epicsMutexId lock; /* of what follows, up to the next blank line */
static ebpfMonSinkConf wanted[SINKS];
static ebpfMonSinkCounts counts[SINKS];
static ebpfMonFormatMore meta;
static unsigned generation, rotations;
static epicsEventId ended; /* NULL: no thread */
static uint64_t goneLines, goneLost; /* of logs that were switched off */
static uint64_t lostBase;

static int active; /* puts are taken: atomic */
static int stopping; /* atomic */
static double stopBy;

/* The writer's. */
static ebpfMonSink sinks[SINKS];
static unsigned applied, rotated;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void ebpfMonExportPut(const ebpfMonPut *put)
{
    if (epicsAtomicGetIntT(&active))
        ebpfMonQueuePut(put);
}

/* --- the writer ------------------------------------------------------------------------------------------- */

static void apply(double t)
{
    static ebpfMonSinkConf want[SINKS];
    static ebpfMonFormatMore more;
    unsigned gen, rot;

    epicsMutexMustLock(lock);
    gen = generation;
    rot = rotations;
    if (gen != applied) {
        memcpy(want, wanted, sizeof(want));
        more = meta;
    }
    epicsMutexUnlock(lock);
    for (unsigned i = 0; i < SINKS && gen != applied; i++) {
        ebpfMonSink *s = &sinks[i];

        if (s->conf.kind && (!want[i].kind || !ebpfMonSinkSame(&s->conf, &want[i]))) {
            ebpfMonSinkClose(s, t);
            epicsMutexMustLock(lock);
            goneLines += s->counts.lines;
            goneLost += s->counts.lost;
            memset(&counts[i], 0, sizeof(counts[i]));
            epicsMutexUnlock(lock);
        }
        if (want[i].kind) {
            s->more = more;
            ebpfMonSinkConfigure(s, &want[i], t);
        }
    }
    applied = gen;
    for (unsigned i = 0; i < SINKS && rot != rotated; i++)
        ebpfMonSinkRotate(&sinks[i], t);
    rotated = rot;
}

/* Nonzero when there was something. */
static int drain(void)
{
    static uint8_t chunk[CHUNK];
    static ebpfMonPut put;
    size_t size = ebpfMonQueueTake(chunk, sizeof(chunk)), at = 0, len;
    double t = now();

    apply(t); /* after the puts were taken: one that came after a command is for the log that it began */
    while (at < size) {
        memcpy(&len, chunk + at, sizeof(len));
        ebpfMonUnpack(chunk + at + sizeof(len), len, &put);
        at += sizeof(len) + len;
        for (unsigned i = 0; i < SINKS; i++)
            if (sinks[i].conf.kind)
                ebpfMonSinkPut(&sinks[i], &put, t);
    }
    return size > 0;
}

static void showNewest(void)
{
    int changed = 0;
    ebpfMonBoard *board;

    for (unsigned i = 0; i < SINKS; i++) {
        if (!sinks[i].changed)
            continue;
        sinks[i].changed = 0;
        board = ebpfMonBoardLock();
        strcpy(board->putCaPutLog, sinks[i].last);
        ebpfMonBoardUnlock();
        changed = 1;
    }
    if (changed)
        ebpfMonBoardChanged(ebpfMonGroupPuts);
}

/* Counts to the board, once a second and when a state changes. */
static void tell(double t, int force)
{
    static double next, queueTold;
    static uint64_t droppedBefore;
    static int stateBefore = -1;
    ebpfMonQueueState q;
    ebpfMonLogState state = ebpfMonLogNone;
    unsigned logs = 0, bad = 0;
    uint64_t lines, lost;
    char why[512] = "", first[360] = "";
    ebpfMonBoard *board;

    for (unsigned i = 0; i < SINKS; i++) {
        if (!sinks[i].conf.kind)
            continue;
        logs++;
        if (ebpfMonSinkCount(&sinks[i])->trouble && !bad++)
            snprintf(first, sizeof(first), "%.100s: %s", sinks[i].conf.target, sinks[i].counts.why);
    }
    if (!force && t < next && (bad > 0) == (stateBefore == (int)ebpfMonLogTrouble))
        return;
    next = t + TELL_EVERY;
    ebpfMonQueueLook(&q);
    if (q.dropped < droppedBefore) /* begun anew */
        droppedBefore = 0;
    if (q.dropped > droppedBefore)
        queueTold = t + QUEUE_TOLD;
    if (q.dropped > droppedBefore && !droppedBefore)
        errlogSevPrintf(errlogMajor, "ebpfMon: puts come faster than the logs are written: some are lost, "
                        "LOG_LOST_CNT counts them\n");
    droppedBefore = q.dropped;
    epicsMutexMustLock(lock);
    lines = goneLines;
    lost = goneLost + q.dropped;
    for (unsigned i = 0; i < SINKS; i++) {
        if (!sinks[i].conf.kind)
            continue;
        counts[i] = sinks[i].counts;
        lines += sinks[i].counts.lines;
        lost += sinks[i].counts.lost;
    }
    lost -= lost > lostBase ? lostBase : lost;
    epicsMutexUnlock(lock);
    if (bad > 1) {
        snprintf(why, sizeof(why), "%s (and %u more: ebpfMonLogShow)", first, bad - 1);
    } else if (bad) {
        strcpy(why, first);
    } else if (t < queueTold) {
        bad = 1;
        snprintf(why, sizeof(why), "queue full, %" PRIu64 " puts lost: log fewer (FILTER_*, mode changes or burst) or "
                 "to a faster disk", q.dropped);
    } else if (logs) {
        snprintf(why, sizeof(why), "%u log%s", logs, logs == 1 ? "" : "s");
    } else {
        strcpy(why, EBPFMON_NO_LOG);
    }
    state = bad ? ebpfMonLogTrouble : logs ? ebpfMonLogOk : ebpfMonLogNone;
    stateBefore = (int)state;
    board = ebpfMonBoardLock();
    board->logState = state;
    ebpfMonTextCopy(board->logMsg, sizeof(board->logMsg), why);
    board->logCount = lines;
    board->logLost = lost;
    board->logQueue = 100.0 * (double)q.peak / EBPFMON_QUEUE_SIZE;
    epicsTimeGetCurrent(&board->time[ebpfMonGroupLog]);
    ebpfMonBoardUnlock();
    ebpfMonBoardChanged(ebpfMonGroupLog);
}

static void finish(void)
{
    int pending = 1;

    for (unsigned i = 0; i < SINKS; i++)
        if (sinks[i].conf.kind)
            ebpfMonSinkEnd(&sinks[i], now());
    while (pending && now() < stopBy) {
        pending = 0;
        for (unsigned i = 0; i < SINKS; i++) {
            if (!sinks[i].conf.kind)
                continue;
            ebpfMonSinkTick(&sinks[i], now());
            pending |= ebpfMonSinkPending(&sinks[i]);
        }
        if (pending)
            epicsThreadSleep(TICK);
    }
    for (unsigned i = 0; i < SINKS; i++) {
        if (!sinks[i].conf.kind)
            continue;
        ebpfMonSinkClose(&sinks[i], now());
        if (sinks[i].counts.lost)
            errlogSevPrintf(errlogMajor, "ebpfMon: log %s: %" PRIu64 " lines were lost in all\n",
                            sinks[i].conf.target, sinks[i].counts.lost);
        epicsMutexMustLock(lock);
        goneLines += sinks[i].counts.lines;
        goneLost += sinks[i].counts.lost;
        counts[i] = sinks[i].counts;
        epicsMutexUnlock(lock);
    }
    showNewest();
    tell(now(), 1);
}

static void writer(void *done)
{
    double busyTill = 0, t;
    int more, last;

    for (;;) {
        last = epicsAtomicGetIntT(&stopping); /* before the queue is seen to be empty */
        more = drain();
        t = now();
        if (more)
            busyTill = t + BUSY_FOR;
        for (unsigned i = 0; i < SINKS; i++) {
            if (!sinks[i].conf.kind)
                continue;
            ebpfMonSinkTick(&sinks[i], t);
            if (ebpfMonSinkPending(&sinks[i]))
                busyTill = t + TICK;
        }
        showNewest();
        tell(t, 0);
        if (more && !(last && t >= stopBy))
            continue;
        if (last)
            break;
        ebpfMonQueueWait(t < busyTill ? TICK : IDLE, t >= busyTill);
    }
    finish();
    epicsEventMustTrigger(done);
}

/* --- what is asked for ------------------------------------------------------------------------------------ */

static long configure(const char *command, const ebpfMonSinkConf *conf)
{
    int found = -1, room = -1;

    epicsMutexMustLock(lock);
    for (int i = SINKS - 1; i >= 0; i--) {
        if (!wanted[i].kind)
            room = i;
        else if (ebpfMonSinkSame(&wanted[i], conf))
            found = i;
        else if (wanted[i].kind == conf->kind && strcmp(wanted[i].target, conf->target) == 0)
            found = SINKS + i;
    }
    if (conf->mode == ebpfMonLogOff) {
        if (found >= 0 && found < SINKS)
            memset(&wanted[found], 0, sizeof(wanted[found]));
    } else {
        if (found >= SINKS || (found < 0 && room < 0)) {
            epicsMutexUnlock(lock);
            if (found >= SINKS)
                errlogSevPrintf(errlogMajor, "%s: another log writes to %s in another format: switch that off first "
                                "(mode off), or take another target\n", command, conf->target);
            else
                errlogSevPrintf(errlogMajor, "%s: there are %d logs already: switch one off (mode off)\n", command,
                                SINKS);
            return -1;
        }
        wanted[found >= 0 ? found : room] = *conf;
        if (!ended) {
            if (ebpfMonQueueInit()) {
                memset(wanted, 0, sizeof(wanted));
                epicsMutexUnlock(lock);
                errlogSevPrintf(errlogMajor, "%s: out of memory, nothing is logged\n", command);
                return -1;
            }
            epicsSignalInstallSigPipeIgnore(); /* a log may be a pipe */
            ended = epicsEventMustCreate(epicsEventEmpty);
            epicsThreadMustCreate("ebpfMonExport", epicsThreadPriorityLow,
                                  epicsThreadGetStackSize(epicsThreadStackBig), writer, ended);
        }
        epicsAtomicSetIntT(&active, 1);
    }
    generation++;
    epicsMutexUnlock(lock);
    if (ended)
        ebpfMonQueueWake();
    return 0;
}

static long json(const char *file, double maxMB, double hours, int keep, ebpfMonLogMode mode)
{
    ebpfMonSinkConf c = {.kind = ebpfMonSinkFile, .format = ebpfMonFormatJson, .mode = mode};
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
    ebpfMonSinkConf c = {
        .kind = strchr(target, '/') ? ebpfMonSinkFile : strcmp(target, "PV") == 0 ? ebpfMonSinkPv : ebpfMonSinkServer,
        .format = asJson ? ebpfMonFormatCaPutJson : ebpfMonFormatCaPutText, .mode = mode,
        .limits = {.maxBytes = 100000000, .keep = 10},
    };
    struct stat st;

    if (strlen(target) >= sizeof(c.target) - 8 || strlen(prefix) >= sizeof(c.prefix)) {
        errlogSevPrintf(errlogMajor, COMMAND_CAPUT ": target or prefix is too long (%d and %d characters)\n",
                        (int)sizeof(c.target) - 9, (int)sizeof(c.prefix) - 1);
        return -1;
    }
    if (c.kind == ebpfMonSinkFile && stat(target, &st) == 0 && S_ISDIR(st.st_mode)) {
        errlogSevPrintf(errlogMajor, COMMAND_CAPUT ": %s is a folder: give the name of a file\n", target);
        return -1;
    }
    /* here, not in the writer: asking for a name's address may take long */
    if (c.kind == ebpfMonSinkServer && mode != ebpfMonLogOff && aToIPAddr(target, SERVER_PORT, &c.addr)) {
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
    unsigned i, at = EBPFMON_META_MAX;

    for (i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        if (strcmp(key, own[i]) == 0) {
            errlogSevPrintf(errlogMajor, "ebpfMonLogMetadata: \"%s\" is a key of caPutLog's own: take another\n", key);
            return -1;
        }
    }
    epicsMutexMustLock(lock);
    for (i = 0; i < meta.metas; i++) {
        if (strcmp(meta.meta[i].key, key) == 0)
            at = i;
        else
            total += strlen(meta.meta[i].key) + strlen(meta.meta[i].value);
    }
    if (!value[0]) {
        if (at < meta.metas) {
            memmove(&meta.meta[at], &meta.meta[at + 1], (meta.metas - at - 1) * sizeof(meta.meta[0]));
            meta.metas--;
        }
    } else if (strlen(key) >= sizeof(meta.meta[0].key) || strlen(value) >= sizeof(meta.meta[0].value) ||
               total > META_TOTAL || (at == EBPFMON_META_MAX && meta.metas == EBPFMON_META_MAX)) {
        epicsMutexUnlock(lock);
        errlogSevPrintf(errlogMajor, "ebpfMonLogMetadata: at most %d keys of %d characters, values of %d, together "
                        "%d\n", EBPFMON_META_MAX, (int)sizeof(meta.meta[0].key) - 1,
                        (int)sizeof(meta.meta[0].value) - 1, META_TOTAL);
        return -1;
    } else {
        if (at == EBPFMON_META_MAX)
            at = meta.metas++;
        strcpy(meta.meta[at].key, key);
        strcpy(meta.meta[at].value, value);
    }
    generation++;
    epicsMutexUnlock(lock);
    return 0;
}

static long rotate(void)
{
    unsigned files = 0;

    epicsMutexMustLock(lock);
    for (unsigned i = 0; i < SINKS; i++)
        files += wanted[i].kind == ebpfMonSinkFile;
    rotations++;
    epicsMutexUnlock(lock);
    if (!files) {
        errlogSevPrintf(errlogMajor, "ebpfMon: no log is a file: nothing to rotate\n");
        return -1;
    }
    ebpfMonQueueWake();
    return 0;
}

static void resetLost(void)
{
    ebpfMonQueueState q = {0};

    epicsMutexMustLock(lock);
    if (ended)
        ebpfMonQueueLook(&q);
    lostBase = goneLost + q.dropped;
    for (unsigned i = 0; i < SINKS; i++)
        lostBase += counts[i].lost;
    epicsMutexUnlock(lock);
    if (ended)
        ebpfMonQueueWake();
}

static void report(int level)
{
    static const char *const formats[] = {"JSON", "caPutLog text", "caPutLog JSON"};
    ebpfMonSinkConf conf[SINKS];
    ebpfMonSinkCounts count[SINKS];
    ebpfMonQueueState q = {0};
    unsigned logs = 0;

    epicsMutexMustLock(lock);
    memcpy(conf, wanted, sizeof(conf));
    memcpy(count, counts, sizeof(count));
    if (ended)
        ebpfMonQueueLook(&q);
    epicsMutexUnlock(lock);
    for (unsigned i = 0; i < SINKS; i++)
        logs += conf[i].kind != ebpfMonSinkNone;
    if (!logs) {
        printf("  logs: none\n");
        return;
    }
    printf("  logs: %u, %" PRIu64 " puts queued since the start, %" PRIu64 " lost with the queue full; queue at "
           "%.1f %%\n", logs, q.taken, q.dropped, 100.0 * (double)q.used / EBPFMON_QUEUE_SIZE);
    for (unsigned i = 0; i < SINKS; i++) {
        const ebpfMonSinkCounts *c = &count[i];

        if (!conf[i].kind)
            continue;
        printf("    %s: %s, mode %s: %" PRIu64 " lines written, %" PRIu64 " lost%s%s\n", conf[i].target,
               formats[conf[i].format], ebpfMonLogModeName(conf[i].mode), c->lines, c->lost,
               c->trouble ? "; " : "", c->trouble ? c->why : "");
        if (level > 0)
            printf("      %" PRIu64 " puts joined in %" PRIu64 " summaries, %" PRIu64 " unchanged ones skipped; rotated "
                   "at %.1f MB, %.1f hours, %u kept\n", c->joined, c->summaries, c->skipped,
                   (double)conf[i].limits.maxBytes / 1e6, conf[i].limits.maxAge / 3600, conf[i].limits.keep);
    }
}

static const ebpfMonLogOps ops = {
    .json = json, .caPutLog = caPutLog, .metadata = metadata, .rotate = rotate, .resetLost = resetLost,
    .report = report,
};

void ebpfMonExportRegister(void)
{
    if (!lock)
        lock = epicsMutexMustCreate();
    ebpfMonLogControlRegister(&ops);
}

void ebpfMonExportStop(double seconds)
{
    epicsEventId done;

    if (!lock)
        return;
    epicsAtomicSetIntT(&active, 0);
    epicsMutexMustLock(lock);
    done = ended;
    epicsMutexUnlock(lock);
    if (!done)
        return;
    stopBy = now() + seconds;
    epicsAtomicSetIntT(&stopping, 1);
    ebpfMonQueueWake();
    /* half a second to close what was not to be waited for */
    if (epicsEventWaitWithTimeout(done, seconds + 0.5) != epicsEventOK) {
        errlogSevPrintf(errlogMajor, "ebpfMon: a log does not take its lines (does a disk hang?): what is queued is "
                        "lost\n");
        return;
    }
    epicsMutexMustLock(lock);
    memset(wanted, 0, sizeof(wanted));
    ended = NULL;
    epicsMutexUnlock(lock);
    epicsEventDestroy(done);
    epicsAtomicSetIntT(&stopping, 0);
}
