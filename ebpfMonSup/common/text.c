/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"

#define ELLIPSIS "..."
#define CLEANED_MAX 2048 /* no text that is cleaned in place is longer */

typedef struct {
    uint32_t first, last;
} codeRange;

/*
 * Valid characters that are not shown: control characters (Unicode category Cc), line and paragraph separators (Zl,
 * Zp), format characters without a glyph (Cf: zero width, bidirectional, byte order mark, tags), fillers that look like
 * nothing, and the noncharacters U+FDD0 to U+FDEF. In ascending order.
 */
static const codeRange hidden[] = {
    {0x00, 0x1f}, {0x7f, 0x9f}, {0xad, 0xad}, {0x34f, 0x34f}, {0x61c, 0x61c}, {0x115f, 0x1160}, {0x17b4, 0x17b5},
    {0x180b, 0x180f}, {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f}, {0x3164, 0x3164}, {0xfdd0, 0xfdef},
    {0xfeff, 0xfeff}, {0xffa0, 0xffa0}, {0xfff0, 0xfffb}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
    {0xe0000, 0xe0fff},
};

static int isShown(uint32_t code)
{
    if ((code & 0xfffe) == 0xfffe) /* the last two characters of each plane are noncharacters */
        return 0;
    for (unsigned i = 0; i < sizeof(hidden) / sizeof(hidden[0]) && code >= hidden[i].first; i++)
        if (code <= hidden[i].last)
            return 0;
    return 1;
}

/* Returns the bytes of the valid UTF-8 sequence at "s", which has "left" bytes; 0: none begins there. RFC 3629, section
 * 4, tells which second bytes may follow a first byte. This excludes overlong forms (0xe0, 0xf0), surrogates (0xed),
 * and numbers above U+10FFFF (0xf4). */
static unsigned decodeUtf8(const unsigned char *s, size_t left, uint32_t *code)
{
    unsigned char low = 0x80, high = 0xbf;
    unsigned n = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] <= 0xdf ? 2 : (s[0] & 0xf0) == 0xe0 ? 3 :
                 s[0] >= 0xf0 && s[0] <= 0xf4 ? 4 : 0;

    if (!n || n > left)
        return 0;
    if (s[0] == 0xe0)
        low = 0xa0;
    else if (s[0] == 0xed)
        high = 0x9f;
    else if (s[0] == 0xf0)
        low = 0x90;
    else if (s[0] == 0xf4)
        high = 0x8f;
    *code = n == 1 ? s[0] : s[0] & (0xffu >> (n + 1));
    for (unsigned i = 1; i < n; i++) {
        if (s[i] < low || s[i] > high)
            return 0;
        low = 0x80;
        high = 0xbf;
        *code = *code << 6 | (s[i] & 0x3fu);
    }
    return n;
}

static int isPlain(char c)
{
    return c >= ' ' && c <= '~';
}

/* Returns the bytes of the character at "s" if it is shown as it is; 0: its first byte is escaped. */
static unsigned getShownLength(const char *s, size_t left)
{
    uint32_t code;
    unsigned n;

    if (isPlain(*s))
        return 1;
    n = decodeUtf8((const unsigned char *)s, left, &code);
    return n && isShown(code) ? n : 0;
}

/* "kept": control characters that stay as they are. */
static int copyText(char *dst, size_t size, const char *src, size_t left, const char *kept)
{
    size_t dots = size > sizeof(ELLIPSIS) - 1 ? sizeof(ELLIPSIS) - 1 : size ? size - 1 : 0;
    size_t len = 0, fits = 0; /* so many bytes leave room for the dots */
    unsigned n, add;

    if (!size)
        return left != 0;
    for (; left; src += n, left -= n) {
        char escape[sizeof("\\xff")];
        const char *from = src;

        if (isPlain(*src) && len + 1 + dots < size) { /* nearly all characters */
            dst[len++] = *src;
            fits = len;
            n = 1;
            continue;
        }
        n = add = *src && strchr(kept, *src) ? 1 : getShownLength(src, left);
        if (!n) {
            n = 1;
            add = (unsigned)snprintf(escape, sizeof(escape), "\\x%02x", (unsigned char)*src);
            from = escape;
        }
        if (len + add >= size) {
            memcpy(dst + fits, ELLIPSIS, dots);
            dst[fits + dots] = 0;
            return 1;
        }
        memcpy(dst + len, from, add);
        len += add;
        if (len + dots < size)
            fits = len;
    }
    dst[len] = 0;
    return 0;
}

int ebpfMonTextCopy(char *dst, size_t size, const char *src)
{
    return copyText(dst, size, src, strlen(src), "");
}

int ebpfMonTextCopyBytes(char *dst, size_t size, const char *src, size_t length)
{
    return copyText(dst, size, src, strnlen(src, length), "");
}

int ebpfMonTextCopyLines(char *dst, size_t size, const char *src)
{
    return copyText(dst, size, src, strlen(src), "\n");
}

int ebpfMonTextCopySpaces(char *dst, size_t size, const char *src)
{
    return copyText(dst, size, src, strlen(src), "\t\n\r");
}

void ebpfMonTextAdd(char *text, size_t size, const char *format, ...)
{
    size_t used = strlen(text);
    va_list ap;

    va_start(ap, format);
    vsnprintf(text + used, size - used, format, ap);
    va_end(ap);
}

void ebpfMonTextMarkClaim(char *user, size_t size)
{
    char claim[CLEANED_MAX];

    if (strncmp(user, EBPFMON_BY_CERTIFICATE, sizeof(EBPFMON_BY_CERTIFICATE) - 1) != 0)
        return;
    snprintf(claim, sizeof(claim), "ca/%s", user);
    ebpfMonTextCopy(user, size, claim);
}

int ebpfMonTextIsClean(const char *text)
{
    size_t left = strlen(text);
    unsigned n;

    for (; left; text += n, left -= n) {
        n = getShownLength(text, left);
        if (!n)
            return 0;
    }
    return 1;
}

void ebpfMonTextClean(char *text, size_t size)
{
    char copy[CLEANED_MAX];
    size_t length = strnlen(text, sizeof(copy));

    if (ebpfMonTextIsClean(text))
        return;
    memcpy(copy, text, length);
    copyText(text, size, copy, length, "");
}
