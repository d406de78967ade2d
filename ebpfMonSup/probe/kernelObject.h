/* SPDX-License-Identifier: BSD-3-Clause */
/* The object file of the kernel part. There are two, compiled from the same programs: one of them for kernels before
 * 5.17. */
#ifndef EBPFMON_KERNELOBJECT_H
#define EBPFMON_KERNELOBJECT_H

struct ebpfMonBpf;

/* Opens it, and loads nothing. "isOld": the one for kernels without bpf_loop(). The caller destroys it with
 * ebpfMonBpf__destroy. NULL with errno. Any thread. */
struct ebpfMonBpf *ebpfMonKernelObjectOpen(int isOld);

#endif
