/* SPDX-License-Identifier: BSD-3-Clause */
#include <epicsTime.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yajl_parse.h>
#include "common/clock.h"
#include "common/text.h"
#include "otlp/otlpJson.h"

/* --- parts --- */

void ebpfMonOtlpAddInteger64(ebpfMonJson *j, const char *key, uint64_t number)
{
    char digits[24];

    snprintf(digits, sizeof(digits), "%" PRIu64, number);
    ebpfMonJsonAddText(j, key, digits);
}

void ebpfMonOtlpAddDouble(ebpfMonJson *j, const char *key, const char *digits, double number)
{
    if (isnan(number))
        ebpfMonJsonAddText(j, key, "NaN");
    else
        ebpfMonJsonAddNumber(j, key, digits, number);
}

static void openAttribute(ebpfMonJson *j, const char *key)
{
    ebpfMonJsonOpenObject(j, NULL);
    ebpfMonJsonAddText(j, "key", key);
    ebpfMonJsonOpenObject(j, "value");
}

static void closeAttribute(ebpfMonJson *j)
{
    ebpfMonJsonCloseObject(j);
    ebpfMonJsonCloseObject(j);
}

void ebpfMonOtlpAddAnyTextAttribute(ebpfMonJson *j, const char *key, const char *value)
{
    openAttribute(j, key);
    ebpfMonJsonAddText(j, "stringValue", value);
    closeAttribute(j);
}

void ebpfMonOtlpAddTextAttribute(ebpfMonJson *j, const char *key, const char *value)
{
    if (value[0])
        ebpfMonOtlpAddAnyTextAttribute(j, key, value);
}

static void addOtlpIntegerAttribute(ebpfMonJson *j, const char *key, int64_t value)
{
    char digits[24];

    snprintf(digits, sizeof(digits), "%" PRId64, value);
    openAttribute(j, key);
    ebpfMonJsonAddText(j, "intValue", digits);
    closeAttribute(j);
}

static void addOtlpDoubleAttribute(ebpfMonJson *j, const char *key, const char *digits, double value)
{
    openAttribute(j, key);
    ebpfMonOtlpAddDouble(j, "doubleValue", digits, value);
    closeAttribute(j);
}

static void addOtlpBoolAttribute(ebpfMonJson *j, const char *key, int value)
{
    openAttribute(j, key);
    ebpfMonJsonAddBool(j, "boolValue", value);
    closeAttribute(j);
}

/* --- OTLP --- */

/* the scope of everything that the monitor sends */
#define EBPFMON_OTLP_SCOPE "ebpfMon"

/* SeverityNumber of logs.proto. */
#define INFO  9
#define WARN  13
#define ERROR 17

#define ADDRESS_SIZE 64

/* Splits "ADDRESS:PORT". Returns the port; -1: it is no such text. */
static long splitAddress(const char *peer, char address[ADDRESS_SIZE])
{
    const char *colon = strrchr(peer, ':');
    int isIPv6 = peer[0] == '[';

    if (!colon || colon - peer >= ADDRESS_SIZE)
        return -1;
    snprintf(address, ADDRESS_SIZE, "%.*s", (int)(colon - peer) - 2 * isIPv6, peer + isIPv6);
    return strtol(colon + 1, NULL, 10);
}

/* Adds the address of one side of a connection. "side": "client" or "server"; "peer": "ADDRESS:PORT". */
static void addAddressAttributes(ebpfMonJson *j, const char *side, const char *peer)
{
    char key[32], address[ADDRESS_SIZE];
    long port = splitAddress(peer, address);

    if (port < 0)
        return;
    snprintf(key, sizeof(key), "%s.address", side);
    ebpfMonOtlpAddTextAttribute(j, key, address);
    snprintf(key, sizeof(key), "%s.port", side);
    addOtlpIntegerAttribute(j, key, port);
}

