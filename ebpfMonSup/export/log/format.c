/* SPDX-License-Identifier: BSD-3-Clause */
#include <epicsString.h>
#include <epicsTime.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "export/log/format.h"

/* --- caPutLog --- */

/*
 * The formats of the module caPutLog (its docs/index.rst, "Original Log Format" and "JSON Log Format"). Order, quotes
 * and spelling of the fields are the same, so programs that read caPutLog's logs can read ours. Fields that caPutLog
 * does not have come last.
 */

typedef struct {
    char  *buf;
    size_t size, len;
} lineBuffer;

static void addFormatted(lineBuffer *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void addFormatted(lineBuffer *l, const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(l->buf + l->len, l->size - l->len, format, args);
    va_end(args);
    l->len += n < 0 ? 0 : (size_t)n < l->size - l->len ? (size_t)n : l->size - l->len - 1;
}

/* Adds a word. Blanks separate fields, so a blank in a word becomes "_". */
static void addWord(lineBuffer *l, const char *word)
{
    char clean[EBPFMON_TEXT_SIZE];
    size_t at = l->len;

    ebpfMonTextCopy(clean, sizeof(clean), word[0] ? word : "-");
    addFormatted(l, "%s", clean);
    for (; at < l->len; at++)
        if (l->buf[at] == ' ')
            l->buf[at] = '_';
}

static void addPrefix(lineBuffer *l, const char *prefix, const char *ioc)
{
    for (; *prefix; prefix++) {
        if (prefix[0] == '%' && prefix[1] == 'i') {
            addWord(l, ioc);
            prefix++;
        } else {
            addFormatted(l, "%c", *prefix);
        }
    }
}

/* caPutLog logs only puts of clients. If there is no client, the user is the origin of the put, and the host is this
 * one. */
static const char *getUser(const ebpfMonPut *put)
{
    return put->user[0] ? put->user : put->realUser[0] ? put->realUser :
           put->peer[0] ? "-" : ebpfMonThroughName(put->through);
}

static const char *getHost(ebpfMonFormatter *f, const ebpfMonPut *put)
{
    if (put->host[0])
        return put->host;
    if (put->peer[0])
        return put->peer;
    if (!f->host[0] && (gethostname(f->host, sizeof(f->host) - 1) || !f->host[0]))
        strcpy(f->host, "localhost");
    return f->host;
}

static const char *getName(const ebpfMonPut *put)
{
    return put->channel[0] ? put->channel : put->pv;
}

/* Returns the number of elements of an array, and where their text begins; -1: a single value. Only for arrays the
 * monitor writes "[3] 1 2 4"; a string that looks like that has count 1. */
static long findElements(const char *text, long count, const char **elements)
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
    return count > 1 ? count : -1; /* an array of characters is a long string */
}

static void addValueText(lineBuffer *l, const char *text, int isNumber, double number, size_t limit)
{
    char cut[EBPFMON_TEXT_SIZE], escaped[4 * EBPFMON_TEXT_SIZE], digits[40];

    if (isNumber && isfinite(number) && ebpfMonJsonIsNumber(text, strlen(text))) {
        addFormatted(l, "%s", text);
    } else if (isNumber && isfinite(number)) {
        ebpfMonJsonFormatNumber(number, digits, sizeof(digits));
        addFormatted(l, "%s", digits);
    } else if (isNumber) {
        addFormatted(l, "%g", number);
    } else {
        ebpfMonTextCopy(cut, limit < sizeof(cut) ? limit : sizeof(cut), text);
        epicsStrnEscapedFromRaw(escaped, sizeof(escaped), cut, strlen(cut));
        addFormatted(l, "\"%s\"", escaped);
    }
}

/* Returns the result of a put that was not done, or still waits; NULL: it was done. */
static const char *getProblem(const ebpfMonPut *put)
{
    return ebpfMonPutHasFailed(put) || put->result == ebpfMonPutPending ? ebpfMonPutResultName(put->result) : NULL;
}

