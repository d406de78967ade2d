/* SPDX-License-Identifier: BSD-3-Clause */
#include <bpf/bpf.h>

#include "probe/skippedRuns.h"

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
