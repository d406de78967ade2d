/* SPDX-License-Identifier: BSD-3-Clause */
/* The object file of the kernel part. There are two: kernels before 5.17 run other machine code of the same programs. */
#ifndef EBPFMON_KERNELOBJECT_H
#define EBPFMON_KERNELOBJECT_H

struct ebpfMonBpf;

/* Opens it, and loads nothing. "isOld": the one for kernels without bpf_loop. NULL with errno; else ebpfMonBpf__destroy. */
struct ebpfMonBpf *ebpfMonKernelObjectOpen(int isOld);

#endif
