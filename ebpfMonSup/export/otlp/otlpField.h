/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of the JSON of OTLP and of Zipkin, besides shared/jsonGen.h. One thread uses a generator. */
#ifndef EBPFMON_OTLPFIELD_H
#define EBPFMON_OTLPFIELD_H

#include <stdint.h>

#include "export/shared/jsonGen.h"

/* Adds a 64-bit integer as a text, because numbers of JavaScript have 53 bits. */
void ebpfMonOtlpAddInteger64(ebpfMonJson *json, const char *key, uint64_t number);

/* Adds a number. NaN and infinities are texts, with the words of protobuf's JSON mapping. "digits": see jsonGen.h. */
void ebpfMonOtlpAddDouble(ebpfMonJson *json, const char *key, const char *digits, double number);

/* Writes "size" bytes as 2 * size hexadecimal digits and a NUL. */
void ebpfMonOtlpWriteHex(const uint8_t *id, unsigned size, char *digits);

/* Adds the id of a trace or span (at most 16 bytes). Adds nothing if it is all 0. */
void ebpfMonOtlpAddId(ebpfMonJson *json, const char *key, const uint8_t *id, unsigned size);

/* Add an element to a list of attributes (common.proto, KeyValue). An empty text adds nothing, except with
 * AddAnyTextAttribute. */
void ebpfMonOtlpAddTextAttribute(ebpfMonJson *json, const char *key, const char *value);
void ebpfMonOtlpAddAnyTextAttribute(ebpfMonJson *json, const char *key, const char *value);
void ebpfMonOtlpAddIntegerAttribute(ebpfMonJson *json, const char *key, int64_t value);
void ebpfMonOtlpAddDoubleAttribute(ebpfMonJson *json, const char *key, const char *digits, double value);
void ebpfMonOtlpAddBoolAttribute(ebpfMonJson *json, const char *key, int value);

#endif
