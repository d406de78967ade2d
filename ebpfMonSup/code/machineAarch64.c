/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "code/callSites.h"
#include "code/machine.h"

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

/* --- where a probe goes --- */

/*
 * What machine.h has for aarch64. All instructions have four bytes. The kernel emulates branches, adr and adrp
 * (arch/arm64/kernel/probes/decode-insn.c, arm_probe_decode_insn) and single-steps all others; nop is emulated since
 * Linux 6.13 alone, ldr of a literal until 6.11 alone. It refuses exclusive loads and stores, and ldr of a literal.
 *
 * Effects are known for what compilers put into prologues; everything else ends the walk, because a wrong argument is
 * worse than a slow probe.
 */

#define MAX_WALK 16     /* instructions looked at for a site */
#define SIZE     4u

/* Registers, bit 0 x0 … bit 30 x30. The stack pointer shares bit 31 with the register that is always zero. */
#define LR   (1u << 30)
#define SP   (1u << 31)
#define STOP (~0u)      /* the effect is not known */

unsigned ebpfMonInsnLengthAarch64(const uint8_t *code, size_t len)
{
    return len >= SIZE ? SIZE : 0;
}

/* Where a branch leads, by kind, and its name; "": it is none. */
static ebpfMonFlow findFlow(uint32_t insn, uint64_t vaddr, uint64_t *to, const char **name)
{
    int64_t distance = 0;
    ebpfMonFlow flow = ebpfMonFlowBranch;

    *name = "";
    if ((insn & 0x7c000000) == 0x14000000) {
        flow = insn >> 31 ? ebpfMonFlowCall : ebpfMonFlowJump;
        *name = insn >> 31 ? "bl" : "b";
        distance = ebpfMonA64Signed(insn, 0, 26);
    } else if ((insn & 0xff000010) == 0x54000000) {
        *name = "b.cond";
        distance = ebpfMonA64Signed(insn, 5, 19);
    } else if ((insn & 0x7e000000) == 0x34000000) {
        *name = "cbz";
        distance = ebpfMonA64Signed(insn, 5, 19);
    } else if ((insn & 0x7e000000) == 0x36000000) {
        *name = "tbz";
        distance = ebpfMonA64Signed(insn, 5, 14);
    } else if ((insn & 0xfe000000) == 0xd6000000) { /* by a register: br, ret and their authenticated forms; blr comes
                                                     * back */
        return (insn >> 21 & 3) == 1 ? ebpfMonFlowNext : ebpfMonFlowLeave;
    } else {
        return ebpfMonFlowNext;
    }
    *to = vaddr + (uint64_t)(distance * (int64_t)SIZE);
    return flow;
}

ebpfMonFlow ebpfMonInsnFlowAarch64(const uint8_t *code, unsigned length, uint64_t vaddr, uint64_t *to)
{
    const char *name;

    return length == SIZE ? findFlow(ebpfMonA64Read(code), vaddr, to, &name) : ebpfMonFlowNext;
}

/* Arithmetic with a constant: only add, sub, and, orr and eor without flags can write the stack pointer. */
static unsigned writesByConstant(uint32_t insn)
{
    unsigned kind = insn >> 23 & 7, rd = ebpfMonA64Rd(insn);
    int toSp = kind == 2 ? !(insn >> 29 & 1) : kind == 4 && (insn >> 29 & 3) != 3;

    if (kind == 3) /* add and sub with tags */
        return STOP;
    return rd < 31 ? 1u << rd : toSp ? SP : 0;
}

/* Arithmetic with registers alone. */
static unsigned writesByRegisters(uint32_t insn)
{
    unsigned rd = ebpfMonA64Rd(insn);

    if ((insn & 0x1fe00000) == 0x1a400000 || (insn & 0x1fe07c00) == 0x1a000400) /* ccmp, rmif, setf: only flags */
        return 0;
    if (rd < 31)
        return 1u << rd;
    return (insn & 0x3fe00000) == 0x0b200000 ? SP : 0; /* add, sub with an extended register */
}

static unsigned writesByPair(uint32_t insn)
{
    unsigned mode = insn >> 23 & 3, writes = 0;

    if ((insn >> 22 & 1) && !(insn >> 26 & 1)) /* loads general registers */
        writes = 1u << ebpfMonA64Rd(insn) | 1u << (insn >> 10 & 31);
    writes &= ~SP; /* it is the register that is zero */
    return mode & 1 ? writes | 1u << ebpfMonA64Rn(insn) : writes;
}

