/* SPDX-License-Identifier: BSD-3-Clause */
/* The sizes of the monitor, which are fixed once it runs (the command ebpfMonConfigure). */
#ifndef EBPFMON_SETTINGS_H
#define EBPFMON_SETTINGS_H

#include <stddef.h>

/* 0: the default, which stands behind each. */
typedef struct {
    unsigned maxRecords; /* records of all watched IOCs together; 200000 */
    unsigned maxRoots;   /* chain roots with a histogram; 8192 */
    unsigned ringKiB;    /* event ring, a power of two; 8192 */
    int      wireKiB;    /* ring for the packets of each network namespace; 8192. -1: none are looked at */
    int      watchSelf;  /* nonzero: the monitor IOC is a target too; 0 */
} ebpfMonSettings;

/* Sets those that are 0 to their default. 0, or -1: one cannot be had, and "why" says what can. */
int ebpfMonSettingsCheck(ebpfMonSettings *settings, char *why, size_t size);

#endif
