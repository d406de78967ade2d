/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a thread of another process is, function by function, while that goes on: from its registers as the kernel
 * keeps them, the words on its stack, and the files it has mapped. */
#ifndef EBPFMON_STACK_H
#define EBPFMON_STACK_H

#include <stddef.h>
#include <sys/types.h>
#include "code/unwind.h"

#define EBPFMON_STACK_MAX 40
#define EBPFMON_SAVED     6

typedef struct {
    char     name[80];  /* empty: not known */
    char     file[40];  /* "libdbCore.so.3.23.0" */
    unsigned offset;    /* of the pc in the function, in the file when that has no name for it */
    uint64_t saved[EBPFMON_SAVED]; /* rbx, rbp, r12 to r15, which a function keeps for its caller; 0: not known */
} ebpfMonFrame;

/* "regs": what is known of the thread's registers; without pc and sp those that /proc shows of a thread that waits in a
 * system call are taken. Returns how many frames there are, innermost first; 0: none is known. */
unsigned ebpfMonStackGet(pid_t pid, pid_t tid, ebpfMonRegs *regs, ebpfMonFrame frame[EBPFMON_STACK_MAX]);

#endif
