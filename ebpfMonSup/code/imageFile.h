/* SPDX-License-Identifier: BSD-3-Clause */
/* What one file that a process has mapped holds of EPICS; private to code/. */
#ifndef EBPFMON_IMAGEFILE_H
#define EBPFMON_IMAGEFILE_H

#include "code/imageCache.h"
#include "code/symbolFile.h"

/* Reads the file open as "fd"; *known is NULL when it holds nothing of interest. "places": where the symbols of a stripped
 * program may be. 0, or errno: no memory, or EFBIG. In a job (foreign.h). */
int ebpfMonImageFileRead(int fd, const ebpfMonSymbolPlaces *places, ebpfMonKnown **known);

void ebpfMonImageFileFree(ebpfMonKnown *known); /* NULL does no harm */

#endif
