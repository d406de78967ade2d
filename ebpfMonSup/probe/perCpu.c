/* SPDX-License-Identifier: BSD-3-Clause */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdlib.h>
#include <string.h>
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

/* --- programs that the kernel did not run --- */

uint64_t ebpfMonSkippedRunsOf(int fd)
{
    struct bpf_prog_info info = {};
    uint32_t size = sizeof(info);

    return bpf_obj_get_info_by_fd(fd, &info, &size) ? 0 : info.recursion_misses;
}

uint64_t ebpfMonSkippedRunsCount(const struct bpf_object *object)
{
    struct bpf_program *prog;
    uint64_t sum = 0;

    bpf_object__for_each_program(prog, object)
        if (bpf_program__type(prog) != BPF_PROG_TYPE_KPROBE && bpf_program__fd(prog) >= 0)
            sum += ebpfMonSkippedRunsOf(bpf_program__fd(prog));
    return sum;
}
