/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads single words of a rules file: days, times of day, origins. No state. */
#ifndef EBPFMON_RULESWORDS_H
#define EBPFMON_RULESWORDS_H

#include <stddef.h>
#include <stdint.h>

/* Reads "Mon-Fri,Sun" into one bit for each day; bit 0 is Sunday. A range may go over the end of the week. 0, or -1:
 * the text is wrong. */
int ebpfMonRulesReadDays(const char *text, uint8_t *days);

/* Reads "HH:MM", from 00:00 to 24:00, as minutes of the day. 0, or -1: the text is wrong. */
int ebpfMonRulesReadClock(const char *text, uint16_t *minute);

/* Returns the ebpfMonThrough of this name, in capital or small letters; -1: there is none. */
int ebpfMonRulesReadOrigin(const char *text, size_t length);

#endif
