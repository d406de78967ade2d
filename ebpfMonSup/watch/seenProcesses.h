/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the finder of IOCs knows of each process that it has seen: when it was looked at, and what was found then. A
 * process is forgotten when its place is needed for another one. Then it is seen for the first time once more: the
 * finder looks at it again, and does not know any more that it waits for a library, or that it is set aside.
 *
 * The follower owns it.
 */
#ifndef EBPFMON_SEENPROCESSES_H
#define EBPFMON_SEENPROCESSES_H

#include <stdint.h>
#include <sys/types.h>

typedef struct {
    pid_t    pid;          /* 0: none */
    uint64_t start;
    uint64_t seen, looked; /* monotonic ns: for the first time; the last look, 0: none */
    uint64_t checked;      /* monotonic ns: its pages were counted; 0: never */
    uint64_t pages;        /* that it had mapped then, when it was no IOC; 0: it may be one */
    int      denied;       /* at the last look */
    int      asides;       /* how often it was set aside */
    uint64_t asideUntil;   /* ns, 0: it is not */
} ebpfMonSeenProcess;

typedef struct ebpfMonSeenProcesses ebpfMonSeenProcesses;

ebpfMonSeenProcesses *ebpfMonSeenProcessesNew(void);        /* NULL without memory */
void ebpfMonSeenProcessesFree(ebpfMonSeenProcesses *seen);  /* NULL does no harm */

/* The entry of this pid, perhaps of an earlier process; NULL: there is none. It is valid until the next call of Get. */
ebpfMonSeenProcess *ebpfMonSeenProcessesFind(ebpfMonSeenProcesses *seen, pid_t pid);

/* The entry of this process, which is made if there is none. "start": of the process (ebpfMonProcStart); "now":
 * monotonic ns. */
ebpfMonSeenProcess *ebpfMonSeenProcessesGet(ebpfMonSeenProcesses *seen, pid_t pid, uint64_t start, uint64_t now);

#endif
