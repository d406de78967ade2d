/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What differs from machine to machine: the instructions, and the relocations of files. The ELF file says its machine,
 * so any host can read the files of all machines. Each machine has files of its own (siteX86.c, callSitesX86.c, …) and
 * a line in machine.c.
 */
#ifndef EBPFMON_MACHINE_H
#define EBPFMON_MACHINE_H

#include <stddef.h>
#include <stdint.h>
#include "code/siteMachine.h"

typedef struct {
    uint16_t machine;   /* EM_… of elf.h */
    const char *name;   /* as people call it */
    int returnsByRegister; /* a call stores the return address in a register, and does not change the stack pointer */
    int isRecognised;      /* recognise.h knows its code */

    /* Types of relocations. */
    struct {
        uint32_t copy, relative, irelative;
        uint32_t slot[2]; /* the loader writes the address of a function into a slot, from which stubs or code take
                           * it */
    } reloc;

    /* Picks the site in the "len" bytes of code of one function: see site.h. */
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
