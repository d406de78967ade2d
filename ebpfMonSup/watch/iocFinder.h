/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds processes that are IOCs. It looks at a program that was just started again and again, while the program loads
 * its libraries; it looks at all other processes now and then. The kernel part does not send starts of plain programs
 * (below). A process that does not answer, or whose files are too large, is set aside, and looked at again
 * after 10 s, 20 s, … 640 s. If the processes of a user have cost much time (host/foreign.h), one of them is looked at
 * per second. Only the follower uses it, except ebpfMonIocFinderNoteExec and …GetAside.
 */
#ifndef EBPFMON_IOCFINDER_H
#define EBPFMON_IOCFINDER_H

#include <stdint.h>
#include <sys/types.h>
#include "code/image.h"
#include "ebpfMonTable.h"

/* --- notes of processes ---
 *
 * Processes to which something happened, for a thread that asks about one process after the other. Any thread.
 */

#define EBPFMON_PID_NOTES 1024 /* so many are kept; then a new one replaces the oldest */

typedef struct ebpfMonPidNotes ebpfMonPidNotes;

ebpfMonPidNotes *ebpfMonPidNotesNew(void); /* NULL without memory */
void ebpfMonPidNotesFree(ebpfMonPidNotes *notes);

void ebpfMonPidNotesAdd(ebpfMonPidNotes *notes, pid_t pid);

/* Nonzero: this process was noted. Removes all its notes. Costs almost nothing if there are none at all. */
int ebpfMonPidNotesTake(ebpfMonPidNotes *notes, pid_t pid);

/* --- what is known of a process ---
 *
 * What the finder of IOCs knows of each process that it has seen: when it was looked at, and what was found then. A
 * process is forgotten when another one needs its place. The finder then looks at it as at a new one: that it waited
 * for a library, or was set aside, is not known any more.
 *
 * The follower owns it.
 */

