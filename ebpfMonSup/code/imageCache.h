/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The files that processes have mapped, and what of EPICS each of them contains, for image.c. One thread at a time.
 *
 * An inode number is used again soon after a file was deleted. So a file is the same one only if its time and size are
 * also the same. Files of EPICS are checked at every look, because a probe that was set by another file's symbols would
 * break the process. The hundreds of other files are checked when their path changes, or after 10 s.
 *
 * There is room for EBPFMON_KNOWN_MAX files of EPICS, replaced ones included. When half of it is used, the caller lets
 * the cache forget files that no IOC uses any more.
 */
#ifndef EBPFMON_IMAGECACHE_H
#define EBPFMON_IMAGECACHE_H

#include <stddef.h>
#include <sys/types.h>
#include "code/binary.h"
#include "code/mapping.h"

#define EBPFMON_KNOWN_MAX 2048u

typedef struct ebpfMonImageCache ebpfMonImageCache;

ebpfMonImageCache *ebpfMonImageCacheNew(void);
void ebpfMonImageCacheFree(ebpfMonImageCache *cache);

/* Binaries known, for reports: calls "each" for every one that isIoc. */
void ebpfMonImageEach(ebpfMonImageCache *cache, void (*each)(void *arg, const ebpfMonBinary *b), void *arg);

/* What the mapped file holds, *known is NULL when nothing of interest; a new or changed file is read.
 * 0, or -1 when it cannot be had (errno). */
int ebpfMonImageCacheFind(ebpfMonImageCache *cache, pid_t pid, const ebpfMonMapping *map,
    const ebpfMonKnown **known);

/* Nonzero: files that nobody uses should be forgotten. */
int ebpfMonImageCacheIsCrowded(const ebpfMonImageCache *cache);

/* This binary of the cache is used, so the next call of Forget leaves it. NULL does no harm. */
void ebpfMonImageCacheKeep(const ebpfMonBinary *binary);

/* Forgets all files of EPICS but those for which Keep was called since the last time. Nobody may have a pointer to the
 * others any more. */
void ebpfMonImageCacheForget(ebpfMonImageCache *cache);

/* Nonzero: files that are used take most of the room, and there was none for another one. As Forget found it. */
int ebpfMonImageCacheIsFull(const ebpfMonImageCache *cache);

/* A path that opens the mapped file as long as the process lives. 0, or -1 (errno). */
int ebpfMonImageCacheFindPath(pid_t pid, const ebpfMonMapping *map, char *path, size_t size);

#endif
