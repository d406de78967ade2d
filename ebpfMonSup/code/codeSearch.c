/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdlib.h>
#include <string.h>

#include "code/codeSearch.h"

#define TEXTS_MAX  (32u << 20) /* bytes of read-only segments */
#define STEPS_MAX  200000000ull
#define PLACES_MAX 16u         /* of one text: the compiler has one for each file */

static int loadTexts(ebpfMonCodeSearch *s)
{
    size_t size = 0;

    for (unsigned i = 0; i < s->file->nSegments; i++) {
        const ebpfMonElfSegment *seg = &s->file->segment[i];

        if ((seg->flags & PF_W) || size + seg->fileSize > TEXTS_MAX || seg->fileSize > TEXTS_MAX)
            continue;
        s->part[s->parts].vaddr = seg->vaddr;
        s->part[s->parts].at = size;
        s->part[s->parts++].size = (size_t)seg->fileSize;
        size += (size_t)seg->fileSize;
    }
    s->texts = size ? malloc(size) : NULL;
    for (unsigned i = 0; s->texts && i < s->parts; i++)
        s->part[i].size = ebpfMonElfRead(s->file, s->part[i].vaddr, s->texts + s->part[i].at, s->part[i].size);
    return s->texts ? 0 : -1;
}

void ebpfMonCodeUsersAdd(ebpfMonCodeUsers *users, uint32_t fn)
{
    for (unsigned i = 0; i < users->count; i++)
        if (users->fn[i] == fn)
            return;
    if (users->count < EBPFMON_USERS_MAX)
        users->fn[users->count++] = fn;
}

ebpfMonCodeUsers ebpfMonCodeSearchUsers(const ebpfMonCodeSearch *s, const char *text, size_t length)
{
    ebpfMonCodeUsers users = { 0 };
    unsigned places = 0;

    for (unsigned p = 0; p < s->parts; p++) {
        const char *begin = s->texts + s->part[p].at, *end = begin + s->part[p].size, *hit = begin;

        while (places < PLACES_MAX && !ebpfMonCodeSearchIsOver(s) &&
               (hit = memmem(hit, (size_t)(end - hit), text, length)) != NULL) {
            uint64_t vaddr = s->part[p].vaddr + (uint64_t)(hit - begin);

            *s->steps += s->g->first[s->g->count];
            for (size_t i = 0; i < s->g->first[s->g->count]; i++)
                if (s->g->ref[i].to == vaddr && s->g->ref[i].kind == ebpfMonRefAddress)
                    ebpfMonCodeUsersAdd(&users, s->g->ref[i].from);
            places++;
            hit++;
        }
    }
    return users;
}

uint32_t ebpfMonCodeUsersGetOnly(const ebpfMonCodeUsers *users)
{
    return users->count == 1 ? users->fn[0] : EBPFMON_NO_FUNCTION;
}

int ebpfMonCodeUsersHave(const ebpfMonCodeUsers *users, uint32_t fn)
{
    for (unsigned i = 0; i < users->count; i++)
        if (users->fn[i] == fn)
            return 1;
    return 0;
}

int ebpfMonCodeSearchNextCall(const ebpfMonCodeSearch *s, uint32_t fn, size_t *at, uint32_t *callee)
{
    while (*at < s->g->first[fn + 1] && (*s->steps)++ < STEPS_MAX) {
        const ebpfMonCodeRef *r = &s->g->ref[(*at)++];

        if (r->kind != ebpfMonRefCall)
            continue;
        *callee = ebpfMonCodeGraphFind(s->g, r->to);
        return 1;
    }
    return 0;
}

int ebpfMonCodeSearchCalls(const ebpfMonCodeSearch *s, uint32_t fn, uint32_t callee)
{
    uint32_t to;

    if (fn == EBPFMON_NO_FUNCTION || callee == EBPFMON_NO_FUNCTION)
        return 0;
    for (size_t at = s->g->first[fn]; ebpfMonCodeSearchNextCall(s, fn, &at, &to);)
        if (to == callee)
            return 1;
    return 0;
}

int ebpfMonCodeSearchCallsInOrder(const ebpfMonCodeSearch *s, uint32_t fn, uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t before[2] = { EBPFMON_NO_FUNCTION, EBPFMON_NO_FUNCTION }, to;

    for (size_t at = s->g->first[fn]; ebpfMonCodeSearchNextCall(s, fn, &at, &to); before[0] = before[1], before[1] = to)
        if (before[0] == a && before[1] == b && to == c)
            return 1;
    return 0;
}

static int isWritable(const ebpfMonCodeSearch *s, uint64_t vaddr)
{
    for (unsigned i = 0; i < s->file->nSegments; i++) {
        const ebpfMonElfSegment *seg = &s->file->segment[i];

        if ((seg->flags & PF_W) && vaddr >= seg->vaddr && vaddr - seg->vaddr < seg->memSize)
            return 1;
    }
    return 0;
}

int ebpfMonCodeSearchUses(const ebpfMonCodeSearch *s, uint32_t fn, uint64_t vaddr, unsigned kinds)
{
    for (size_t i = s->g->first[fn]; i < s->g->first[fn + 1] && (*s->steps)++ < STEPS_MAX; i++)
        if (s->g->ref[i].to == vaddr && (kinds & (1u << s->g->ref[i].kind)))
            return 1;
    return 0;
}

unsigned ebpfMonCodeSearchCommon(const ebpfMonCodeSearch *s, uint32_t a, uint32_t b, unsigned kinds,
                                 uint64_t common[EBPFMON_COMMON_MAX])
{
    unsigned n = 0;

    for (size_t i = s->g->first[a]; i < s->g->first[a + 1] && n < EBPFMON_COMMON_MAX && (*s->steps)++ < STEPS_MAX;
         i++) {
        uint64_t to = s->g->ref[i].to;
        unsigned k = 0;

        if (!(kinds & (1u << s->g->ref[i].kind)) || !isWritable(s, to) || !ebpfMonCodeSearchUses(s, b, to, kinds))
            continue;
        while (k < n && common[k] != to)
            k++;
        if (k == n)
            common[n++] = to;
    }
    return n;
}

int ebpfMonCodeSearchIsOver(const ebpfMonCodeSearch *s)
{
    return *s->steps > STEPS_MAX;
}

int ebpfMonCodeSearchOpen(ebpfMonCodeSearch *s, const ebpfMonElfFile *file)
{
    memset(s, 0, sizeof(*s));
    s->file = file;
    s->g = ebpfMonCodeGraphMake(file);
    s->steps = calloc(1, sizeof(*s->steps));
    if (s->g && s->steps && loadTexts(s) == 0)
        return 0;
    ebpfMonCodeSearchClose(s);
    return -1;
}

void ebpfMonCodeSearchClose(ebpfMonCodeSearch *s)
{
    free(s->texts);
    free(s->steps);
    ebpfMonCodeGraphFree((ebpfMonCodeGraph *)s->g);
}
