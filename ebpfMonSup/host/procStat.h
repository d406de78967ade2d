/* SPDX-License-Identifier: BSD-3-Clause */
/* What /proc says about the resources of a process, and about what one of its threads waits for. Nothing is kept
 * open. */
#ifndef EBPFMON_PROCSTAT_H
#define EBPFMON_PROCSTAT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct {
    char     state;   /* of its first thread: 'R', 'S', 'D', 'T' and so on (proc(5)) */
    uint64_t start;   /* as ebpfMonProcStart has it */
    double   cpu;     /* s of user and system time so far, of all threads */
    double   uptime;  /* s */
    double   rss;     /* bytes resident */
    unsigned threads;
    unsigned fds;     /* open files, sockets and so on */
    unsigned fdLimit; /* how many it may open; 0: no limit, or not known */
} ebpfMonProcStat;

/* 0, or -1 when the process is gone. */
int ebpfMonProcStatGet(pid_t pid, ebpfMonProcStat *stat);

/* How long (s) a process with this start (ebpfMonProcStart) had run at "at" (monotonic ns). */
double ebpfMonProcUptime(uint64_t start, uint64_t at);

/* The pages of memory that a process has mapped, read or not. 0: it is gone. */
uint64_t ebpfMonProcMappedPages(pid_t pid);

/* How many more files the calling process may open; *limit: how many in all (ulimit -n). */
unsigned ebpfMonProcFilesLeft(unsigned *limit);

/* A thread's name, and what it does as "running" or "sleeping in clock_nanosleep (hrtimer_nanosleep)": the system
 * call, and where in the kernel. 0, or -1 when it is gone. */
int ebpfMonProcThread(pid_t pid, pid_t tid, char name[16], char *what, size_t size);

/* Whether a signal (SIGSTOP) or a debugger holds a thread. */
int ebpfMonProcStandsStill(pid_t pid, pid_t tid);

/* Whether the control group of a process is frozen, as by docker pause. */
int ebpfMonProcIsFrozen(pid_t pid);

/* CPU time (s) of the living threads of a process whose names begin with "prefix". */
double ebpfMonProcThreadsRun(pid_t pid, const char *prefix);

/* Whether it has a thread with a name like this one (fnmatch). */
int ebpfMonProcHasThread(pid_t pid, const char *pattern);

/* The functions of the kernel in which a thread waits, innermost first: "a < b". Empty: the thread runs, or we may not
 * read them. */
void ebpfMonProcKernelStack(pid_t pid, pid_t tid, char *text, size_t size);

#endif
