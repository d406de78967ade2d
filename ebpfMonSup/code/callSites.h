/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the code of a file calls some functions, its own or those of other files.
 *
 * A probe at the entry of a function traps all callers. A probe at a call traps only this call. It costs as little (the
 * kernel emulates calls and jumps), and sees the same arguments. So other callers pay nothing.
 *
 * A call goes to the function, or to its stub in the procedure linkage table. The call instruction contains the
 * distance to it. A call is believed only if decoding the instructions from the begin of its function leads to that
 * place. machineX86.c and machineAarch64.c know the instructions.
 */
#ifndef EBPFMON_CALLSITES_H
#define EBPFMON_CALLSITES_H

#include <stddef.h>
#include <stdint.h>
#include "code/elfSymbols.h"
#include "code/machine.h"

/* --- what was found so far ---
 *
 * What a search has found so far. The files that know the instructions of a machine (machineX86.c, …) add what they
 * find. Private to code/.
 */

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

/* --- the search --- */

typedef struct {
    unsigned count;
    uint32_t complete;   /* bit by number of the function: "site" has all its calls. Else the file also calls it in
                          * another way: by its address, by a pointer, by a jump on a condition */
    ebpfMonCallSite site[]; /* by vaddr */
} ebpfMonCallSites;

/* Looks for the calls of names[0 … count-1]; own[i].vaddr is where the file itself defines one, 0: it does not.
 * free() it. NULL: no memory, the file's budget is used up, or it has no section headers: nothing is known. */
ebpfMonCallSites *ebpfMonCallSitesFind(const ebpfMonElfFile *file, const char *const *names,
                                       const ebpfMonElfSymbol *own, unsigned count);

#endif
