/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the functions of EPICS Base in a program without symbols, by texts that only they use, and by the calls between
 * them (documentation/develop/processes.md). A function is believed only if two ways lead to it. A function that is not
 * found, or for which there are two candidates, is left out.
 */
#ifndef EBPFMON_RECOGNISE_H
#define EBPFMON_RECOGNISE_H

#include "code/binary.h"

typedef struct {
    ebpfMonElfSymbol fn[ebpfMonFnCount];
    ebpfMonElfSymbol var[ebpfMonVarCount];
    int isOldNotify; /* fn[ebpfMonFnProcessNotify] is dbPutNotify of EPICS 3.14 */
} ebpfMonRecognised;

/* Searches the file open as "fd", with a budget of its own. 0: dbProcess, dbScanLock, dbScanUnlock, dbPut, dbPutField
 * and pdbbase were found, and perhaps more; -1: not all of these. Call it in a job (foreign.h). */
int ebpfMonRecognise(int fd, ebpfMonRecognised *found);

#endif