static unsigned getWritersShown(size_t limit)
{
    return limit >= 400 ? EBPFMON_BURST_WRITERS : limit >= 200 ? 4 : limit >= 100 ? 2 : 1;
}

/* Counts the puts of writers that the line does not name. */
static unsigned long countOthers(const ebpfMonBurstInfo *b, unsigned shown)
{
    unsigned long n = b->others;

    for (unsigned i = shown; i < b->writers; i++)
        n += b->writer[i].count;
    return n;
}

/* Sets what a put has of its writer, so that a summary names the writer as the line of a single put does. */
static void setWriter(ebpfMonPut *put, const ebpfMonBurstWriter *w)
{
    memset(put, 0, sizeof(*put));
    strcpy(put->user, w->user);
    strcpy(put->host, w->host);
    strcpy(put->peer, w->peer);
    put->through = w->through;
}

static void addBurstText(lineBuffer *l, ebpfMonFormatter *f, const ebpfMonBurstInfo *burst, size_t limit)
{
    unsigned shown = getWritersShown(limit);

    if (burst->hasRange) {
        addFormatted(l, " min=");
        addValueText(l, "", 1, burst->min, limit);
        addFormatted(l, " max=");
        addValueText(l, "", 1, burst->max, limit);
    }
    addFormatted(l, " burst=%lu by ", burst->puts);
    for (unsigned i = 0; i < burst->writers && i < shown; i++) {
        ebpfMonPut writer;

        setWriter(&writer, &burst->writer[i]);
        addFormatted(l, "%s", i ? ", " : "");
        addWord(l, getUser(&writer));
        addFormatted(l, "@");
        addWord(l, getHost(f, &writer));
        addFormatted(l, burst->writer[i].isUnsure ? " (%lu, perhaps)" : " (%lu)", burst->writer[i].count);
    }
    if (countOthers(burst, shown))
        addFormatted(l, ", others (%lu)", countOthers(burst, shown));
}

static size_t putFormatCaTextLine(ebpfMonFormatter *f, const ebpfMonPut *put, const ebpfMonBurstInfo *burst,
                                  size_t limit, char *buf, size_t size)
{
    lineBuffer l = {buf, size, 0};
    char when[40];
    const char *problem = getProblem(put);

    addPrefix(&l, f->labels.prefix, put->ioc);
    epicsTimeToStrftime(when, sizeof(when), "%d-%b-%y %H:%M:%S", &put->time);
    addFormatted(&l, "%s ", when);
    addWord(&l, getHost(f, put));
    addFormatted(&l, " ");
    addWord(&l, getUser(put));
    addFormatted(&l, " ");
    addWord(&l, getName(put));
    addFormatted(&l, " new=");
    addValueText(&l, put->val, put->isNumber, put->number, limit);
    if (put->hasOld) {
        addFormatted(&l, " old=");
        addValueText(&l, put->old, put->oldIsNumber, put->oldNumber, limit);
    }
    if (burst)
        addBurstText(&l, f, burst, limit);
    if (put->isUnsure && !burst)
        addFormatted(&l, " who_sure=no");
    if (problem)
        addFormatted(&l, " result=%s", problem);
    return l.len;
}

/* Writes one element of an array, "len" characters; "j" NULL: only looks at it. Nonzero: it is a number. */
static int writeJsonElement(ebpfMonJson *j, const char *text, size_t len)
{
    static const struct {
        const char *text, *json;
    } others[] = {
        {"NaN", "Nan"}, {"inf", "Infinity"}, {"-inf", "-Infinity"}, /* of CA; and of PVA: */
        {"\"nan\"", "Nan"}, {"\"inf\"", "Infinity"}, {"\"-inf\"", "-Infinity"},
    };

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (len != strlen(others[i].text) || strncmp(text, others[i].text, len) != 0)
            continue;
        if (j)
            ebpfMonJsonWriteText(j, others[i].json);
        return 1;
    }
    if (!ebpfMonJsonIsNumber(text, len))
        return 0;
    if (j)
        yajl_gen_number(j->g, text, len);
    return 1;
}

