/* SPDX-License-Identifier: BSD-3-Clause */
/* The sizes of the monitor (command ebpfMonConfigure). They do not change while it runs. */
#ifndef EBPFMON_SETTINGS_H
#define EBPFMON_SETTINGS_H

#include <stddef.h>

/* 0: the default, which is named after each. */
typedef struct {
    unsigned maxRecords; /* records of all watched IOCs together; the default depends on the kernel
                          * (probe/kernelLoad.c) */
    unsigned maxRoots;   /* roots with a histogram; the same */
    unsigned ringKiB;    /* KiB of the event ring, a power of two; default 8192 */
    int      wireKiB;    /* KiB of the packet ring of each network namespace; default 8192. -1: no packets are read */
    int      watchSelf;  /* nonzero: the monitor watches itself, too; default 0 */
} ebpfMonSettings;

/* Sets members that are 0 to their default, except the first two. 0; or -1: a size is not possible, and "why" tells
 * which are. */
int ebpfMonSettingsCheck(ebpfMonSettings *settings, char *why, size_t size);

#endif
