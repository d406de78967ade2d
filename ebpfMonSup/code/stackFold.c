/* SPDX-License-Identifier: BSD-3-Clause */
/* See stackFold.h. x86-64 only, as unwind.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "code/demangle.h"
#include "code/elfPlt.h"
#include "code/stackFiles.h"
#include "code/stackFold.h"
#include "code/unwind.h"
#include "common/text.h"
#include "host/foreign.h"

#define FOLD_SECONDS 2.0
#define FRAMES_MAX   127
#define NAMES        4096 /* places that are remembered; a power of two */
#define PROBES       8    /* places of the table that are looked at for one */

typedef struct {
    uint64_t pc;    /* as walkCopy() has it; 0: free */
    char    *name;
} Name;

typedef struct {
    ebpfMonStackCopy copy;
    uint8_t *bytes;
    char     line[EBPFMON_FOLD_TEXT];
    char     site[EBPFMON_FOLD_SITE];
    unsigned siteRank; /* see rankFile() */
} Stack;

struct ebpfMonStackFold {
    pid_t    pid;
    unsigned count, names;
    Name     name[NAMES];
    Stack    stack[EBPFMON_FOLD_BATCH];
};

ebpfMonStackFold *ebpfMonStackFoldNew(pid_t pid)
{
    ebpfMonStackFold *fold = calloc(1, sizeof(*fold));

    if (fold)
        fold->pid = pid;
    return fold;
}

static void forgetNames(ebpfMonStackFold *fold)
{
    for (unsigned i = 0; i < NAMES; i++)
        free(fold->name[i].name);
    memset(fold->name, 0, sizeof(fold->name));
    fold->names = 0;
}

void ebpfMonStackFoldBegin(ebpfMonStackFold *fold)
{
    for (unsigned i = 0; i < fold->count; i++) {
        free(fold->stack[i].bytes);
        fold->stack[i].bytes = NULL;
    }
    fold->count = 0;
    if (fold->names > NAMES / 2)
        forgetNames(fold);
}

void ebpfMonStackFoldFree(ebpfMonStackFold *fold)
{
    if (!fold)
        return;
    ebpfMonStackFoldBegin(fold);
    forgetNames(fold);
    free(fold);
}

int ebpfMonStackFoldAdd(ebpfMonStackFold *fold, const ebpfMonStackCopy *copy)
{
    Stack *s = &fold->stack[fold->count];

    if (fold->count == EBPFMON_FOLD_BATCH || !(s->bytes = malloc(copy->bytes ? copy->bytes : 1)))
        return -1;
    s->copy = *copy;
    if (s->copy.returns > EBPFMON_FOLD_RETURNS)
        s->copy.returns = EBPFMON_FOLD_RETURNS;
    memcpy(s->bytes, copy->stack, copy->bytes);
    s->line[0] = s->site[0] = 0;
    s->siteRank = 0;
    fold->count++;
    return 0;
}

const char *ebpfMonStackFoldGet(const ebpfMonStackFold *fold, unsigned n)
{
    return n < fold->count ? fold->stack[n].line : "";
}

const char *ebpfMonStackFoldGetSite(const ebpfMonStackFold *fold, unsigned n)
{
    return n < fold->count ? fold->stack[n].site : "";
}

/* From the copy. */
static int readCopied(void *arg, uint64_t addr, uint64_t *value)
{
    const Stack *s = arg;
    uint64_t at = addr - s->copy.regs[19];

    if (at >= s->copy.bytes || s->copy.bytes - at < sizeof(*value))
        return -1;
    memcpy(value, s->bytes + at, sizeof(*value));
    return 0;
}

/* By their numbers in DWARF: from struct pt_regs (arch/x86/include/uapi/asm/ptrace.h). */
static void setRegs(const Stack *s, ebpfMonRegs *regs)
{
    static const uint8_t from[EBPFMON_REGS] = { 10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0, 16 };

    for (int i = 0; i < EBPFMON_REGS; i++)
        regs->reg[i] = s->copy.regs[from[i]];
    regs->known = (1u << EBPFMON_REGS) - 1;
}

/* A place in the table for a pc: its own, or a free one; NULL: there is none near. */
static Name *findPlace(ebpfMonStackFold *fold, uint64_t pc)
{
    uint64_t at = pc * 0x9e3779b97f4a7c15ull >> 40;

    for (unsigned i = 0; i < PROBES; i++) {
        Name *n = &fold->name[(at + i) % NAMES];

        if (n->pc == pc || !n->pc)
            return n;
    }
    return NULL;
}