static uint64_t getUnixNs(const epicsTimeStamp *t)
{
    return ((uint64_t)t->secPastEpoch + POSIX_TIME_AT_EPICS_EPOCH) * EBPFMON_SECOND_NS + t->nsec;
}

static void addScope(ebpfMonJson *j)
{
    ebpfMonJsonOpenObject(j, "scope");
    ebpfMonJsonAddText(j, "name", EBPFMON_OTLP_SCOPE);
    ebpfMonJsonAddText(j, "version", EBPFMON_VERSION);
    ebpfMonJsonCloseObject(j);
}

/* the attributes of a resource that the monitor sets */
enum { ownName, ownVersion, ownInstance, ownHost, ownCount };

static const char *const ownKeys[ownCount] = {"service.name", "service.version", "service.instance.id", "host.name"};

static unsigned findOwnKey(const char *key)
{
    unsigned i = 0;

    while (i < ownCount && strcmp(key, ownKeys[i]) != 0)
        i++;
    return i;
}

/*
 * "service" NULL: the monitor. service.instance.id tells two monitors of one host apart, and two runs of an IOC. The
 * version and the instance that the user set for the monitor are not in the resource of an IOC.
 */
static void addResource(ebpfMonJson *j, const ebpfMonOtlpConf *conf, const ebpfMonSpanService *service)
{
    const char *key = NULL, *value, *users[ownCount + 1] = {NULL};
    char instance[sizeof(conf->host) + 24];

    snprintf(instance, sizeof(instance), "%s:%ld", conf->host, service ? (long)service->pid : (long)getpid());
    while ((key = ebpfMonOtlpPairsGetNext(&conf->resource, key, &value)))
        users[findOwnKey(key)] = value;
    ebpfMonJsonOpenObject(j, "resource");
    ebpfMonJsonOpenList(j, "attributes");
    ebpfMonOtlpAddTextAttribute(j, ownKeys[ownName], service ? service->name : conf->service);
    if (!service) {
        ebpfMonOtlpAddTextAttribute(j, ownKeys[ownVersion], users[ownVersion] ? users[ownVersion] : EBPFMON_VERSION);
        ebpfMonOtlpAddTextAttribute(j, ownKeys[ownInstance], users[ownInstance] ? users[ownInstance] : instance);
    } else {
        if (service->pid) {
            ebpfMonOtlpAddTextAttribute(j, ownKeys[ownInstance], instance);
            addOtlpIntegerAttribute(j, "process.pid", service->pid);
        }
        ebpfMonOtlpAddTextAttribute(j, "epics.base.version", service->version);
        ebpfMonOtlpAddTextAttribute(j, "container.id", service->container);
    }
    ebpfMonOtlpAddTextAttribute(j, ownKeys[ownHost], users[ownHost] ? users[ownHost] : conf->host);
    for (key = NULL; (key = ebpfMonOtlpPairsGetNext(&conf->resource, key, &value));)
        if (findOwnKey(key) == ownCount)
            ebpfMonOtlpAddTextAttribute(j, key, value);
    ebpfMonJsonCloseList(j);
    ebpfMonJsonCloseObject(j);
}

size_t ebpfMonOtlpWriteHead(ebpfMonJson *j, ebpfMonOtlpSignal signal, const ebpfMonOtlpConf *conf, char *buf,
                            size_t size)
{
    if (signal == ebpfMonOtlpZipkin) {
        if (size)
            buf[0] = '[';
        return size > 0;
    }
    if (ebpfMonJsonBegin(j, buf, size))
        return 0;
    ebpfMonJsonOpenList(j, signal == ebpfMonOtlpLogs ? "resourceLogs" :
                        signal == ebpfMonOtlpMetrics ? "resourceMetrics" : "resourceSpans");
    if (signal == ebpfMonOtlpTraces)
        return ebpfMonJsonEndOpen(j);
    ebpfMonJsonOpenObject(j, NULL);
    addResource(j, conf, NULL);
    ebpfMonJsonOpenList(j, signal == ebpfMonOtlpLogs ? "scopeLogs" : "scopeMetrics");
    ebpfMonJsonOpenObject(j, NULL);
    addScope(j);
    ebpfMonJsonOpenList(j, signal == ebpfMonOtlpLogs ? "logRecords" : "metrics");
    return ebpfMonJsonEndOpen(j);
}

