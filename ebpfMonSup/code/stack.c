/* SPDX-License-Identifier: BSD-3-Clause */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "code/demangle.h"
#include "code/elfSymbols.h"
#include "code/image.h"
#include "code/stack.h"
#include "code/unwind.h"
#include "common/text.h"
#include "host/foreign.h"
#include "host/memory.h"
#include "host/procRead.h"

/* --- files with code --- */

/* The files with the code of a process, kept open while its stacks are unwound. In a job only (foreign.h), because
 * these are mappings and files of another process. */

#define EBPFMON_STACK_FILES 16

typedef struct {
    uint64_t start, end, bias; /* bias: added to the file's addresses */
    ebpfMonElfFile elf;
    int  fd;
    char name[40];
} ebpfMonStackFile;

typedef struct {
    pid_t pid;
    unsigned count;
    ebpfMonStackFile file[EBPFMON_STACK_FILES];
} ebpfMonStackFiles;

#define MAPS_MAX   65536 /* lines of maps */
#define VDSO       "[vdso]"
#define VDSO_MAX   65536 /* bytes */

/* The library of the kernel, in which clock_gettime runs, is no file. It is read from the memory of the process. */
static int openVdso(pid_t pid, const ebpfMonMapping *map)
{
    size_t size = map->end - map->start;
    char *bytes = size <= VDSO_MAX ? malloc(size) : NULL;
    int fd = -1;

    if (bytes && ebpfMonMemReadNow(pid, map->start, bytes, size) == 0)
        fd = memfd_create("vdso", MFD_CLOEXEC);
    if (fd >= 0 && write(fd, bytes, size) != (ssize_t)size) {
        close(fd);
        fd = -1;
    }
    free(bytes);
    return fd;
}

static int openFile(pid_t pid, const ebpfMonMapping *map)
{
    char path[4352];

    return ebpfMonImageCacheFindPath(pid, map, path, sizeof(path)) ? -1
         : ebpfMonForeignOpenFile(path);
}

static ebpfMonStackFile *openModule(ebpfMonStackFiles *p, const ebpfMonMapping *map)
{
    ebpfMonStackFile *m = &p->file[p->count];
    const char *slash = strrchr(map->path, '/');

    m->fd = *map->path == '/' ? openFile(p->pid, map) : openVdso(p->pid, map);
    if (m->fd < 0)
        return NULL;
    if (ebpfMonElfOpen(&m->elf, m->fd)) {
        close(m->fd);
        return NULL;
    }
    if (m->elf.machine != EM_X86_64 || ebpfMonMappingBias(m->elf.segment, m->elf.nSegments, map, &m->bias)) {
        ebpfMonElfClose(&m->elf);
        close(m->fd);
        return NULL;
    }
    m->start = map->start;
    m->end = map->end;
    ebpfMonTextCopy(m->name, sizeof(m->name), slash ? slash + 1 : map->path);
    p->count++;
    return m;
}

/* The file that the process has at "pc", NULL: none that can be read. */
static ebpfMonStackFile *findStackFile(ebpfMonStackFiles *p, uint64_t pc)
{
    char path[32], line[8192];
    ebpfMonStackFile *m = NULL;
    FILE *maps;

    for (unsigned i = 0; i < p->count; i++)
        if (pc >= p->file[i].start && pc < p->file[i].end)
            return &p->file[i];
    snprintf(path, sizeof(path), "/proc/%d/maps", (int)p->pid);
    maps = p->count < EBPFMON_STACK_FILES ? fopen(path, "re") : NULL;
    for (unsigned i = 0; maps && i < MAPS_MAX && fgets(line, sizeof(line), maps); i++) {
        ebpfMonMapping map = { .path = VDSO };

        if (strstr(line, " " VDSO "\n") && sscanf(line, "%lx-%lx", &map.start, &map.end) != 2)
            continue;
        if ((!map.end && !ebpfMonMappingParse(line, &map)) || pc < map.start || pc >= map.end)
            continue;
        m = openModule(p, &map);
        break;
    }
    if (maps)
        fclose(maps);
    return m;
}

static void initStackFiles(ebpfMonStackFiles *p, pid_t pid)
{
    p->pid = pid;
    p->count = 0;
}

static void closeStackFiles(ebpfMonStackFiles *p)
{
    for (unsigned i = 0; i < p->count; i++) {
        ebpfMonElfClose(&p->file[i].elf);
        close(p->file[i].fd);
    }
    p->count = 0;
}

/* --- the stack of a thread --- */

/*
 * x86-64 only: on others the numbers of the registers are different, and no stack is found.
 * The thread may go on meanwhile; then what is on its stack does not fit the registers any more, the call frame
 * information leads nowhere, and the frames end there.
 */

