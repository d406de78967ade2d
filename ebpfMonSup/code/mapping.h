/* SPDX-License-Identifier: BSD-3-Clause */
/* The lines of /proc/PID/maps: which files a process has mapped, and where. */
#ifndef EBPFMON_MAPPING_H
#define EBPFMON_MAPPING_H

#include <stdint.h>
#include <sys/stat.h>
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

/* Finds a path that opens the mapped file: its link in /proc/PID/map_files, which only CAP_SYS_ADMIN lets us use; else
 * its name below the root of the process, or its program, if that has the same inode. 0, and *st is of the file; or -1
 * with errno (ENAMETOOLONG: a path does not fit into "size"). A file system may never answer, so call it in a job
 * (foreign.h). */
int ebpfMonMappingFindPath(pid_t pid, const ebpfMonMapping *map, char *path, size_t size, struct stat *st);

/* What the loader added to the addresses of the file, from the code segment that the mapping is part of. 0, or -1. */
int ebpfMonMappingBias(const ebpfMonElfSegment *segment, unsigned segments, const ebpfMonMapping *map, uint64_t *bias);

#endif
