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
#include "otlp/otlpConf.h"
#include "trace/span.h"
#include "export/shared/jsonGen.h"
#include "model/put.h"

/* --- parts ---
 *
 * The parts of the JSON of OTLP and of Zipkin, besides shared/jsonGen.h. One thread uses a generator.
 */

/* Adds a 64-bit integer as a text, because numbers of JavaScript have 53 bits. */
void ebpfMonOtlpAddInteger64(ebpfMonJson *json, const char *key, uint64_t number);

/* Adds a number. NaN and infinities are texts, with the words of protobuf's JSON mapping. "digits": see jsonGen.h. */
void ebpfMonOtlpAddDouble(ebpfMonJson *json, const char *key, const char *digits, double number);

/* Add an element to a list of attributes (common.proto, KeyValue). An empty text adds nothing, except with
 * AddAnyTextAttribute. */
void ebpfMonOtlpAddTextAttribute(ebpfMonJson *json, const char *key, const char *value);
void ebpfMonOtlpAddAnyTextAttribute(ebpfMonJson *json, const char *key, const char *value);

/* --- OTLP --- */

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

/* --- Zipkin ---
 *
 * Writes spans in Zipkin's JSON, version 2 (zipkin-api, zipkin2-api.yaml; OpenTelemetry specification,
 * trace/sdk_exporters/zipkin.md). One thread uses a generator.
 */

/* Writes one object of the list that a request is. Returns the length, without a terminator; 0: too long. */
size_t ebpfMonZipkinWriteSpan(ebpfMonJson *json, const ebpfMonSpan *span, const ebpfMonOtlpConf *conf, char *buf,
                              size_t size);

#endif
