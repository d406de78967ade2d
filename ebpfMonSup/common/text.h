/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Texts of other people's programs: values, names, files. A line feed or an escape sequence in one of them must not
 * forge a second line of a log, nor reach a terminal; and what is no UTF-8 must not make a line of JSON unreadable.
 */
#ifndef EBPFMON_TEXT_H
#define EBPFMON_TEXT_H

#include <stddef.h>

/* Copies "src"; what does not fit ends in "...", and no UTF-8 sequence is cut in two. Nonzero: it was cut. */
int ebpfMonTextCopy(char *dst, size_t size, const char *src);

/* Nonzero: a control character of ASCII (0x00 to 0x1f, 0x7f). */
static inline int ebpfMonTextIsControl(char c)
{
    return (unsigned char)c < 0x20 || c == 0x7f;
}

/* Puts a blank in place of each control character. */
void ebpfMonTextRemoveControls(char *text);

/* Bytes (1 to 4) of the valid UTF-8 sequence that begins at "text", which ends in a NUL; 0: none begins there. */
unsigned ebpfMonUtf8GetLength(const char *text);

/* Copies "src", with U+FFFD for each byte that does not belong to valid UTF-8. What does not fit is left out. "size" is
 * at least 1. Returns the length. */
size_t ebpfMonUtf8Copy(char *dst, size_t size, const char *src);

#endif
