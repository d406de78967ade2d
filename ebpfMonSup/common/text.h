/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Texts of other people's programs: values, names, files. A line feed or an escape sequence in one of them must not
 * forge a second line of a log, nor reach a terminal.
 */
#ifndef EBPFMON_TEXT_H
#define EBPFMON_TEXT_H

#include <stddef.h>

/* Copies "src"; what does not fit ends in "...", and no UTF-8 sequence is cut in two. Nonzero: it was cut. */
int ebpfMonTextCopy(char *dst, size_t size, const char *src);

/* Puts a blank in place of each control character. */
void ebpfMonTextRemoveControls(char *text);

#endif
