/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Code of a process by its address: where a probe is set for it. And where a variable of one of its files lies in memory.
 * The process and its files may never answer: each look is a job that can be abandoned (foreign.h).
 */
#ifndef EBPFMON_CODEPLACE_H
#define EBPFMON_CODEPLACE_H

#include <stdint.h>
#include <sys/types.h>

#include "code/functionSite.h"

/* The place in the function that begins at "address". "args", "needReturn": as in ebpfMonFunctionWanted. 0, or -1: no code
 * of a file stands there, or it cannot be probed. */
int ebpfMonCodePlaceFind(pid_t pid, uint64_t address, unsigned args, int needReturn, ebpfMonFunctionPlace *place);

/* The address of a variable that one of the files of the process defines, by its symbol (as stripping leaves it). 0: none
 * does, or it does not answer. */
uint64_t ebpfMonVariableFind(pid_t pid, const char *symbol);

#endif