static unsigned writesByOne(uint32_t insn)
{
    unsigned how = insn >> 10 & 3, writes = 0, rt = ebpfMonA64Rd(insn);
    int isOffset = insn >> 24 & 1, isStore = !(insn >> 22 & 3);

    if (!isOffset && (insn >> 21 & 1) && how != 2)
        return STOP; /* atomic ones */
    if (!isStore && !(insn >> 26 & 1) && rt < 31)
        writes = 1u << rt; /* of a prefetch it is none: it does no harm */
    if (!isOffset && !(insn >> 21 & 1) && (how & 1))
        writes |= 1u << ebpfMonA64Rn(insn);
    return writes;
}

static unsigned writesOf(uint32_t insn)
{
    if ((insn & 0xfffff01f) == 0xd503201f) { /* hints */
        unsigned hint = insn >> 5 & 127;

        if (hint == 25 || hint == 27) /* paciasp, pacibsp: sign the return address */
            return LR;
        return hint <= 5 || (hint >= 32 && hint <= 38) ? 0 : STOP; /* nop …, bti */
    }
    if (ebpfMonA64IsAdr(insn) || ebpfMonA64IsAdrp(insn))
        return ebpfMonA64Rd(insn) < 31 ? 1u << ebpfMonA64Rd(insn) : 0;
    if ((insn & 0x1c000000) == 0x10000000)
        return writesByConstant(insn);
    if ((insn & 0x0e000000) == 0x0a000000)
        return writesByRegisters(insn);
    if ((insn & 0x3a000000) == 0x28000000)
        return writesByPair(insn);
    if ((insn & 0x3a000000) == 0x38000000)
        return writesByOne(insn);
    if ((insn & 0x9ff80c00) == 0x0f000400) /* movi and the like: vectors alone */
        return 0;
    return STOP;
}

/* Nonzero: it stores x30, so what stands there later is not where the function returns to. */
static int savesReturn(uint32_t insn)
{
    int isPair = (insn & 0x3e400000) == 0x28000000, isOne = (insn & 0x3ec00000) == 0x38000000;

    return (isPair && (ebpfMonA64Rd(insn) == 30 || (insn >> 10 & 31) == 30)) || (isOne && ebpfMonA64Rd(insn) == 30);
}

/* True when a branch of the function goes to (0, to]: a probe there would fire more than once a call, with other
 * registers. A branch to the function itself is the tail call of a recursion and counts as a call. */
static int isAarch64LoopTarget(const uint8_t *code, size_t len, size_t to)
{
    for (size_t at = 0; at + SIZE <= len; at += SIZE) {
        uint64_t target;
        const char *name;
        ebpfMonFlow flow = findFlow(ebpfMonA64Read(code + at), at, &target, &name);

        if ((flow == ebpfMonFlowJump || flow == ebpfMonFlowBranch) && (int64_t)target > 0 &&
            (int64_t)target <= (int64_t)to)
            return 1;
    }
    return 0;
}

/* A return probe changes x30 (arch_uretprobe_hijack_return_addr), so it sits before that is stored or signed, at the
 * entry if need be: a slow one is better than none. */
void ebpfMonSitePickAarch64(const uint8_t *code, size_t len, unsigned args, int needReturn, ebpfMonSite *site)
{
    unsigned needed = args & (EBPFMON_ARG1 | EBPFMON_ARG2 | EBPFMON_ARG3 | EBPFMON_ARG4); /* x0 … x3 */
    size_t at = 0;

    memset(site, 0, sizeof(*site));
    site->cls = ebpfMonSiteStepped;
    site->canReturn = 1;
    strcpy(site->insn, "entry");
    for (unsigned i = 0, intact = 1; i < MAX_WALK && at + SIZE <= len && (intact || !needReturn); i++, at += SIZE) {
        uint32_t insn = ebpfMonA64Read(code + at);
        uint64_t to = 0;
        const char *name;
        ebpfMonFlow flow = findFlow(insn, at, &to, &name);
        unsigned writes = flow == ebpfMonFlowNext ? writesOf(insn) : 0;

        if (flow == ebpfMonFlowLeave)
            return;
        if (flow != ebpfMonFlowNext || ebpfMonA64IsAdr(insn) || ebpfMonA64IsAdrp(insn)) {
            if (isAarch64LoopTarget(code, len, at))
                return; /* so is every one behind it */
            site->cls = ebpfMonSiteFast;
            site->skip = (unsigned)at;
            site->canReturn = (int)intact;
            strcpy(site->insn, *name ? name : ebpfMonA64IsAdr(insn) ? "adr" : "adrp");
            return;
        }
        if (writes == STOP || (writes & needed))
            return;
        if ((writes & (LR | SP)) || savesReturn(insn))
            intact = 0;
    }
}

