/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The files that processes have mapped, and what of EPICS each of them contains; private to code/, for image.c.
 *
 * An inode number is used again soon after a file was deleted. So a file is the same one only if its time and size are also
 * the same. Files of EPICS are checked at every look, because a probe that was set by another file's symbols would break the
 * process. The hundreds of other files are checked when their path changes, or after 10 s.
 */
#ifndef EBPFMON_IMAGECACHE_H
#define EBPFMON_IMAGECACHE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "code/elfFile.h"
#include "code/image.h"

/* The variables that are read in a process: index into ebpfMonKnown.var. */
enum { ebpfMonVarBase, ebpfMonVarInterrupt, ebpfMonVarAs, ebpfMonVarRelease, ebpfMonVarClients,
       ebpfMonVarBreakpoints, ebpfMonVarCount };

/* A file that holds something of EPICS. */
typedef struct ebpfMonKnown {
    struct ebpfMonKnown *next;
    ebpfMonBinary binary;
    int      isProgram;    /* an executable, whose variables go before a library's */
    unsigned nSegments;
    ebpfMonElfSegment segment[EBPFMON_ELF_SEGMENTS];
    ebpfMonElfSymbol var[ebpfMonVarCount];
} ebpfMonKnown;

/* One executable mapping of a file. */
typedef struct {
    uint64_t start, end, offset;
    dev_t    dev;
    ino_t    ino;
    const char *path;
} ebpfMonMapping;

/* Takes a line of /proc/PID/maps apart, in place; 0: no file's code. */
int ebpfMonMappingParse(char *line, ebpfMonMapping *map);

/* What the loader added to the addresses of the file, from the code segment that the mapping is part of. 0, or -1. */
int ebpfMonMappingBias(const ebpfMonElfSegment *segment, unsigned segments, const ebpfMonMapping *map, uint64_t *bias);

/* What the mapped file holds, *known is NULL when nothing of interest; a new or changed file is read.
 * 0, or -1 when it cannot be had (errno). */
int ebpfMonImageCacheFind(ebpfMonImageCache *cache, pid_t pid, const ebpfMonMapping *map,
    const ebpfMonKnown **known);

/* A path that opens the mapped file as long as the process lives. 0, or -1 (errno). */
int ebpfMonImageCacheFindPath(pid_t pid, const ebpfMonMapping *map, char *path, size_t size);

#endif
