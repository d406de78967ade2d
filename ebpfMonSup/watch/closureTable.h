/* SPDX-License-Identifier: BSD-3-Clause */
/* A target's closures and stretches in the kernel half's tables. Target thread only. */
#ifndef EBPFMON_CLOSURETABLE_H
#define EBPFMON_CLOSURETABLE_H

#include "watch/target.h"

int ebpfMonClosureTableInit(unsigned maxClosure);

/* Made from the links as they were read last. NULL without memory. */
ebpfMonClosures *ebpfMonClosureTableMake(const ebpfMonCatalogue *cat);

/* Puts closures in force, in place of those before. 0, or -1: no room. */
int ebpfMonClosureTableInstall(ebpfMonTarget *t, const ebpfMonClosures *c);

/* Which chains level trace keeps: those with a record that the filter shows. For when that has changed. */
void ebpfMonClosureTableMarkWanted(ebpfMonTarget *t);

/* Gives back the target's part of the table. */
void ebpfMonClosureTableRemove(ebpfMonTarget *t);

/* An epicsTimeStamp, as a record has it in memory, as a number that grows with time. */
uint64_t ebpfMonClosureTableStampOrder(uint64_t time);

#endif