typedef struct {
    pid_t    pid;          /* 0: none */
    uint64_t start;
    uint64_t seen, looked; /* monotonic ns: for the first time; the last look, 0: none */
    uint64_t checked;      /* monotonic ns: its pages were counted; 0: never */
    uint64_t pages;        /* that it had mapped then, when it was no IOC; 0: it may be one */
    int      denied;       /* at the last look */
    unsigned looks;        /* how often it was looked at when its user had used up its share */
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

/* --- plain programs ---
 *
 * Plain programs: program files that were looked at some times, and never were IOCs, such as sh, sed and cc. The kernel
 * part does not send their starts (map plainPrograms), because a host that compiles starts hundreds of them a second.
 * If a process of a plain program is an IOC all the same, for example one that python runs, then the rescan of all
 * processes finds it within some seconds; from then on that program is not plain any more.
 *
 * The follower owns it.
 */

typedef struct ebpfMonPlainPrograms ebpfMonPlainPrograms;

/* Tells the kernel part that this program is plain, or is not any more. 0, or -1: it has no room. */
typedef int (*ebpfMonSetPlain)(const struct ebpfMonProgram *program, int isPlain);

ebpfMonPlainPrograms *ebpfMonPlainProgramsNew(ebpfMonSetPlain set); /* NULL without memory */
void ebpfMonPlainProgramsFree(ebpfMonPlainPrograms *plain);         /* NULL does no harm */

/* What became of a process that ran this program. */
typedef enum {
    ebpfMonProgramEnded, /* it ended before it was looked at */
    ebpfMonProgramPlain, /* it was no IOC at the last look */
    ebpfMonProgramIoc
} ebpfMonProgramIs;

void ebpfMonPlainProgramsNote(ebpfMonPlainPrograms *plain, const struct ebpfMonProgram *program, ebpfMonProgramIs is);

/* A process whose start was not sent is an IOC. "inode": of its program; on each device a program with this number is
 * no plain one any more, because the number of the device in stat(2) can differ from the kernel's (overlayfs,
 * btrfs). */
void ebpfMonPlainProgramsNoteIoc(ebpfMonPlainPrograms *plain, uint64_t inode);

/* The program with this inode was an IOC because of its script. */
void ebpfMonPlainProgramsNoteInterpreter(ebpfMonPlainPrograms *plain, uint64_t inode);

/* Nonzero: a process of the program with this inode was an IOC, and it is no interpreter. */
int ebpfMonPlainProgramsHaveIoc(ebpfMonPlainPrograms *plain, uint64_t inode);

/* --- finding --- */

typedef struct ebpfMonIocFinder ebpfMonIocFinder;

/* Nonzero: this process is watched already, and is not looked at. */
typedef int (*ebpfMonIocFinderIsKnown)(void *arg, pid_t pid);

/* Nonzero: this process is an IOC that has started. Processes that it forked have its database, but are no IOCs. */
typedef int (*ebpfMonIocFinderIsRunning)(void *arg, pid_t pid);

/* "watchSelf": our own process may be found, too. "setPlain": ebpfMonKernelSetPlain. NULL without memory. */
ebpfMonIocFinder *ebpfMonIocFinderNew(int watchSelf, ebpfMonIocFinderIsKnown isKnown,
                                      ebpfMonIocFinderIsRunning isRunning, void *arg, ebpfMonSetPlain setPlain);
void ebpfMonIocFinderFree(ebpfMonIocFinder *finder); /* NULL does no harm */

/* This program was started in this process (exec). "isKnown": the process was an IOC that is known. Any thread. */
void ebpfMonIocFinderNoteExec(ebpfMonIocFinder *finder, pid_t pid, const struct ebpfMonProgram *program, int isKnown);

/* Nonzero: an exec of this known process was noted since the process was found, so it runs another program now. Returns
 * this only once for each exec. */
int ebpfMonIocFinderTakeExec(ebpfMonIocFinder *finder, pid_t pid);

/* The last thread of this process ends. Any thread. */
void ebpfMonIocFinderNoteExit(ebpfMonIocFinder *finder, pid_t pid);

/* Nonzero: the end of this process was noted since it was found. Returns this only once. */
int ebpfMonIocFinderTakeExit(ebpfMonIocFinder *finder, pid_t pid);

/* Finds the next process that is an IOC and is not known yet; *pid = 0: there is none now. "now": monotonic ns. The
 * binaries of *image belong to the finder. Returns in how many seconds to call it again; 0: it has more to look at;
 * HUGE_VAL: every 10 s or more often, as it suits the caller. */
double ebpfMonIocFinderFindNext(ebpfMonIocFinder *finder, uint64_t now, pid_t *pid, ebpfMonImage *image);

/* When the last look at all processes began; it is over if FindNext returned more than 0. */
uint64_t ebpfMonIocFinderGetScanned(const ebpfMonIocFinder *finder);

/* The program files that the finder knows. */
ebpfMonImageCache *ebpfMonIocFinderGetFiles(ebpfMonIocFinder *finder);

/* As ebpfMonImageRead, of a process that was found before. */
int ebpfMonIocFinderReadAgain(ebpfMonIocFinder *finder, pid_t pid, ebpfMonImage *image);

/* As ebpfMonImageReadCallers. */
int ebpfMonIocFinderReadCallers(ebpfMonIocFinder *finder, pid_t pid, ebpfMonImageCallers *callers);

/* The follower has no place for this process: it is not looked at again for a while. */
void ebpfMonIocFinderSetAside(ebpfMonIocFinder *finder, pid_t pid, const char *why);

/* A process that is left alone for a while. */
typedef struct {
    pid_t pid;
    uid_t uid;
    const char *why;  /* static text */
    unsigned seconds; /* until it is looked at again */
} ebpfMonAsideProcess;

/* Those that are set aside now, at most "max", the newest first. Returns their number. Any thread. */
unsigned ebpfMonIocFinderGetAside(ebpfMonIocFinder *finder, ebpfMonAsideProcess *list, unsigned max);

/* How many processes of programs that are IOCs ended since the last call, before they were found; *pid: the last one.
 * Such an IOC crashes when it starts. */
unsigned ebpfMonIocFinderTakeEnded(ebpfMonIocFinder *finder, pid_t *pid);

/* How many processes we were not allowed to look at, the last time that all were looked at; *first: the first of
 * them. */
unsigned ebpfMonIocFinderCountDenied(const ebpfMonIocFinder *finder, pid_t *first);

#endif
