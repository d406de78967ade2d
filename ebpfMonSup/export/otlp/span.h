/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A span as OpenTelemetry has it (opentelemetry-proto, trace.proto), of fixed size. Set it to 0, fill it in, give it to
 * ebpfMonExportSpan (export/export.h). documentation/otlp.md says which attributes our spans have.
 */
#ifndef EBPFMON_SPAN_H
#define EBPFMON_SPAN_H

#include <stddef.h>
#include <stdint.h>

#include "model/put.h"

#define EBPFMON_ADDRESS_SIZE 64
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
    int64_t integer; /* a bool too */
    double number;
    char text[256];
} ebpfMonSpanAttribute;

/* Whose span it is: its resource. The unset (0, empty) is left out. */
typedef struct {
    char     name[64];      /* display name of the IOC; empty: the monitor itself, and the rest does not count */
    uint32_t pid;
    char     version[40];   /* of its EPICS Base */
    char     container[64];
} ebpfMonSpanService;

typedef struct {
    uint8_t trace[EBPFMON_TRACE_ID], id[EBPFMON_SPAN_ID];
} ebpfMonSpanRef;

typedef struct {
    uint8_t  trace[EBPFMON_TRACE_ID], id[EBPFMON_SPAN_ID];
    uint8_t  parent[EBPFMON_SPAN_ID]; /* all 0: the root of the trace */
    uint64_t start, end;   /* ns since 1970, UTC */
    ebpfMonSpanKind kind;
    ebpfMonSpanStatus status;
    char     name[96];     /* of the operation, not of one request */
    char     message[96];  /* of ebpfMonSpanError */
    char     root[EBPFMON_NAME_SIZE]; /* set: the latency histogram of this root record counted the chain, and the span
                                         may be its exemplar; service.name is its IOC */
    uint64_t latency;      /* ns, as it was counted there: without waiting, and what went on asynchronously */
    ebpfMonSpanService service;
    unsigned links;        /* other spans: valid entries */
    ebpfMonSpanRef link[EBPFMON_SPAN_LINKS];
    unsigned dropped;      /* attributes that had no place */
    unsigned attributes;   /* valid entries */
    ebpfMonSpanAttribute attribute[EBPFMON_SPAN_ATTRIBUTES];
} ebpfMonSpan;

/* Splits "ADDRESS:PORT". Returns the port; -1: it is no such text. */
long ebpfMonAddressSplit(const char *peer, char address[EBPFMON_ADDRESS_SIZE]);

/* Random, never all 0: the ids of a new trace or span. Any thread. */
void ebpfMonSpanNewId(uint8_t *id, size_t size);

/* What does not fit in is counted in "dropped"; an empty text adds nothing, a long one is cut and ends in "...". */
void ebpfMonSpanAddText(ebpfMonSpan *span, const char *key, const char *value);
void ebpfMonSpanAddInteger(ebpfMonSpan *span, const char *key, int64_t value);
void ebpfMonSpanAddDouble(ebpfMonSpan *span, const char *key, double value);
void ebpfMonSpanAddBool(ebpfMonSpan *span, const char *key, int value);

/* The first EBPFMON_SPAN_LINKS are kept. */
void ebpfMonSpanAddLink(ebpfMonSpan *span, const uint8_t trace[EBPFMON_TRACE_ID], const uint8_t id[EBPFMON_SPAN_ID]);

#endif
