/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where to set a probe for code that is known by its address; and where a variable of a file lies in the memory of a
 * process. The process and its files may never answer: each look is a job that can be abandoned (foreign.h).
 */
#ifndef EBPFMON_CODEPLACE_H
#define EBPFMON_CODEPLACE_H

#include <stdint.h>
#include <sys/types.h>

#include "code/functionSite.h"

/* The place in the function that begins at "address". "args", "needReturn": as in ebpfMonFunctionWanted. 0, or -1: no
 * code of a file stands there, or it cannot be probed. */
int ebpfMonCodePlaceFind(pid_t pid, uint64_t address, unsigned args, int needReturn, ebpfMonFunctionPlace *place);

/* The address of a variable that one of the files of the process defines, by its exported symbol, which stripped files
 * have, too. 0: no file defines it, or the process does not answer. */
uint64_t ebpfMonVariableFind(pid_t pid, const char *symbol);

#endif
