/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "probe/perCpu.h"

void ebpfMonPerCpuSum(const struct bpf_map *map, const void *key, void *sum, size_t size)
{
    int cpus = libbpf_num_possible_cpus();
    char *each = cpus > 0 ? calloc((size_t)cpus, size) : NULL;

    memset(sum, 0, size);
    if (each && bpf_map_lookup_elem(bpf_map__fd(map), key, each) == 0)
        for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
            uint64_t total = 0, one;

            for (int c = 0; c < cpus; c++) {
                memcpy(&one, each + (size_t)c * size + at, sizeof(one));
                total += one;
            }
            memcpy((char *)sum + at, &total, sizeof(total));
        }
    free(each);
}
