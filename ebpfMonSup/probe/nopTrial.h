/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tries if the kernel does harm when it has a probe at a nop of 5 bytes. From Linux 6.18 on the kernel writes a call
 * over such a nop of x86-64 (ba2bfc97b462, "uprobes/x86: Add support to optimize uprobes"). The call stores its return
 * address below the stack pointer, where a function that calls no other may keep variables: the red zone of 128 bytes
 * (System V ABI for x86-64, 3.2.2). Commit 554ba38456da (July 2026) ends that, and others may have it in earlier
 * kernels. So the version does not tell, and it is tried.
 */
#ifndef EBPFMON_NOPTRIAL_H
#define EBPFMON_NOPTRIAL_H

/* Sets a probe at such a nop in a child process. Nonzero: it changed the red zone, or it could not be tried. Needs
 * uprobe_multi; kernels without it are too old to do this. Takes some milliseconds, 5 s at most. */
int ebpfMonNopTryHarm(void);

#endif
