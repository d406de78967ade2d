/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes OTLP in its JSON encoding (opentelemetry-proto; specification, protocol/otlp.md "JSON Protobuf Encoding":
 * 64-bit integers are strings, enums are numbers, ids are hexadecimal). documentation/use/otlp.md tells what is in each
 * request. Metrics are in otlpMetrics.h. The functions that write return the length, without a terminator; 0: too long,
 * or no memory. One thread uses a generator.
 */
#ifndef EBPFMON_OTLPJSON_H
#define EBPFMON_OTLPJSON_H

#include <stddef.h>
#include <stdint.h>

#include "export/otlp/otlpConf.h"
#include "export/otlp/span.h"
#include "export/shared/jsonGen.h"
#include "model/put.h"

/* the scope of everything that the monitor sends */
#define EBPFMON_OTLP_SCOPE "ebpfMon"

/* A request consists of its head, its items with commas between them, and its tail. */
size_t ebpfMonOtlpWriteHead(ebpfMonJson *json, ebpfMonOtlpSignal signal, const ebpfMonOtlpConf *conf, char *buf,
                            size_t size);
const char *ebpfMonOtlpGetTail(ebpfMonOtlpSignal signal);

/* Writes a put. Its members "who" and "origin" are used for the body, too. "observed": ns since 1970 at which the
 * record was made. */
size_t ebpfMonOtlpWriteLogRecord(ebpfMonJson *json, const ebpfMonPut *put, uint64_t observed, char *buf, size_t size);

/* A request may contain spans of several services. After the head of the request come: the head of a service, its spans
 * with commas between them, the tail of the service, a comma, the head of the next service, and so on. The tail of the
 * request also ends the last service. */
#define EBPFMON_OTLP_SERVICE_TAIL "]}]}"
size_t ebpfMonOtlpWriteServiceHead(ebpfMonJson *json, const ebpfMonSpanService *service, const ebpfMonOtlpConf *conf,
                                   char *buf, size_t size);
size_t ebpfMonOtlpWriteSpan(ebpfMonJson *json, const ebpfMonSpan *span, char *buf, size_t size);

/* Reads the answer to an accepted request. Returns how many of its items were refused nevertheless; "why" gets the
 * reason. */
uint64_t ebpfMonOtlpReadRejected(const char *answer, size_t len, char *why, size_t size);

#endif