/* Nonzero: here the text ends, because there was no room for more; perhaps within a number. */
static int isCut(const char *text)
{
    size_t len = strlen(text);

    return len >= 3 && strcmp(text + len - 3, "...") == 0 && strspn(text, "-+.0123456789e") == len;
}

/* Writes the elements of an array; "j" NULL: only looks at them. Nonzero: all are numbers. */
static int writeJsonNumbers(ebpfMonJson *j, const char *at)
{
    for (size_t len; *at && !isCut(at); at += len + (at[len] == ' ')) {
        len = strcspn(at, " ");
        if (!writeJsonElement(j, at, len))
            return 0;
    }
    return 1;
}

typedef struct {
    const char *text;
    int    isNumber, isText;
    double number;
    long   count;
} shownValue;

static void addJsonValue(ebpfMonJson *j, const char *key, const shownValue *v, size_t limit)
{
    const char *at;
    long elements = findElements(v->text, v->count, &at);
    char cut[EBPFMON_TEXT_SIZE], sizeKey[16];

    if (v->isNumber) {
        ebpfMonJsonAddNumber(j, key, v->text, v->number);
        return;
    }
    if (elements < 0) {
        ebpfMonTextCopy(cut, limit < sizeof(cut) ? limit : sizeof(cut), v->text);
        ebpfMonJsonAddText(j, key, cut);
        return;
    }
    ebpfMonJsonOpenList(j, key);
    if (!v->isText && writeJsonNumbers(NULL, at)) {
        writeJsonNumbers(j, at);
    } else if (*at) { /* texts may contain blanks, so nothing tells where one ends */
        ebpfMonTextCopy(cut, limit < sizeof(cut) ? limit : sizeof(cut), at);
        ebpfMonJsonWriteText(j, cut);
    }
    ebpfMonJsonCloseList(j);
    snprintf(sizeKey, sizeof(sizeKey), "%s-size", key);
    ebpfMonJsonAddInteger(j, sizeKey, elements);
}

static void addJsonBurst(ebpfMonFormatter *f, const ebpfMonBurstInfo *burst, size_t limit)
{
    ebpfMonJson *j = &f->json;
    unsigned shown = getWritersShown(limit);

    if (burst->hasRange) {
        ebpfMonJsonAddNumber(j, "min", NULL, burst->min);
        ebpfMonJsonAddNumber(j, "max", NULL, burst->max);
    }
    ebpfMonJsonAddInteger(j, "burst", (long long)burst->puts);
    ebpfMonJsonOpenList(j, "writers");
    for (unsigned i = 0; i < burst->writers && i < shown; i++) {
        ebpfMonPut writer;

        setWriter(&writer, &burst->writer[i]);
        ebpfMonJsonOpenObject(j, NULL);
        ebpfMonJsonAddTextIfAny(j, "host", getHost(f, &writer));
        ebpfMonJsonAddTextIfAny(j, "user", getUser(&writer));
        ebpfMonJsonAddInteger(j, "count", (long long)burst->writer[i].count);
        if (burst->writer[i].isUnsure)
            ebpfMonJsonAddBool(j, "who_sure", 0);
        ebpfMonJsonCloseObject(j);
    }
    ebpfMonJsonCloseList(j);
    if (countOthers(burst, shown))
        ebpfMonJsonAddInteger(j, "others", (long long)countOthers(burst, shown));
}

