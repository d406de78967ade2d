/* SPDX-License-Identifier: BSD-3-Clause */
/* What of EPICS one mapped file contains; private to code/. */
#ifndef EBPFMON_IMAGEFILE_H
#define EBPFMON_IMAGEFILE_H

#include "code/binary.h"
#include "code/symbolFile.h"

/* Reads the file open as "fd"; *known is NULL if it contains nothing of EPICS. "places": where the symbols of a
 * stripped program may be. 0, or errno: no memory, or as ebpfMonElfBytesIsOver. Call it in a job (foreign.h). */
int ebpfMonImageFileRead(int fd, const ebpfMonSymbolPlaces *places, ebpfMonKnown **known);

void ebpfMonImageFileFree(ebpfMonKnown *known); /* NULL does no harm */

#endif
