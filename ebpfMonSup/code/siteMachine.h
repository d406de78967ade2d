/* SPDX-License-Identifier: BSD-3-Clause */
/* What each machine knows of its instructions; machine.h chooses by the machine. Private to code/. These functions need
 * no process, so they are tested on bytes. */
#ifndef EBPFMON_SITEMACHINE_H
#define EBPFMON_SITEMACHINE_H

#include <stddef.h>
#include <stdint.h>
#include "code/site.h"

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
 * (probe/nopTrial.h), so ebpfMonSitePickX86 takes none. */
int ebpfMonInsnIsNop5X86(const uint8_t *code, size_t len);
ebpfMonFlow ebpfMonInsnFlowX86(const uint8_t *code, unsigned length, uint64_t vaddr, uint64_t *to);

void ebpfMonSitePickAarch64(const uint8_t *code, size_t len, unsigned args, int needReturn, ebpfMonSite *site);
unsigned ebpfMonInsnLengthAarch64(const uint8_t *code, size_t len);
ebpfMonFlow ebpfMonInsnFlowAarch64(const uint8_t *code, unsigned length, uint64_t vaddr, uint64_t *to);

#endif