const char *ebpfMonOtlpGetTail(ebpfMonOtlpSignal signal)
{
    return signal == ebpfMonOtlpZipkin ? "]" : "]}]}]}";
}

static void addPutAttributes(ebpfMonJson *j, const ebpfMonPut *put)
{
    static const char *const seen[] = {"", "inside", "wire", "both"};
    char hash[24];

    ebpfMonOtlpAddTextAttribute(j, "epics.pv", put->pv);
    ebpfMonOtlpAddTextAttribute(j, "epics.channel", put->channel);
    ebpfMonOtlpAddTextAttribute(j, "epics.put.group", put->group);
    ebpfMonOtlpAddTextAttribute(j, "epics.ioc", put->ioc);
    /* always a text, because a backend has one type for a name */
    ebpfMonOtlpAddAnyTextAttribute(j, "epics.value", put->val);
    if (put->isNumber)
        addOtlpDoubleAttribute(j, "epics.value_number", put->val, put->number);
    if (put->hasOld)
        ebpfMonOtlpAddAnyTextAttribute(j, "epics.value_old", put->old);
    ebpfMonOtlpAddTextAttribute(j, "epics.value_after", put->after);
    if (put->count != 1)
        addOtlpIntegerAttribute(j, "epics.put.count", put->count);
    if (put->hash) {
        snprintf(hash, sizeof(hash), "%016" PRIx64, put->hash);
        ebpfMonOtlpAddTextAttribute(j, "epics.put.hash", hash);
    }
    ebpfMonOtlpAddTextAttribute(j, "epics.put.through", ebpfMonThroughName(put->through));
    ebpfMonOtlpAddTextAttribute(j, "epics.put.result", ebpfMonPutResultName(put->result));
    if (put->status)
        addOtlpIntegerAttribute(j, "epics.put.status", put->status);
    ebpfMonOtlpAddTextAttribute(j, "epics.put.message", put->message);
    if (put->isPartly)
        addOtlpBoolAttribute(j, "epics.put.partly", 1);
    ebpfMonOtlpAddTextAttribute(j, "epics.put.link", put->link);
    ebpfMonOtlpAddTextAttribute(j, "epics.put.link_ioc", put->linkIoc);
    ebpfMonOtlpAddTextAttribute(j, "epics.put.root", put->root);
    ebpfMonOtlpAddTextAttribute(j, "epics.put.cause", put->cause);
    ebpfMonOtlpAddTextAttribute(j, "epics.put.thread", put->thread);
    ebpfMonOtlpAddTextAttribute(j, "epics.put.seen", seen[put->seen & 3]);
    ebpfMonOtlpAddTextAttribute(j, "epics.put.host", put->host);
    if (put->unexpected) {
        addOtlpBoolAttribute(j, "epics.put.unexpected", 1);
        ebpfMonOtlpAddTextAttribute(j, "epics.put.rule", put->rule);
    }
    if (put->isUnsure)
        addOtlpBoolAttribute(j, "epics.put.who_sure", 0);
    ebpfMonOtlpAddTextAttribute(j, "epics.put.gateway", put->gateway);
    if (ebpfMonPutIsAnonymous(put))
        addOtlpIntegerAttribute(j, "epics.put.gateway_clients", put->gatewayClients);
    ebpfMonOtlpAddTextAttribute(j, "user.name", put->user);
    ebpfMonOtlpAddTextAttribute(j, "epics.put.authority", put->authority);
    addAddressAttributes(j, "client", put->peer);
    addAddressAttributes(j, "server", put->server);
    ebpfMonOtlpAddTextAttribute(j, "epics.put.published", put->published);
    if (put->peerPid) {
        addOtlpIntegerAttribute(j, "process.pid", put->peerPid);
        addOtlpIntegerAttribute(j, "process.real_user.id", put->peerUid);
    }
    ebpfMonOtlpAddTextAttribute(j, "process.real_user.name", put->realUser);
    ebpfMonOtlpAddTextAttribute(j, "process.command", put->command);
    ebpfMonOtlpAddTextAttribute(j, "container.id", put->container);
}

