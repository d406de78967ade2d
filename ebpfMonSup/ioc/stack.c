/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See stack.h. x86-64 only: on others the numbers of the registers are different, and no stack is found.
 * The thread may go on meanwhile; then what is on its stack does not fit the registers any more, the call frame
 * information leads nowhere, and the frames end there.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "common/text.h"
#include "ioc/foreign.h"
#include "ioc/imageCache.h"
#include "ioc/memory.h"
#include "ioc/stack.h"

#define STACK_SECONDS 2.0
#define FILES_MAX  16
#define MAPS_MAX   65536 /* lines of maps */
#define VDSO       "[vdso]"
#define VDSO_MAX   65536 /* bytes */

/* A file that some frame lies in; kept open while a stack is gone through. */
typedef struct {
    uint64_t start, end, bias;
    ebpfMonElfFile elf;
    int  fd;
    char name[40];
} Module;

typedef struct {
    pid_t pid;
    unsigned count;
    Module module[FILES_MAX];
} Process;

static int readStack(void *arg, uint64_t addr, uint64_t *value)
{
    return ebpfMonMemReadNow(((Process *)arg)->pid, addr, value, sizeof(*value));
}

/* The registers of a thread that waits in a system call, from "number arg1 … arg6 sp pc" (proc(5)). */
static int waitingRegs(pid_t pid, pid_t tid, ebpfMonRegs *regs)
{
    unsigned long long sp, pc;
    char path[64];
    int n = 0;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", (int)pid, (int)tid);
    f = fopen(path, "re");
    if (f) {
        n = fscanf(f, "%*d %*x %*x %*x %*x %*x %*x %llx %llx", &sp, &pc);
        fclose(f);
    }
    if (n != 2)
        return -1;
    regs->reg[EBPFMON_REG_SP] = sp;
    regs->reg[EBPFMON_REG_PC] = pc;
    regs->known = 1u << EBPFMON_REG_SP | 1u << EBPFMON_REG_PC;
    return 0;
}

/* The kernel's own library, in which clock_gettime runs, is no file: it is made one from the process' memory. */
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
         : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

static Module *openModule(Process *p, const ebpfMonMapping *map)
{
    Module *m = &p->module[p->count];
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
static Module *moduleOf(Process *p, uint64_t pc)
{
    char path[32], line[8192];
    Module *m = NULL;
    FILE *maps;

    for (unsigned i = 0; i < p->count; i++)
        if (pc >= p->module[i].start && pc < p->module[i].end)
            return &p->module[i];
    snprintf(path, sizeof(path), "/proc/%d/maps", (int)p->pid);
    maps = p->count < FILES_MAX ? fopen(path, "re") : NULL;
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

/* Memory, mappings and files of the process: in a job only. */
static unsigned walk(pid_t pid, pid_t tid, ebpfMonRegs *regs, ebpfMonFrame frame[EBPFMON_STACK_MAX])
{
    static const uint8_t saved[EBPFMON_SAVED] = { 3, 6, 12, 13, 14, 15 };
    const uint32_t need = 1u << EBPFMON_REG_SP | 1u << EBPFMON_REG_PC;
    Process *p;
    unsigned n = 0;
    int isCall = 0, rc;

    if ((regs->known & need) != need && waitingRegs(pid, tid, regs))
        return 0;
    p = malloc(sizeof(*p));
    if (!p)
        return 0;
    p->pid = pid;
    p->count = 0;
    while (n < EBPFMON_STACK_MAX) {
        uint64_t pc = regs->reg[EBPFMON_REG_PC], vaddr, offset;
        Module *m = moduleOf(p, pc - (uint64_t)isCall);
        ebpfMonFrame *f = &frame[n];

        if (!m)
            break;
        vaddr = pc - m->bias - (uint64_t)isCall;
        snprintf(f->file, sizeof(f->file), "%s", m->name);
        if (ebpfMonElfNameAt(&m->elf, vaddr, f->name, sizeof(f->name), &offset))
            offset = vaddr;
        ebpfMonTextClean(f->name, sizeof(f->name));
        f->offset = (unsigned)(offset + (uint64_t)isCall);
        for (int i = 0; i < EBPFMON_SAVED; i++)
            f->saved[i] = regs->known >> saved[i] & 1 ? regs->reg[saved[i]] : 0;
        n++;
        rc = ebpfMonUnwindStep(&m->elf, m->bias, isCall, readStack, p, regs);
        if (rc < 0)
            break;
        isCall = rc == 0;
    }
    for (unsigned i = 0; i < p->count; i++) {
        ebpfMonElfClose(&p->module[i].elf);
        close(p->module[i].fd);
    }
    free(p);
    return n;
}

typedef struct {
    pid_t    pid, tid;
    ebpfMonRegs regs;
    unsigned count;
    ebpfMonFrame frame[EBPFMON_STACK_MAX];
} stackJob;

static void runStackJob(void *data)
{
    stackJob *j = data;

    j->count = walk(j->pid, j->tid, &j->regs, j->frame);
}

unsigned ebpfMonStackGet(pid_t pid, pid_t tid, ebpfMonRegs *regs, ebpfMonFrame frame[EBPFMON_STACK_MAX])
{
    static const ebpfMonForeignJob job = { runStackJob, free };
    stackJob *j = calloc(1, sizeof(*j));
    unsigned count;

    if (!j)
        return 0;
    j->pid = pid;
    j->tid = tid;
    j->regs = *regs;
    if (ebpfMonForeignRun(pid, STACK_SECONDS, &job, j))
        return 0;
    count = j->count;
    *regs = j->regs;
    memcpy(frame, j->frame, count * sizeof(frame[0]));
    free(j);
    return count;
}
