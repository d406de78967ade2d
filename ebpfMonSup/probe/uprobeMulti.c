/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
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

int ebpfMonUprobeMultiAttach(int progFd, const char *path, const uint64_t *offsets, const uint64_t *semaphores,
                             const uint64_t *cookies, unsigned count, pid_t pid, int isReturn)
{
    struct linkCreate attr;

    memset(&attr, 0, sizeof(attr));
    attr.prog_fd = (uint32_t)progFd;
    attr.attach_type = EBPFMON_ATTACH_MULTI;
    attr.path = (uint64_t)(uintptr_t)path;
    attr.offsets = (uint64_t)(uintptr_t)offsets;
    attr.ref_ctr_offsets = (uint64_t)(uintptr_t)semaphores;
    attr.cookies = (uint64_t)(uintptr_t)cookies;
    attr.cnt = count;
    attr.multiFlags = isReturn ? MULTI_RETURN : 0;
    attr.pid = (uint32_t)pid;
    return (int)syscall(__NR_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
}

static int attachFails(int prog, pid_t pid)
{
    uint64_t offset = 0;
    int link = ebpfMonUprobeMultiAttach(prog, "/", &offset, NULL, NULL, 1, pid, 0);

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
