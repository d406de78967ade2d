/* SPDX-License-Identifier: BSD-3-Clause */
/* A target's records in the kernel half's tables. Target thread only. */
#ifndef EBPFMON_RECORDTABLE_H
#define EBPFMON_RECORDTABLE_H

#include "watch/target.h"

int  ebpfMonRecordTableInit(unsigned maxRecords, unsigned maxClosure);

/* Links, closures, slots: all records of a running target. 0, or -1 with the reason in t->note. */
int  ebpfMonRecordTableInstall(ebpfMonTarget *t);
/* Where its arrays are, already while it starts: autosave writes to them then. */
void ebpfMonRecordTableAddArrays(ebpfMonTarget *t);
/* Reads the links of record "index" again; where they changed, the closures are made anew. Counts go on. */
void ebpfMonRecordTableUpdateLinks(ebpfMonTarget *t, uint32_t index);
/* The way of counting of those records whose trap was attached or taken away. */
void ebpfMonRecordTableSetTrap(ebpfMonTarget *t, int attached);
/* The same for all records, when it is not known whose links changed. */
void ebpfMonRecordTableUpdateAllLinks(ebpfMonTarget *t);
/* Out of the kernel's tables by pid and address: before another program with this pid gets in. */
void ebpfMonRecordTableRemoveIndex(ebpfMonTarget *t);
/* Out of the tables. */
void ebpfMonRecordTableRemove(ebpfMonTarget *t);
/* Which records match the filter's pattern. */
void ebpfMonRecordTableSetShown(ebpfMonTarget *t, const char *pattern);

#endif
