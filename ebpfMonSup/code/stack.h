/* SPDX-License-Identifier: BSD-3-Clause */
/* The call stack of a thread of another process, read while the thread goes on: from its registers as the kernel
 * keeps them, the words on its stack, and the files that the process has mapped. */
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
    unsigned offset;    /* of the pc in the function; if the function has no name, in the file */
    uint64_t saved[EBPFMON_SAVED]; /* rbx, rbp, r12 to r15, which a function restores for its caller; 0: not known */
} ebpfMonFrame;

#define EBPFMON_STACK_RETURNS 32

/* What is known of the thread. */
typedef struct {
    ebpfMonRegs   regs;
    ebpfMonReturn ret[EBPFMON_STACK_RETURNS];
    unsigned      returns;
} ebpfMonStackStart;

/* Without pc and sp, the function takes those that /proc shows for a thread that waits in a system call. Returns the
 * number of frames, innermost first; 0: none is known. */
unsigned ebpfMonStackGet(pid_t pid, pid_t tid, const ebpfMonStackStart *start, ebpfMonFrame frame[EBPFMON_STACK_MAX]);

#endif
