/* SPDX-License-Identifier: BSD-3-Clause */
/* The file of the kept settings, as text: one line for each thing, with a name, a blank, and the value (escaped as in
 * C, epicsStrPrintEscaped). No state; any thread. */
#ifndef EBPFMON_SETTINGSFILE_H
#define EBPFMON_SETTINGSFILE_H

#include <stdio.h>

#include "model/filter.h"
#include "model/published.h"

#define EBPFMON_SETTINGS_FILTER 512 /* bytes of a filter as text */

typedef struct {
    char     pattern[EBPFMON_PATTERN_SIZE];
    int      level;
} ebpfMonSettingsLevel;

typedef struct {
    char     start[EBPFMON_SETTINGS_FILTER];  /* the filter of the start-up script */
    char     filter[EBPFMON_SETTINGS_FILTER]; /* the filter in force */
    unsigned levels;
    ebpfMonSettingsLevel level[EBPFMON_LEVEL_RULES_MAX]; /* the oldest first */
    unsigned puts;      /* unexpected puts that are open */
    ebpfMonPut *put;    /* the oldest first. The owner of this struct frees it */
    unsigned gone;      /* IOCs that are gone, and are not acknowledged */
    ebpfMonGoneIoc goneIoc[EBPFMON_HEALTH_GONE]; /* without a note */
    unsigned iocs;      /* that were watched, sorted */
    char     ioc[EBPFMON_HEALTH_IOCS][EBPFMON_HEALTH_NAME];
} ebpfMonSettingsKept;

/* A filter as text, and back. 0; or -1: "why" says what is wrong. */
void ebpfMonSettingsWriteFilter(const ebpfMonFilter *filter, char text[EBPFMON_SETTINGS_FILTER]);
int ebpfMonSettingsReadFilter(const char *text, ebpfMonFilter *filter, char *why, size_t size);

/* Writes all lines to "file". */
void ebpfMonSettingsWrite(const ebpfMonSettingsKept *kept, FILE *file);

/* Reads the lines of a whole file, which this function changes. A line with a name that is not known is left out: a
 * later version wrote it. 0, or -1: it is no such file, or there is no memory. */
int ebpfMonSettingsRead(char *text, ebpfMonSettingsKept *kept);

#endif