#define STACK_SECONDS 2.0

static int readStack(void *arg, uint64_t addr, uint64_t *value)
{
    return ebpfMonMemReadNow(((ebpfMonStackFiles *)arg)->pid, addr, value, sizeof(*value));
}

/* The registers of a thread that waits in a system call, from "number arg1 … arg6 sp pc" (proc(5)). */
static int readWaitingRegs(pid_t pid, pid_t tid, ebpfMonRegs *regs)
{
    unsigned long long sp, pc;
    char text[256];

    ebpfMonProcReadTask(pid, tid, "syscall", text, sizeof(text));
    if (sscanf(text, "%*d %*x %*x %*x %*x %*x %*x %llx %llx", &sp, &pc) != 2)
        return -1;
    regs->reg[EBPFMON_REG_SP] = sp;
    regs->reg[EBPFMON_REG_PC] = pc;
    regs->known = 1u << EBPFMON_REG_SP | 1u << EBPFMON_REG_PC;
    return 0;
}

/* Memory, mappings and files of the process: in a job only. */
static unsigned walkStack(pid_t pid, pid_t tid, ebpfMonStackStart *start, ebpfMonFrame frame[EBPFMON_STACK_MAX])
{
    static const uint8_t saved[EBPFMON_SAVED] = { 3, 6, 12, 13, 14, 15 };
    const uint32_t need = 1u << EBPFMON_REG_SP | 1u << EBPFMON_REG_PC;
    ebpfMonRegs *regs = &start->regs;
    ebpfMonStackFiles *p;
    unsigned n = 0;
    int isCall = 0, rc;

    if ((regs->known & need) != need && readWaitingRegs(pid, tid, regs))
        return 0;
    p = malloc(sizeof(*p));
    if (!p)
        return 0;
    initStackFiles(p, pid);
    while (n < EBPFMON_STACK_MAX) {
        uint64_t pc = regs->reg[EBPFMON_REG_PC], vaddr, offset;
        ebpfMonStackFile *m = findStackFile(p, pc - (uint64_t)isCall);
        ebpfMonFrame *f = &frame[n];

        if (!m)
            break;
        vaddr = pc - m->bias - (uint64_t)isCall;
        snprintf(f->file, sizeof(f->file), "%s", m->name);
        if (ebpfMonElfNameCode(&m->elf, vaddr, f->name, sizeof(f->name), &offset))
            offset = vaddr;
        ebpfMonTextClean(f->name, sizeof(f->name));
        f->offset = (unsigned)(offset + (uint64_t)isCall);
        for (int i = 0; i < EBPFMON_SAVED; i++)
            f->saved[i] = regs->known >> saved[i] & 1 ? regs->reg[saved[i]] : 0;
        n++;
        rc = ebpfMonUnwindStep(&m->elf, m->bias, isCall, readStack, p, regs);
        if (rc < 0)
            break;
        ebpfMonUnwindRestoreReturn(start->ret, start->returns, regs);
        isCall = rc == 0;
    }
    closeStackFiles(p);
    free(p);
    return n;
}

typedef struct {
    pid_t    pid, tid;
    unsigned count;
    ebpfMonStackStart start;
    ebpfMonFrame frame[EBPFMON_STACK_MAX];
} stackJob;

static void runStackJob(void *data)
{
    stackJob *j = data;

    j->count = walkStack(j->pid, j->tid, &j->start, j->frame);
}

unsigned ebpfMonStackGet(pid_t pid, pid_t tid, const ebpfMonStackStart *start, ebpfMonFrame frame[EBPFMON_STACK_MAX])
{
    static const ebpfMonForeignJob job = { runStackJob, free };
    stackJob *j = calloc(1, sizeof(*j));
    unsigned count;

    if (!j)
        return 0;
    j->pid = pid;
    j->tid = tid;
    j->start = *start;
    if (ebpfMonForeignRun(pid, STACK_SECONDS, &job, j))
        return 0;
    count = j->count;
    memcpy(frame, j->frame, count * sizeof(frame[0]));
    free(j);
    return count;
}

/* --- many stacks, folded --- */

/* x86-64 only, as unwind.h. */

#define EBPFMON_FOLD_SITE  64   /* bytes of a site: what does not fit is left out at its end */

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
        ebpfMonStackFile *file = findStackFile(files, pc);

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
    initStackFiles(files, fold->pid);
    for (unsigned i = 0; i < fold->count; i++)
        walkCopy(fold, files, &fold->stack[i]);
    closeStackFiles(files);
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
