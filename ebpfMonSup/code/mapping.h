/* SPDX-License-Identifier: BSD-3-Clause */
/* The lines of /proc/PID/maps: which files a process has mapped, and where. */
#ifndef EBPFMON_MAPPING_H
#define EBPFMON_MAPPING_H

#include <stdint.h>
#include <sys/types.h>
#include "code/elfFile.h"

/* One mapping of a file. */
typedef struct {
    uint64_t start, end, offset;
    dev_t    dev;
    ino_t    ino;
    const char *path;
} ebpfMonMapping;

/* Takes a line of /proc/PID/maps apart, in place; 0: no file's code. */
int ebpfMonMappingParse(char *line, ebpfMonMapping *map);
/* The same for each mapping of a file. *isCode: the kernel runs it; else it only lets it be read. */
int ebpfMonMappingParseAny(char *line, ebpfMonMapping *map, int *isCode);

/* What the loader added to the addresses of the file, from the code segment that the mapping is part of. 0, or -1. */
int ebpfMonMappingBias(const ebpfMonElfSegment *segment, unsigned segments, const ebpfMonMapping *map, uint64_t *bias);

#endif
