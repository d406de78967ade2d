/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looks at other processes that may never answer. Whoever owns a process decides when a page of its memory, or a file
 * that it has mapped, arrives: FUSE and userfaultfd let an unprivileged user make it "never". The kernel then lets our
 * thread wait until that process ends, and only SIGKILL, which ends all of us, would wake it. So everything that may
 * wait like this is a job: a reader thread of its own does it, and the caller abandons the reader when time is up. The
 * reader comes back when the page does.
 *
 * A process whose job was abandoned is set aside: all further jobs for it fail at once, until the reader has come back
 * and a time has passed: 1 s, and twice as long each further time, up to 256 s. The cost of slow processes is charged
 * to their user: all processes of a user together may make callers wait 1 s, and after that 5 % of the time. When a
 * user has used up this share, each of its jobs gets an eighth of its time limit. The time that a reader waits for a
 * CPU is not charged: on a busy host it tells nothing about the process. The CPU time that we need for its processes is
 * charged, too: 4 s, and after that 2 % of the time. One look may cost more: who owes 4.4 s waits until he does not.
 * System users, root before all, pay only for jobs that were abandoned: on a busy host most processes are theirs, and
 * their IOCs must not wait for that. A user may have 8 abandoned readers, a system user 32, all users 64. Beyond that
 * only trusted processes are read, IOCs whose database was read, until 80 readers are abandoned.
 *
 * These need no job: files of /proc that do not come from the memory of the process (stat, status, comm, cgroup, fd,
 * ns, task), and reading where a link leads (exe). These need a job: process_vm_readv, /proc/PID/mem, maps (mmap_lock),
 * cmdline and environ (both are memory), and each open, stat and read of a file by a path of that process (exe,
 * map_files, root, cwd).
 *
 * This module exists once in a process, because an abandoned reader stays a thread of the process. Any thread.
 */
#ifndef EBPFMON_FOREIGN_H
#define EBPFMON_FOREIGN_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* --- accounts of users ---
 *
 * Which processes do not answer, and what the processes of each user have cost; private to foreign.c. foreign.h says
 * the rules. Call these functions under the lock of foreign.c. All times are monotonic ns. */

typedef struct ebpfMonForeignAccounts ebpfMonForeignAccounts;

ebpfMonForeignAccounts *ebpfMonForeignAccountsNew(void); /* NULL without memory */

/* How long (ns) a job for this process may take, if it asks for "wanted" ns. 0: it may not begin. */
uint64_t ebpfMonForeignAccountsFindLimit(ebpfMonForeignAccounts *accounts, pid_t pid, uint64_t wanted, uint64_t now);

/* A reader of this process is abandoned (pid 0: no process is to blame): sets the process aside. Returns the user; give
 * it to …Return when the reader has come back. */
uid_t ebpfMonForeignAccountsAbandon(ebpfMonForeignAccounts *accounts, pid_t pid, uint64_t now);
void ebpfMonForeignAccountsReturn(ebpfMonForeignAccounts *accounts, pid_t pid, uid_t uid, uint64_t now);

void ebpfMonForeignAccountsCharge(ebpfMonForeignAccounts *accounts, pid_t pid, uint64_t ns, uint64_t now);
void ebpfMonForeignAccountsChargeCpu(ebpfMonForeignAccounts *accounts, uid_t uid, uint64_t ns, uint64_t now);
void ebpfMonForeignAccountsTrust(ebpfMonForeignAccounts *accounts, pid_t pid);

int ebpfMonForeignAccountsIsAside(ebpfMonForeignAccounts *accounts, pid_t pid, uint64_t now);
int ebpfMonForeignAccountsIsCharged(ebpfMonForeignAccounts *accounts, pid_t pid, uint64_t now);
int ebpfMonForeignAccountsIsUserCharged(ebpfMonForeignAccounts *accounts, uid_t uid, uint64_t now);
int ebpfMonForeignAccountsTakeLook(ebpfMonForeignAccounts *accounts, pid_t pid, uint64_t now);
unsigned ebpfMonForeignAccountsCountStuck(const ebpfMonForeignAccounts *accounts);

/* --- reading --- */

typedef struct {
    /* The work, in a reader thread at ordinary priority. It touches nothing but *data. */
    void (*run)(void *data);
    /* The job failed: frees *data. In the reader when it comes back late, else in the caller. */
    void (*drop)(void *data);
} ebpfMonForeignJob;

/*
 * Does the job for process "pid" within "seconds". 0: the job is done, and *data belongs to the caller again. -1: the
 * caller must not touch *data any more; errno is ETIMEDOUT (the process does not answer, or is set aside) or EAGAIN
 * (there is no thread or no CPU; the process is not to blame). A call within a reader runs the job in this reader,
 * because the reader can be abandoned already.
 */
int ebpfMonForeignRun(pid_t pid, double seconds, const ebpfMonForeignJob *job, void *data);

/* The time that all jobs of the calling thread took: ns, without the time that their readers waited for a CPU. */
uint64_t ebpfMonForeignGetCost(void);

/* The CPU time that the calling thread has used, with its jobs; ns. */
uint64_t ebpfMonForeignGetCpu(void);

/* Nonzero: this process is set aside now, or its user has too many processes that are set aside. */
int ebpfMonForeignIsAside(pid_t pid);

/* Nonzero: the user of this process has an abandoned reader, or has used up its share. Jobs that can wait should
 * wait. */
int ebpfMonForeignIsCharged(pid_t pid);

/* Nonzero: this process, which can wait, may be looked at now. Of a user who has used up its share one process a second
 * may, of a system user 16; none as long as he owes us too much CPU time. Users do not wait for each other. */
int ebpfMonForeignTakeLook(pid_t pid);

/* This process is an IOC: it is read even if its user has many processes that do not answer. */
void ebpfMonForeignTrust(pid_t pid);

/* Charges the user of this process: the caller has waited so many ns for it in vain. System users pay nothing. */
void ebpfMonForeignCharge(pid_t pid, uint64_t ns);

/* Charges CPU time of ours to a user (host/procRead.h), for the work that his new processes, and those that change,
 * make us do. System users pay nothing. */
void ebpfMonForeignChargeCpu(uid_t user, uint64_t ns);

/* As ebpfMonForeignIsCharged. */
int ebpfMonForeignIsUserCharged(uid_t user);

/* How many readers are abandoned now, for reports and tests. */
unsigned ebpfMonForeignCountStuck(void);

/* Nonzero: within the last half minute no thread could be made for a job. Readers that exist still work. */
int ebpfMonForeignLacksThreads(void);

/* Up to size - 1 bytes of a file that may need a job, terminated. Their number, or -1 with errno. */
ssize_t ebpfMonForeignReadFile(pid_t pid, const char *path, double seconds, char *buf, size_t size);

/* All of such a file, at most "max" bytes, malloc'ed and terminated. NULL with errno. */
char *ebpfMonForeignReadAll(pid_t pid, const char *path, double seconds, size_t max);

/* Opens a regular file for reading, by a path that may lead through files of others. What else is there is never
 * opened, for that can have an effect: a watchdog starts, a tape winds. A file for the caller to close; -1 with errno
 * (ENXIO: it is no regular file). It may wait as any open does, so call it in a job. */
int ebpfMonForeignOpenFile(const char *path);

#endif
