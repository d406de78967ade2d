/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/jsonGen.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* Of each thread that writes. The generator's context is given once, before the line is known. */
static _Thread_local yajl_gen generator;
static _Thread_local ebpfMonJson *current;

static void append(void *unused, const char *str, size_t len)
{
    ebpfMonJson *j = current;

    (void)unused;
    if (j->len + len > j->size) {
        j->cut = 1;
        return;
    }
    memcpy(j->buf + j->len, str, len);
    j->len += len;
}

void ebpfMonJsonBegin(ebpfMonJson *j, char *buf, size_t size)
{
    yajl_gen g = generator;

    j->buf = buf;
    j->size = size;
    j->len = 0;
    j->cut = 0;
    if (!g && (g = generator = yajl_gen_alloc(NULL)))
        yajl_gen_config(g, yajl_gen_print_callback, append, NULL);
    j->g = g;
    current = j;
    if (!g) {
        j->cut = 1;
        return;
    }
    yajl_gen_reset(g, NULL);
    yajl_gen_map_open(g);
}

void ebpfMonJsonForget(void)
{
    if (generator)
        yajl_gen_free(generator);
    generator = NULL;
}

size_t ebpfMonJsonEnd(ebpfMonJson *j)
{
    if (j->g)
        yajl_gen_map_close(j->g);
    return j->cut ? 0 : j->len;
}

/* Bytes of the UTF-8 sequence that begins here, 0: none does (RFC 3629, section 4). */
static unsigned sequence(const unsigned char *s)
{
    unsigned char low = 0x80, high = 0xbf;
    unsigned n;

    if (s[0] < 0x80)
        return 1;
    if (s[0] >= 0xc2 && s[0] <= 0xdf)
        n = 2;
    else if ((s[0] & 0xf0) == 0xe0)
        n = 3;
    else if (s[0] >= 0xf0 && s[0] <= 0xf4)
        n = 4;
    else
        return 0;
    if (s[0] == 0xe0)
        low = 0xa0;
    else if (s[0] == 0xed)
        high = 0x9f;
    else if (s[0] == 0xf0)
        low = 0x90;
    else if (s[0] == 0xf4)
        high = 0x8f;
    if (s[1] < low || s[1] > high)
        return 0;
    for (unsigned i = 2; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

size_t ebpfMonUtf8(char *dst, size_t size, const char *src)
{
    size_t len = 0;

    while (*src) {
        unsigned n = sequence((const unsigned char *)src);
        const char *from = n ? src : REPLACEMENT;
        unsigned add = n ? n : sizeof(REPLACEMENT) - 1;

        if (len + add >= size)
            break;
        memcpy(dst + len, from, add);
        len += add;
        src += n ? n : 1;
    }
    dst[len] = 0;
    return len;
}

static int plain(const char *text, size_t *len)
{
    const char *at = text;

    while (*at > 0) /* ASCII */
        at++;
    *len = (size_t)(at - text);
    return !*at;
}

void ebpfMonJsonText(ebpfMonJson *j, const char *text)
{
    char clean[3 * 520]; /* each byte of the longest value may become three */
    size_t len;

    if (!j->g)
        return;
    if (plain(text, &len)) {
        yajl_gen_string(j->g, (const unsigned char *)text, len);
        return;
    }
    len = ebpfMonUtf8(clean, sizeof(clean), text);
    yajl_gen_string(j->g, (const unsigned char *)clean, len);
}

void ebpfMonJsonKey(ebpfMonJson *j, const char *key)
{
    ebpfMonJsonText(j, key);
}

void ebpfMonJsonInteger(ebpfMonJson *j, long long number)
{
    if (j->g)
        yajl_gen_integer(j->g, number);
}

static size_t digits(const char *s, size_t len)
{
    size_t n = 0;

    while (n < len && s[n] >= '0' && s[n] <= '9')
        n++;
    return n;
}

int ebpfMonIsJsonNumber(const char *s, size_t len)
{
    size_t at = len && s[0] == '-', n = digits(s + at, len - at);

    if (!n || (n > 1 && s[at] == '0'))
        return 0;
    at += n;
    if (at < len && s[at] == '.') {
        n = digits(s + at + 1, len - at - 1);
        if (!n)
            return 0;
        at += 1 + n;
    }
    if (at < len && (s[at] == 'e' || s[at] == 'E')) {
        at++;
        at += at < len && (s[at] == '+' || s[at] == '-');
        n = digits(s + at, len - at);
        if (!n)
            return 0;
        at += n;
    }
    return at == len;
}

void ebpfMonShortest(double number, char *buf, size_t size)
{
    for (int p = 15; p <= 17; p++) {
        snprintf(buf, size, "%.*g", p, number);
        if (strtod(buf, NULL) == number)
            return;
    }
}

void ebpfMonJsonNumber(ebpfMonJson *j, const char *text, double number)
{
    char buf[40];

    if (!j->g)
        return;
    if (!isfinite(number)) {
        ebpfMonJsonText(j, isnan(number) ? "Nan" : number > 0 ? "Infinity" : "-Infinity");
        return;
    }
    if (!text || !ebpfMonIsJsonNumber(text, strlen(text))) {
        ebpfMonShortest(number, buf, sizeof(buf));
        text = buf;
    }
    yajl_gen_number(j->g, text, strlen(text));
}

void ebpfMonJsonPair(ebpfMonJson *j, const char *key, const char *text)
{
    if (!text[0])
        return;
    ebpfMonJsonKey(j, key);
    ebpfMonJsonText(j, text);
}
