/* SPDX-License-Identifier: BSD-3-Clause */
/* What of EPICS one mapped file contains; private to code/. */
#ifndef EBPFMON_IMAGEFILE_H
#define EBPFMON_IMAGEFILE_H

#include "code/binary.h"
#include "code/symbolFile.h"

/* --- a program without symbols ---
 *
 * Finds the functions of EPICS Base in a program without symbols, by texts that only they use, and by the calls between
 * them (documentation/develop/processes.md). A function is believed only if two ways lead to it. A function that is not
 * found, or for which there are two candidates, is left out.
 */

typedef struct {
    ebpfMonElfSymbol fn[ebpfMonFnCount];
    ebpfMonElfSymbol var[ebpfMonVarCount];
    int isOldNotify; /* fn[ebpfMonFnProcessNotify] is dbPutNotify of EPICS 3.14 */
} ebpfMonRecognised;

/* Searches the file open as "fd", with a budget of its own. 0: dbProcess, dbScanLock, dbScanUnlock, dbPut, dbPutField
 * and pdbbase were found, and perhaps more; -1: not all of these. Call it in a job (foreign.h). */
int ebpfMonRecognise(int fd, ebpfMonRecognised *found);

/* --- a file --- */

/* Reads the file open as "fd"; *known is NULL if it contains nothing of EPICS. "places": where the symbols of a
 * stripped program may be. 0, or errno: no memory, or as ebpfMonElfBytesIsOver. Call it in a job (foreign.h). */
int ebpfMonImageFileRead(int fd, const ebpfMonSymbolPlaces *places, ebpfMonKnown **known);

void ebpfMonImageFileFree(ebpfMonKnown *known); /* NULL does no harm */

#endif
