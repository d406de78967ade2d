/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "probe/kernelObject.h"
#include "ebpfMonTable.h" /* the skeletons have its structs */
#include "ebpfMonBpf.skel.h"
#include "ebpfMonOldBpf.skel.h"

/* Both have the same programs and tables by name, but for tables that no other part knows. So one skeleton does for both. */
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
