/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The formats of the module caPutLog (its docs/index.rst, "Original Log Format" and "JSON Log Format"): order, quoting
 * and spelling of the fields are its own, so that what reads its logs reads ours. What it has not comes last.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <epicsString.h>
#include <epicsTime.h>

#include "export/log/format.h"
#include "export/jsonGen.h"

typedef struct {
    char  *buf;
    size_t size, len;
} line;

static void add(line *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(line *l, const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(l->buf + l->len, l->size - l->len, format, args);
    va_end(args);
    l->len += n < 0 ? 0 : (size_t)n < l->size - l->len ? (size_t)n : l->size - l->len - 1;
}

/* A word: what separates fields must not be in one. */
static void addWord(line *l, const char *word)
{
    size_t at = l->len;

    add(l, "%s", word[0] ? word : "-");
    for (; at < l->len; at++)
        if ((unsigned char)l->buf[at] <= ' ' || l->buf[at] == 0x7f)
            l->buf[at] = '_';
}

static void addPrefix(line *l, const char *prefix, const char *ioc)
{
    for (; *prefix; prefix++) {
        if (prefix[0] == '%' && prefix[1] == 'i') {
            addWord(l, ioc);
            prefix++;
        } else {
            add(l, "%c", *prefix);
        }
    }
}

/* caPutLog has clients only. Where there is none, the user is what wrote, the host this one. */
static const char *userOf(const ebpfMonPut *put)
{
    return put->user[0] ? put->user : put->realUser[0] ? put->realUser :
           put->peer[0] ? "-" : ebpfMonThroughName(put->through);
}

static const char *hostOf(const ebpfMonPut *put)
{
    static char here[64];

    if (put->host[0])
        return put->host;
    if (put->peer[0])
        return put->peer;
    if (!here[0] && (gethostname(here, sizeof(here) - 1) || !here[0]))
        strcpy(here, "localhost");
    return here;
}

static const char *nameOf(const ebpfMonPut *put)
{
    return put->channel[0] ? put->channel : put->pv;
}

/* Elements of an array, and where its text begins; -1: a single value. "[3] 1 2 4" is made by the monitor for arrays
 * alone; a string that looks so has count 1. */
static long arrayOf(const char *text, long count, const char **elements)
{
    char *end;
    long n;

    if (count == 1)
        return -1;
    *elements = text;
    if (text[0] == '[') {
        n = strtol(text + 1, &end, 10);
        if (end > text + 1 && end[0] == ']') {
            *elements = end[1] == ' ' ? end + 2 : end + 1;
            return n;
        }
    }
    return count > 1 ? count : -1; /* characters: a long string */
}

static void addValue(line *l, const char *text, int isNumber, double number, size_t limit)
{
    char cut[EBPFMON_TEXT_SIZE], escaped[4 * EBPFMON_TEXT_SIZE];

    if (isNumber && isfinite(number) && ebpfMonIsJsonNumber(text, strlen(text))) {
        add(l, "%s", text);
    } else if (isNumber) {
        add(l, "%g", number);
    } else {
        ebpfMonTextCopy(cut, limit < sizeof(cut) ? limit : sizeof(cut), text);
        epicsStrnEscapedFromRaw(escaped, sizeof(escaped), cut, strlen(cut));
        add(l, "\"%s\"", escaped);
    }
}

/* What came of a put that was not simply done. */
static const char *resultOf(const ebpfMonPut *put)
{
    return put->result == ebpfMonPutFailed || put->result == ebpfMonPutDenied || put->result == ebpfMonPutLost ?
           ebpfMonPutResultName(put->result) : NULL;
}

static unsigned writersShown(size_t limit)
{
    return limit >= 400 ? EBPFMON_BURST_WRITERS : limit >= 200 ? 4 : limit >= 100 ? 2 : 1;
}

/* Puts by writers that are not named. */
static unsigned long rest(const ebpfMonBurstInfo *b, unsigned shown)
{
    unsigned long n = b->others;

    for (unsigned i = shown; i < b->writers; i++)
        n += b->writer[i].count;
    return n;
}

size_t ebpfMonCaPutText(const ebpfMonPut *put, const ebpfMonBurstInfo *burst, const ebpfMonFormatMore *more,
                        size_t limit, char *buf, size_t size)
{
    line l = {buf, size, 0};
    char when[40];
    const char *result = resultOf(put);

    addPrefix(&l, more->prefix, put->ioc);
    epicsTimeToStrftime(when, sizeof(when), "%d-%b-%y %H:%M:%S", &put->time);
    add(&l, "%s ", when);
    addWord(&l, hostOf(put));
    add(&l, " ");
    addWord(&l, userOf(put));
    add(&l, " ");
    addWord(&l, nameOf(put));
    add(&l, " new=");
    addValue(&l, put->val, put->isNumber, put->number, limit);
    if (put->hasOld) {
        add(&l, " old=");
        addValue(&l, put->old, put->oldIsNumber, put->oldNumber, limit);
    }
    if (burst) {
        unsigned shown = writersShown(limit);

        if (burst->hasRange) {
            add(&l, " min=");
            addValue(&l, "", 1, burst->min, limit);
            add(&l, " max=");
            addValue(&l, "", 1, burst->max, limit);
        }
        add(&l, " burst=%lu by ", burst->puts);
        for (unsigned i = 0; i < burst->writers && i < shown; i++) {
            ebpfMonPut who = {.through = put->through};

            strcpy(who.user, burst->writer[i].user);
            strcpy(who.host, burst->writer[i].host);
            add(&l, "%s", i ? ", " : "");
            addWord(&l, userOf(&who));
            add(&l, "@");
            addWord(&l, hostOf(&who));
            add(&l, " (%lu)", burst->writer[i].count);
        }
        if (rest(burst, shown))
            add(&l, ", others (%lu)", rest(burst, shown));
    }
    if (result)
        add(&l, " result=%s", result);
    return l.len;
}

/* One element of an array, len characters. Nonzero when it is a number. */
static int jsonElement(ebpfMonJson *j, const char *text, size_t len)
{
    if (len == 3 && strncmp(text, "NaN", 3) == 0)
        ebpfMonJsonText(j, "Nan");
    else if (len == 3 && strncmp(text, "inf", 3) == 0)
        ebpfMonJsonText(j, "Infinity");
    else if (len == 4 && strncmp(text, "-inf", 4) == 0)
        ebpfMonJsonText(j, "-Infinity");
    else if (ebpfMonIsJsonNumber(text, len))
        yajl_gen_number(j->g, text, len);
    else
        return 0;
    return 1;
}

static void jsonValue(ebpfMonJson *j, const char *key, const char *text, long count, int isNumber, double number,
                      size_t limit)
{
    const char *at;
    long elements = isNumber ? -1 : arrayOf(text, count, &at);
    char cut[EBPFMON_TEXT_SIZE], sizeKey[16];

    ebpfMonJsonKey(j, key);
    if (isNumber) {
        ebpfMonJsonNumber(j, text, number);
        return;
    }
    if (elements < 0) {
        ebpfMonTextCopy(cut, limit < sizeof(cut) ? limit : sizeof(cut), text);
        ebpfMonJsonText(j, cut);
        return;
    }
    yajl_gen_array_open(j->g);
    while (*at && strcmp(at, "...") != 0) {
        size_t len = strcspn(at, " ");

        if (!jsonElement(j, at, len)) { /* not numbers: texts may have blanks, so they stay together */
            ebpfMonTextCopy(cut, limit < sizeof(cut) ? limit : sizeof(cut), at);
            ebpfMonJsonText(j, cut);
            break;
        }
        at += len + (at[len] == ' ');
    }
    yajl_gen_array_close(j->g);
    snprintf(sizeKey, sizeof(sizeKey), "%s-size", key);
    ebpfMonJsonKey(j, sizeKey);
    ebpfMonJsonInteger(j, elements);
}

size_t ebpfMonCaPutJson(const ebpfMonPut *put, const ebpfMonBurstInfo *burst, const ebpfMonFormatMore *more,
                        size_t limit, char *buf, size_t size)
{
    line l = {buf, size, 0};
    ebpfMonJson j;
    char when[40];
    const char *result = resultOf(put);
    size_t len;

    addPrefix(&l, more->prefix, put->ioc);
    ebpfMonJsonBegin(&j, buf + l.len, size - l.len);
    if (!j.g)
        return 0;
    epicsTimeToStrftime(when, sizeof(when), "%Y-%m-%d", &put->time);
    ebpfMonJsonPair(&j, "date", when);
    epicsTimeToStrftime(when, sizeof(when), "%H:%M:%S.%03f", &put->time);
    ebpfMonJsonPair(&j, "time", when);
    ebpfMonJsonPair(&j, "host", hostOf(put));
    ebpfMonJsonPair(&j, "user", userOf(put));
    for (unsigned i = 0; i < more->metas; i++)
        ebpfMonJsonPair(&j, more->meta[i].key, more->meta[i].value);
    ebpfMonJsonPair(&j, "pv", nameOf(put));
    jsonValue(&j, "new", put->val, put->count, put->isNumber, put->number, limit);
    if (put->hasOld)
        jsonValue(&j, "old", put->old, put->oldCount >= 0 ? put->oldCount : put->count, put->oldIsNumber,
                  put->oldNumber, limit);
    if (burst) {
        unsigned shown = writersShown(limit);

        if (burst->hasRange) {
            ebpfMonJsonKey(&j, "min");
            ebpfMonJsonNumber(&j, NULL, burst->min);
            ebpfMonJsonKey(&j, "max");
            ebpfMonJsonNumber(&j, NULL, burst->max);
        }
        ebpfMonJsonKey(&j, "burst");
        ebpfMonJsonInteger(&j, (long long)burst->puts);
        ebpfMonJsonKey(&j, "writers");
        yajl_gen_array_open(j.g);
        for (unsigned i = 0; i < burst->writers && i < shown; i++) {
            ebpfMonPut who = {.through = put->through};

            strcpy(who.user, burst->writer[i].user);
            strcpy(who.host, burst->writer[i].host);
            yajl_gen_map_open(j.g);
            ebpfMonJsonPair(&j, "host", hostOf(&who));
            ebpfMonJsonPair(&j, "user", userOf(&who));
            ebpfMonJsonKey(&j, "count");
            ebpfMonJsonInteger(&j, (long long)burst->writer[i].count);
            yajl_gen_map_close(j.g);
        }
        yajl_gen_array_close(j.g);
        if (rest(burst, shown)) {
            ebpfMonJsonKey(&j, "others");
            ebpfMonJsonInteger(&j, (long long)rest(burst, shown));
        }
    }
    if (result)
        ebpfMonJsonPair(&j, "result", result);
    len = ebpfMonJsonEnd(&j);
    return len ? l.len + len : 0;
}
