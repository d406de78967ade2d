/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Texts of other people's programs: names, values, messages, files. They may hold any bytes. A line feed or an escape
 * sequence in one of them must not forge a second line of a log, nor reach a terminal; a bidirectional character must
 * not turn a name around; and what is no UTF-8 must not make a line of JSON or an NTTable unreadable.
 *
 * Each text passes through this function twice: where it comes in (a finished put, the catalogue, names of processes
 * and threads), so that it is the same text everywhere, and where it leaves us (PVs, logs, spans, shell), so that none
 * is forgotten. The function is idempotent: what it made stays as it is.
 *
 * A character that is shown is copied: valid UTF-8, and no control, format, bidirectional or nonexistent character. Each
 * byte of anything else becomes "\x9b": a backslash, an x, two hexadecimal digits, as EPICS Base writes such bytes
 * (epicsStrnEscapedFromRaw). A backslash itself stays, so "\x9b" may also be what somebody wrote in four characters.
 *
 * No state; any thread. "dst" and "src" must not overlap. "size" is that of "dst".
 */
#ifndef EBPFMON_TEXT_H
#define EBPFMON_TEXT_H

#include <stddef.h>

/* Copies "src". What does not fit ends in "...", and neither a character nor an escape is cut in two. Nonzero: it was
 * cut. */
int ebpfMonTextCopy(char *dst, size_t size, const char *src);

/* The same for a text of at most "length" bytes that may have no terminator. */
int ebpfMonTextCopyBytes(char *dst, size_t size, const char *src, size_t length);

/* The same for a text of ours that has several lines: line feeds stay. Its parts were copied by the functions above. */
int ebpfMonTextCopyLines(char *dst, size_t size, const char *src);

/* Nonzero: a control character of ASCII (0x00 to 0x1f, 0x7f). */
static inline int ebpfMonTextIsControl(char c)
{
    return (unsigned char)c < 0x20 || c == 0x7f;
}

/* Nonzero: ebpfMonTextCopy would change nothing. */
int ebpfMonTextIsClean(const char *text);

/* The same as ebpfMonTextCopy, in place. Of a text that needs it, the first 2048 bytes count. */
void ebpfMonTextClean(char *text, size_t size);

#endif
