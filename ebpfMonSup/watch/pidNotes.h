/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes to which something happened, for a thread that asks about one process after the other. Any thread. */
#ifndef EBPFMON_PIDNOTES_H
#define EBPFMON_PIDNOTES_H

#include <sys/types.h>

#define EBPFMON_PID_NOTES 1024 /* so many are kept; then a new one replaces the oldest */

typedef struct ebpfMonPidNotes ebpfMonPidNotes;

ebpfMonPidNotes *ebpfMonPidNotesNew(void); /* NULL without memory */
void ebpfMonPidNotesFree(ebpfMonPidNotes *notes);

void ebpfMonPidNotesAdd(ebpfMonPidNotes *notes, pid_t pid);

/* Nonzero: this process was noted. Removes all its notes. Costs almost nothing if there are none at all. */
int ebpfMonPidNotesTake(ebpfMonPidNotes *notes, pid_t pid);

#endif
