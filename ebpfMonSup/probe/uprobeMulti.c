/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <linux/bpf.h>

#include "probe/uprobeMulti.h"

#define MULTI_RETURN 1 /* BPF_F_UPROBE_MULTI_RETURN */

/* The parts link_create and uprobe_multi of union bpf_attr in kernel 6.6 (uapi/linux/bpf.h). */
struct linkCreate {
    uint32_t prog_fd;
    uint32_t target_fd;
    uint32_t attach_type;
    uint32_t flags;
    uint64_t path;
    uint64_t offsets;
    uint64_t ref_ctr_offsets;
    uint64_t cookies;
    uint32_t cnt;
    uint32_t multiFlags;
    uint32_t pid;
    uint32_t pad[16];
};

int ebpfMonUprobeMultiAttach(int progFd, const ebpfMonUprobePlaces *places, int isReturn)
{
    uint64_t *cookies = calloc(places->count, sizeof(*cookies));
    struct linkCreate attr;
    int fd;

    if (!cookies)
        return -1;
    for (unsigned i = 0; i < places->count; i++)
        cookies[i] = places->cookie;
    memset(&attr, 0, sizeof(attr));
    attr.prog_fd = (uint32_t)progFd;
    attr.attach_type = EBPFMON_ATTACH_MULTI;
    attr.path = (uint64_t)(uintptr_t)places->path;
    attr.offsets = (uint64_t)(uintptr_t)places->offset;
    attr.ref_ctr_offsets = (uint64_t)(uintptr_t)places->semaphore;
    attr.cookies = (uint64_t)(uintptr_t)cookies;
    attr.cnt = places->count;
    attr.multiFlags = isReturn ? MULTI_RETURN : 0;
    attr.pid = (uint32_t)places->pid;
    fd = (int)syscall(__NR_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
    free(cookies);
    return fd;
}

static int attachFails(int prog, pid_t pid)
{
    uint64_t offset = 0;
    int link = ebpfMonUprobeMultiAttach(prog, &(ebpfMonUprobePlaces){ .path = "/", .offset = &offset, .count = 1,
                                                                      .pid = pid }, 0);

    if (link >= 0) {
        close(link);
        return 0;
    }
    return errno;
}

int ebpfMonUprobeMultiLoadEmpty(void)
{
    /* r0 = 0; exit */
    struct bpf_insn insns[] = {
        { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0 },
        { .code = BPF_JMP | BPF_EXIT },
    };
    LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = (enum bpf_attach_type)EBPFMON_ATTACH_MULTI);

    return bpf_prog_load(BPF_PROG_TYPE_KPROBE, "ebpfmon_try", "Dual BSD/GPL", insns, 2, &opts);
}

int ebpfMonUprobeMultiIsSupported(void)
{
    int prog = ebpfMonUprobeMultiLoadEmpty(), ok;

    if (prog < 0)
        return 0;
    /* "/" is no file that can be probed. A kernel with uprobe_multi answers EBADF, an older one EINVAL. Kernels that
     * compared the thread instead of the process (until 46ba0e49b642) accept a negative pid here; the others refuse
     * it. */
    ok = attachFails(prog, 0) == EBADF && attachFails(prog, -1) == EINVAL;
    close(prog);
    return ok;
}
