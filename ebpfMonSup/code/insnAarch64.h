/* SPDX-License-Identifier: BSD-3-Clause */
/* Instructions of aarch64 that more than one file looks at, after the Arm Architecture Reference Manual, section C4.1;
 * private to code/. */
#ifndef EBPFMON_INSNAARCH64_H
#define EBPFMON_INSNAARCH64_H

#include <string.h>

#include "code/siteMachine.h"

#define A64_BR_X17    0xd61f0220u
#define A64_AUTIA1716 0xd503219fu
#define A64_BTI_C     0xd503245fu

/* The instruction that begins at "code". */
static inline uint32_t ebpfMonA64Read(const uint8_t *code)
{
    uint32_t insn;

    memcpy(&insn, code, sizeof(insn));
    return insn;
}

static inline unsigned ebpfMonA64Rd(uint32_t insn)
{
    return insn & 31;
}

static inline unsigned ebpfMonA64Rn(uint32_t insn)
{
    return insn >> 5 & 31;
}

static inline int ebpfMonA64IsAdr(uint32_t insn)
{
    return (insn & 0x9f000000) == 0x10000000;
}

static inline int ebpfMonA64IsAdrp(uint32_t insn)
{
    return (insn & 0x9f000000) == 0x90000000;
}

/* The signed number of "bits" that begins at bit "at". */
static inline int64_t ebpfMonA64Signed(uint32_t insn, unsigned at, unsigned bits)
{
    return (int64_t)((uint64_t)insn << (64 - at - bits)) >> (64 - bits);
}

/* The distance that adr and adrp have, in bytes and pages. */
static inline uint64_t ebpfMonA64AdrDistance(uint32_t insn)
{
    return (uint64_t)ebpfMonA64Signed(insn, 5, 19) * 4 + (insn >> 29 & 3);
}

static inline uint64_t ebpfMonA64Adr(uint32_t insn, uint64_t vaddr)
{
    return vaddr + ebpfMonA64AdrDistance(insn);
}

static inline uint64_t ebpfMonA64Page(uint32_t adrp, uint64_t vaddr)
{
    return (vaddr & ~0xfffull) + (ebpfMonA64AdrDistance(adrp) << 12);
}

#endif
