/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "common/text.h"

#define ELLIPSIS "..."

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
    /* 10xxxxxx continues a UTF-8 sequence: step back to where the sequence starts (RFC 3629). */
    while (len && ((unsigned char)src[len] & 0xc0) == 0x80)
        len--;
    memcpy(dst, src, len);
    memcpy(dst + len, ELLIPSIS, dots);
    dst[len + dots] = 0;
    return 1;
}

void ebpfMonTextRemoveControls(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = ' ';
}