size_t ebpfMonOtlpWriteLogRecord(ebpfMonJson *j, const ebpfMonPut *put, uint64_t observed, char *buf, size_t size)
{
    int severity = put->unexpected ? ERROR : ebpfMonPutHasFailed(put) ? WARN : INFO;
    char line[EBPFMON_LINE_SIZE];

    if (ebpfMonJsonBegin(j, buf, size))
        return 0;
    ebpfMonOtlpAddInteger64(j, "timeUnixNano", getUnixNs(&put->time));
    ebpfMonOtlpAddInteger64(j, "observedTimeUnixNano", observed);
    ebpfMonJsonAddId(j, "traceId", put->trace, sizeof(put->trace));
    ebpfMonJsonAddInteger(j, "severityNumber", severity);
    ebpfMonJsonAddText(j, "severityText", severity == ERROR ? "ERROR" : severity == WARN ? "WARN" : "INFO");
    ebpfMonPutLine(put, line, sizeof(line));
    ebpfMonJsonOpenObject(j, "body");
    ebpfMonJsonAddText(j, "stringValue", line);
    ebpfMonJsonCloseObject(j);
    ebpfMonJsonAddText(j, "eventName", "epics.put");
    ebpfMonJsonOpenList(j, "attributes");
    addPutAttributes(j, put);
    ebpfMonJsonCloseList(j);
    return ebpfMonJsonEnd(j);
}

/* --- spans --- */

static void addSpanAttribute(ebpfMonJson *j, const ebpfMonSpanAttribute *a)
{
    switch (a->type) {
    case ebpfMonSpanText:
        ebpfMonOtlpAddTextAttribute(j, a->key, a->text);
        break;
    case ebpfMonSpanInteger:
        addOtlpIntegerAttribute(j, a->key, a->integer);
        break;
    case ebpfMonSpanDouble:
        addOtlpDoubleAttribute(j, a->key, NULL, a->number);
        break;
    case ebpfMonSpanBool:
        addOtlpBoolAttribute(j, a->key, a->integer != 0);
        break;
    }
}

size_t ebpfMonOtlpWriteServiceHead(ebpfMonJson *j, const ebpfMonSpanService *service, const ebpfMonOtlpConf *conf,
                                   char *buf, size_t size)
{
    if (ebpfMonJsonBegin(j, buf, size))
        return 0;
    addResource(j, conf, service->name[0] ? service : NULL);
    ebpfMonJsonOpenList(j, "scopeSpans");
    ebpfMonJsonOpenObject(j, NULL);
    addScope(j);
    ebpfMonJsonOpenList(j, "spans");
    return ebpfMonJsonEndOpen(j);
}

