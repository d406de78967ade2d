/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "probe/kernelObject.h"
#include "ebpfMonTable.h" /* the skeletons have its structs */
#include "ebpfMonBpf.skel.h"
#include "ebpfMonOldBpf.skel.h"

/* Both object files have programs and tables of the same names, except tables that only the programs use. So one
 * skeleton does for both. */
struct ebpfMonBpf *ebpfMonKernelObjectOpen(int isOld)
{
    struct ebpfMonBpf *skel = calloc(1, sizeof(*skel));
    int err;

    if (!skel)
        return NULL;
    err = ebpfMonBpf__create_skeleton(skel);
    if (!err) {
        if (isOld)
            skel->skeleton->data = (void *)ebpfMonOldBpf__elf_bytes(&skel->skeleton->data_sz);
        err = bpf_object__open_skeleton(skel->skeleton, NULL);
    }
    if (err) {
        ebpfMonBpf__destroy(skel);
        errno = -err;
        return NULL;
    }
    return skel;
}
