/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include "code/callSearch.h"
#include "code/unwind.h"
#include "common/array.h"

#define SITES_MAX       4096u
#define DECODE_WORK     8u          /* to decode one byte of code */
#define FUNCTION_MAX    (256u << 10) /* bytes from the begin of a function to a call in it */
#define PROGRAM_BASE    0x400000u   /* programs that are not position-independent begin here */

typedef ebpfMonCallSearch Search;

void ebpfMonCallSearchAddSpot(Search *s, uint64_t vaddr, unsigned called, int kind)
{
    if (s->spots == EBPFMON_SPOTS_MAX) {
        s->complete = 0;
        return;
    }
    if (!s->spots || vaddr < s->lowest)
        s->lowest = vaddr;
    if (!s->spots || vaddr > s->highest)
        s->highest = vaddr;
    s->spot[s->spots++] = (ebpfMonSpot){ vaddr, called, kind };
    s->filter[ebpfMonCallSearchHash(vaddr)] = 1;
}

const ebpfMonSpot *ebpfMonCallSearchCompareSpots(const Search *s, uint64_t vaddr)
{
    ebpfMonElfSpend(s->file, s->spots);
    for (unsigned i = 0; i < s->spots; i++)
        if (s->spot[i].vaddr == vaddr)
            return &s->spot[i];
    return NULL;
}

void ebpfMonCallSearchUseOtherwise(Search *s, unsigned called)
{
    s->complete &= ~(1u << called);
}

/* Where the function with this code begins: static programs may have no table for it, and have symbols then. 0: not
 * known. */
static uint64_t findBegin(const Search *s, uint64_t vaddr)
{
    uint64_t begin = ebpfMonUnwindFindBegin(s->file, vaddr), offset;
    char name[4];

    if (!begin && ebpfMonElfNameAt(s->file, vaddr, name, sizeof(name), &offset) == 0)
        begin = vaddr - offset;
    return begin;
}

/* Nonzero: the instructions from the begin of a function on lead to "vaddr". */
static int leadsTo(const Search *s, uint64_t begin, uint64_t vaddr)
{
    size_t size = vaddr - begin, len, at = 0;
    uint8_t *code;

    if (!begin || begin > vaddr || size > FUNCTION_MAX || !(code = malloc(size + 16)))
        return 0;
    len = ebpfMonElfRead(s->file, begin, code, size + 16);
    while (at < size) {
        unsigned n = at < len ? s->machine->getLength(code + at, len - at) : 0;

        if (!n)
            break;
        at += n;
    }
    free(code);
    ebpfMonElfSpend(s->file, DECODE_WORK * at);
    return at == size;
}

void ebpfMonCallSearchAddSite(Search *s, uint64_t vaddr, unsigned called)
{
    ebpfMonCallSite site = { .vaddr = vaddr, .called = called, .caller = findBegin(s, vaddr) };

    if (!leadsTo(s, site.caller, vaddr) || ebpfMonElfOffset(s->file, vaddr, PF_X, &site.offset) ||
        s->sites == SITES_MAX || ebpfMonArrayGrow(&s->site, &s->room, s->sites + 1, 64, sizeof(*s->site))) {
        ebpfMonCallSearchUseOtherwise(s, called);
        return;
    }
    s->site[s->sites++] = site;
}

void ebpfMonCallSearchUseAddress(Search *s, uint64_t address)
{
    const ebpfMonSpot *spot = address >= PROGRAM_BASE ? ebpfMonCallSearchFindSpot(s, address) : NULL;

    if (spot && spot->kind != ebpfMonSpotSlot)
        ebpfMonCallSearchUseOtherwise(s, spot->called);
}
