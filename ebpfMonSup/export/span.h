/* SPDX-License-Identifier: BSD-3-Clause */
/* A span as OpenTelemetry has it (opentelemetry-proto, trace.proto), of fixed size. */
#ifndef EBPFMON_SPAN_H
#define EBPFMON_SPAN_H

#include <stdint.h>

#define EBPFMON_SPAN_ATTRIBUTES 24

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
    char text[96];
} ebpfMonSpanAttribute;

typedef struct {
    uint8_t  trace[16], id[8];
    uint8_t  parent[8];    /* all 0: the root */
    uint64_t start, end;   /* ns since 1970, UTC */
    ebpfMonSpanKind kind;
    ebpfMonSpanStatus status;
    char     name[96];     /* of the operation, not of one request */
    char     message[96];  /* of ebpfMonSpanError */
    char     service[64];  /* of the resource: which program did it; empty: the one that is configured */
    unsigned attributes;   /* valid entries */
    ebpfMonSpanAttribute attribute[EBPFMON_SPAN_ATTRIBUTES]; /* must be last: the unused end is not queued */
} ebpfMonSpan;

/* Any thread; never waits. Does nothing while no endpoint for traces is configured. */
void ebpfMonExportSpan(const ebpfMonSpan *span);

#endif
