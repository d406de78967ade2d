/* SPDX-License-Identifier: BSD-3-Clause */
/* Tries what a probe does to a process, in a child process that may come to harm. */
#ifndef EBPFMON_CHILDTRIAL_H
#define EBPFMON_CHILDTRIAL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* --- the place of a function of ours ---
 *
 * Finds the place of a function of this process in its file, for a uprobe.
 */

/* "addr": address of the code. "path" (of "size" bytes) gets its file, *offset the byte in the file. 0, or -1: it has
 * no file that can be opened. Any thread. */
int ebpfMonOwnCodeFind(uint64_t addr, char *path, size_t size, uint64_t *offset);

/* --- a child that may come to harm --- */

typedef struct {
    /* Sets the probe in the child. 0: it is set. The child waits meanwhile. */
    int (*set)(void *arg, pid_t child);
    void (*unset)(void *arg); /* removes it. The child still lives, or has died of it */
    /* Runs in the child, which has copies of locks that threads of the parent may hold: it may only make system calls.
     * Returns its answer, 0 to 127. */
    int (*run)(void);
    void *arg;
} ebpfMonChildTrial;

/* The answer of the child; -1: it gave none, within 5 s, or could not be tried. Takes some milliseconds. */
int ebpfMonChildTry(const ebpfMonChildTrial *trial);

/* --- nops of 5 bytes ---
 *
 * Tries if the kernel does harm when it has a probe at a nop of 5 bytes. From Linux 6.18 on the kernel writes a call
 * over such a nop of x86-64 (ba2bfc97b462, "uprobes/x86: Add support to optimize uprobes"). The call stores its return
 * address below the stack pointer, where a function that calls no other may keep variables: the red zone of 128 bytes
 * (System V ABI for x86-64, 3.2.2). Commit 554ba38456da (July 2026) ends that, and others may have it in earlier
 * kernels. So the version does not tell, and it is tried.
 */

/* Sets a probe at such a nop in a child process. Nonzero: it changed the red zone, or it could not be tried. Needs
 * uprobe_multi; kernels without it are too old to do this. Takes some milliseconds, 5 s at most. */
int ebpfMonNopTryHarm(void);

#endif
