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

/* --- searches ---
 *
 * The searches of imageFile.c in a program: which functions use a text, which call which, which variables two functions
 * share. Somebody can make a program in which this takes long. So after 200 million steps (some tenths of a second)
 * every search finds nothing (ebpfMonCodeSearchIsOver).
 */

#define EBPFMON_USERS_MAX  64u /* functions that use a text */
#define EBPFMON_COMMON_MAX 64u

typedef struct {
    const ebpfMonElfFile *file;
    const ebpfMonCodeGraph *g;
    char    *texts;              /* the read-only segments, one after the other */
    struct { uint64_t vaddr; size_t at, size; } part[EBPFMON_ELF_SEGMENTS];
    unsigned parts;
    uint64_t *steps;             /* references that were looked at */
} ebpfMonCodeSearch;

typedef struct {
    unsigned count;
    uint32_t fn[EBPFMON_USERS_MAX];
} ebpfMonCodeUsers;

/* 0, or -1: the code cannot be read. "file" must stay until …Close. */
int ebpfMonCodeSearchOpen(ebpfMonCodeSearch *s, const ebpfMonElfFile *file);
int ebpfMonCodeSearchIsOver(const ebpfMonCodeSearch *s);
void ebpfMonCodeSearchClose(ebpfMonCodeSearch *s);

void ebpfMonCodeUsersAdd(ebpfMonCodeUsers *users, uint32_t fn);
int ebpfMonCodeUsersHave(const ebpfMonCodeUsers *users, uint32_t fn);

/* The only one of them, or EBPFMON_NO_FUNCTION. */
uint32_t ebpfMonCodeUsersGetOnly(const ebpfMonCodeUsers *users);

/* The functions that take the address of this text. If "length" leaves out its NUL: of any text that begins with it. */
ebpfMonCodeUsers ebpfMonCodeSearchUsers(const ebpfMonCodeSearch *s, const char *text, size_t length);

/* The next call of a function from *at on (first: g->first[fn]), in the order of its code. 0: there is none; else
 * *callee, or EBPFMON_NO_FUNCTION: it is in no table. */
int ebpfMonCodeSearchNextCall(const ebpfMonCodeSearch *s, uint32_t fn, size_t *at, uint32_t *callee);

/* Both may be EBPFMON_NO_FUNCTION. */
int ebpfMonCodeSearchCalls(const ebpfMonCodeSearch *s, uint32_t fn, uint32_t callee);

/* Nonzero: the function calls a, b and c, in this order. */
int ebpfMonCodeSearchCallsInOrder(const ebpfMonCodeSearch *s, uint32_t fn, uint32_t a, uint32_t b, uint32_t c);

/* Nonzero: the function uses this address; "kinds": bit by ebpfMonRefKind. */
int ebpfMonCodeSearchUses(const ebpfMonCodeSearch *s, uint32_t fn, uint64_t vaddr, unsigned kinds);

/* The variables that both functions use; their number, at most EBPFMON_COMMON_MAX. */
unsigned ebpfMonCodeSearchCommon(const ebpfMonCodeSearch *s, uint32_t a, uint32_t b, unsigned kinds,
                                 uint64_t common[EBPFMON_COMMON_MAX]);

#endif
