/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdlib.h>
#include <string.h>
#include "code/codeGraph.h"
#include "code/machine.h"
#include "common/array.h"

/* --- what each function calls and uses --- */

#define FUNCTIONS_MAX (1u << 17)
#define FUNCTION_MAX  (64u << 10) /* bytes of one that are read */
#define REFS_MAX      (1u << 21)
#define DECODE_WORK   8u          /* to decode one byte of code, and look up what it refers to */
#define PIECE         512u        /* entries of the table that are read at once */
#define SDATA4_REL    0x3b        /* DW_EH_PE_datarel | DW_EH_PE_sdata4: what linkers write */

static int readBegins(const ebpfMonElfFile *file, ebpfMonCodeGraph *g)
{
    uint8_t head[12];
    uint32_t count;
    int32_t piece[2 * PIECE];

    if (!file->ehFrameHdr || ebpfMonElfRead(file, file->ehFrameHdr, head, sizeof(head)) != sizeof(head) ||
        head[0] != 1 || head[3] != SDATA4_REL)
        return -1;
    memcpy(&count, head + 8, sizeof(count));
    if (!count || count > FUNCTIONS_MAX)
        return -1;
    g->begin = calloc(count + 1, sizeof(*g->begin));
    g->first = calloc(count + 1, sizeof(*g->first));
    if (!g->begin || !g->first)
        return -1;
    for (uint32_t i = 0; i < count; i++) {
        if (i % PIECE == 0) {
            size_t want = (count - i < PIECE ? count - i : PIECE) * 8;

            if (ebpfMonElfRead(file, file->ehFrameHdr + 12 + 8ull * i, piece, want) != want)
                return -1;
        }
        g->begin[i] = file->ehFrameHdr + (uint64_t)(int64_t)piece[2 * (i % PIECE)];
        if (i && g->begin[i] <= g->begin[i - 1])
            return -1;
    }
    if (g->begin[count - 1] > UINT64_MAX - FUNCTION_MAX)
        return -1; /* no code is there */
    g->count = count;
    g->begin[count] = g->begin[count - 1] + FUNCTION_MAX;
    return 0;
}

uint32_t ebpfMonCodeGraphFind(const ebpfMonCodeGraph *g, uint64_t vaddr)
{
    uint32_t low = 0, high = g->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (g->begin[middle] < vaddr)
            low = middle + 1;
        else
            high = middle;
    }
    return low < g->count && g->begin[low] == vaddr ? low : EBPFMON_NO_FUNCTION;
}

static int32_t readWord(const uint8_t *p)
{
    int32_t word;

    memcpy(&word, p, sizeof(word));
    return word;
}

#define NOTHING (-1)
#define JUMP    (-2)

/* What the instruction of n bytes at "vaddr" refers to: an ebpfMonRefKind, JUMP or NOTHING. */
static int findReference(const uint8_t *insn, unsigned n, uint64_t vaddr, uint64_t *to)
{
    unsigned at = 0, wide = 0, modrm;
    uint8_t op;

    while (at < n && (insn[at] == 0x66 || insn[at] == 0xf2 || insn[at] == 0xf3))
        at++;
    if (at < n && (insn[at] & 0xf0) == 0x40)
        wide = insn[at++] & 8;
    if (at >= n)
        return NOTHING;
    op = insn[at];
    if ((op == 0xe8 || op == 0xe9) && n == at + 5) {
        *to = vaddr + n + (uint64_t)(int64_t)readWord(insn + at + 1);
        return op == 0xe8 ? (int)ebpfMonRefCall : JUMP;
    }
    if ((op & 0xf8) == 0xb8 && n == at + 5 && !wide) { /* mov imm32: an address, in a program with a fixed place */
        *to = (uint32_t)readWord(insn + at + 1);
        return ebpfMonRefAddress;
    }
    if (op == 0xc4 || op == 0xc5 || op == 0x62)
        return NOTHING; /* vectors */
    modrm = at + 1;
    if (op == 0x0f && modrm < n)
        modrm += insn[modrm] == 0x38 || insn[modrm] == 0x3a ? 2 : 1;
    if (modrm + 5 > n || (insn[modrm] & 0xc7) != 0x05) /* disp32(%rip) */
        return NOTHING;
    *to = vaddr + n + (uint64_t)(int64_t)readWord(insn + modrm + 1);
    return op == 0x8d ? ebpfMonRefAddress : ebpfMonRefMemory; /* lea */
}

/* 0, or -1 without memory. */
static int readFunction(const ebpfMonElfFile *file, ebpfMonCodeGraph *g, uint32_t i, uint8_t *code, size_t *refs,
                        size_t *room)
{
    uint64_t begin = g->begin[i], size = g->begin[i + 1] - begin;
    size_t len = ebpfMonElfRead(file, begin, code, size < FUNCTION_MAX ? (size_t)size : FUNCTION_MAX);

    ebpfMonElfSpend(file, (uint64_t)len * DECODE_WORK);
    for (size_t at = 0; at < len;) {
        unsigned n = ebpfMonInsnLengthX86(code + at, len - at);
        uint64_t to = 0;
        int kind = n ? findReference(code + at, n, begin + at, &to) : NOTHING;

        if (!n)
            break; /* what follows cannot be told from data */
        at += n;
        if (kind == NOTHING || (kind == JUMP && (to == begin || ebpfMonCodeGraphFind(g, to) == EBPFMON_NO_FUNCTION)))
            continue;
        if (*refs == REFS_MAX || ebpfMonArrayGrow(&g->ref, room, *refs + 1, 4096, sizeof(*g->ref)))
            return -1;
        g->ref[(*refs)++] = (ebpfMonCodeRef){ to, i, kind == JUMP ? (uint32_t)ebpfMonRefCall : (uint32_t)kind };
    }
    return 0;
}

ebpfMonCodeGraph *ebpfMonCodeGraphMake(const ebpfMonElfFile *file)
{
    const ebpfMonMachine *machine = ebpfMonMachineFind(file->machine);
    ebpfMonCodeGraph *g = machine && machine->isRecognised ? calloc(1, sizeof(*g)) : NULL;
    uint8_t *code = malloc(FUNCTION_MAX);
    size_t refs = 0, room = 0;
    int failed = !g || !code || readBegins(file, g);

    for (uint32_t i = 0; !failed && i < g->count; i++) {
        g->first[i] = refs;
        failed = readFunction(file, g, i, code, &refs, &room) || ebpfMonElfIsOver(file);
    }
    free(code);
    if (failed) {
        ebpfMonCodeGraphFree(g);
        return NULL;
    }
    g->first[g->count] = refs;
    return g;
}

void ebpfMonCodeGraphFree(ebpfMonCodeGraph *g)
{
    if (!g)
        return;
    free(g->begin);
    free(g->first);
    free(g->ref);
    free(g);
}

/* --- searches --- */

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
