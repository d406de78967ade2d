/* SPDX-License-Identifier: BSD-3-Clause */
/* The schema of the JSON lines; each key is explained in documentation/putLog.md. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include <epicsTime.h>

#include "export/log/format.h"
#include "export/jsonGen.h"

/* RFC 3339, UTC, to the nanosecond. */
static void when(const epicsTimeStamp *time, char *buf, size_t size)
{
    struct tm tm = {0};
    unsigned long ns = 0;

    epicsTimeToGMTM(&tm, &ns, time);
    snprintf(buf, size, "%04d-%02d-%02dT%02d:%02d:%02d.%09luZ", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
             tm.tm_hour, tm.tm_min, tm.tm_sec, ns);
}

static void value(ebpfMonJson *j, const char *key, const char *text, int isNumber, double number)
{
    ebpfMonJsonKey(j, key);
    if (isNumber)
        ebpfMonJsonNumber(j, text, number);
    else
        ebpfMonJsonText(j, text);
}

static void integer(ebpfMonJson *j, const char *key, long long number)
{
    ebpfMonJsonKey(j, key);
    ebpfMonJsonInteger(j, number);
}

static void burstKeys(ebpfMonJson *j, const ebpfMonBurstInfo *b)
{
    integer(j, "burst", (long long)b->puts);
    if (b->hasRange) {
        value(j, "min", NULL, 1, b->min);
        value(j, "max", NULL, 1, b->max);
    }
    ebpfMonJsonKey(j, "writers");
    yajl_gen_array_open(j->g);
    for (unsigned i = 0; i < b->writers; i++) {
        yajl_gen_map_open(j->g);
        ebpfMonJsonPair(j, "user", b->writer[i].user);
        ebpfMonJsonPair(j, "host", b->writer[i].host);
        integer(j, "count", (long long)b->writer[i].count);
        yajl_gen_map_close(j->g);
    }
    yajl_gen_array_close(j->g);
    if (b->others)
        integer(j, "others", (long long)b->others);
}

size_t ebpfMonJsonLine(const ebpfMonPut *put, const ebpfMonBurstInfo *burst, char *buf, size_t size)
{
    static const char *const seen[] = {NULL, "inside", "wire", "both"};
    ebpfMonJson j;
    char text[64];

    ebpfMonJsonBegin(&j, buf, size);
    if (!j.g)
        return 0;
    when(&put->time, text, sizeof(text));
    ebpfMonJsonPair(&j, "time", text);
    ebpfMonJsonPair(&j, "pv", put->pv);
    ebpfMonJsonPair(&j, "channel", put->channel);
    ebpfMonJsonPair(&j, "ioc", put->ioc);
    value(&j, "value", put->val, put->isNumber, put->number);
    if (put->count != 1)
        integer(&j, "count", put->count);
    if (put->hasOld) {
        value(&j, "old", put->old, put->oldIsNumber, put->oldNumber);
        if (put->oldCount >= 0 && put->oldCount != 1)
            integer(&j, "old_count", put->oldCount);
    }
    ebpfMonJsonPair(&j, "after", put->after);
    if (put->hash) {
        snprintf(text, sizeof(text), "%016" PRIx64, put->hash);
        ebpfMonJsonPair(&j, "hash", text);
    }
    ebpfMonJsonPair(&j, "user", put->user);
    ebpfMonJsonPair(&j, "host", put->host);
    ebpfMonJsonPair(&j, "peer", put->peer);
    ebpfMonJsonPair(&j, "server", put->server);
    ebpfMonJsonPair(&j, "real_user", put->realUser);
    if (put->peerPid) {
        integer(&j, "pid", put->peerPid);
        integer(&j, "uid", put->peerUid);
    }
    ebpfMonJsonPair(&j, "command", put->command);
    ebpfMonJsonPair(&j, "container", put->container);
    ebpfMonJsonPair(&j, "through", ebpfMonThroughName(put->through));
    ebpfMonJsonPair(&j, "link", put->link);
    ebpfMonJsonPair(&j, "link_ioc", put->linkIoc);
    ebpfMonJsonPair(&j, "root", put->root);
    ebpfMonJsonPair(&j, "cause", put->cause);
    ebpfMonJsonPair(&j, "thread", put->thread);
    ebpfMonJsonPair(&j, "result", ebpfMonPutResultName(put->result));
    if (put->status)
        integer(&j, "status", put->status);
    ebpfMonJsonPair(&j, "message", put->message);
    if (put->seen & 3)
        ebpfMonJsonPair(&j, "seen", seen[put->seen & 3]);
    if (put->unexpected) {
        ebpfMonJsonKey(&j, "unexpected");
        yajl_gen_bool(j.g, 1);
        ebpfMonJsonPair(&j, "rule", put->rule);
    }
    if (burst)
        burstKeys(&j, burst);
    return ebpfMonJsonEnd(&j);
}

size_t ebpfMonJsonLostLine(uint64_t lost, const char *why, char *buf, size_t size)
{
    epicsTimeStamp now;
    ebpfMonJson j;
    char text[64];

    epicsTimeGetCurrent(&now);
    ebpfMonJsonBegin(&j, buf, size);
    if (!j.g)
        return 0;
    when(&now, text, sizeof(text));
    ebpfMonJsonPair(&j, "time", text);
    integer(&j, "lost", (long long)lost);
    ebpfMonJsonPair(&j, "message", why);
    return ebpfMonJsonEnd(&j);
}
