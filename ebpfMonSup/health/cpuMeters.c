/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>

#include "health/cpuMeters.h"

#define SMOOTH 0.4 /* weight of the newest reading. One reading is coarse: /proc counts in ticks of 10 ms */

typedef struct {
    uint32_t id;      /* 0: free */
    double   cpu, percent; /* percent < 0: not known yet */
    uint64_t at;
} cpuMeter;

struct ebpfMonCpuMeters {
    unsigned size;
    cpuMeter meter[];
};

ebpfMonCpuMeters *ebpfMonCpuMetersNew(unsigned size)
{
    ebpfMonCpuMeters *meters = calloc(1, sizeof(*meters) + size * sizeof(meters->meter[0]));

    if (meters)
        meters->size = size;
    return meters;
}

void ebpfMonCpuMetersFree(ebpfMonCpuMeters *meters)
{
    free(meters);
}

double ebpfMonCpuMetersAdd(ebpfMonCpuMeters *meters, uint32_t id, double cpu, uint64_t now)
{
    cpuMeter *m = NULL, *idle = NULL;

    for (unsigned i = 0; i < meters->size && !m; i++) {
        if (meters->meter[i].id == id)
            m = &meters->meter[i];
        else if (!idle || meters->meter[i].at < idle->at)
            idle = &meters->meter[i];
    }
    if (!m) {
        *idle = (cpuMeter){ .id = id, .cpu = cpu, .percent = -1, .at = now };
        return NAN;
    }
    if (now > m->at) {
        double percent = 100 * (cpu - m->cpu) / ((double)(now - m->at) / 1e9);

        m->percent = m->percent < 0 ? percent : m->percent + SMOOTH * (percent - m->percent);
        if (m->percent < 0.01) /* negative: threads have ended, and their time is missing in "cpu" */
            m->percent = 0;
        m->cpu = cpu;
        m->at = now;
    }
    return m->percent < 0 ? NAN : m->percent;
}
