/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds processes that are IOCs. It looks at a program that was just started again and again, while the program loads
 * its libraries; it looks at all other processes now and then. The kernel part does not send starts of plain programs
 * (plainPrograms.h). A process that does not answer, or whose files are too large, is set aside, and looked at again
 * after 10 s, 20 s, … 640 s. If the processes of a user have cost much time (host/foreign.h), one of them is looked at
 * per second. Only the follower uses it, except ebpfMonIocFinderNoteExec and …GetAside.
 */
#ifndef EBPFMON_IOCFINDER_H
#define EBPFMON_IOCFINDER_H

#include <stdint.h>
#include <sys/types.h>

#include "code/image.h"
#include "watch/plainPrograms.h"

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
 * binaries of *image belong to the finder. Returns in how many seconds to call it again; HUGE_VAL: every 10 s or more
 * often, as it suits the caller. */
double ebpfMonIocFinderFindNext(ebpfMonIocFinder *finder, uint64_t now, pid_t *pid, ebpfMonImage *image);

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

/* How many processes we were not allowed to look at, the last time that all were looked at; *first: the first of
 * them. */
unsigned ebpfMonIocFinderCountDenied(const ebpfMonIocFinder *finder, pid_t *first);

#endif
