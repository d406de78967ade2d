/* SPDX-License-Identifier: BSD-3-Clause */
/* The schema of the JSON lines. documentation/use/putLog.md explains each key. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include <epicsTime.h>

#include "export/log/format.h"

/* Adds a time as in RFC 3339, in UTC, with nanoseconds. */
static void addTime(ebpfMonJson *j, const epicsTimeStamp *time)
{
    struct tm tm = {0};
    unsigned long ns = 0;
    char text[64];

    epicsTimeToGMTM(&tm, &ns, time);
    snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d.%09luZ", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
             tm.tm_hour, tm.tm_min, tm.tm_sec, ns);
    ebpfMonJsonAddText(j, "time", text);
}

static void addValue(ebpfMonJson *j, const char *key, const char *text, int isNumber, double number)
{
    if (isNumber)
        ebpfMonJsonAddNumber(j, key, text, number);
    else
        ebpfMonJsonAddText(j, key, text);
}

static void addBurst(ebpfMonJson *j, const ebpfMonBurstInfo *b)
{
    ebpfMonJsonAddInteger(j, "burst", (long long)b->puts);
    if (b->hasRange) {
        ebpfMonJsonAddNumber(j, "min", NULL, b->min);
        ebpfMonJsonAddNumber(j, "max", NULL, b->max);
    }
    ebpfMonJsonOpenList(j, "writers");
    for (unsigned i = 0; i < b->writers; i++) {
        ebpfMonJsonOpenObject(j, NULL);
        ebpfMonJsonAddTextIfAny(j, "user", b->writer[i].user);
        ebpfMonJsonAddTextIfAny(j, "host", b->writer[i].host);
        if (b->writer[i].isUnsure)
            ebpfMonJsonAddBool(j, "who_sure", 0);
        if (!b->writer[i].user[0])
            ebpfMonJsonAddText(j, "through", ebpfMonThroughName(b->writer[i].through));
        ebpfMonJsonAddInteger(j, "count", (long long)b->writer[i].count);
        ebpfMonJsonCloseObject(j);
    }
    ebpfMonJsonCloseList(j);
    if (b->others)
        ebpfMonJsonAddInteger(j, "others", (long long)b->others);
}

static void addValues(ebpfMonJson *j, const ebpfMonPut *put)
{
    char hash[20];

    addValue(j, "value", put->val, put->isNumber, put->number);
    if (put->count != 1)
        ebpfMonJsonAddInteger(j, "count", put->count);
    if (put->hasOld) {
        addValue(j, "old", put->old, put->oldIsNumber, put->oldNumber);
        if (put->oldCount >= 0 && put->oldCount != 1)
            ebpfMonJsonAddInteger(j, "old_count", put->oldCount);
    }
    ebpfMonJsonAddTextIfAny(j, "after", put->after);
    if (put->hash) {
        snprintf(hash, sizeof(hash), "%016" PRIx64, put->hash);
        ebpfMonJsonAddText(j, "hash", hash);
    }
}

static void addWriter(ebpfMonJson *j, const ebpfMonPut *put)
{
    ebpfMonJsonAddTextIfAny(j, "user", put->user);
    ebpfMonJsonAddTextIfAny(j, "host", put->host);
    ebpfMonJsonAddTextIfAny(j, "peer", put->peer);
    ebpfMonJsonAddTextIfAny(j, "server", put->server);
    ebpfMonJsonAddTextIfAny(j, "published", put->published);
    ebpfMonJsonAddTextIfAny(j, "real_user", put->realUser);
    if (put->peerPid)
        ebpfMonJsonAddInteger(j, "pid", put->peerPid);
    if (put->peerPid || put->realUser[0])
        ebpfMonJsonAddInteger(j, "uid", put->peerUid);
    ebpfMonJsonAddTextIfAny(j, "command", put->command);
    ebpfMonJsonAddTextIfAny(j, "container", put->container);
    if (put->isUnsure)
        ebpfMonJsonAddBool(j, "who_sure", 0);
    ebpfMonJsonAddTextIfAny(j, "through", ebpfMonThroughName(put->through));
    ebpfMonJsonAddTextIfAny(j, "link", put->link);
    ebpfMonJsonAddTextIfAny(j, "link_ioc", put->linkIoc);
    ebpfMonJsonAddTextIfAny(j, "root", put->root);
    ebpfMonJsonAddTextIfAny(j, "cause", put->cause);
    ebpfMonJsonAddTextIfAny(j, "thread", put->thread);
}

static void addResult(ebpfMonJson *j, const ebpfMonPut *put)
{
    static const char *const seen[] = {"", "inside", "wire", "both"};

    ebpfMonJsonAddTextIfAny(j, "result", ebpfMonPutResultName(put->result));
    if (put->status)
        ebpfMonJsonAddInteger(j, "status", put->status);
    ebpfMonJsonAddTextIfAny(j, "message", put->message);
    if (put->isPartly)
        ebpfMonJsonAddBool(j, "partly", 1);
    ebpfMonJsonAddTextIfAny(j, "seen", seen[put->seen & 3]);
    if (put->unexpected) {
        ebpfMonJsonAddBool(j, "unexpected", 1);
        ebpfMonJsonAddTextIfAny(j, "rule", put->rule);
    }
}

size_t ebpfMonFormatJsonLine(ebpfMonFormatter *f, const ebpfMonPut *put, const ebpfMonBurstInfo *burst, char *buf,
                             size_t size)
{
    ebpfMonJson *j = &f->json;

    if (ebpfMonJsonBegin(j, buf, size))
        return 0;
    addTime(j, &put->time);
    ebpfMonJsonAddTextIfAny(j, "pv", put->pv);
    ebpfMonJsonAddTextIfAny(j, "channel", put->channel);
    ebpfMonJsonAddTextIfAny(j, "group", put->group);
    ebpfMonJsonAddTextIfAny(j, "ioc", put->ioc);
    addValues(j, put);
    addWriter(j, put);
    addResult(j, put);
    if (burst)
        addBurst(j, burst);
    return ebpfMonJsonEnd(j);
}

size_t ebpfMonFormatJsonLossLine(ebpfMonFormatter *f, uint64_t lost, const char *why, char *buf, size_t size)
{
    ebpfMonJson *j = &f->json;
    epicsTimeStamp now;

    if (ebpfMonJsonBegin(j, buf, size))
        return 0;
    epicsTimeGetCurrent(&now);
    addTime(j, &now);
    ebpfMonJsonAddInteger(j, "lost", (long long)lost);
    ebpfMonJsonAddTextIfAny(j, "message", why);
    return ebpfMonJsonEnd(j);
}
