/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "export/otlp/otlpField.h"
#include "export/otlp/otlpJson.h"
#include "export/otlp/zipkinJson.h"

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
        ebpfMonOtlpWriteHex(span->link[i].trace, EBPFMON_TRACE_ID, id);
        id[2 * EBPFMON_TRACE_ID] = ':';
        ebpfMonOtlpWriteHex(span->link[i].id, EBPFMON_SPAN_ID, id + 2 * EBPFMON_TRACE_ID + 1);
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
    ebpfMonOtlpAddId(j, "traceId", span->trace, sizeof(span->trace));
    ebpfMonOtlpAddId(j, "id", span->id, sizeof(span->id));
    ebpfMonOtlpAddId(j, "parentId", span->parent, sizeof(span->parent));
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
