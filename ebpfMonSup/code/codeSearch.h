/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The searches of recognise.c in a program: which functions use a text, which call which, which variables two functions
 * share. Somebody can make a program in which this takes long. So after 200 million steps (some tenths of a second)
 * every search finds nothing (ebpfMonCodeSearchIsOver).
 */
#ifndef EBPFMON_CODESEARCH_H
#define EBPFMON_CODESEARCH_H

#include "code/codeGraph.h"

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
