/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the code of a file calls some functions, its own or those of other files.
 *
 * A probe at the entry of a function traps all callers. A probe at a call traps only this call. It costs as little (the
 * kernel emulates calls and jumps), and sees the same arguments. So other callers pay nothing.
 *
 * A call goes to the function, or to its stub in the procedure linkage table. The call instruction contains the
 * distance to it. A call is believed only if decoding the instructions from the begin of its function leads to that
 * place. callSitesX86.c and callSitesAarch64.c know the instructions.
 */
#ifndef EBPFMON_CALLSITES_H
#define EBPFMON_CALLSITES_H

#include <stdint.h>
#include "code/callSearch.h"

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