static size_t putFormatCaJsonLine(ebpfMonFormatter *f, const ebpfMonPut *put, const ebpfMonBurstInfo *burst,
                                  size_t limit, char *buf, size_t size)
{
    lineBuffer l = {buf, size, 0};
    ebpfMonJson *j = &f->json;
    char when[40];
    const char *problem = getProblem(put);
    size_t len;

    addPrefix(&l, f->labels.prefix, put->ioc);
    if (ebpfMonJsonBegin(j, buf + l.len, size - l.len))
        return 0;
    epicsTimeToStrftime(when, sizeof(when), "%Y-%m-%d", &put->time);
    ebpfMonJsonAddText(j, "date", when);
    epicsTimeToStrftime(when, sizeof(when), "%H:%M:%S.%03f", &put->time);
    ebpfMonJsonAddText(j, "time", when);
    ebpfMonJsonAddTextIfAny(j, "host", getHost(f, put));
    ebpfMonJsonAddTextIfAny(j, "user", getUser(put));
    for (unsigned i = 0; i < f->labels.metas; i++)
        ebpfMonJsonAddTextIfAny(j, f->labels.meta[i].key, f->labels.meta[i].value);
    ebpfMonJsonAddTextIfAny(j, "pv", getName(put));
    addJsonValue(j, "new", &(shownValue){put->val, put->isNumber, put->isText, put->number, put->count}, limit);
    if (put->hasOld)
        addJsonValue(j, "old", &(shownValue){put->old, put->oldIsNumber, put->oldIsText, put->oldNumber,
                                             put->oldCount >= 0 ? put->oldCount : put->count}, limit);
    if (burst)
        addJsonBurst(f, burst, limit);
    if (put->isUnsure && !burst)
        ebpfMonJsonAddBool(j, "who_sure", 0);
    if (problem)
        ebpfMonJsonAddText(j, "result", problem);
    len = ebpfMonJsonEnd(j);
    return len ? l.len + len : 0;
}

/* --- JSON --- */

/* The schema of the JSON lines. documentation/use/putLog.md explains each key. */

/* Adds a time as in RFC 3339, in UTC, with nanoseconds. */
static void addTime(ebpfMonJson *j, const char *key, const epicsTimeStamp *time)
{
    struct tm tm = {0};
    unsigned long ns = 0;
    char text[64];

    epicsTimeToGMTM(&tm, &ns, time);
    snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d.%09luZ", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
             tm.tm_hour, tm.tm_min, tm.tm_sec, ns);
    ebpfMonJsonAddText(j, key, text);
}

/* The same in local time, with its offset from UTC. */
static void addLocalTime(ebpfMonJson *j, const char *key, const epicsTimeStamp *time)
{
    char text[64], offset[8];

    epicsTimeToStrftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S.%09f", time);
    epicsTimeToStrftime(offset, sizeof(offset), "%z", time); /* "+0100" */
    snprintf(text + strlen(text), sizeof(text) - strlen(text), "%.3s:%.2s", offset, offset + 3);
    ebpfMonJsonAddText(j, key, text);
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
    char hash[20], took[32];

    addValue(j, "value", put->val, put->isNumber, put->number);
    if (put->count != 1)
        ebpfMonJsonAddInteger(j, "count", put->count);
    if (put->hasOld) {
        addValue(j, "old", put->old, put->oldIsNumber, put->oldNumber);
        if (put->oldCount >= 0 && put->oldCount != 1)
            ebpfMonJsonAddInteger(j, "old_count", put->oldCount);
    }
    ebpfMonJsonAddTextIfAny(j, "after", put->after);
    if (put->took) {
        snprintf(took, sizeof(took), "%.9f", (double)put->took * 1e-9);
        ebpfMonJsonAddNumber(j, "duration", took, (double)put->took * 1e-9);
    }
    if (put->hash) {
        snprintf(hash, sizeof(hash), "%016" PRIx64, put->hash);
        ebpfMonJsonAddText(j, "hash", hash);
    }
}

