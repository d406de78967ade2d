/* SPDX-License-Identifier: BSD-3-Clause */
/* The call stack of a thread of another process, read while the thread goes on: from its registers as the kernel
 * keeps them, the words on its stack, and the files that the process has mapped. */
#ifndef EBPFMON_STACK_H
#define EBPFMON_STACK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "code/elfFile.h"
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

/* --- many stacks, folded ---
 *
 * Makes lines of functions from many stacks of one process. Each stack was copied, with the registers, while a thread
 * ran. The name of each address is kept, so that the files are searched for it only once. One thread at a time.
 */

#define EBPFMON_FOLD_BATCH 32   /* stacks at a time */
#define EBPFMON_FOLD_TEXT  1024 /* bytes of a line: what does not fit is left out at its inner end */

typedef struct ebpfMonStackFold ebpfMonStackFold;

ebpfMonStackFold *ebpfMonStackFoldNew(pid_t pid); /* NULL: no memory */
void ebpfMonStackFoldFree(ebpfMonStackFold *fold); /* NULL does no harm */

#define EBPFMON_FOLD_REGS    21
#define EBPFMON_FOLD_RETURNS 64

/* A stack as it was copied. */
typedef struct {
    uint64_t regs[EBPFMON_FOLD_REGS]; /* struct pt_regs of x86-64 */
    size_t   returns; /* return addresses that return probes have replaced */
    ebpfMonReturn ret[EBPFMON_FOLD_RETURNS];
    const uint8_t *stack; /* from the stack pointer on; copied by Add */
    size_t   bytes;
} ebpfMonStackCopy;

/* Adds a stack. Nonzero: the batch is full, or there is no memory. */
int ebpfMonStackFoldAdd(ebpfMonStackFold *fold, const ebpfMonStackCopy *copy);

/* Unwinds the stacks that were added, in a job (foreign.h). Returns the same fold; NULL: the process does not answer,
 * and the fold was freed. */
ebpfMonStackFold *ebpfMonStackFoldRun(ebpfMonStackFold *fold);

/* The line of the stack that was added as number n: "start_thread;scanThread;dbProcess", outermost first; a place
 * without a name is "[FILE]". Empty: nothing is known. Until the next Begin. */
const char *ebpfMonStackFoldGet(const ebpfMonStackFold *fold, unsigned n);

/* The site of the stack number n: the name of its innermost function outside of the libraries that serve all programs,
 * the C library, libstdc++ and the dynamic linker, and outside of libCom. Without a name "[FILE+0xADDRESS]", the
 * address as addr2line takes it. Empty: nothing is known. Until the next Begin. */
const char *ebpfMonStackFoldGetSite(const ebpfMonStackFold *fold, unsigned n);

/* Forgets the stacks, for the next batch. */
void ebpfMonStackFoldBegin(ebpfMonStackFold *fold);

#endif
