/* SPDX-License-Identifier: BSD-3-Clause */
/* See imageCache.h. A file is opened and read when it is met for the first time, then looked at by stat. Each look is a
 * job that can be abandoned (foreign.h). */
#include <elf.h>
#include <errno.h>
#include <linux/magic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "code/imageCache.h"
#include "code/imageFile.h"
#include "common/clock.h"
#include "common/hash.h"
#include "host/foreign.h"

#define BUCKETS      1024u
#define MAX_OTHERS   8192u     /* files known to be of no interest; beyond it they are all forgotten */
#define LOOK_SECONDS 2.0       /* for one file */
#define CHECK_AFTER  (10 * EBPFMON_SECOND_NS)
#define SLOW_STEPS   6         /* a file that took too much CPU time, on a busy host perhaps, is read again after 10 s,
                                * … 640 s */

/* Any file that was seen. */
typedef struct Seen {
    struct Seen *next;
    dev_t    dev;
    ino_t    ino;
    off_t    size;
    struct timespec modified;
    uint64_t checked;      /* monotonic ns */
    uint32_t pathHash;
    ebpfMonKnown *known;   /* NULL: of no interest */
    int      failed;       /* why it is not used, as errno: EFBIG, ENOTSUP; 0: it is */
    int      slow;         /* how often it took too much CPU time, up to SLOW_STEPS */
    uint64_t readAgain;    /* monotonic ns: then it is read again, for that reason; 0: it is not */
} Seen;

struct ebpfMonImageCache {
    Seen    *bucket[BUCKETS];
    ebpfMonKnown *known;   /* all of them, also those whose file was replaced */
    unsigned nOthers, nKnown;
    unsigned crowdedAt;    /* so many known files, and unused ones should be forgotten */
    int      isRefused;    /* there was no room for a file since then */
    int      isFull;
    ebpfMonSymbolPlaces symbols;
};

ebpfMonImageCache *ebpfMonImageCacheNew(void)
{
    ebpfMonImageCache *cache = calloc(1, sizeof(*cache));

    if (cache) {
        cache->crowdedAt = EBPFMON_KNOWN_MAX / 2;
        ebpfMonSymbolPlacesInit(&cache->symbols);
    }
    return cache;
}

static int isOther(const Seen *seen)
{
    return !seen->known;
}

static int isUnused(const Seen *seen)
{
    return seen->known && !seen->known->isKept;
}

static void forgetSeen(ebpfMonImageCache *cache, int (*isForgotten)(const Seen *seen))
{
    for (unsigned i = 0; i < BUCKETS; i++) {
        for (Seen **at = &cache->bucket[i]; *at; ) {
            Seen *seen = *at;

            if (!isForgotten(seen)) {
                at = &seen->next;
            } else {
                *at = seen->next;
                free(seen);
            }
        }
    }
}

static void forgetOthers(ebpfMonImageCache *cache)
{
    forgetSeen(cache, isOther);
    cache->nOthers = 0;
}

void ebpfMonImageCacheFree(ebpfMonImageCache *cache)
{
    if (!cache)
        return;
    for (unsigned i = 0; i < BUCKETS; i++)
        for (Seen *seen = cache->bucket[i]; seen; seen = seen->next)
            seen->known = NULL;
    forgetOthers(cache);
    while (cache->known) {
        ebpfMonKnown *known = cache->known;

        cache->known = known->next;
        ebpfMonImageFileFree(known);
    }
    free(cache);
}

int ebpfMonImageCacheIsCrowded(const ebpfMonImageCache *cache)
{
    return cache->nKnown >= cache->crowdedAt || cache->isFull;
}

void ebpfMonImageCacheKeep(const ebpfMonBinary *binary)
{
    if (binary)
        ((ebpfMonKnown *)((uintptr_t)binary - offsetof(ebpfMonKnown, binary)))->isKept = 1;
}

void ebpfMonImageCacheForget(ebpfMonImageCache *cache)
{
    forgetSeen(cache, isUnused);
    for (ebpfMonKnown **at = &cache->known; *at; ) {
        ebpfMonKnown *known = *at;

        if (known->isKept) {
            known->isKept = 0;
            at = &known->next;
        } else {
            *at = known->next;
            ebpfMonImageFileFree(known);
            cache->nKnown--;
        }
    }
    cache->crowdedAt = (cache->nKnown + EBPFMON_KNOWN_MAX) / 2;
    cache->isFull = (cache->isFull || cache->isRefused) && cache->nKnown > EBPFMON_KNOWN_MAX / 4 * 3;
    cache->isRefused = 0;
}

