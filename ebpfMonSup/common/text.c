/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "common/text.h"

#define ELLIPSIS "..."
#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* 10xxxxxx: in a UTF-8 sequence, but not its first byte (RFC 3629, section 3). */
static int isContinuation(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

int ebpfMonTextCopy(char *dst, size_t size, const char *src)
{
    size_t len, dots;

    if (!size)
        return *src != 0;
    len = strlen(src);
    if (len < size) {
        memcpy(dst, src, len + 1);
        return 0;
    }
    dots = size > sizeof(ELLIPSIS) - 1 ? sizeof(ELLIPSIS) - 1 : size - 1;
    len = size - 1 - dots;
    while (len && isContinuation(src[len])) /* back to where the sequence begins */
        len--;
    memcpy(dst, src, len);
    memcpy(dst + len, ELLIPSIS, dots);
    dst[len + dots] = 0;
    return 1;
}

void ebpfMonTextRemoveControls(char *text)
{
    for (; *text; text++)
        if (ebpfMonTextIsControl(*text))
            *text = ' ';
}

/* RFC 3629, section 4: which second bytes may follow a first byte. It excludes overlong forms (0xe0, 0xf0), surrogates
 * (0xed) and what is beyond U+10FFFF (0xf4). */
unsigned ebpfMonUtf8GetLength(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
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
        if (!isContinuation(text[i]))
            return 0;
    return n;
}

size_t ebpfMonUtf8Copy(char *dst, size_t size, const char *src)
{
    size_t len = 0;

    while (*src) {
        unsigned n = ebpfMonUtf8GetLength(src);
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
