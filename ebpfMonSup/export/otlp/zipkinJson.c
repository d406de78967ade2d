/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "export/otlp/otlpField.h"
#include "export/otlp/otlpJson.h"
#include "export/otlp/zipkinJson.h"

static void tagInteger(ebpfMonJson *j, const char *key, int64_t value)
{
    char digits[24];

    snprintf(digits, sizeof(digits), "%" PRId64, value);
    text(j, key, digits);
}

static void tag(ebpfMonJson *j, const ebpfMonSpanAttribute *a)
{
    char digits[40];

    switch (a->type) {
    case ebpfMonSpanText:
        ebpfMonJsonPair(j, a->key, a->text);
        break;
    case ebpfMonSpanInteger:
        tagInteger(j, a->key, a->integer);
        break;
    case ebpfMonSpanDouble:
        ebpfMonShortest(a->number, digits, sizeof(digits));
        text(j, a->key, digits);
        break;
    case ebpfMonSpanBool:
        text(j, a->key, a->integer ? "true" : "false");
        break;
    }
}

/* Zipkin has neither links, nor a resource besides the service's name: they become tags. */
static void tags(ebpfMonJson *j, const ebpfMonSpan *span)
{
    const ebpfMonSpanService *s = &span->service;
    char key[24], id[2 * (EBPFMON_TRACE_ID + EBPFMON_SPAN_ID) + 2];

    mapOpen(j, "tags");
    for (unsigned i = 0; i < span->attributes && i < EBPFMON_SPAN_ATTRIBUTES; i++)
        tag(j, &span->attribute[i]);
    for (unsigned i = 0; i < span->links && i < EBPFMON_SPAN_LINKS; i++) {
        snprintf(key, sizeof(key), "link.%u", i);
        hexDigits(span->link[i].trace, EBPFMON_TRACE_ID, id);
        id[2 * EBPFMON_TRACE_ID] = ':';
        hexDigits(span->link[i].id, EBPFMON_SPAN_ID, id + 2 * EBPFMON_TRACE_ID + 1);
        text(j, key, id);
    }
    if (s->name[0] && s->pid)
        tagInteger(j, "process.pid", s->pid);
    if (s->name[0]) {
        ebpfMonJsonPair(j, "epics.base.version", s->version);
        ebpfMonJsonPair(j, "container.id", s->container);
    }
    text(j, "host.name", ebpfMonOtlpHost());
    text(j, "otel.scope.name", EBPFMON_OTLP_SCOPE);
    if (span->status == ebpfMonSpanOk)
        text(j, "otel.status_code", "OK");
    if (span->status == ebpfMonSpanError) {
        text(j, "otel.status_code", "ERROR");
        text(j, "error", span->message[0] ? span->message : "true"); /* there is no other sign of an error */
    }
    mapClose(j);
}

size_t ebpfMonZipkinItem(const ebpfMonSpan *span, const ebpfMonOtlpConf *conf, char *buf, size_t size)
{
    static const char *const kinds[] = {NULL, NULL, "SERVER", "CLIENT", "PRODUCER", "CONSUMER"};
    const char *kind = (unsigned)span->kind < sizeof(kinds) / sizeof(kinds[0]) ? kinds[span->kind] : NULL;
    /* by the rounded ends: a span then lies within its parent, as it did in ns */
    uint64_t start = span->start / 1000, end = span->end / 1000;
    ebpfMonJson j;

    ebpfMonJsonBegin(&j, buf, size);
    if (!j.g)
        return 0;
    identity(&j, "traceId", span->trace, sizeof(span->trace));
    identity(&j, "id", span->id, sizeof(span->id));
    identity(&j, "parentId", span->parent, sizeof(span->parent));
    ebpfMonJsonPair(&j, "name", span->name);
    if (kind)
        text(&j, "kind", kind);
    ebpfMonJsonKey(&j, "timestamp");
    ebpfMonJsonInteger(&j, (long long)start);
    ebpfMonJsonKey(&j, "duration");
    ebpfMonJsonInteger(&j, end > start ? (long long)(end - start) : 1); /* 0 would mean: not known */
    mapOpen(&j, "localEndpoint");
    text(&j, "serviceName", span->service.name[0] ? span->service.name : conf->service);
    mapClose(&j);
    tags(&j, span);
    return ebpfMonJsonEnd(&j);
}
