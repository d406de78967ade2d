/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <epicsThread.h>
#include <errlog.h>

#include "export/putPack.h"
#include "export/log/logThread.h"
#include "model/published.h"

#define CHUNK      (256u << 10) /* bytes of puts between two looks at the sinks */
#define TICK       0.02 /* s, while there is something to do */
#define IDLE       1.0  /* s */
#define BUSY_FOR   1.0  /* s after the last put the writer looks by itself, and nobody pays for waking it */
#define TELL_EVERY 1.0  /* s, the PVs */
#define QUEUE_TOLD 10.0 /* s that a full queue is told of */

ebpfMonLogThreadShare ebpfMonLogThread;

static ebpfMonLogThreadShare *const share = &ebpfMonLogThread;
static ebpfMonPutLog sinks[EBPFMON_PUT_LOGS];
static unsigned applied, rotated;

double ebpfMonLogThreadNow(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void apply(double t)
{
    static ebpfMonPutLogConf want[EBPFMON_PUT_LOGS];
    static ebpfMonFormatMore more;
    unsigned gen, rot;

    epicsMutexMustLock(share->lock);
    gen = share->generation;
    rot = share->rotations;
    if (gen != applied) {
        memcpy(want, share->wanted, sizeof(want));
        more = share->meta;
    }
    epicsMutexUnlock(share->lock);
    for (unsigned i = 0; i < EBPFMON_PUT_LOGS && gen != applied; i++) {
        ebpfMonPutLog *s = &sinks[i];

        if (s->conf.kind && (!want[i].kind || !ebpfMonPutLogIsSame(&s->conf, &want[i]))) {
            ebpfMonPutLogClose(s, t);
            epicsMutexMustLock(share->lock);
            share->goneLines += s->counts.lines;
            share->goneLost += s->counts.lost;
            memset(&share->counts[i], 0, sizeof(share->counts[i]));
            epicsMutexUnlock(share->lock);
        }
        if (want[i].kind) {
            s->more = more;
            ebpfMonPutLogConfigure(s, &want[i], t);
        }
    }
    applied = gen;
    for (unsigned i = 0; i < EBPFMON_PUT_LOGS && rot != rotated; i++)
        ebpfMonPutLogRotate(&sinks[i], t);
    rotated = rot;
}

/* Nonzero when there was something. */
static int drain(void)
{
    static uint8_t chunk[CHUNK];
    static ebpfMonPut put;
    size_t size = ebpfMonRecordQueueTake(share->queue, chunk, sizeof(chunk)), at = 0, len;
    double t = ebpfMonLogThreadNow();

    apply(t); /* after the puts were taken: one that came after a command is for the log that it began */
    while (at < size) {
        memcpy(&len, chunk + at, sizeof(len));
        ebpfMonPutUnpack(chunk + at + sizeof(len), len, &put);
        at += sizeof(len) + len;
        for (unsigned i = 0; i < EBPFMON_PUT_LOGS; i++)
            if (sinks[i].conf.kind)
                ebpfMonPutLogAddPut(&sinks[i], &put, t);
    }
    return size > 0;
}

static void showNewest(void)
{
    int changed = 0;
    ebpfMonPublished *published;

    for (unsigned i = 0; i < EBPFMON_PUT_LOGS; i++) {
        if (!sinks[i].changed)
            continue;
        sinks[i].changed = 0;
        published = ebpfMonPublishedLock();
        strcpy(published->log.caPutLogLine, sinks[i].last);
        ebpfMonPublishedUnlock();
        changed = 1;
    }
    if (changed)
        ebpfMonPublishedNotify(ebpfMonGroupPuts);
}

/* Counts to the published, once a second and when a state changes. */
static void tell(double t, int force)
{
    static double next, queueTold;
    static uint64_t droppedBefore;
    static int stateBefore = -1;
    ebpfMonRecordQueueState q;
    ebpfMonLogState state = ebpfMonLogNone;
    unsigned logs = 0, bad = 0;
    uint64_t lines, lost;
    char why[512] = "", first[360] = "";
    ebpfMonPublished *published;

    for (unsigned i = 0; i < EBPFMON_PUT_LOGS; i++) {
        if (!sinks[i].conf.kind)
            continue;
        logs++;
        if (ebpfMonPutLogGetCounts(&sinks[i])->trouble && !bad++)
            snprintf(first, sizeof(first), "%.100s: %s", sinks[i].conf.target, sinks[i].counts.why);
    }
    if (!force && t < next && (bad > 0) == (stateBefore == (int)ebpfMonLogTrouble))
        return;
    next = t + TELL_EVERY;
    ebpfMonRecordQueueGetState(share->queue, &q);
    if (q.dropped < droppedBefore) /* begun anew */
        droppedBefore = 0;
    if (q.dropped > droppedBefore)
        queueTold = t + QUEUE_TOLD;
    if (q.dropped > droppedBefore && !droppedBefore)
        errlogSevPrintf(errlogMajor, "ebpfMon: puts come faster than the logs are written: some are lost, "
                        "LOG_LOST_CNT counts them\n");
    droppedBefore = q.dropped;
    epicsMutexMustLock(share->lock);
    lines = share->goneLines;
    lost = share->goneLost + q.dropped;
    for (unsigned i = 0; i < EBPFMON_PUT_LOGS; i++) {
        if (!sinks[i].conf.kind)
            continue;
        share->counts[i] = sinks[i].counts;
        lines += sinks[i].counts.lines;
        lost += sinks[i].counts.lost;
    }
    lost -= lost > share->lostBase ? share->lostBase : lost;
    epicsMutexUnlock(share->lock);
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
    published = ebpfMonPublishedLock();
    published->log.state = state;
    ebpfMonTextCopy(published->log.message, sizeof(published->log.message), why);
    published->log.written = lines;
    published->log.lost = lost;
    published->log.queue = 100.0 * (double)q.peak / EBPFMON_QUEUE_SIZE;
    epicsTimeGetCurrent(&published->time[ebpfMonGroupLog]);
    ebpfMonPublishedUnlock();
    ebpfMonPublishedNotify(ebpfMonGroupLog);
}

static void finish(double by)
{
    int pending = 1;

    for (unsigned i = 0; i < EBPFMON_PUT_LOGS; i++)
        if (sinks[i].conf.kind)
            ebpfMonPutLogEndBursts(&sinks[i], ebpfMonLogThreadNow());
    while (pending && ebpfMonLogThreadNow() < by) {
        pending = 0;
        for (unsigned i = 0; i < EBPFMON_PUT_LOGS; i++) {
            if (!sinks[i].conf.kind)
                continue;
            ebpfMonPutLogTick(&sinks[i], ebpfMonLogThreadNow());
            pending |= ebpfMonPutLogIsPending(&sinks[i]);
        }
        if (pending)
            epicsThreadSleep(TICK);
    }
    for (unsigned i = 0; i < EBPFMON_PUT_LOGS; i++) {
        if (!sinks[i].conf.kind)
            continue;
        ebpfMonPutLogClose(&sinks[i], ebpfMonLogThreadNow());
        if (sinks[i].counts.lost)
            errlogSevPrintf(errlogMajor, "ebpfMon: log %s: %" PRIu64 " lines were lost in all\n",
                            sinks[i].conf.target, sinks[i].counts.lost);
        epicsMutexMustLock(share->lock);
        share->goneLines += sinks[i].counts.lines;
        share->goneLost += sinks[i].counts.lost;
        share->counts[i] = sinks[i].counts;
        epicsMutexUnlock(share->lock);
    }
    showNewest();
    tell(ebpfMonLogThreadNow(), 1);
}

void ebpfMonLogThreadRun(void *unused)
{
    double busyTill = 0, by, t;
    int more, last;

    (void)unused;
    for (;;) {
        epicsMutexMustLock(share->lock);
        last = share->stopping; /* before the queue is seen to be empty */
        by = share->stopBy;
        epicsMutexUnlock(share->lock);
        more = drain();
        t = ebpfMonLogThreadNow();
        if (more)
            busyTill = t + BUSY_FOR;
        for (unsigned i = 0; i < EBPFMON_PUT_LOGS; i++) {
            if (!sinks[i].conf.kind)
                continue;
            ebpfMonPutLogTick(&sinks[i], t);
            if (ebpfMonPutLogIsPending(&sinks[i]))
                busyTill = t + TICK;
        }
        showNewest();
        tell(t, 0);
        if (more && !(last && t >= by))
            continue;
        if (last)
            break;
        ebpfMonRecordQueueWait(share->queue, t < busyTill ? TICK : IDLE, t >= busyTill);
    }
    finish(by);
    epicsEventMustTrigger(share->ended);
}
