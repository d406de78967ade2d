/* SPDX-License-Identifier: BSD-3-Clause */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "code/machine.h"
#include "probe/closer.h"
#include "probe/kernelLoad.h"
#include "probe/kernelLoaded.h"
#include "probe/uprobe.h"

/* --- many sites at once --- */

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
                             unsigned count, pid_t pid, int isReturn)
{
    struct linkCreate attr;

    memset(&attr, 0, sizeof(attr));
    attr.prog_fd = (uint32_t)progFd;
    attr.attach_type = EBPFMON_ATTACH_MULTI;
    attr.path = (uint64_t)(uintptr_t)path;
    attr.offsets = (uint64_t)(uintptr_t)offsets;
    attr.ref_ctr_offsets = (uint64_t)(uintptr_t)semaphores;
    attr.cnt = count;
    attr.multiFlags = isReturn ? MULTI_RETURN : 0;
    attr.pid = (uint32_t)pid;
    return (int)syscall(__NR_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
}

static int attachFails(int prog, pid_t pid)
{
    uint64_t offset = 0;
    int link = ebpfMonUprobeMultiAttach(prog, "/", &offset, NULL, 1, pid, 0);

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

/* --- probes --- */

#define NOP_BYTES 5

/* The kernel decides by the bytes in the file, too (copy_insn, kernel/events/uprobes.c). */
int ebpfMonUprobeCheck(const char *path, const uint64_t *offset, unsigned count)
{
    uint8_t code[NOP_BYTES];
    int fd, err = 0;

    if (!ebpfMonLoaded.nopHarms)
        return 0;
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    for (unsigned i = 0; i < count && !err; i++) {
        ssize_t n = pread(fd, code, sizeof(code), (off_t)offset[i]);

        err = n < 0 ? errno : ebpfMonInsnIsNop5X86(code, (size_t)n) ? EBPFMON_UPROBE_HARMS : 0;
    }
    close(fd);
    return err;
}

const char *ebpfMonUprobeErrorText(int err)
{
    return err == EBPFMON_UPROBE_HARMS ? "a nop of 5 bytes stands there, where this kernel overwrites the stack" :
                                         strerror(err);
}

/* Without uprobe_multi: a perf event for each place. */
static int setOneByOne(struct bpf_program *prog, const ebpfMonUprobePlaces *places, int isReturn, ebpfMonProbe *probe,
                       unsigned *probes)
{
    for (unsigned i = 0; i < places->count; i++, (*probes)++) {
        LIBBPF_OPTS(bpf_uprobe_opts, opts, .retprobe = isReturn,
                    .ref_ctr_offset = places->semaphore ? places->semaphore[i] : 0);
        ebpfMonProbe *p = &probe[*probes];

        memset(p, 0, sizeof(*p));
        p->link = bpf_program__attach_uprobe_opts(prog, places->pid, places->path, places->offset[i], &opts);
        if (!p->link)
            return errno;
    }
    return 0;
}

int ebpfMonUprobeSet(struct bpf_program *prog, const ebpfMonUprobePlaces *places, int isReturn, ebpfMonProbe *probe,
                     unsigned *probes)
{
    ebpfMonProbe *p = &probe[*probes];
    int err = ebpfMonUprobeCheck(places->path, places->offset, places->count);

    if (err)
        return err;
    if (!ebpfMonFeature.uprobeMulti)
        return setOneByOne(prog, places, isReturn, probe, probes);
    memset(p, 0, sizeof(*p));
    p->fd = ebpfMonUprobeMultiAttach(bpf_program__fd(prog), places->path, places->offset, places->semaphore,
                                     places->count, places->pid, isReturn);
    if (p->fd < 0)
        return errno;
    p->inFolder = ebpfMonLinkFolderAdd(p->fd);
    (*probes)++;
    return 0;
}
