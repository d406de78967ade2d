/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether a process under a seccomp filter survives a return probe. From Linux 6.11 on the kernel returns from a probed function
 * of x86-64 by a system call of its own, uretprobe, which no filter knows; one that kills for unknown calls, or refuses them as
 * most containers' do, ends the process. Later kernels do not show that call to filters (commit cf6cb56ef244, "seccomp:
 * passthrough uretprobe systemcall without filtering"), and distributions have that commit in earlier ones. So it is tried.
 */
#ifndef EBPFMON_SECCOMPTRIAL_H
#define EBPFMON_SECCOMPTRIAL_H

/* Lets a child of this process run into a return probe, under a filter that kills for the calls that the kernel may make. Nonzero:
 * it lived on. 0: it did not, or that could not be tried. Takes some milliseconds, 5 s at most. After ebpfMonKernelLoad. */
int ebpfMonSeccompTryReturn(void);

#endif
