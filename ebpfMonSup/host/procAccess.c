/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/clock.h"
#include "host/foreign.h"
#include "host/procAccess.h"
#include "host/procInfo.h"
#include "host/procNetns.h"

#define MAX_TRIED     1000
#define MAX_NS        2000000000ull
#define TRIAL_SECONDS 0.25
#define PF_KTHREAD    0x00200000ul /* include/linux/sched.h: a thread of the kernel, which has no program */

typedef struct {
    pid_t pid;
    int gone, memory, program, name;
} trial;

static int canOpen(const char *path)
{
    int fd = ebpfMonForeignOpenFile(path);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* By its path, as libraries must be opened (code/image.c): the link /proc/PID/exe leads past the rights of
 * folders. */
static int canOpenProgram(pid_t pid)
{
    char link[64], path[PATH_MAX], full[PATH_MAX + 64];
    ssize_t n;

    snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
    n = readlink(link, path, sizeof(path) - 1);
    if (n <= 0)
        return 0;
    path[n] = 0;
    snprintf(full, sizeof(full), "/proc/%d/root%s", (int)pid, path);
    return canOpen(full) || (errno == ENOENT && canOpen(link)); /* it was replaced */
}

/* A job of foreign.h: the program may lie on a file system that does not answer. */
static void tryProcess(void *data)
{
    trial *t = data;
    char byte;
    struct iovec here = { &byte, 1 }, there = { NULL, 1 };
    char path[64];

    /* nothing is at address 0: EFAULT says that we might have read it */
    t->memory = process_vm_readv(t->pid, &here, 1, &there, 1, 0) >= 0 || errno == EFAULT;
    t->gone = !t->memory && errno == ESRCH;
    t->program = canOpenProgram(t->pid);
    snprintf(path, sizeof(path), "/proc/%d/environ", (int)t->pid);
    t->name = t->memory && canOpen(path); /* newer kernels let it be opened, and then there is nothing in it */
}

static int isProgram(pid_t pid)
{
    char buf[1024];
    const char *p = ebpfMonProcReadText(pid, "stat", buf, sizeof(buf)) > 0 ? strrchr(buf, ')') : NULL;
    unsigned long flags;
    char state;

    return p && sscanf(p + 1, " %c %*s %*s %*s %*s %*s %lu", &state, &flags) == 2 && state != 'Z' &&
           !(flags & PF_KTHREAD);
}

void ebpfMonProcAccessTry(ebpfMonProcAccess *access)
{
    static const ebpfMonForeignJob job = { tryProcess, free };
    uint64_t until = ebpfMonClockMonotonic() + MAX_NS, own = ebpfMonProcNetns(getpid());
    pid_t *pids;
    int n = ebpfMonProcList(&pids);

    memset(access, 0, sizeof(*access));
    for (int i = 0; i < n && access->looked < MAX_TRIED && ebpfMonClockMonotonic() < until; i++) {
        trial *t = isProgram(pids[i]) && pids[i] != getpid() ? calloc(1, sizeof(*t)) : NULL;
        uint64_t netns;

        if (!t)
            continue;
        t->pid = pids[i];
        if (ebpfMonForeignRun(t->pid, TRIAL_SECONDS, &job, t))
            continue;
        if (t->gone) {
            free(t);
            continue;
        }
        access->looked++;
        access->memory += (unsigned)t->memory;
        access->programs += (unsigned)t->program;
        access->names += (unsigned)t->name;
        netns = ebpfMonProcNetns(t->pid);
        access->elsewhere += netns && netns != own;
        free(t);
    }
    free(pids);
}
