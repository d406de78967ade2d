/* SPDX-License-Identifier: BSD-3-Clause */
/* What the JSON of OTLP and of Zipkin is made of, besides shared/jsonGen.h. */
#ifndef EBPFMON_OTLPFIELD_H
#define EBPFMON_OTLPFIELD_H

#include <stdint.h>

#include "export/shared/jsonGen.h"

/* A 64-bit integer as a text, since JavaScript's numbers have 53 bits. */
void ebpfMonOtlpAddInteger64(ebpfMonJson *json, const char *key, uint64_t number);

/* A number. What is not finite is a text, by the words of protobuf's JSON mapping. "digits": see jsonGen.h. */
void ebpfMonOtlpAddDouble(ebpfMonJson *json, const char *key, const char *digits, double number);

/* "size" bytes as 2 * size hexadecimal digits and a NUL. */
void ebpfMonOtlpWriteHex(const uint8_t *id, unsigned size, char *digits);

/* The id of a trace or span (at most 16 bytes); nothing when it is all 0. */
void ebpfMonOtlpAddId(ebpfMonJson *json, const char *key, const uint8_t *id, unsigned size);

/* Elements of a list of attributes (common.proto, KeyValue). A text that is empty adds nothing, AddAnyText excepted. */
void ebpfMonOtlpAddTextAttribute(ebpfMonJson *json, const char *key, const char *value);
void ebpfMonOtlpAddAnyTextAttribute(ebpfMonJson *json, const char *key, const char *value);
void ebpfMonOtlpAddIntegerAttribute(ebpfMonJson *json, const char *key, int64_t value);
void ebpfMonOtlpAddDoubleAttribute(ebpfMonJson *json, const char *key, const char *digits, double value);
void ebpfMonOtlpAddBoolAttribute(ebpfMonJson *json, const char *key, int value);

#endif
