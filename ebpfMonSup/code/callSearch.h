/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a search for calls has found so far. callSites.c searches; the files that know the instructions of a machine
 * (callSitesX86.c, …) add what they find. Private to code/.
 */
#ifndef EBPFMON_CALLSEARCH_H
#define EBPFMON_CALLSEARCH_H

#include <stddef.h>
#include <stdint.h>
#include "code/elfSymbols.h"
#include "code/machine.h"

#define EBPFMON_CALLED_MAX 8 /* functions that are looked for at once */
#define EBPFMON_SPOTS_MAX 64u /* slots, functions and stubs */

typedef struct {
    uint64_t vaddr;      /* of the instruction: a call, or a jmp (tail call) */
    uint64_t offset;     /* in the file, as a uprobe wants it */
    uint64_t caller;     /* vaddr of the function that it is in */
    unsigned called;     /* number of the function that it calls */
} ebpfMonCallSite;

/* A place in the file that stands for a function. */
typedef struct {
    uint64_t vaddr;
    unsigned called;
    enum { ebpfMonSpotFunction, ebpfMonSpotStub, ebpfMonSpotSlot } kind; /* Slot: the loader writes the address of the
                                                                          * function there */
} ebpfMonSpot;

typedef struct ebpfMonCallSearch {
    const ebpfMonElfFile *file;
    const ebpfMonMachine *machine;
    unsigned count;          /* functions looked for */
    uint32_t complete;
    ebpfMonSpot spot[EBPFMON_SPOTS_MAX];
    unsigned spots;
    uint64_t lowest, highest; /* vaddr of a spot: most numbers in code and data lie outside */
    uint8_t  filter[256];    /* by hash of an address: it may be a spot */
    int      holdsAddresses; /* code and data may hold addresses as they are, without a relocation for each */
    struct { uint32_t symbol; unsigned called; } symbol[2 * EBPFMON_CALLED_MAX]; /* numbers in .dynsym */
    unsigned symbols;
    ebpfMonCallSite *site;
    size_t   sites, room;
    uint64_t page[32];       /* aarch64: what each register was last set to by adrp, in the order of the code */
} ebpfMonCallSearch;

/* Goes through all spots: use ebpfMonCallSearchFindSpot. */
const ebpfMonSpot *ebpfMonCallSearchCompareSpots(const ebpfMonCallSearch *s, uint64_t vaddr);

static inline uint8_t ebpfMonCallSearchHash(uint64_t vaddr)
{
    return (uint8_t)(vaddr ^ vaddr >> 4 ^ vaddr >> 12);
}

/* The spot at this address, NULL: there is none. Inline, because it is called for each byte of code. */
static inline const ebpfMonSpot *ebpfMonCallSearchFindSpot(const ebpfMonCallSearch *s, uint64_t vaddr)
{
    if (vaddr - s->lowest > s->highest - s->lowest || !s->filter[ebpfMonCallSearchHash(vaddr)])
        return NULL;
    return ebpfMonCallSearchCompareSpots(s, vaddr);
}

void ebpfMonCallSearchAddSpot(ebpfMonCallSearch *s, uint64_t vaddr, unsigned called, int kind);

/* The instruction at "vaddr" calls that function. */
void ebpfMonCallSearchAddSite(ebpfMonCallSearch *s, uint64_t vaddr, unsigned called);

/* The file also uses the function in another way than by calls. */
void ebpfMonCallSearchUseOtherwise(ebpfMonCallSearch *s, unsigned called);

/* The address stands in code or data: a use in another way. Only if holdsAddresses. */
void ebpfMonCallSearchUseAddress(ebpfMonCallSearch *s, uint64_t address);

/* What each machine has for callSites.c. */
void ebpfMonCallStubsX86(ebpfMonCallSearch *s, const uint8_t *code, size_t from, size_t len, uint64_t vaddr);
void ebpfMonCallCodeX86(ebpfMonCallSearch *s, const uint8_t *code, size_t from, size_t len, uint64_t vaddr);
void ebpfMonCallStubsAarch64(ebpfMonCallSearch *s, const uint8_t *code, size_t from, size_t len, uint64_t vaddr);
void ebpfMonCallCodeAarch64(ebpfMonCallSearch *s, const uint8_t *code, size_t from, size_t len, uint64_t vaddr);

#endif
