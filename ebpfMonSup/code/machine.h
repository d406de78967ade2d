/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What differs from machine to machine: the instructions, and the relocations of files. The ELF file says its machine,
 * so any host can read the files of all machines. Each machine has files of its own (machineX86.c, …) and
 * a line in machine.c.
 */
#ifndef EBPFMON_MACHINE_H
#define EBPFMON_MACHINE_H

#include <stddef.h>
#include <stdint.h>

/* --- where in a function to put a probe ---
 *
 * A uprobe replaces one instruction. The kernel emulates a few kinds (x86: push of a register, nop, jmp,
 * jcc, call: arch/x86/kernel/uprobes.c, branch_xol_ops and push_xol_ops) and single-steps all others, at
 * 12 times the cost in a virtual machine. So the probe goes to the first emulated instruction of the prologue at which
 * the arguments that the program reads, and for a return probe the return address, are still in their places.
 */

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

/* --- instructions ---
 *
 * What each machine knows of its instructions. Private to code/. These functions need no process, so they are tested on
 * bytes.
 */

/* Where an instruction leads. */
typedef enum {
    ebpfMonFlowNext,    /* to the next one */
    ebpfMonFlowCall,
    ebpfMonFlowJump,
    ebpfMonFlowBranch,  /* there on a condition, else to the next one */
    ebpfMonFlowLeave    /* back to the caller, or by a pointer: nobody knows where to */
} ebpfMonFlow;

void ebpfMonSitePickX86(const uint8_t *code, size_t len, unsigned args, int needReturn, ebpfMonSite *site);
unsigned ebpfMonInsnLengthX86(const uint8_t *code, size_t len);
/* Nonzero: an instruction of 5 bytes that changes nothing. Some kernels do harm when they have a probe there
 * (probe/childTrial.h), so ebpfMonSitePickX86 takes none. */
int ebpfMonInsnIsNop5X86(const uint8_t *code, size_t len);
ebpfMonFlow ebpfMonInsnFlowX86(const uint8_t *code, unsigned length, uint64_t vaddr, uint64_t *to);

void ebpfMonSitePickAarch64(const uint8_t *code, size_t len, unsigned args, int needReturn, ebpfMonSite *site);
unsigned ebpfMonInsnLengthAarch64(const uint8_t *code, size_t len);
ebpfMonFlow ebpfMonInsnFlowAarch64(const uint8_t *code, unsigned length, uint64_t vaddr, uint64_t *to);

/* --- machines --- */

typedef struct {
    uint16_t machine;   /* EM_… of elf.h */
    const char *name;   /* as people call it */
    int returnsByRegister; /* a call stores the return address in a register, and does not change the stack pointer */
    int isRecognised;      /* imageFile.h knows its code */

    /* Types of relocations. */
    struct {
        uint32_t copy, relative, irelative;
        uint32_t slot[2]; /* the loader writes the address of a function into a slot, from which stubs or code take
                           * it */
    } reloc;

    /* Picks the site in the "len" bytes of code of one function. */
    void (*pickSite)(const uint8_t *code, size_t len, unsigned args, int needReturn, ebpfMonSite *site);

    /* Length of the instruction at "code", 0 when it is not known or does not fit in "len". */
    unsigned (*getLength)(const uint8_t *code, size_t len);

    /* Where the instruction of "length" bytes that stands at "vaddr" leads. *to is set by calls, jumps and branches. */
    ebpfMonFlow (*getFlow)(const uint8_t *code, unsigned length, uint64_t vaddr, uint64_t *to);
} ebpfMonMachine;

/* "machine": EM_… of elf.h. NULL: this machine is not known. */
const ebpfMonMachine *ebpfMonMachineFind(uint16_t machine);

/* The machine of this host. */
const ebpfMonMachine *ebpfMonMachineHost(void);

/* Nonzero: it is the machine of this host. A program for another machine is run by an emulator, and the kernel sees
 * only the instructions of the emulator. */
int ebpfMonMachineIsHost(uint16_t machine);

#endif
