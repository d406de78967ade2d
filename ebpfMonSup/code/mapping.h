/* SPDX-License-Identifier: BSD-3-Clause */
/* The lines of /proc/PID/maps: which files a process has mapped, and where. */
#ifndef EBPFMON_MAPPING_H
#define EBPFMON_MAPPING_H

#include <stdint.h>
#include <stdio.h>
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

/* The code of files that a process has mapped. The buffer is large enough for the line of the longest path. */
typedef struct {
    FILE    *maps;
    unsigned lines, found;
    char     line[4352];
} ebpfMonMappings;

/* 0, or -1 with errno. The process may never answer, so call these functions in a job (foreign.h). */
int ebpfMonMappingsOpen(ebpfMonMappings *mappings, pid_t pid);
/* Nonzero: *map is the next one, until the next call. 0: there is none, or there are too many to be believed. Stacks of
 * threads and their memory come before the libraries, so a process with many threads has thousands of other lines. */
int ebpfMonMappingsReadNext(ebpfMonMappings *mappings, ebpfMonMapping *map);
void ebpfMonMappingsClose(ebpfMonMappings *mappings);

/* Finds a path that opens the mapped file: its link in /proc/PID/map_files, which only CAP_SYS_ADMIN lets us use; else
 * its name below the root of the process, or its program, if that has the same inode. 0, and *st is of the file; or -1
 * with errno (ENAMETOOLONG: a path does not fit into "size"). A file system may never answer, so call it in a job
 * (foreign.h). */
int ebpfMonMappingFindPath(pid_t pid, const ebpfMonMapping *map, char *path, size_t size, struct stat *st);

/* What the loader added to the addresses of the file, from the code segment that the mapping is part of. 0, or -1. */
int ebpfMonMappingBias(const ebpfMonElfSegment *segment, unsigned segments, const ebpfMonMapping *map, uint64_t *bias);

#endif
