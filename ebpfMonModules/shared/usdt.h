/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * USDT probes of a file: places that its author marked, each by a nop and a note in .note.stapsdt (SystemTap,
 * sys/sdt.h: address, base, semaphore, then provider, name and arguments as texts). Nothing that a note says is
 * trusted.
 */
#ifndef EBPFMON_USDT_H
#define EBPFMON_USDT_H

#include <stddef.h>
#include "code/elfFile.h"
#include "code/machine.h"
#include "shared/ebpfMonQuery.h"

/* --- the arguments of a probe ---
 *
 * Where a USDT probe has its arguments: the text of its note, such as "-4@%edi 8@-16(%rbp) 4@limit(%rip)". The
 * compiler wrote it in the language of its assembler (sys/sdt.h of SystemTap, "N@OP"). Of x86-64.
 */

typedef struct {
    struct ebpfMonQueryOperand operand;
    char symbol[64]; /* the operand's number is behind this variable; empty: behind none */
} ebpfMonUsdtArg;

/* Reads argument number "n" (0: the first). 0, or -1: "why" says what it is, and why it cannot be read. */
int ebpfMonUsdtArgRead(const char *args, unsigned n, ebpfMonUsdtArg *arg, char *why, size_t size);

/* --- the notes of a file --- */

#define EBPFMON_USDT_NAME 128

/* One place of a probe. */
typedef struct {
    char     name[EBPFMON_USDT_NAME]; /* PROVIDER:NAME */
    char     args[256];
    uint64_t vaddr;     /* of the nop */
    uint64_t semaphore; /* vaddr of its semaphore, which counts the tracers; 0: it has none */
} ebpfMonUsdtProbe;

/* Calls "each" for each place of the probes that match a pattern (glob), until it returns nonzero. */
void ebpfMonUsdtFind(const ebpfMonElfFile *file, const char *pattern,
                     int (*each)(void *arg, const ebpfMonUsdtProbe *probe), void *arg);

/* Where in the file the place is, and its semaphore (0: none); where its arguments are. "args": bits of those that are
 * needed, the others are not looked at. "bias": see ebpfMonMappingBias. 0, or -1: why. */
int ebpfMonUsdtPlace(ebpfMonElfFile *file, const ebpfMonUsdtProbe *probe, unsigned args, uint64_t bias,
                     ebpfMonSite *site, uint64_t *semaphore, struct ebpfMonQuerySite *operands, char *why, size_t size);

#endif
