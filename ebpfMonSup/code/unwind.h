/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One step from a function to its caller, by the call frame information of the file (.eh_frame, as the System V ABI
 * for x86-64 and DWARF 4 section 6.4 have it), which stripped files have as well. Nothing is run in the process.
 */
#ifndef EBPFMON_UNWIND_H
#define EBPFMON_UNWIND_H

#include <stdint.h>
#include "code/elfFile.h"

#define EBPFMON_REGS   17 /* by their DWARF numbers on x86-64 */
#define EBPFMON_REG_SP 7
#define EBPFMON_REG_PC 16

typedef struct {
    uint64_t reg[EBPFMON_REGS];
    uint32_t known; /* bit by register */
} ebpfMonRegs;

/* A return address that the kernel has replaced by its own, for a return probe. */
typedef struct {
    uint64_t slot; /* its place on the stack */
    uint64_t to;   /* the original */
} ebpfMonReturn;

/* Reads 8 bytes of the process' stack; 0, or -1. */
typedef int (*ebpfMonStackRead)(void *arg, uint64_t addr, uint64_t *value);

/* Where the function with "pc" begins, by .eh_frame_hdr; 0: the file does not say. A part that the compiler has moved
 * away (".cold") counts as a function. */
uint64_t ebpfMonUnwindFindBegin(const ebpfMonElfFile *file, uint64_t pc);

/* Nonzero: "vaddr" is inside of a function, but not its begin. For x86-64; else, and where the file says nothing, 0. */
int ebpfMonUnwindIsInside(const ebpfMonElfFile *file, uint64_t vaddr);

/* Goes to the caller. "bias": is added to the file's addresses in the process; "isCall": the pc is behind a call; else
 * it is where the function was interrupted. Returns 0; 1: the same, and the caller was interrupted by a signal; -1: the
 * file does not say who the caller is. */
int ebpfMonUnwindStep(const ebpfMonElfFile *file, uint64_t bias, int isCall, ebpfMonStackRead read, void *arg,
                      ebpfMonRegs *regs);

/* After a step: if the return address was replaced, "regs" get the original one. */
void ebpfMonUnwindRestoreReturn(const ebpfMonReturn *ret, size_t count, ebpfMonRegs *regs);

#endif