size_t ebpfMonOtlpWriteSpan(ebpfMonJson *j, const ebpfMonSpan *span, char *buf, size_t size)
{
    if (ebpfMonJsonBegin(j, buf, size))
        return 0;
    ebpfMonJsonAddId(j, "traceId", span->trace, sizeof(span->trace));
    ebpfMonJsonAddId(j, "spanId", span->id, sizeof(span->id));
    ebpfMonJsonAddId(j, "parentSpanId", span->parent, sizeof(span->parent));
    ebpfMonJsonAddText(j, "name", span->name);
    ebpfMonJsonAddInteger(j, "kind", (long)span->kind);
    ebpfMonOtlpAddInteger64(j, "startTimeUnixNano", span->start);
    ebpfMonOtlpAddInteger64(j, "endTimeUnixNano", span->end);
    ebpfMonJsonOpenList(j, "attributes");
    for (unsigned i = 0; i < span->attributes && i < EBPFMON_SPAN_ATTRIBUTES; i++)
        addSpanAttribute(j, &span->attribute[i]);
    ebpfMonJsonCloseList(j);
    if (span->dropped)
        ebpfMonJsonAddInteger(j, "droppedAttributesCount", (long)span->dropped);
    if (span->links) {
        ebpfMonJsonOpenList(j, "links");
        for (unsigned i = 0; i < span->links && i < EBPFMON_SPAN_LINKS; i++) {
            ebpfMonJsonOpenObject(j, NULL);
            ebpfMonJsonAddId(j, "traceId", span->link[i].trace, sizeof(span->link[i].trace));
            ebpfMonJsonAddId(j, "spanId", span->link[i].id, sizeof(span->link[i].id));
            ebpfMonJsonCloseObject(j);
        }
        ebpfMonJsonCloseList(j);
    }
    ebpfMonJsonOpenObject(j, "status");
    ebpfMonJsonAddInteger(j, "code", (long)span->status);
    ebpfMonJsonAddTextIfAny(j, "message", span->message);
    ebpfMonJsonCloseObject(j);
    return ebpfMonJsonEnd(j);
}

/* --- the answer --- */

typedef struct {
    enum { nothing, count, message } next;
    uint64_t rejected;
    char *why;
    size_t size;
} parsedAnswer;

static int onKey(void *context, const unsigned char *key, size_t len)
{
    parsedAnswer *a = context;

    a->next = len > 8 && strncmp((const char *)key, "rejected", 8) == 0 ? count :
              len == 12 && strncmp((const char *)key, "errorMessage", 12) == 0 ? message : nothing;
    return 1;
}

static int onText(void *context, const unsigned char *value, size_t len)
{
    parsedAnswer *a = context;
    char word[256];

    snprintf(word, sizeof(word), "%.*s", len < 255 ? (int)len : 255, (const char *)value);
    if (a->next == count)
        a->rejected = strtoull(word, NULL, 10);
    else if (a->next == message)
        ebpfMonTextCopy(a->why, a->size, word);
    a->next = nothing;
    return 1;
}

static int onInteger(void *context, long long value)
{
    parsedAnswer *a = context;

    if (a->next == count && value > 0)
        a->rejected = (uint64_t)value;
    a->next = nothing;
    return 1;
}

uint64_t ebpfMonOtlpReadRejected(const char *body, size_t len, char *why, size_t size)
{
    static const yajl_callbacks callbacks = {
        .yajl_integer = onInteger, .yajl_string = onText, .yajl_map_key = onKey,
    };
    parsedAnswer a = {.why = why, .size = size};
    yajl_handle parser = yajl_alloc(&callbacks, NULL, &a);

    why[0] = 0;
    if (!parser)
        return 0;
    if (yajl_parse(parser, (const unsigned char *)body, len) != yajl_status_ok ||
        yajl_complete_parse(parser) != yajl_status_ok)
        a.rejected = 0; /* it is no JSON; but the HTTP status tells that all was accepted */
    yajl_free(parser);
    return a.rejected;
}

/* --- Zipkin --- */

static void addIntegerTag(ebpfMonJson *j, const char *key, int64_t value)
{
    char digits[24];

    snprintf(digits, sizeof(digits), "%" PRId64, value);
    ebpfMonJsonAddText(j, key, digits);
}

static void addTag(ebpfMonJson *j, const ebpfMonSpanAttribute *a)
{
    char digits[40];

    switch (a->type) {
    case ebpfMonSpanText:
        ebpfMonJsonAddTextIfAny(j, a->key, a->text);
        break;
    case ebpfMonSpanInteger:
        addIntegerTag(j, a->key, a->integer);
        break;
    case ebpfMonSpanDouble:
        ebpfMonJsonFormatNumber(a->number, digits, sizeof(digits));
        ebpfMonJsonAddText(j, a->key, digits);
        break;
    case ebpfMonSpanBool:
        ebpfMonJsonAddText(j, a->key, a->integer ? "true" : "false");
        break;
    }
}

