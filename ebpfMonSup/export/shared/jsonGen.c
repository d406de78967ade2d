/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "export/shared/jsonGen.h"

static void appendText(void *arg, const char *str, size_t len)
{
    ebpfMonJson *j = arg;

    if (j->len + len > j->size) {
        j->cut = 1;
        return;
    }
    memcpy(j->buf + j->len, str, len);
    j->len += len;
}

int ebpfMonJsonBegin(ebpfMonJson *j, char *buf, size_t size)
{
    if (!j->g) {
        j->g = yajl_gen_alloc(NULL);
        if (!j->g)
            return -1;
        yajl_gen_config(j->g, yajl_gen_print_callback, appendText, j);
    }
    j->buf = buf;
    j->size = size;
    j->len = 0;
    j->cut = 0;
    yajl_gen_reset(j->g, NULL);
    yajl_gen_map_open(j->g);
    return 0;
}

size_t ebpfMonJsonEnd(ebpfMonJson *j)
{
    yajl_gen_map_close(j->g);
    return ebpfMonJsonEndOpen(j);
}

size_t ebpfMonJsonEndOpen(const ebpfMonJson *j)
{
    return j->cut ? 0 : j->len;
}

void ebpfMonJsonFree(ebpfMonJson *j)
{
    if (j->g)
        yajl_gen_free(j->g);
    memset(j, 0, sizeof(*j));
}

void ebpfMonJsonWriteText(ebpfMonJson *j, const char *text)
{
    char clean[4 * 520]; /* each byte of the longest value can become four */

    if (!ebpfMonTextIsClean(text)) {
        ebpfMonTextCopy(clean, sizeof(clean), text);
        text = clean;
    }
    yajl_gen_string(j->g, (const unsigned char *)text, strlen(text));
}

void ebpfMonJsonWriteKey(ebpfMonJson *j, const char *key)
{
    ebpfMonJsonWriteText(j, key);
}

void ebpfMonJsonWriteInteger(ebpfMonJson *j, long long number)
{
    yajl_gen_integer(j->g, number);
}

static size_t countDigits(const char *s, size_t len)
{
    size_t n = 0;

    while (n < len && s[n] >= '0' && s[n] <= '9')
        n++;
    return n;
}

int ebpfMonJsonIsNumber(const char *s, size_t len)
{
    size_t at = len && s[0] == '-', n = countDigits(s + at, len - at);

    if (!n || (n > 1 && s[at] == '0'))
        return 0;
    at += n;
    if (at < len && s[at] == '.') {
        n = countDigits(s + at + 1, len - at - 1);
        if (!n)
            return 0;
        at += 1 + n;
    }
    if (at < len && (s[at] == 'e' || s[at] == 'E')) {
        at++;
        at += at < len && (s[at] == '+' || s[at] == '-');
        n = countDigits(s + at, len - at);
        if (!n)
            return 0;
        at += n;
    }
    return at == len;
}

void ebpfMonJsonFormatNumber(double number, char *buf, size_t size)
{
    for (int p = 15; p <= 17; p++) {
        snprintf(buf, size, "%.*g", p, number);
        if (strtod(buf, NULL) == number)
            return;
    }
}

void ebpfMonJsonWriteNumber(ebpfMonJson *j, const char *digits, double number)
{
    char buf[40];

    if (!isfinite(number)) {
        ebpfMonJsonWriteText(j, isnan(number) ? "Nan" : number > 0 ? "Infinity" : "-Infinity");
        return;
    }
    if (!digits || !ebpfMonJsonIsNumber(digits, strlen(digits))) {
        ebpfMonJsonFormatNumber(number, buf, sizeof(buf));
        digits = buf;
    }
    yajl_gen_number(j->g, digits, strlen(digits));
}

void ebpfMonJsonAddText(ebpfMonJson *j, const char *key, const char *text)
{
    ebpfMonJsonWriteKey(j, key);
    ebpfMonJsonWriteText(j, text);
}

void ebpfMonJsonAddCleanText(ebpfMonJson *j, const char *key, const char *text)
{
    ebpfMonJsonWriteKey(j, key);
    yajl_gen_string(j->g, (const unsigned char *)text, strlen(text));
}

void ebpfMonJsonAddTextIfAny(ebpfMonJson *j, const char *key, const char *text)
{
    if (text[0])
        ebpfMonJsonAddText(j, key, text);
}

void ebpfMonJsonAddInteger(ebpfMonJson *j, const char *key, long long number)
{
    ebpfMonJsonWriteKey(j, key);
    ebpfMonJsonWriteInteger(j, number);
}

void ebpfMonJsonAddNumber(ebpfMonJson *j, const char *key, const char *digits, double number)
{
    ebpfMonJsonWriteKey(j, key);
    ebpfMonJsonWriteNumber(j, digits, number);
}

void ebpfMonJsonAddBool(ebpfMonJson *j, const char *key, int value)
{
    ebpfMonJsonWriteKey(j, key);
    yajl_gen_bool(j->g, value);
}

void ebpfMonJsonFormatId(const uint8_t *id, unsigned size, char *digits)
{
    for (unsigned i = 0; i < size; i++) {
        digits[2 * i] = "0123456789abcdef"[id[i] >> 4];
        digits[2 * i + 1] = "0123456789abcdef"[id[i] & 15];
    }
    digits[2 * size] = 0;
}

void ebpfMonJsonAddId(ebpfMonJson *j, const char *key, const uint8_t *id, unsigned size)
{
    char digits[2 * 16 + 1];
    unsigned any = 0;

    for (unsigned i = 0; i < size; i++)
        any |= id[i];
    if (!any)
        return;
    ebpfMonJsonFormatId(id, size, digits);
    ebpfMonJsonAddText(j, key, digits);
}

void ebpfMonJsonOpenObject(ebpfMonJson *j, const char *key)
{
    if (key)
        ebpfMonJsonWriteKey(j, key);
    yajl_gen_map_open(j->g);
}

void ebpfMonJsonCloseObject(ebpfMonJson *j)
{
    yajl_gen_map_close(j->g);
}

void ebpfMonJsonOpenList(ebpfMonJson *j, const char *key)
{
    if (key)
        ebpfMonJsonWriteKey(j, key);
    yajl_gen_array_open(j->g);
}

void ebpfMonJsonCloseList(ebpfMonJson *j)
{
    yajl_gen_array_close(j->g);
}
