/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where in a function to put a probe.
 *
 * A uprobe replaces one instruction. The kernel emulates a few kinds (x86: push of a register, nop, jmp,
 * jcc, call: arch/x86/kernel/uprobes.c, branch_xol_ops and push_xol_ops) and single-steps all others, at
 * 12 times the cost in a virtual machine. So the probe goes to the first emulated instruction of the prologue at which
 * the arguments that the program reads, and for a return probe the return address, are still in their places. siteX86.c
 * and siteAarch64.c know the instructions; machine.h chooses between them.
 */
#ifndef EBPFMON_SITE_H
#define EBPFMON_SITE_H

#include <stddef.h>
#include <stdint.h>

typedef enum {
    ebpfMonSiteNone,    /* the function is not there */
    ebpfMonSiteFast,    /* emulated */
    ebpfMonSiteStepped  /* single-stepped: no emulated instruction was found in time */
} ebpfMonSiteClass;

typedef struct {
    ebpfMonSiteClass cls;
    uint64_t offset;     /* in the file, as a uprobe wants it */
    uint64_t vaddr;      /* in the ELF file's address space */
    unsigned skip;       /* bytes after the function's first instruction */
    int      canReturn;  /* the return address still stands there: a return probe may sit at "offset" */
    char     insn[24];   /* the instruction by name, for reports: "push", "jcc", … */
} ebpfMonSite;

/* Which integer arguments (bit 0: the first) a program reads at its site. */
#define EBPFMON_ARG1 1u
#define EBPFMON_ARG2 2u
#define EBPFMON_ARG3 4u
#define EBPFMON_ARG4 8u

#endif
