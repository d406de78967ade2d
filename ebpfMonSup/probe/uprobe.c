/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "code/machine.h"
#include "probe/kernelLoad.h"
#include "probe/kernelLoaded.h"
#include "probe/closer.h"
#include "probe/uprobe.h"

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
    p->fd = ebpfMonUprobeMultiAttach(bpf_program__fd(prog), places, isReturn);
    if (p->fd < 0)
        return errno;
    p->inFolder = ebpfMonLinkFolderAdd(p->fd);
    (*probes)++;
    return 0;
}
