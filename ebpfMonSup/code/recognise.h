/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the functions of EPICS Base in a program without symbols, by texts that only they use, and by who calls whom
 * (internals.md, "Recognition"). Each is believed only if two ways lead to it. What is not found, or found twice, is left out.
 */
#ifndef EBPFMON_RECOGNISE_H
#define EBPFMON_RECOGNISE_H

#include "code/imageCache.h"

typedef struct {
    ebpfMonElfSymbol fn[ebpfMonFnCount];
    ebpfMonElfSymbol var[ebpfMonVarCount];
    int isOldNotify; /* fn[ebpfMonFnProcessNotify] is dbPutNotify of EPICS 3.14 */
} ebpfMonRecognised;

/* The file open as "fd" has a budget of its own for this. 0: dbProcess, what takes and releases a lock set, both functions of puts,
 * and pdbbase were found, and more perhaps; -1: not all of these. In a job (foreign.h). */
int ebpfMonRecognise(int fd, ebpfMonRecognised *found);

#endif
