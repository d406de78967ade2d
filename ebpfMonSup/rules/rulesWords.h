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

#endif
