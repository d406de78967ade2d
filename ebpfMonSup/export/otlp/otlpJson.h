/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * OTLP in its JSON encoding (opentelemetry-proto; specification, protocol/otlp.md "JSON Protobuf Encoding": 64-bit
 * integers are strings, enums numbers, ids hexadecimal). documentation/otlp.md says what stands in each request.
 * otlpMetrics.h has the metrics. The functions that write return the length, no terminator; 0: too long, or no memory.
 */
#ifndef EBPFMON_OTLPJSON_H
#define EBPFMON_OTLPJSON_H

#include <stddef.h>
#include <stdint.h>

#include "export/otlp/otlpConf.h"
#include "export/otlp/span.h"
#include "export/shared/jsonGen.h"
#include "model/put.h"

/* The scope of all that the monitor sends. */
#define EBPFMON_OTLP_SCOPE "ebpfMon"

/* A request is its head, items with commas between, its tail. */
size_t ebpfMonOtlpWriteHead(ebpfMonJson *json, ebpfMonOtlpSignal signal, const ebpfMonOtlpConf *conf, char *buf,
                            size_t size);
const char *ebpfMonOtlpGetTail(ebpfMonOtlpSignal signal);

/* A put. Its "who" and "origin" are used, too, for the body. observed: ns since 1970, when the record was made. */
size_t ebpfMonOtlpWriteLogRecord(ebpfMonJson *json, const ebpfMonPut *put, uint64_t observed, char *buf, size_t size);

/* Spans of several services can stand in one request: behind the request's head the head of a service, spans with
 * commas between, the service's tail, a comma, the next service's head, and so on. The tail of the request ends the
 * last service, too. */
#define EBPFMON_OTLP_SERVICE_TAIL "]}]}"
size_t ebpfMonOtlpWriteServiceHead(ebpfMonJson *json, const ebpfMonSpanService *service, const ebpfMonOtlpConf *conf,
                                   char *buf, size_t size);
size_t ebpfMonOtlpWriteSpan(ebpfMonJson *json, const ebpfMonSpan *span, char *buf, size_t size);

/* Reads the answer to an accepted request: how many of its items were refused all the same, and why. */
uint64_t ebpfMonOtlpReadRejected(const char *answer, size_t len, char *why, size_t size);

#endif
