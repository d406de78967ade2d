/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <epicsTime.h>
#include <yajl_parse.h>

#include "export/otlp/otlpField.h"
#include "export/otlp/otlpJson.h"

#define UNIX_AT 631152000u /* POSIX_TIME_AT_EPICS_EPOCH */

/* SeverityNumber of logs.proto. */
#define INFO  9
#define WARN  13
#define ERROR 17

/* "ADDRESS:PORT" */
static void attributeAddress(ebpfMonJson *j, const char *whose, const char *peer)
{
    char key[32], address[EBPFMON_ADDRESS_SIZE];
    long port = ebpfMonAddressSplit(peer, address);

    if (port < 0)
        return;
    snprintf(key, sizeof(key), "%s.address", whose);
    attribute(j, key, address);
    snprintf(key, sizeof(key), "%s.port", whose);
    attributeInteger(j, key, port);
}

static uint64_t unixNs(const epicsTimeStamp *t)
{
    return ((uint64_t)t->secPastEpoch + UNIX_AT) * 1000000000u + t->nsec;
}

static void scope(ebpfMonJson *j)
{
    mapOpen(j, "scope");
    text(j, "name", EBPFMON_OTLP_SCOPE);
    text(j, "version", EBPFMON_VERSION);
    mapClose(j);
}

const char *ebpfMonOtlpHost(void)
{
    static _Thread_local char host[256];

    if (!host[0] && (gethostname(host, sizeof(host) - 1) || !host[0]))
        strcpy(host, "localhost");
    return host;
}

/* service: NULL is the monitor. service.instance.id tells two monitors of one host apart, and of an IOC one run from
 * the next. Of what the user handOvers, that which is the monitor's alone is not said of an IOC. */