/* Zipkin has no links, and no resource except the name of the service. So these become tags. */
static void addTags(ebpfMonJson *j, const ebpfMonSpan *span, const char *host)
{
    const ebpfMonSpanService *s = &span->service;
    char key[24], id[2 * (EBPFMON_TRACE_ID + EBPFMON_SPAN_ID) + 2];

    ebpfMonJsonOpenObject(j, "tags");
    for (unsigned i = 0; i < span->attributes && i < EBPFMON_SPAN_ATTRIBUTES; i++)
        addTag(j, &span->attribute[i]);
    for (unsigned i = 0; i < span->links && i < EBPFMON_SPAN_LINKS; i++) {
        snprintf(key, sizeof(key), "link.%u", i);
        ebpfMonJsonFormatId(span->link[i].trace, EBPFMON_TRACE_ID, id);
        id[2 * EBPFMON_TRACE_ID] = ':';
        ebpfMonJsonFormatId(span->link[i].id, EBPFMON_SPAN_ID, id + 2 * EBPFMON_TRACE_ID + 1);
        ebpfMonJsonAddText(j, key, id);
    }
    if (s->name[0] && s->pid)
        addIntegerTag(j, "process.pid", s->pid);
    if (s->name[0]) {
        ebpfMonJsonAddTextIfAny(j, "epics.base.version", s->version);
        ebpfMonJsonAddTextIfAny(j, "container.id", s->container);
    }
    ebpfMonJsonAddText(j, "host.name", host);
    ebpfMonJsonAddText(j, "otel.scope.name", EBPFMON_OTLP_SCOPE);
    if (span->status == ebpfMonSpanOk)
        ebpfMonJsonAddText(j, "otel.status_code", "OK");
    if (span->status == ebpfMonSpanError) {
        ebpfMonJsonAddText(j, "otel.status_code", "ERROR");
        /* Zipkin has no other sign of an error */
        ebpfMonJsonAddText(j, "error", span->message[0] ? span->message : "true");
    }
    ebpfMonJsonCloseObject(j);
}

size_t ebpfMonZipkinWriteSpan(ebpfMonJson *j, const ebpfMonSpan *span, const ebpfMonOtlpConf *conf, char *buf,
                              size_t size)
{
    static const char *const kinds[] = {NULL, NULL, "SERVER", "CLIENT", "PRODUCER", "CONSUMER"};
    const char *kind = (unsigned)span->kind < sizeof(kinds) / sizeof(kinds[0]) ? kinds[span->kind] : NULL;
    /* begin and end are rounded, so that a span which is within its parent in ns is so in µs */
    uint64_t start = span->start / 1000, end = span->end / 1000;

    if (ebpfMonJsonBegin(j, buf, size))
        return 0;
    ebpfMonJsonAddId(j, "traceId", span->trace, sizeof(span->trace));
    ebpfMonJsonAddId(j, "id", span->id, sizeof(span->id));
    ebpfMonJsonAddId(j, "parentId", span->parent, sizeof(span->parent));
    ebpfMonJsonAddTextIfAny(j, "name", span->name);
    if (kind)
        ebpfMonJsonAddText(j, "kind", kind);
    ebpfMonJsonAddInteger(j, "timestamp", (long long)start);
    ebpfMonJsonAddInteger(j, "duration", end > start ? (long long)(end - start) : 1); /* 1 at least, because 0 means:
                                                                                       * not known */
    ebpfMonJsonOpenObject(j, "localEndpoint");
    ebpfMonJsonAddText(j, "serviceName", span->service.name[0] ? span->service.name : conf->service);
    ebpfMonJsonCloseObject(j);
    addTags(j, span, conf->host);
    return ebpfMonJsonEnd(j);
}
