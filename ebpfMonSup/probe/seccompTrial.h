/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tries if a process with a seccomp filter survives a return probe. Since Linux 6.11, a probed function of x86-64
 * returns by a system call of the kernel's own, uretprobe. No filter knows that call. A filter that kills for unknown
 * calls, or refuses them as those of most containers do, ends the process. Later kernels do not show this call to
 * filters (commit cf6cb56ef244, "seccomp: passthrough uretprobe systemcall without filtering"), and distributions have
 * added that commit to earlier kernels. So the version does not tell, and it is tried.
 */
#ifndef EBPFMON_SECCOMPTRIAL_H
#define EBPFMON_SECCOMPTRIAL_H

/* Lets a child process run into a return probe, under a filter that kills it for the calls that the kernel may make.
 * Nonzero: the child survived. 0: it did not, or it could not be tried. Takes some milliseconds, 5 s at most. After
 * ebpfMonKernelLoad, before the follower starts. */
int ebpfMonSeccompTryReturn(void);

#endif