int ebpfMonImageCacheIsFull(const ebpfMonImageCache *cache)
{
    return cache->isFull;
}

void ebpfMonImageEach(ebpfMonImageCache *cache, void (*each)(void *arg, const ebpfMonBinary *b), void *arg)
{
    for (const ebpfMonKnown *known = cache->known; known; known = known->next)
        if (known->binary.isIoc)
            each(arg, &known->binary);
}

/* A look at a mapped file, as a job: a file system may never answer. What is known of the file comes from its cache. */
typedef struct {
    pid_t pid;
    ebpfMonMapping map;        /* its path is "name" */
    char  name[4096];
    ebpfMonSymbolPlaces symbols;
    int   isSeen;              /* size and modified are those of the last time */
    off_t size;
    struct timespec modified;
    /* the result */
    int   err;                 /* errno, 0: it could be looked at */
    int   isRead;              /* it is new or changed, and "known" is what it holds */
    char  path[4352];
    struct stat st;
    ebpfMonKnown *known;       /* NULL: nothing of interest */
} fileLook;

static int isSame(const fileLook *look)
{
    return look->isSeen && look->size == look->st.st_size && look->modified.tv_sec == look->st.st_mtim.tv_sec
        && look->modified.tv_nsec == look->st.st_mtim.tv_nsec;
}

/* 0 or errno. A file of a FUSE file system is not for us: to set a probe, the kernel reads its page while it holds a
 * lock that each fork on this host needs (dup_mmap_sem, kernel/events/uprobes.c), and a user's program decides when the
 * page comes. */
static int openAndRead(fileLook *look)
{
    int fd = ebpfMonForeignOpenFile(look->path), err;
    struct statfs fs;

    if (fd < 0)
        return errno;
    if (fstat(fd, &look->st) || fstatfs(fd, &fs)) {
        err = errno;
        close(fd);
        return err;
    }
    err = ebpfMonImageFileRead(fd, &look->symbols, &look->known);
    close(fd);
    if (!err && look->known && fs.f_type == FUSE_SUPER_MAGIC)
        err = ENOTSUP;
    look->isRead = 1;
    return err;
}

static void lookAtFile(void *data)
{
    fileLook *look = data;

    if (ebpfMonMappingFindPath(look->pid, &look->map, look->path, sizeof(look->path), &look->st))
        look->err = errno;
    else if (!isSame(look))
        look->err = openAndRead(look);
}

static void dropLook(void *data)
{
    fileLook *look = data;

    ebpfMonImageFileFree(look->known);
    free(look);
}

/* Nonzero: it is known only that it is an IOC. The files with its symbols may come later. */
static int isNameless(const Seen *seen)
{
    return seen->known && seen->known->binary.isNameless;
}

/* The look, which the caller drops. NULL with errno. */
static fileLook *lookAt(const ebpfMonImageCache *cache, pid_t pid, const ebpfMonMapping *map, const Seen *seen)
{
    static const ebpfMonForeignJob job = { lookAtFile, dropLook };
    fileLook *look = calloc(1, sizeof(*look));

    if (!look)
        return NULL;
    look->pid = pid;
    look->map = *map;
    snprintf(look->name, sizeof(look->name), "%s", map->path);
    look->map.path = look->name;
    look->symbols = cache->symbols;
    look->symbols.pid = pid;
    snprintf(look->symbols.program, sizeof(look->symbols.program), "%s", map->path);
    if (seen) {
        look->isSeen = seen->size >= 0 && !isNameless(seen) &&
                       !(seen->readAgain && ebpfMonClockMonotonic() >= seen->readAgain);
        look->size = seen->size;
        look->modified = seen->modified;
    }
    return ebpfMonForeignRun(pid, LOOK_SECONDS, &job, look) ? NULL : look;
}

/* Notes in "seen" what was read. 0, or -1 with errno. */
static int noteRead(ebpfMonImageCache *cache, const ebpfMonMapping *map, fileLook *look, Seen *seen)
{
    ebpfMonKnown *known = look->err ? NULL : look->known;

    if (known && known->binary.isNameless && isNameless(seen)) { /* nothing new */
        seen->size = look->st.st_size;
        seen->modified = look->st.st_mtim;
        return 0;
    }
    if (known && cache->nKnown >= EBPFMON_KNOWN_MAX) {
        cache->isRefused = 1;
        errno = ENOSPC;
        return -1;
    }
    if (known) {
        look->known = NULL; /* the cache has it now */
        known->binary.dev = map->dev;
        known->binary.ino = map->ino;
        snprintf(known->binary.path, sizeof(known->binary.path), "%s", map->path);
        known->next = cache->known;
        cache->known = known;
        cache->nKnown++;
    }
    if (!seen->known)
        cache->nOthers--;
    if (!known)
        cache->nOthers++;
    seen->known = known;
    seen->size = look->st.st_size;
    seen->modified = look->st.st_mtim;
    return 0;
}

