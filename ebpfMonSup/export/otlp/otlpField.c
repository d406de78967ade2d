/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "export/otlp/otlpField.h"

void ebpfMonOtlpAddInteger64(ebpfMonJson *j, const char *key, uint64_t number)
{
    char digits[24];

    snprintf(digits, sizeof(digits), "%" PRIu64, number);
    ebpfMonJsonAddText(j, key, digits);
}

void ebpfMonOtlpAddDouble(ebpfMonJson *j, const char *key, const char *digits, double number)
{
    if (isnan(number))
        ebpfMonJsonAddText(j, key, "NaN");
    else
        ebpfMonJsonAddNumber(j, key, digits, number);
}

void ebpfMonOtlpWriteHex(const uint8_t *id, unsigned size, char *digits)
{
    for (unsigned i = 0; i < size; i++) {
        digits[2 * i] = "0123456789abcdef"[id[i] >> 4];
        digits[2 * i + 1] = "0123456789abcdef"[id[i] & 15];
    }
    digits[2 * size] = 0;
}

void ebpfMonOtlpAddId(ebpfMonJson *j, const char *key, const uint8_t *id, unsigned size)
{
    char digits[2 * 16 + 1];
    unsigned any = 0;

    for (unsigned i = 0; i < size; i++)
        any |= id[i];
    if (!any)
        return;
    ebpfMonOtlpWriteHex(id, size, digits);
    ebpfMonJsonAddText(j, key, digits);
}

static void openAttribute(ebpfMonJson *j, const char *key)
{
    ebpfMonJsonOpenObject(j, NULL);
    ebpfMonJsonAddText(j, "key", key);
    ebpfMonJsonOpenObject(j, "value");
}

static void closeAttribute(ebpfMonJson *j)
{
    ebpfMonJsonCloseObject(j);
    ebpfMonJsonCloseObject(j);
}

void ebpfMonOtlpAddAnyTextAttribute(ebpfMonJson *j, const char *key, const char *value)
{
    openAttribute(j, key);
    ebpfMonJsonAddText(j, "stringValue", value);
    closeAttribute(j);
}

void ebpfMonOtlpAddTextAttribute(ebpfMonJson *j, const char *key, const char *value)
{
    if (value[0])
        ebpfMonOtlpAddAnyTextAttribute(j, key, value);
}

void ebpfMonOtlpAddIntegerAttribute(ebpfMonJson *j, const char *key, int64_t value)
{
    char digits[24];

    snprintf(digits, sizeof(digits), "%" PRId64, value);
    openAttribute(j, key);
    ebpfMonJsonAddText(j, "intValue", digits);
    closeAttribute(j);
}

void ebpfMonOtlpAddDoubleAttribute(ebpfMonJson *j, const char *key, const char *digits, double value)
{
    openAttribute(j, key);
    ebpfMonOtlpAddDouble(j, "doubleValue", digits, value);
    closeAttribute(j);
}

void ebpfMonOtlpAddBoolAttribute(ebpfMonJson *j, const char *key, int value)
{
    openAttribute(j, key);
    ebpfMonJsonAddBool(j, "boolValue", value);
    closeAttribute(j);
}
