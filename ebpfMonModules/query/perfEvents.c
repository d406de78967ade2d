/* SPDX-License-Identifier: BSD-3-Clause */
#include <linux/perf_event.h>
#include <stddef.h>
#include <string.h>

#include "query/perfEvents.h"

#define SOFTWARE(name) PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##name
#define HARDWARE(name) PERF_TYPE_HARDWARE, PERF_COUNT_HW_##name

/* The other events of perf are clocks; the source "profile" of a query uses those. */
static const ebpfMonPerfEvent events[] = {
    { "page-faults", SOFTWARE(PAGE_FAULTS) },
    { "minor-faults", SOFTWARE(PAGE_FAULTS_MIN) },
    { "major-faults", SOFTWARE(PAGE_FAULTS_MAJ) },
    { "context-switches", SOFTWARE(CONTEXT_SWITCHES) },
    { "cpu-migrations", SOFTWARE(CPU_MIGRATIONS) },
    { "alignment-faults", SOFTWARE(ALIGNMENT_FAULTS) },
    { "emulation-faults", SOFTWARE(EMULATION_FAULTS) },
    { "cycles", HARDWARE(CPU_CYCLES) },
    { "instructions", HARDWARE(INSTRUCTIONS) },
    { "cache-references", HARDWARE(CACHE_REFERENCES) },
    { "cache-misses", HARDWARE(CACHE_MISSES) },
    { "branches", HARDWARE(BRANCH_INSTRUCTIONS) },
    { "branch-misses", HARDWARE(BRANCH_MISSES) },
};

const ebpfMonPerfEvent *ebpfMonPerfEventFind(const char *name)
{
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
        if (strcmp(events[i].name, name) == 0)
            return &events[i];
    return NULL;
}

const char *ebpfMonPerfEventNames(void)
{
    return "page-faults, minor-faults, major-faults, context-switches, cpu-migrations, alignment-faults, "
           "emulation-faults, "
           "cycles, instructions, cache-references, cache-misses, branches, branch-misses";
}

int ebpfMonPerfEventIsOfCpu(const ebpfMonPerfEvent *event)
{
    return event->type == PERF_TYPE_HARDWARE;
}
