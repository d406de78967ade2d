/* SPDX-License-Identifier: BSD-3-Clause */
/* The pieces that all of OTLP's JSON is made of. */
#ifndef EBPFMON_OTLPFIELD_H
#define EBPFMON_OTLPFIELD_H

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "export/jsonGen.h"

static inline void mapOpen(ebpfMonJson *j, const char *key)
{
    if (key)
        ebpfMonJsonKey(j, key);
    yajl_gen_map_open(j->g);
}

static inline void mapClose(ebpfMonJson *j)
{
    yajl_gen_map_close(j->g);
}

static inline void listOpen(ebpfMonJson *j, const char *key)
{
    ebpfMonJsonKey(j, key);
    yajl_gen_array_open(j->g);
}

static inline void listClose(ebpfMonJson *j)
{
    yajl_gen_array_close(j->g);
}

static inline void small(ebpfMonJson *j, const char *key, long number)
{
    ebpfMonJsonKey(j, key);
    ebpfMonJsonInteger(j, number);
}

/* A 64-bit integer: a string, since JavaScript's numbers have 53 bits. */
static inline void wide(ebpfMonJson *j, const char *key, uint64_t number)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRIu64, number);
    ebpfMonJsonPair(j, key, text);
}

static inline void text(ebpfMonJson *j, const char *key, const char *value)
{
    ebpfMonJsonKey(j, key);
    ebpfMonJsonText(j, value);
}

/* Not finite: by the words of protobuf's JSON mapping. */
static inline void real(ebpfMonJson *j, const char *key, const char *digits, double number)
{
    ebpfMonJsonKey(j, key);
    if (isnan(number))
        ebpfMonJsonText(j, "NaN");
    else
        ebpfMonJsonNumber(j, digits, number);
}

static inline void attributeOpen(ebpfMonJson *j, const char *key)
{
    mapOpen(j, NULL);
    text(j, "key", key);
    mapOpen(j, "value");
}

static inline void attributeClose(ebpfMonJson *j)
{
    mapClose(j);
    mapClose(j);
}

static inline void hexDigits(const uint8_t *id, unsigned size, char *digits)
{
    for (unsigned i = 0; i < size; i++) {
        digits[2 * i] = "0123456789abcdef"[id[i] >> 4];
        digits[2 * i + 1] = "0123456789abcdef"[id[i] & 15];
    }
    digits[2 * size] = 0;
}

/* Of a trace or span (at most 16 bytes); nothing when it is all 0. */
static inline void identity(ebpfMonJson *j, const char *key, const uint8_t *id, unsigned size)
{
    char digits[2 * 16 + 1];
    unsigned any = 0;

    for (unsigned i = 0; i < size; i++)
        any |= id[i];
    hexDigits(id, size, digits);
    if (any)
        text(j, key, digits);
}

/* Nothing when it is empty. */
static inline void attribute(ebpfMonJson *j, const char *key, const char *value)
{
    if (!value[0])
        return;
    attributeOpen(j, key);
    text(j, "stringValue", value);
    attributeClose(j);
}

static inline void attributeInteger(ebpfMonJson *j, const char *key, int64_t value)
{
    char digits[24];

    snprintf(digits, sizeof(digits), "%" PRId64, value);
    attributeOpen(j, key);
    text(j, "intValue", digits);
    attributeClose(j);
}

static inline void attributeReal(ebpfMonJson *j, const char *key, const char *digits, double value)
{
    attributeOpen(j, key);
    real(j, "doubleValue", digits, value);
    attributeClose(j);
}

static inline void attributeTrue(ebpfMonJson *j, const char *key, int value)
{
    attributeOpen(j, key);
    ebpfMonJsonKey(j, "boolValue");
    yajl_gen_bool(j->g, value);
    attributeClose(j);
}

#endif
