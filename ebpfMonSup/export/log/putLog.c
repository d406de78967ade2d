/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include <errlog.h>

#include "export/log/putLog.h"

#define BURST_PVS   4096
#define BURST_IDLE  5.0  /* s, as in caPutLog */
#define BURST_TOTAL 30.0 /* s */

static ebpfMonDestination *outlet(ebpfMonPutLog *s)
{
    return s->file ? &s->file->out : s->server ? &s->server->out : NULL;
}

int ebpfMonPutLogIsSame(const ebpfMonPutLogConf *a, const ebpfMonPutLogConf *b)
{
    return a->kind == b->kind && strcmp(a->target, b->target) == 0 &&
           (a->kind == ebpfMonPutLogPv || (a->format == b->format));
}

static int addLine(ebpfMonPutLog *s, const char *line, size_t len)
{
    if (s->file)
        return ebpfMonLogFileAdd(s->file, line, len, s->now);
    if (s->server)
        return ebpfMonLogServerAdd(s->server, line, len, s->now);
    if (s->conf.kind != ebpfMonPutLogPv)
        return -1;
    if (len >= sizeof(s->last))
        len = sizeof(s->last) - 1;
    memcpy(s->last, line, len);
    s->last[len] = 0;
    s->changed = 1;
    return 0;
}

/* It works again after a loss: a line says so, where the lost ones would stand. */
static void tellLoss(ebpfMonPutLog *s, char *buf, size_t size)
{
    ebpfMonDestination *o = outlet(s);
    uint64_t lost;
    size_t len;

    if (!o || !o->lostNow || o->trouble)
        return;
    lost = o->lostNow;
    len = ebpfMonFormatLost(s->conf.format, lost, o->why, &s->more, buf, size);
    o->lostNow = 0;
    if (len && addLine(s, buf, len) == 0)
        s->counts.summaries++;
}

static void emit(void *arg, const ebpfMonPut *put, const ebpfMonBurstInfo *info)
{
    static char buf[EBPFMON_LINE_MAX];
    ebpfMonPutLog *s = arg;
    size_t len;

    tellLoss(s, buf, sizeof(buf));
    len = ebpfMonFormatPut(s->conf.format, put, info, &s->more, buf, sizeof(buf));
    if (!len) {
        s->counts.lost++;
        return;
    }
    if (addLine(s, buf, len) == 0 && info)
        s->counts.summaries++;
}

void ebpfMonPutLogConfigure(ebpfMonPutLog *s, const ebpfMonPutLogConf *conf, double now)
{
    s->now = now;
    if (s->conf.kind == ebpfMonPutLogNone) {
        memset(&s->counts, 0, sizeof(s->counts));
        s->conf = *conf;
        if (conf->kind == ebpfMonPutLogFile)
            s->file = ebpfMonLogFileOpen(conf->target, &conf->limits, now);
        else if (conf->kind == ebpfMonPutLogServer)
            s->server = ebpfMonLogServerOpen(conf->target, &conf->addr);
        if (!s->file && !s->server && conf->kind != ebpfMonPutLogPv)
            errlogSevPrintf(errlogMajor, "ebpfMon: log %s: out of memory, nothing is written\n", conf->target);
    }
    s->conf = *conf;
    if (s->file)
        s->file->limits = conf->limits;
    if (s->server)
        s->server->addr = conf->addr;
    strcpy(s->more.prefix, conf->prefix);
    if (conf->mode == ebpfMonLogBurst && !s->burst) {
        s->burst = ebpfMonBurstCreate(BURST_PVS, BURST_IDLE, BURST_TOTAL, emit, s);
    } else if (conf->mode != ebpfMonLogBurst && s->burst) {
        ebpfMonBurstDestroy(s->burst);
        s->burst = NULL;
    }
}

void ebpfMonPutLogAddPut(ebpfMonPutLog *s, const ebpfMonPut *put, double now)
{
    s->now = now;
    if (s->conf.mode == ebpfMonLogChanges && ebpfMonPutUnchanged(put))
        s->counts.skipped++;
    else if (s->burst)
        s->counts.joined += !ebpfMonBurstPut(s->burst, put, now);
    else
        emit(s, put, NULL);
}

void ebpfMonPutLogTick(ebpfMonPutLog *s, double now)
{
    static char buf[EBPFMON_LINE_MAX];

    s->now = now;
    if (s->burst)
        ebpfMonBurstTick(s->burst, now);
    if (s->file)
        ebpfMonLogFileTick(s->file, now);
    if (s->server)
        ebpfMonLogServerTick(s->server, now);
    tellLoss(s, buf, sizeof(buf));
}

void ebpfMonPutLogRotate(ebpfMonPutLog *s, double now)
{
    if (s->file)
        ebpfMonLogFileRotate(s->file, now);
}

void ebpfMonPutLogEndBursts(ebpfMonPutLog *s, double now)
{
    s->now = now;
    if (s->burst)
        ebpfMonBurstDestroy(s->burst);
    s->burst = NULL;
}

int ebpfMonPutLogIsPending(const ebpfMonPutLog *s)
{
    return s->server && ebpfMonLogServerPending(s->server);
}

const ebpfMonPutLogCounts *ebpfMonPutLogGetCounts(ebpfMonPutLog *s)
{
    const ebpfMonDestination *o = outlet(s);

    if (o) {
        s->counts.lines = o->lines;
        s->counts.lost = o->lost;
        s->counts.trouble = o->trouble;
        memcpy(s->counts.why, o->why, sizeof(s->counts.why));
    }
    return &s->counts;
}

void ebpfMonPutLogClose(ebpfMonPutLog *s, double now)
{
    ebpfMonPutLogEndBursts(s, now);
    if (s->file)
        ebpfMonLogFileClose(s->file, now);
    if (s->server)
        ebpfMonLogServerClose(s->server);
    ebpfMonPutLogGetCounts(s);
    free(s->file);
    free(s->server);
    s->file = NULL;
    s->server = NULL;
    s->conf.kind = ebpfMonPutLogNone;
}
