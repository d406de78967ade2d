/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What callSearch.h has for aarch64, where all instructions have four bytes. A call (bl, or b as a tail call) holds the
 * distance. An address is made by two instructions, adrp (the page) and add (the rest). That of a slot that stubs use
 * is made by stubs alone.
 */
#include "code/callSearch.h"
#include "code/insnAarch64.h"

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
