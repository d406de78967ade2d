/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/procRead.h"

#define THREADS_MAX 4096 /* looked at; a process with more of them is taken for a living one */
#define EXITING     0x4  /* PF_EXITING of the kernel's linux/sched.h */
#define KILLED      0x100 /* SIGKILL in a mask of proc(5) */

/* Reads a file of a thread. Nonzero: the thread is gone, not only that we have no file or no memory left. */
static int isThreadGone(pid_t pid, const char *name, char *buf, size_t size)
{
    errno = 0;
    return ebpfMonProcReadText(pid, name, buf, size) <= 0 && errno != EMFILE && errno != ENFILE && errno != ENOMEM;
}

/* Nonzero: this thread runs no code of its program any more. exit_group(2), SIGKILL and a core dump send SIGKILL to
 * each thread of a process (zap_other_threads, complete_signal, zap_process of the kernel); one that has taken it is
 * exiting. */
static int isThreadEnding(pid_t pid, const char *tid)
{
    char name[64], buf[4096] = "";
    const char *p;
    int field = 2;

    snprintf(name, sizeof(name), "task/%.16s/stat", tid);
    if (isThreadGone(pid, name, buf, sizeof(buf)))
        return 1;
    for (p = strrchr(buf, ')'); p && field < 9; field++)
        p = strchr(p + 1, ' ');
    if (p && strtoul(p, NULL, 10) & EXITING)
        return 1;
    snprintf(name, sizeof(name), "task/%.16s/status", tid);
    if (isThreadGone(pid, name, buf, sizeof(buf)))
        return 1;
    p = strstr(buf, "\nSigPnd:");
    if (p && strtoull(p + 8, NULL, 16) & KILLED)
        return 1;
    p = strstr(buf, "\nCoreDumping:"); /* the thread that writes it has taken its signal, and is not exiting yet */
    return p && strtol(p + 13, NULL, 10) != 0;
}

int ebpfMonProcIsEnding(pid_t pid, uint64_t start)
{
    char path[32];
    struct dirent *e;
    int ending = 1, n = 0;
    DIR *d;

    if (!ebpfMonProcLives(pid, start))
        return 1;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    d = opendir(path);
    if (!d)
        return !ebpfMonProcLives(pid, start); /* or we have no file left */
    while (ending && (e = readdir(d)) != NULL)
        if (e->d_name[0] != '.')
            ending = n++ < THREADS_MAX && isThreadEnding(pid, e->d_name);
    closedir(d);
    return ending;
}