/* --- calls --- */

/*
 * What callSites.h has for aarch64, where all instructions have four bytes. A call (bl, or b as a tail call) holds the
 * distance. An address is made by two instructions, adrp (the page) and add (the rest). That of a slot that stubs use
 * is made by stubs alone.
 */

/* A stub is "[bti c]; adrp x16, page; ldr x17, [x16, #rest]; add x16, x16, #rest; [autia1716]; br x17" (elfnn-aarch64.c
 * of binutils, elfNN_aarch64_small_plt_entry and its bti and pac forms). "at": of the br. 0: it is none; else where it
 * begins. */
static size_t findStub(const uint8_t *code, size_t at, uint64_t vaddr, uint64_t *slot)
{
    size_t before = at >= 4 && ebpfMonA64Read(code + at - 4) == A64_AUTIA1716 ? 16 : 12, begin;
    uint32_t page, load;

    if (ebpfMonA64Read(code + at) != A64_BR_X17 || at < before)
        return 0;
    begin = at - before;
    page = ebpfMonA64Read(code + begin);
    load = ebpfMonA64Read(code + begin + 4);
    if (!ebpfMonA64IsAdrp(page) || ebpfMonA64Rd(page) != 16 ||
        (load & 0xffc003ff) != 0xf9400211) /* ldr x17, [x16, #…] */
        return 0;
    *slot = ebpfMonA64Page(page, vaddr + begin) + (load >> 10 & 0xfff) * 8;
    return begin >= 4 && ebpfMonA64Read(code + begin - 4) == A64_BTI_C ? begin - 4 : begin;
}

/* The first stub comes behind the one that all lead to, so none begins at 0. */
void ebpfMonCallStubsAarch64(ebpfMonCallSearch *s, const uint8_t *code, size_t from, size_t len, uint64_t vaddr)
{
    for (size_t at = from; at + 4 <= len; at += 4) {
        uint64_t slot = 0;
        size_t begin = findStub(code, at, vaddr, &slot);
        const ebpfMonSpot *spot = begin ? ebpfMonCallSearchFindSpot(s, slot) : NULL;

        if (spot && spot->kind == ebpfMonSpotSlot)
            ebpfMonCallSearchAddSpot(s, vaddr + begin, spot->called, ebpfMonSpotStub);
    }
}

/* The address that this instruction makes; 0: none. Between adrp and add there may be other code, so each register's
 * last page is kept, too long rather than too short: wrongly taken for an address, it costs traps, never a count. */
static uint64_t findAddress(ebpfMonCallSearch *s, uint32_t insn, uint64_t vaddr)
{
    if (ebpfMonA64IsAdrp(insn)) {
        s->page[ebpfMonA64Rd(insn)] = ebpfMonA64Page(insn, vaddr);
        return 0;
    }
    if (ebpfMonA64IsAdr(insn))
        return ebpfMonA64Adr(insn, vaddr);
    if ((insn & 0xffc00000) == 0x91000000) /* add x, x, #… */
        return s->page[ebpfMonA64Rn(insn)] + (insn >> 10 & 0xfff);
    return 0;
}

void ebpfMonCallCodeAarch64(ebpfMonCallSearch *s, const uint8_t *code, size_t from, size_t len, uint64_t vaddr)
{
    for (size_t at = from; at + 4 <= len; at += 4) {
        uint32_t insn = ebpfMonA64Read(code + at);
        uint64_t to = 0;
        ebpfMonFlow flow = ebpfMonInsnFlowAarch64(code + at, 4, vaddr + at, &to);
        const ebpfMonSpot *spot;

        if (flow == ebpfMonFlowNext)
            to = findAddress(s, insn, vaddr + at);
        spot = to ? ebpfMonCallSearchFindSpot(s, to) : NULL;
        if (spot && (flow == ebpfMonFlowCall || flow == ebpfMonFlowJump) && spot->kind != ebpfMonSpotSlot)
            ebpfMonCallSearchAddSite(s, vaddr + at, spot->called);
        else if (spot)
            ebpfMonCallSearchUseOtherwise(s, spot->called);
        if (s->holdsAddresses)
            ebpfMonCallSearchUseAddress(s, insn);
    }
}