static void addWriter(ebpfMonJson *j, const ebpfMonPut *put)
{
    ebpfMonJsonAddTextIfAny(j, "user", put->user);
    if (ebpfMonPutIsCertified(put))
        ebpfMonJsonAddText(j, "method", "x509");
    ebpfMonJsonAddTextIfAny(j, "authority", put->authority);
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
    ebpfMonJsonAddTextIfAny(j, "gateway", put->gateway);
    ebpfMonJsonAddTextIfAny(j, "gateway_server", put->gatewayServer);
    if (put->gatewayTime.secPastEpoch)
        addTime(j, "gateway_time", &put->gatewayTime);
    if (ebpfMonPutIsAnonymous(put))
        ebpfMonJsonAddInteger(j, "gateway_clients", put->gatewayClients);
    ebpfMonJsonAddTextIfAny(j, "through", ebpfMonThroughName(put->through));
    ebpfMonJsonAddTextIfAny(j, "link", put->link);
    ebpfMonJsonAddTextIfAny(j, "link_ioc", put->linkIoc);
    ebpfMonJsonAddTextIfAny(j, "root", put->root);
    ebpfMonJsonAddTextIfAny(j, "cause", put->cause);
    ebpfMonJsonAddTextIfAny(j, "thread", put->thread);
    ebpfMonJsonAddId(j, "trace", put->trace, sizeof(put->trace));
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

/* The single formats; the two functions above choose among them. "limit": characters of a value. */
static size_t formatJsonLine(ebpfMonFormatter *f, const ebpfMonPut *put, const ebpfMonBurstInfo *burst, char *buf,
                             size_t size)
{
    ebpfMonJson *j = &f->json;

    if (ebpfMonJsonBegin(j, buf, size))
        return 0;
    addTime(j, "time", &put->time);
    addLocalTime(j, "local", &put->time);
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

static size_t formatJsonLossLine(ebpfMonFormatter *f, uint64_t lost, const char *why, char *buf, size_t size)
{
    ebpfMonJson *j = &f->json;
    epicsTimeStamp now;

    if (ebpfMonJsonBegin(j, buf, size))
        return 0;
    epicsTimeGetCurrent(&now);
    addTime(j, "time", &now);
    addLocalTime(j, "local", &now);
    ebpfMonJsonAddInteger(j, "lost", (long long)lost);
    ebpfMonJsonAddTextIfAny(j, "message", why);
    return ebpfMonJsonEnd(j);
}

/* --- formatters --- */

#define VALUE_MAX 400 /* the limit of caPutLog's JSON: MAX_ARRAY_SIZE_BYTES */
#define VALUE_MIN 6

void ebpfMonFormatterFree(ebpfMonFormatter *f)
{
    ebpfMonJsonFree(&f->json);
}

size_t ebpfMonFormatPut(ebpfMonFormatter *f, ebpfMonFormat format, const ebpfMonPut *put,
                        const ebpfMonBurstInfo *burst, char *buf, size_t size)
{
    size_t len = 0;

    if (format == ebpfMonFormatJson)
        return formatJsonLine(f, put, burst, buf, size);
    for (size_t limit = VALUE_MAX; limit >= VALUE_MIN; limit /= 2) {
        len = format == ebpfMonFormatCaPutText ? putFormatCaTextLine(f, put, burst, limit, buf, size) :
              putFormatCaJsonLine(f, put, burst, limit, buf, size);
        if (len <= EBPFMON_CAPUTLINE_MAX)
            break;
    }
    return len;
}

size_t ebpfMonFormatLoss(ebpfMonFormatter *f, ebpfMonFormat format, uint64_t lost, const char *why, char *buf,
                         size_t size)
{
    ebpfMonPut *put = &f->loss;

    if (format == ebpfMonFormatJson)
        return formatJsonLossLine(f, lost, why, buf, size);
    memset(put, 0, sizeof(*put));
    epicsTimeGetCurrent(&put->time);
    strcpy(put->ioc, "ebpfMon");
    strcpy(put->user, "ebpfMon");
    strcpy(put->pv, "LOG_LOST_CNT");
    snprintf(put->val, sizeof(put->val), "%" PRIu64, lost);
    put->isNumber = 1;
    put->number = (double)lost;
    put->count = 1;
    return ebpfMonFormatPut(f, format, put, NULL, buf, size);
}
