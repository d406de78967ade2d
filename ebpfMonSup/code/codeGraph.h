/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which functions a file has, what each calls, and which addresses each uses: from the code of x86-64 alone. Functions
 * begin where the table of .eh_frame_hdr says, which stripped files have as well. A part that the compiler moved away
 * (".cold") is a function.
 */
#ifndef EBPFMON_CODEGRAPH_H
#define EBPFMON_CODEGRAPH_H

#include "code/elfFile.h"

#define EBPFMON_NO_FUNCTION UINT32_MAX

typedef enum {
    ebpfMonRefCall,         /* or a jump to the begin of another function */
    ebpfMonRefAddress,      /* it is taken */
    ebpfMonRefMemory        /* it is read or written */
} ebpfMonRefKind;

typedef struct {
    uint64_t to;
    uint32_t from;          /* number of the function */
    uint32_t kind;          /* ebpfMonRefKind */
} ebpfMonCodeRef;

typedef struct {
    uint32_t count;         /* functions, in the order of their addresses */
    uint64_t *begin;        /* [count + 1]: the last one is where the code ends */
    size_t  *first;         /* [count + 1]: the references of function i are ref[first[i]] … */
    ebpfMonCodeRef *ref;    /* in the order of the code */
} ebpfMonCodeGraph;

/* NULL: it has no table, more than the file's budget allows to read, or no memory. In a job (foreign.h). */
ebpfMonCodeGraph *ebpfMonCodeGraphMake(const ebpfMonElfFile *file);
void ebpfMonCodeGraphFree(ebpfMonCodeGraph *graph); /* NULL does no harm */

/* The function that begins there, or EBPFMON_NO_FUNCTION. */
uint32_t ebpfMonCodeGraphFind(const ebpfMonCodeGraph *graph, uint64_t vaddr);

#endif
