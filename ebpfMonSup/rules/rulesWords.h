/* SPDX-License-Identifier: BSD-3-Clause */
/* The words of a rules file, and where they stand in it. */
#ifndef EBPFMON_RULESWORDS_H
#define EBPFMON_RULESWORDS_H

#include <stddef.h>
#include <stdint.h>

/* "Mon-Fri,Sun" to a bit a day, bit 0 Sunday; a range may go over the week's end. 0 or -1. */
int ebpfMonRulesReadDays(const char *text, uint8_t *days);

/* "HH:MM", 00:00 to 24:00, to minutes. 0 or -1. */
int ebpfMonRulesReadClock(const char *text, uint16_t *minute);

/* The ebpfMonThrough of this name, not case sensitive, or -1. */
int ebpfMonRulesReadOrigin(const char *text, size_t length);

/* The offset of the token that ends before "end". */
size_t ebpfMonRulesFindToken(const char *text, size_t length, size_t end);

/* "file:line:column: why"; when that is too long the file's name is left out. */
void ebpfMonRulesFormatPlace(const char *file, const char *text, size_t length, size_t at, const char *why, char *buf,
                     size_t size);

#endif
