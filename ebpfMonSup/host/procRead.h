/* SPDX-License-Identifier: BSD-3-Clause */
/* Small files of /proc/PID that the kernel answers at once, and the identity of a process. No state; any thread. */
#ifndef EBPFMON_PROCREAD_H
#define EBPFMON_PROCREAD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* --- who pays ---
 *
 * Who pays for a process, or for a network namespace. A user with subordinate ids (subuid(5)) can run processes with
 * thousands of user ids, in a user namespace that he has made. So who made a user namespace pays for all that is in it;
 * but not root and the users of services, who make containers for others. Any thread. */

/* Who pays for a process. If its namespace cannot be looked at, its own user; 0 if it is gone. */
uid_t ebpfMonProcPayer(pid_t pid);

/* Who pays for the network namespace in which a process is: 0, if it is one that only root can have made. */
uid_t ebpfMonProcNetnsPayer(pid_t pid);

/* --- reading --- */

/* Reads a file of the kernel into "buf", terminated; what does not fit is left out. Returns the bytes; or -1 with
 * errno, and "buf" is empty. */
ssize_t ebpfMonProcReadFile(const char *path, char *buf, size_t size);
/* The same of /proc/PID/NAME, and of /proc/PID/task/TID/NAME; pid 0: of this process. */
ssize_t ebpfMonProcReadText(pid_t pid, const char *name, char *buf, size_t size);
ssize_t ebpfMonProcReadTask(pid_t pid, pid_t tid, const char *name, char *buf, size_t size);

/* Where a link of /proc/PID leads, as ebpfMonProcReadFile. */
ssize_t ebpfMonProcReadLink(pid_t pid, const char *name, char *buf, size_t size);

/* The number behind "name" in such a text; "otherwise" if there is none. */
uint64_t ebpfMonProcFindNumber(const char *text, const char *name, uint64_t otherwise);

/* The blank before a field of stat, from the third one on; NULL: there is none. */
const char *ebpfMonProcFindField(const char *stat, int field);

/* All process ids of /proc, ascending. Returns their number, -1 on error; *pids is malloc'ed for the caller. */
int ebpfMonProcList(pid_t **pids);
/* The same of the numbers that a folder of a process lists ("task", "fd"), at most so many. */
int ebpfMonProcListNumbers(pid_t pid, const char *folder, unsigned most, int **numbers);

/* What a thread does: 'R', 'S', 'D', 'T' and so on (proc(5)); 0: it is gone. */
char ebpfMonProcThreadState(pid_t pid, pid_t tid);

/* Start time in clock ticks since boot (field 22 of stat). Pid and start time identify a process. 0: the process is
 * gone, or is a zombie. */
uint64_t ebpfMonProcStart(pid_t pid);

/* Nonzero: another process has this pid now than the one that started then (struct ebpfMonOwner). 0 if it is gone, or
 * if "start" is 0: not known. */
int ebpfMonProcIsOther(pid_t pid, uint32_t start);

/* A number that tells the programs apart which a process runs one after the other (exec): made from the addresses of
 * code and stack, which the kernel chooses anew. 0: not known; we may not trace it. */
uint64_t ebpfMonProcProgram(pid_t pid);

/* The parent of a process that still runs the program of whoever forked it; 0: it has executed a program of its own, or
 * is gone. */
pid_t ebpfMonProcForkedFrom(pid_t pid);

/* Nonzero: this process has ended, or is about to: none of its threads runs code of its program any more. A large
 * process needs a second to give its memory back, a core dump takes longer. procInfo.c */
int ebpfMonProcIsEnding(pid_t pid, uint64_t start);

/* Nonzero: the process with this start time lives; also if that cannot be read, because we have no file or no memory
 * left. */
int ebpfMonProcLives(pid_t pid, uint64_t start);

/* As ebpfMonProcLives, and it runs the same program as when ebpfMonProcProgram returned "program"; 0: that is not
 * known. An exec of the same program may not show if the kernel randomises no addresses. */
int ebpfMonProcRuns(pid_t pid, uint64_t start, uint64_t program);

/* The memory in bytes that belongs to this process alone: resident, and neither of a file nor shared. It costs who has
 * it. 0: the process is gone. */
uint64_t ebpfMonProcOwnMemory(pid_t pid);

/* The user of a process; 0 if it is gone. */
uid_t ebpfMonProcOwner(pid_t pid);

#endif
