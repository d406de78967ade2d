/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cleans texts of other people's programs: names, values, messages, files. They may contain any bytes. A line feed or
 * an escape sequence in them must not forge a second line of a log, nor reach a terminal. A bidirectional character
 * must not turn a name around. Bytes that are not UTF-8 must not make a line of JSON or an NTTable unreadable.
 *
 * Each text is cleaned twice: where it comes in (a finished put, the catalogue, names of processes and threads), so
 * that it is the same everywhere; and where it leaves us (PVs, logs, spans, shell), so that no text is forgotten. To
 * clean a text again changes nothing.
 *
 * Valid UTF-8 is copied, if it is no control, format, bidirectional or nonexistent character. Each other byte becomes
 * "\x9b": a backslash, an x, and two hexadecimal digits, as EPICS Base writes such bytes (epicsStrnEscapedFromRaw). A
 * backslash itself stays, so "\x9b" may also be what somebody wrote in four characters.
 *
 * No state; any thread. "dst" and "src" must not overlap. "size" is that of "dst".
 */
#ifndef EBPFMON_TEXT_H
#define EBPFMON_TEXT_H

#include <stddef.h>
#include <string.h>

/* Copies a text that was cleaned already; what does not fit is left out. snprintf() takes five times as long, which
 * matters where each put pays. */
static inline void ebpfMonTextSet(char *dst, size_t size, const char *src)
{
    size_t n = strlen(src);

    if (n >= size)
        n = size - 1;
    memcpy(dst, src, n);
    dst[n] = 0;
}

/* Copies "src". A text that does not fit is cut and ends with "..."; neither a character nor an escape is cut in two.
 * Nonzero: it was cut. */
int ebpfMonTextCopy(char *dst, size_t size, const char *src);

/* The same for a text of at most "length" bytes that may have no terminator. */
int ebpfMonTextCopyBytes(char *dst, size_t size, const char *src, size_t length);

/* The same for a text of ours with several lines: line feeds stay. Its parts were copied by the functions above. */
int ebpfMonTextCopyLines(char *dst, size_t size, const char *src);

/* The same for a text that goes to another program, not to a terminal: tabs, line feeds and carriage returns stay, so
 * that JSON remains JSON. */
int ebpfMonTextCopySpaces(char *dst, size_t size, const char *src);

/* Adds to a text of ours, as printf; what does not fit is left out. */
void ebpfMonTextAdd(char *text, size_t size, const char *format, ...)
    __attribute__((__format__(__printf__, 3, 4))); /* without Base: the packets are read without it, too */

/* pvxs calls a user with a certificate so, and then the name (ioc/credentials.cpp). */
#define EBPFMON_BY_CERTIFICATE "x509/"

/* The name of a user as a client claims it: if it looks like one of a certificate, "ca/" comes before it. That is the
 * method of claims in pvAccess; servers on pvxs leave it out. */
void ebpfMonTextMarkClaim(char *user, size_t size);

/* Nonzero: a control character of ASCII (0x00 to 0x1f, 0x7f). */
static inline int ebpfMonTextIsControl(char c)
{
    return (unsigned char)c < 0x20 || c == 0x7f;
}

/* Nonzero: ebpfMonTextCopy would change nothing. */
int ebpfMonTextIsClean(const char *text);

/* The same as ebpfMonTextCopy, in place. If the text must be changed, only its first 2048 bytes stay. */
void ebpfMonTextClean(char *text, size_t size);

#endif
