/* SPDX-License-Identifier: BSD-3-Clause */
/* Events that the kernel, or the CPU, counts by itself (perf_event_open). */
#ifndef EBPFMON_PERFEVENTS_H
#define EBPFMON_PERFEVENTS_H

#include <stdint.h>

typedef struct {
    const char *name;    /* as perf calls it */
    uint32_t type;       /* PERF_TYPE_SOFTWARE: of the kernel; PERF_TYPE_HARDWARE: of the CPU */
    uint64_t config;
} ebpfMonPerfEvent;

/* NULL: there is none of this name. */
const ebpfMonPerfEvent *ebpfMonPerfEventFind(const char *name);

/* The names of all: "page-faults, minor-faults". */
const char *ebpfMonPerfEventNames(void);

/* Nonzero: of the CPU. They come so often that one in many is looked at. */
int ebpfMonPerfEventIsOfCpu(const ebpfMonPerfEvent *event);

#endif
