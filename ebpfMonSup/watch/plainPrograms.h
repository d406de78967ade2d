/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plain programs: program files that were looked at some times, and never were IOCs, such as sh, sed and cc. The kernel
 * part does not send their starts (map plainPrograms), because a host that compiles starts hundreds of them a second.
 * If a process of a plain program is an IOC all the same, for example one that python runs, then the rescan of all
 * processes finds it within some seconds; from then on that program is not plain any more.
 *
 * The follower owns it.
 */
#ifndef EBPFMON_PLAINPROGRAMS_H
#define EBPFMON_PLAINPROGRAMS_H

#include <stdint.h>

#include "ebpfMonTable.h"

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

#endif