/* The name of a place; valid while the files are open. A ';' in it becomes ':', because ';' separates the functions of
 * a line. */
static const char *getPlaceName(ebpfMonStackFold *fold, const ebpfMonStackFile *file, uint64_t pc)
{
    Name *n = findPlace(fold, pc);
    char name[256];
    uint64_t offset;

    if (!n)
        return file->name;
    if (n->pc)
        return n->name;
    if (ebpfMonElfNameCode(&file->elf, pc - file->bias, name, sizeof(name), &offset))
        snprintf(name, sizeof(name), "[%s]", file->name);
    ebpfMonDemangle(name, sizeof(name));
    ebpfMonTextClean(name, sizeof(name));
    for (char *c = name; *c; c++)
        if (*c == ';')
            *c = ':';
    n->name = strdup(name);
    if (!n->name)
        return file->name;
    n->pc = pc;
    fold->names++;
    return n->name;
}

/* The names of frames, innermost first, as a line with the outermost first. */
static void writeLine(Stack *s, const char *const *frame, unsigned count)
{
    size_t used = 0;

    for (unsigned i = count; i-- > 0;) {
        size_t length = strlen(frame[i]);

        if (used + length + 2 > sizeof(s->line))
            return;
        if (used)
            s->line[used++] = ';';
        memcpy(s->line + used, frame[i], length + 1);
        used += length;
    }
}

/* How much a function of this file says about where an event comes from. 1: it serves all programs; 2: all IOCs; 3: it
 * is of one subject. */
static unsigned rankFile(const char *name)
{
    static const char *const serving[] = {"libc.so", "libc-2", "ld-linux", "ld-2", "libpthread", "libstdc++", "[vdso]"};

    for (size_t i = 0; i < sizeof(serving) / sizeof(serving[0]); i++)
        if (strncmp(name, serving[i], strlen(serving[i])) == 0)
            return 1;
    return strncmp(name, "libCom.so", strlen("libCom.so")) == 0 ? 2 : 3;
}

/* Takes a function as the site, if it says more than the ones that it has called. */
static void noteSite(Stack *s, const ebpfMonStackFile *file, const char *name, uint64_t pc)
{
    unsigned rank = rankFile(file->name);

    if (rank <= s->siteRank)
        return;
    s->siteRank = rank;
    if (name[0] == '[')
        snprintf(s->site, sizeof(s->site), "[%s+0x%llx]", file->name, (unsigned long long)(pc - file->bias));
    else
        snprintf(s->site, sizeof(s->site), "%s", name);
}

static void walkCopy(ebpfMonStackFold *fold, ebpfMonStackFiles *files, Stack *s)
{
    const char *frame[FRAMES_MAX];
    unsigned count = 0;
    ebpfMonRegs regs;
    int isCall = 0, rc = 0;

    setRegs(s, &regs);
    while (count < FRAMES_MAX && rc >= 0) {
        uint64_t pc = regs.reg[EBPFMON_REG_PC] - (uint64_t)isCall;
        ebpfMonStackFile *file = ebpfMonStackFilesFind(files, pc);

        if (!file)
            break;
        frame[count] = getPlaceName(fold, file, pc);
        noteSite(s, file, frame[count++], pc);
        rc = ebpfMonUnwindStep(&file->elf, file->bias, isCall, readCopied, s, &regs);
        isCall = rc == 0;
        ebpfMonUnwindRestoreReturn(s->copy.ret, s->copy.returns, &regs);
    }
    writeLine(s, frame, count);
}

static void runFold(void *data)
{
    ebpfMonStackFold *fold = data;
    ebpfMonStackFiles *files = malloc(sizeof(*files));

    if (!files)
        return;
    ebpfMonStackFilesInit(files, fold->pid);
    for (unsigned i = 0; i < fold->count; i++)
        walkCopy(fold, files, &fold->stack[i]);
    ebpfMonStackFilesClose(files);
    free(files);
}

static void dropFold(void *data)
{
    ebpfMonStackFoldFree(data);
}

ebpfMonStackFold *ebpfMonStackFoldRun(ebpfMonStackFold *fold)
{
    static const ebpfMonForeignJob job = { runFold, dropFold };

    return ebpfMonForeignRun(fold->pid, FOLD_SECONDS, &job, fold) ? NULL : fold;
}
