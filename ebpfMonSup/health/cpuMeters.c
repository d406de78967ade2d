/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>

#include "health/cpuMeters.h"

typedef struct {
    uint32_t id;      /* 0: free */
    double   cpu, percent; /* percent < 0: not known yet */
    uint64_t at;
} cpuMeter;

struct ebpfMonCpuMeters {
    unsigned size;
    double   weight;
    cpuMeter meter[];
};

ebpfMonCpuMeters *ebpfMonCpuMetersNew(unsigned size, double weight)
{
    ebpfMonCpuMeters *meters = calloc(1, sizeof(*meters) + size * sizeof(meters->meter[0]));

    if (!meters)
        return NULL;
    meters->size = size;
    meters->weight = weight;
    return meters;
}

void ebpfMonCpuMetersFree(ebpfMonCpuMeters *meters)
{
    free(meters);
}

static double getPercent(const cpuMeter *m)
{
    return m->percent < 0 ? NAN : m->percent;
}

double ebpfMonCpuMetersGet(const ebpfMonCpuMeters *meters, uint32_t id, uint64_t *at)
{
    *at = 0;
    for (unsigned i = 0; i < meters->size; i++)
        if (meters->meter[i].id == id) {
            *at = meters->meter[i].at;
            return getPercent(&meters->meter[i]);
        }
    return NAN;
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

        if (percent < 0) /* threads have ended, and their time is missing in "cpu" */
            percent = m->percent < 0 ? 0 : m->percent;
        m->percent = m->percent < 0 ? percent : m->percent + meters->weight * (percent - m->percent);
        if (m->percent < 0.01)
            m->percent = 0;
        m->cpu = cpu;
        m->at = now;
    }
    return getPercent(m);
}
