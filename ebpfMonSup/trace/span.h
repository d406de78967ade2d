/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A span of OpenTelemetry (opentelemetry-proto, trace.proto), with a fixed size. Set it to 0, fill it in, and give it
 * to an ebpfMonSpanSink (traceSpans.h). documentation/use/otlp.md tells which attributes our spans have. Functions:
 * any thread.
 */
#ifndef EBPFMON_SPAN_H
#define EBPFMON_SPAN_H

#include <stddef.h>
#include <stdint.h>
#include "model/put.h"

#define EBPFMON_SPAN_ATTRIBUTES 24
#define EBPFMON_SPAN_LINKS      8
#define EBPFMON_TRACE_ID        16
#define EBPFMON_SPAN_ID         8

/* Numbers of trace.proto, SpanKind. */
typedef enum {
    ebpfMonSpanInternal = 1,
    ebpfMonSpanServer,
    ebpfMonSpanClient,
    ebpfMonSpanProducer,
    ebpfMonSpanConsumer
} ebpfMonSpanKind;

/* Numbers of trace.proto, StatusCode. */
typedef enum {
    ebpfMonSpanUnset,
    ebpfMonSpanOk,
    ebpfMonSpanError
} ebpfMonSpanStatus;

typedef enum {
    ebpfMonSpanText,
    ebpfMonSpanInteger,
    ebpfMonSpanDouble,
    ebpfMonSpanBool
} ebpfMonSpanType;

typedef struct {
    char key[40];
    ebpfMonSpanType type;
    int64_t integer; /* also a boolean */
    double number;
    char text[256];
} ebpfMonSpanAttribute;

/* The resource of a span. Members that are not set (0, empty) are left out. */
typedef struct {
    char     name[64];      /* name of the IOC; empty: the monitor itself; then the other members do not count */
    uint32_t pid;
    char     version[40];   /* version of its EPICS Base */
    char     container[64];
} ebpfMonSpanService;

typedef struct {
    uint8_t trace[EBPFMON_TRACE_ID], id[EBPFMON_SPAN_ID];
} ebpfMonSpanRef;

typedef struct {
    uint8_t  trace[EBPFMON_TRACE_ID], id[EBPFMON_SPAN_ID];
    uint8_t  parent[EBPFMON_SPAN_ID]; /* all 0: it is the root of the trace */
    uint64_t start, end;   /* ns since 1970, UTC */
    ebpfMonSpanKind kind;
    ebpfMonSpanStatus status;
    char     name[96];     /* name of the operation, not of a single request */
    char     message[96];  /* text of ebpfMonSpanError */
    char     root[EBPFMON_NAME_SIZE]; /* not empty: the latency histogram of this root contains the chain, and the
                                       * span may be its exemplar; service.name is the IOC */
    uint64_t latency;      /* ns; the latency in that histogram: without lock wait, and without asynchronous
                            * processing */
    ebpfMonSpanService service;
    unsigned links;        /* links to other spans: valid entries */
    ebpfMonSpanRef link[EBPFMON_SPAN_LINKS];
    unsigned dropped;      /* attributes for which there was no place */
    unsigned attributes;   /* valid entries */
    ebpfMonSpanAttribute attribute[EBPFMON_SPAN_ATTRIBUTES];
} ebpfMonSpan;

/* Makes a random id for a new trace or span; never all 0. */
void ebpfMonSpanNewId(uint8_t *id, size_t size);

/* Add an attribute. If there is no place, "dropped" counts it. An empty text adds nothing; a text that is too long is
 * cut and ends with "...". */
void ebpfMonSpanAddText(ebpfMonSpan *span, const char *key, const char *value);
void ebpfMonSpanAddInteger(ebpfMonSpan *span, const char *key, int64_t value);
void ebpfMonSpanAddDouble(ebpfMonSpan *span, const char *key, double value);
void ebpfMonSpanAddBool(ebpfMonSpan *span, const char *key, int value);

/* Adds a link; only the first EBPFMON_SPAN_LINKS are kept. */
void ebpfMonSpanAddLink(ebpfMonSpan *span, const uint8_t trace[EBPFMON_TRACE_ID], const uint8_t id[EBPFMON_SPAN_ID]);

#endif
