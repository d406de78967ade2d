/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See stack.h. x86-64 only: on others the numbers of the registers are different, and no stack is found.
 * The thread may go on meanwhile; then what is on its stack does not fit the registers any more, the call frame
 * information leads nowhere, and the frames end there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "code/elfPlt.h"
#include "code/stack.h"
#include "code/stackFiles.h"
#include "common/text.h"
#include "host/foreign.h"
#include "host/memory.h"

#define STACK_SECONDS 2.0

static int readStack(void *arg, uint64_t addr, uint64_t *value)
{
    return ebpfMonMemReadNow(((ebpfMonStackFiles *)arg)->pid, addr, value, sizeof(*value));
}

/* The registers of a thread that waits in a system call, from "number arg1 … arg6 sp pc" (proc(5)). */
static int readWaitingRegs(pid_t pid, pid_t tid, ebpfMonRegs *regs)
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
    ebpfMonStackFilesInit(p, pid);
    while (n < EBPFMON_STACK_MAX) {
        uint64_t pc = regs->reg[EBPFMON_REG_PC], vaddr, offset;
        ebpfMonStackFile *m = ebpfMonStackFilesFind(p, pc - (uint64_t)isCall);
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
    ebpfMonStackFilesClose(p);
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
