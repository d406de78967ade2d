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

/* Finds an event. NULL: there is none of this name. Any thread. */
const ebpfMonPerfEvent *ebpfMonPerfEventFind(const char *name);

/* The names of all events, for a message: "page-faults, minor-faults". */
const char *ebpfMonPerfEventNames(void);

/* Nonzero: the CPU counts this event. Such events come so often that a query looks at one of many only. */
int ebpfMonPerfEventIsOfCpu(const ebpfMonPerfEvent *event);

#endif