static void resource(ebpfMonJson *j, const ebpfMonOtlpConf *conf, const ebpfMonSpanService *service)
{
    static const char *const ours[] = {"service.name", "service.version", "service.instance.id", "host.name"};
    const char *key = NULL, *value, *given[sizeof(ours) / sizeof(ours[0])] = {NULL};
    char instance[320];
    unsigned i;

    snprintf(instance, sizeof(instance), "%s:%ld", ebpfMonOtlpHost(), service ? (long)service->pid : (long)getpid());
    while ((key = ebpfMonOtlpPairNext(&conf->resource, key, &value)))
        for (i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
            if (strcmp(key, ours[i]) == 0)
                given[i] = value;
    mapOpen(j, "resource");
    listOpen(j, "attributes");
    attribute(j, ours[0], service ? service->name : conf->service);
    if (!service) {
        attribute(j, ours[1], given[1] ? given[1] : EBPFMON_VERSION);
        attribute(j, ours[2], given[2] ? given[2] : instance);
    } else {
        if (service->pid) {
            attribute(j, ours[2], instance);
            attributeInteger(j, "process.pid", service->pid);
        }
        attribute(j, "epics.base.version", service->version);
        attribute(j, "container.id", service->container);
    }
    attribute(j, ours[3], given[3] ? given[3] : ebpfMonOtlpHost());
    for (key = NULL; (key = ebpfMonOtlpPairNext(&conf->resource, key, &value));) {
        for (i = 0; i < sizeof(ours) / sizeof(ours[0]) && strcmp(key, ours[i]) != 0; i++)
            ;
        if (i == sizeof(ours) / sizeof(ours[0]))
            attribute(j, key, value);
    }
    listClose(j);
    mapClose(j);
}

/* The text of an object that is not closed yet. */
static size_t unfinished(const ebpfMonJson *j)
{
    return j->cut ? 0 : j->len;
}

size_t ebpfMonOtlpHead(ebpfMonOtlpSignal signal, const ebpfMonOtlpConf *conf, char *buf, size_t size)
{
    ebpfMonJson j;

    if (signal == ebpfMonOtlpZipkin) {
        if (size)
            buf[0] = '[';
        return size > 0;
    }
    ebpfMonJsonBegin(&j, buf, size);
    if (!j.g)
        return 0;
    listOpen(&j, signal == ebpfMonOtlpLogs ? "resourceLogs" : signal == ebpfMonOtlpMetrics ? "resourceMetrics" :
             "resourceSpans");
    if (signal == ebpfMonOtlpTraces)
        return unfinished(&j);
    mapOpen(&j, NULL);
    resource(&j, conf, NULL);
    listOpen(&j, signal == ebpfMonOtlpLogs ? "scopeLogs" : "scopeMetrics");
    mapOpen(&j, NULL);
    scope(&j);
    listOpen(&j, signal == ebpfMonOtlpLogs ? "logRecords" : "metrics");
    return unfinished(&j);
}

const char *ebpfMonOtlpTail(ebpfMonOtlpSignal signal)
{
    return signal == ebpfMonOtlpZipkin ? "]" : "]}]}]}";
}

static void putAttributes(ebpfMonJson *j, const ebpfMonPut *put)
{
    static const char *const seen[] = {"", "inside", "wire", "both"};
    char hash[24];

    attribute(j, "epics.pv", put->pv);
    attribute(j, "epics.channel", put->channel);
    attribute(j, "epics.ioc", put->ioc);
    attributeOpen(j, "epics.value"); /* always a string: backends give one name one type */
    text(j, "stringValue", put->val);
    attributeClose(j);
    if (put->isNumber)
        attributeReal(j, "epics.value_number", put->val, put->number);
    if (put->hasOld) {
        attributeOpen(j, "epics.value_old");
        text(j, "stringValue", put->old);
        attributeClose(j);
    }
    attribute(j, "epics.value_after", put->after);
    if (put->count != 1)
        attributeInteger(j, "epics.put.count", put->count);
    if (put->hash) {
        snprintf(hash, sizeof(hash), "%016" PRIx64, put->hash);
        attribute(j, "epics.put.hash", hash);
    }
    attribute(j, "epics.put.through", ebpfMonThroughName(put->through));
    attribute(j, "epics.put.result", ebpfMonPutResultName(put->result));
    if (put->status)
        attributeInteger(j, "epics.put.status", put->status);
    attribute(j, "epics.put.message", put->message);
    attribute(j, "epics.put.link", put->link);
    attribute(j, "epics.put.link_ioc", put->linkIoc);
    attribute(j, "epics.put.root", put->root);
    attribute(j, "epics.put.cause", put->cause);
    attribute(j, "epics.put.thread", put->thread);
    attribute(j, "epics.put.seen", seen[put->seen & 3]);
    attribute(j, "epics.put.host", put->host);
    if (put->unexpected) {
        attributeTrue(j, "epics.put.unexpected", 1);
        attribute(j, "epics.put.rule", put->rule);
    }
    attribute(j, "user.name", put->user);
    attributeAddress(j, "client", put->peer);
    attributeAddress(j, "server", put->server);
    if (put->peerPid) {
        attributeInteger(j, "process.pid", put->peerPid);
        attributeInteger(j, "process.real_user.id", put->peerUid);
    }
    attribute(j, "process.real_user.name", put->realUser);
    attribute(j, "process.command", put->command);
    attribute(j, "container.id", put->container);
}

size_t ebpfMonOtlpLogRecord(const ebpfMonPut *put, uint64_t observed, char *buf, size_t size)
{
    int severity = put->unexpected ? ERROR :
                   put->result == ebpfMonPutFailed || put->result == ebpfMonPutDenied ||
                   put->result == ebpfMonPutLost ? WARN : INFO;
    char line[EBPFMON_LINE_SIZE];
    ebpfMonJson j;

    ebpfMonJsonBegin(&j, buf, size);
    if (!j.g)
        return 0;
    wide(&j, "timeUnixNano", unixNs(&put->time));
    wide(&j, "observedTimeUnixNano", observed);
    small(&j, "severityNumber", severity);
    text(&j, "severityText", severity == ERROR ? "ERROR" : severity == WARN ? "WARN" : "INFO");
    ebpfMonPutLine(put, line, sizeof(line));
    mapOpen(&j, "body");
    text(&j, "stringValue", line);
    mapClose(&j);
    text(&j, "eventName", "epics.put");
    listOpen(&j, "attributes");
    putAttributes(&j, put);
    listClose(&j);
    return ebpfMonJsonEnd(&j);
}

/* --- spans --- */

static void spanAttribute(ebpfMonJson *j, const ebpfMonSpanAttribute *a)
{
    switch (a->type) {
    case ebpfMonSpanText:
        attribute(j, a->key, a->text);
        break;
    case ebpfMonSpanInteger:
        attributeInteger(j, a->key, a->integer);
        break;
    case ebpfMonSpanDouble:
        attributeReal(j, a->key, NULL, a->number);
        break;
    case ebpfMonSpanBool:
        attributeTrue(j, a->key, a->integer != 0);
        break;
    }
}

size_t ebpfMonOtlpServiceHead(const ebpfMonSpanService *service, const ebpfMonOtlpConf *conf, char *buf, size_t size)
{
    ebpfMonJson j;

    ebpfMonJsonBegin(&j, buf, size);
    if (!j.g)
        return 0;
    resource(&j, conf, service->name[0] ? service : NULL);
    listOpen(&j, "scopeSpans");
    mapOpen(&j, NULL);
    scope(&j);
    listOpen(&j, "spans");
    return unfinished(&j);
}

size_t ebpfMonOtlpSpan(const ebpfMonSpan *span, char *buf, size_t size)
{
    ebpfMonJson j;

    ebpfMonJsonBegin(&j, buf, size);
    if (!j.g)
        return 0;
    identity(&j, "traceId", span->trace, sizeof(span->trace));
    identity(&j, "spanId", span->id, sizeof(span->id));
    identity(&j, "parentSpanId", span->parent, sizeof(span->parent));
    text(&j, "name", span->name);
    small(&j, "kind", (long)span->kind);
    wide(&j, "startTimeUnixNano", span->start);
    wide(&j, "endTimeUnixNano", span->end);
    listOpen(&j, "attributes");
    for (unsigned i = 0; i < span->attributes && i < EBPFMON_SPAN_ATTRIBUTES; i++)
        spanAttribute(&j, &span->attribute[i]);
    listClose(&j);
    if (span->dropped)
        small(&j, "droppedAttributesCount", (long)span->dropped);
    if (span->links) {
        listOpen(&j, "links");
        for (unsigned i = 0; i < span->links && i < EBPFMON_SPAN_LINKS; i++) {
            mapOpen(&j, NULL);
            identity(&j, "traceId", span->link[i].trace, sizeof(span->link[i].trace));
            identity(&j, "spanId", span->link[i].id, sizeof(span->link[i].id));
            mapClose(&j);
        }
        listClose(&j);
    }
    mapOpen(&j, "status");
    small(&j, "code", (long)span->status);
    ebpfMonJsonPair(&j, "message", span->message);
    mapClose(&j);
    return ebpfMonJsonEnd(&j);
}

/* --- the answer --- */

typedef struct {
    enum { nothing, count, message } next;
    uint64_t rejected;
    char *why;
    size_t size;
} answer;

static int answerKey(void *context, const unsigned char *key, size_t len)
{
    answer *a = context;

    a->next = len > 8 && strncmp((const char *)key, "rejected", 8) == 0 ? count :
              len == 12 && strncmp((const char *)key, "errorMessage", 12) == 0 ? message : nothing;
    return 1;
}

static int answerText(void *context, const unsigned char *value, size_t len)
{
    answer *a = context;
    char word[256];

    snprintf(word, sizeof(word), "%.*s", len < 255 ? (int)len : 255, (const char *)value);
    if (a->next == count)
        a->rejected = strtoull(word, NULL, 10);
    else if (a->next == message)
        ebpfMonTextCopy(a->why, a->size, word);
    a->next = nothing;
    return 1;
}

static int answerInteger(void *context, long long value)
{
    answer *a = context;

    if (a->next == count && value > 0)
        a->rejected = (uint64_t)value;
    a->next = nothing;
    return 1;
}

uint64_t ebpfMonOtlpRejected(const char *body, size_t len, char *why, size_t size)
{
    static const yajl_callbacks callbacks = {
        .yajl_integer = answerInteger, .yajl_string = answerText, .yajl_map_key = answerKey,
    };
    answer a = {.why = why, .size = size};
    yajl_handle parser = yajl_alloc(&callbacks, NULL, &a);

    why[0] = 0;
    if (!parser)
        return 0;
    if (yajl_parse(parser, (const unsigned char *)body, len) != yajl_status_ok ||
        yajl_complete_parse(parser) != yajl_status_ok)
        a.rejected = 0; /* no JSON: it accepted, whatever it says besides */
    yajl_free(parser);
    return a.rejected;
}