/* A place for a file that was not seen before. NULL without memory. */
static Seen *addSeen(ebpfMonImageCache *cache, const ebpfMonMapping *map, Seen **bucket)
{
    Seen *seen;

    if (cache->nOthers >= MAX_OTHERS)
        forgetOthers(cache);
    seen = calloc(1, sizeof(*seen));
    if (!seen)
        return NULL;
    seen->dev = map->dev;
    seen->ino = map->ino;
    seen->size = -1; /* of no file: it is read next */
    seen->next = *bucket;
    *bucket = seen;
    cache->nOthers++;
    return seen;
}

static void noteSlowness(Seen *seen, int isSlow)
{
    seen->readAgain = isSlow ? ebpfMonClockMonotonic() + (CHECK_AFTER << seen->slow) : 0;
    if (isSlow && seen->slow < SLOW_STEPS)
        seen->slow++;
}

/* Updates what is known about the file. 0, or -1 with errno: the file cannot be opened, or cannot be read
 * completely. */
static int updateFile(ebpfMonImageCache *cache, pid_t pid, const ebpfMonMapping *map, Seen **bucket, Seen **seen)
{
    fileLook *look = lookAt(cache, pid, map, *seen);
    int err;

    if (!look)
        return -1;
    err = look->err;
    if (!err || look->isRead) {
        if (!*seen)
            *seen = addSeen(cache, map, bucket);
        err = !*seen ? ENOMEM : look->isRead && noteRead(cache, map, look, *seen) ? errno : err;
    }
    if (*seen && look->isRead) {
        noteSlowness(*seen, err == ETIME);
        err = err == ETIME ? EFBIG : err;
        (*seen)->failed = err;
        if (err != 0 && err != EFBIG && err != ENOTSUP)
            (*seen)->size = -1; /* it is read again */
    }
    dropLook(look);
    errno = err;
    return err ? -1 : 0;
}

int ebpfMonImageCacheFind(ebpfMonImageCache *cache, pid_t pid, const ebpfMonMapping *map,
    const ebpfMonKnown **known)
{
    Seen **bucket = &cache->bucket[(map->ino * 31u + map->dev) % BUCKETS], *seen = *bucket;
    uint32_t pathHash = ebpfMonHashFnv32(EBPFMON_FNV32_BEGIN, map->path, strlen(map->path));
    uint64_t now = ebpfMonClockMonotonic();

    *known = NULL;
    while (seen && (seen->ino != map->ino || seen->dev != map->dev))
        seen = seen->next;
    if (!seen || (seen->known && !isNameless(seen)) || seen->pathHash != pathHash ||
        now - seen->checked >= CHECK_AFTER) {
        if (updateFile(cache, pid, map, bucket, &seen))
            return -1;
        seen->pathHash = pathHash;
        seen->checked = now;
    }
    if (seen->failed) { /* a file that does not change does not become smaller */
        errno = seen->failed;
        return -1;
    }
    *known = seen->known;
    return 0;
}

typedef struct {
    pid_t pid;
    ebpfMonMapping map;        /* its path is "name" */
    char  name[4096], path[4352];
    int   err;
} pathLook;

static void lookForPath(void *data)
{
    pathLook *look = data;
    struct stat st;

    look->err = ebpfMonMappingFindPath(look->pid, &look->map, look->path, sizeof(look->path), &st) ? errno : 0;
}

int ebpfMonImageCacheFindPath(pid_t pid, const ebpfMonMapping *map, char *path, size_t size)
{
    static const ebpfMonForeignJob job = { lookForPath, free };
    pathLook *look = calloc(1, sizeof(*look));
    int err;

    if (!look)
        return -1;
    look->pid = pid;
    look->map = *map;
    snprintf(look->name, sizeof(look->name), "%s", map->path);
    look->map.path = look->name;
    if (ebpfMonForeignRun(pid, LOOK_SECONDS, &job, look))
        return -1;
    err = look->err ? look->err : strlen(look->path) >= size ? ENAMETOOLONG : 0;
    if (!err)
        memcpy(path, look->path, strlen(look->path) + 1);
    free(look);
    errno = err;
    return err ? -1 : 0;
}
