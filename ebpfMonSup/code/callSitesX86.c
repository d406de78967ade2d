/* SPDX-License-Identifier: BSD-3-Clause */
/* What callSearch.h has for x86-64, where calls can stand at any byte. */
#include <string.h>
#include "code/callSearch.h"

/* A stub is "[endbr64] [bnd] jmp *slot(%rip)"; a call goes to its first byte. "at": of the jmp in "code". */
static void addStub(ebpfMonCallSearch *s, const uint8_t *code, size_t at, uint64_t vaddr, unsigned called)
{
    static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };

    if (at >= 1 && code[at - 1] == 0xf2) {
        at--;
        vaddr--;
    }
    if (at >= sizeof(endbr64) && !memcmp(code + at - sizeof(endbr64), endbr64, sizeof(endbr64)))
        vaddr -= sizeof(endbr64);
    ebpfMonCallSearchAddSpot(s, vaddr, called, ebpfMonSpotStub);
}

/* The four bytes at code[at] are the distance to a spot: what does this instruction do? */
static void useReference(ebpfMonCallSearch *s, const uint8_t *code, size_t at, uint64_t vaddr, const ebpfMonSpot *spot)
{
    if (spot->kind != ebpfMonSpotSlot && (code[at - 1] == 0xe8 || code[at - 1] == 0xe9))
        ebpfMonCallSearchAddSite(s, vaddr - 1, spot->called);
    else
        ebpfMonCallSearchUseOtherwise(s, spot->called);
}

/* The spot whose distance the four bytes at code[at] are, NULL: none. 0 is the padding before a function, a nop with
 * this displacement. */
static const ebpfMonSpot *findSpotAt(const ebpfMonCallSearch *s, const uint8_t *code, size_t at, uint64_t vaddr,
                                     uint32_t *word)
{
    memcpy(word, code + at, sizeof(*word));
    return *word ? ebpfMonCallSearchFindSpot(s, vaddr + at + 4 + (uint64_t)(int64_t)(int32_t)*word) : NULL;
}

/* Each piece begins with the last bytes of the piece before, because a distance may lie across both. */
static size_t beginAt(size_t from)
{
    return from > 3 ? from - 3 : 1;
}

void ebpfMonCallStubsX86(ebpfMonCallSearch *s, const uint8_t *code, size_t from, size_t len, uint64_t vaddr)
{
    uint32_t word;

    for (size_t at = beginAt(from); at + 4 <= len; at++) {
        const ebpfMonSpot *spot = findSpotAt(s, code, at, vaddr, &word);

        if (spot && spot->kind == ebpfMonSpotSlot && at >= 2 && code[at - 2] == 0xff && code[at - 1] == 0x25)
            addStub(s, code, at - 2, vaddr + at - 2, spot->called);
    }
}

void ebpfMonCallCodeX86(ebpfMonCallSearch *s, const uint8_t *code, size_t from, size_t len, uint64_t vaddr)
{
    uint32_t word;

    for (size_t at = beginAt(from); at + 4 <= len; at++) {
        const ebpfMonSpot *spot = findSpotAt(s, code, at, vaddr, &word);

        if (s->holdsAddresses)
            ebpfMonCallSearchUseAddress(s, word);
        if (spot)
            useReference(s, code, at, vaddr + at, spot);
    }
}
