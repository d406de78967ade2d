/* SPDX-License-Identifier: BSD-3-Clause */
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
#include "code/binary.h"
#include "code/image.h"
#include "code/imageFile.h"
#include "common/clock.h"
#include "common/hash.h"
#include "host/foreign.h"
#include "host/procRead.h"

/* --- mapped files --- */

/* A file is opened and read when it is met for the first time, then looked at by stat. Each look is a
 * job that can be abandoned (foreign.h). */

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

/* --- processes --- */

/*
 * A look at a process costs one pass over its /proc/PID/maps, and a stat for each file in it
 * that holds something of EPICS.
 */

#define PATH_ROOM    sizeof(((ebpfMonImage *)0)->openPath) /* of all paths of an image */
#define MAX_PARTS    128u      /* files of interest in one process */
#define MAPS_MAX     (16u << 20) /* bytes: vm.max_map_count mappings with long names */
#define MAPS_SECONDS 0.5
#define TIME_MAX     (3 * EBPFMON_SECOND_NS) /* for all files of one process, without waiting for a CPU */

typedef struct {
    const ebpfMonKnown *known;
    uint64_t bias;
} Part;

/* The live copy of a variable. A program that is not position-independent holds a copy of its own of a
 * library's variable, to which the loader binds everyone (copy relocation). */
static const Part *findVar(const Part *parts, unsigned nParts, const Part *core, int var)
{
    const Part *best = core->known->var[var].vaddr ? core : NULL;

    for (const Part *part = parts; part < parts + nParts; part++)
        if (part->known->var[var].vaddr && (!best || (part->known->isProgram && !best->known->isProgram)))
            best = part;
    return best;
}

/* The search through the mappings of one process. */
typedef struct {
    ebpfMonImageCache *cache;
    pid_t pid;
    ebpfMonImage *image;
    Part  parts[MAX_PARTS];
    unsigned nParts;
    const Part *core;
    int   isEmulator; /* its program is one of QEMU's for programs of another machine */
    int   why;   /* errno: a file that could not be had */
} Search;

static void fillImage(const Part *parts, unsigned nParts, const Part *core, ebpfMonImage *image)
{
    uint64_t *const address[ebpfMonVarCount] = {
        &image->pdbbase, &image->interruptAccept, &image->asActive, &image->releaseVersion, &image->clientQ,
        &image->breakpoints,
    };

    image->core = &core->known->binary;
    for (int var = 0; var < ebpfMonVarCount; var++) {
        const Part *part = findVar(parts, nParts, core, var);

        if (!part)
            continue;
        *address[var] = part->bias + part->known->var[var].vaddr;
        if (var == ebpfMonVarRelease)
            image->releaseIsPointer = part->known->var[var].size == sizeof(void *);
    }
}

/* Adds the mapped file to the parts if it is of interest and not yet among them. 1: added. */
static int addPart(ebpfMonImageCache *cache, pid_t pid, const ebpfMonMapping *map, Part *parts,
    unsigned nParts, int *why)
{
    Part *part = &parts[nParts];

    if (ebpfMonImageCacheFind(cache, pid, map, &part->known)) {
        if (errno != ENOENT) /* else unmapped since */
            *why = errno;
        return 0;
    }
    if (!part->known ||
        ebpfMonMappingBias(part->known->segment, part->known->nSegments, map, &part->bias))
        return 0;
    for (unsigned i = 0; i < nParts; i++)
        if (parts[i].known == part->known)
            return 0;
    return 1;
}

/* A file does not answer, or there is no time or room for it. Without it the image would be wrong: it may have the copy
 * of pdbbase that the process uses. */
static int isForNow(int err)
{
    return err == ETIMEDOUT || err == EAGAIN || err == ENOSPC;
}

int ebpfMonImageIsRefused(int err)
{
    return err == ETIMEDOUT || err == EAGAIN || err == EFBIG || err == ENOTSUP;
}

const char *ebpfMonImageRefusal(int err)
{
    switch (err) {
    case EFBIG: return "the tables of a program file that it has mapped are larger than an IOC's can be";
    case ENOTSUP: return "its program file is in a FUSE file system, where a probe could stop this host";
    case EAGAIN: return "this host has no time to look at it";
    default: return "its memory, or a file that it has mapped, does not answer";
    }
}

static void useAsCore(Search *s, const Part *part, const ebpfMonMapping *map)
{
    s->core = part;
    if (ebpfMonImageCacheFindPath(s->pid, map, s->image->openPath, sizeof(s->image->openPath)))
        s->image->openPath[0] = 0;
}

/* The first file that has the function "fn" is "*other"; "path" opens it. */
static void useAsOther(Search *s, const Part *part, const ebpfMonMapping *map, ebpfMonFn fn,
                       const ebpfMonBinary **other, char path[PATH_ROOM])
{
    if (!*other && part->known->binary.site[fn].cls != ebpfMonSiteNone &&
        !ebpfMonImageCacheFindPath(s->pid, map, path, PATH_ROOM))
        *other = &part->known->binary;
}

/* Takes one line of the list of mappings. Nonzero: that is enough. */
static int addLine(void *arg, char *line)
{
    Search *s = arg;
    ebpfMonMapping map;
    const Part *part;

    if (s->nParts == MAX_PARTS || !ebpfMonMappingParse(line, &map))
        return 0;
    s->isEmulator |= strstr(map.path, "/qemu-") != NULL;
    if (!addPart(s->cache, s->pid, &map, s->parts, s->nParts, &s->why))
        return isForNow(s->why);
    part = &s->parts[s->nParts++];
    useAsOther(s, part, &map, ebpfMonFnRingPop, &s->image->com, s->image->comPath);
    if (!part->known->binary.isIoc)
        useAsOther(s, part, &map, ebpfMonFnCheckPut, &s->image->server, s->image->serverPath);
    useAsOther(s, part, &map, ebpfMonFnServe, &s->image->pvxs, s->image->pvxsPath);
    if ((!s->core && part->known->binary.isNameless) ||
        (part->known->binary.isIoc && (!s->core || s->core->known->binary.isNameless)))
        useAsCore(s, part, &map);
    return 0;
}

/* The same for a process in an emulator: its code is mapped as data. Nonzero: nothing more is needed. */
static int addEmulatedLine(void *arg, char *line)
{
    Search *s = arg;
    ebpfMonMapping map;
    int isCode;
    Part *part = &s->parts[s->nParts];

    if (s->nParts == MAX_PARTS || !ebpfMonMappingParseAny(line, &map, &isCode) || isCode)
        return 0;
    if (!addPart(s->cache, s->pid, &map, s->parts, s->nParts, &s->why))
        return isForNow(s->why);
    if (!part->known->binary.foreign)
        return 0;
    s->nParts++;
    if (part->known->binary.isNameless)
        useAsCore(s, part, &map);
    return s->core != NULL;
}

static uint64_t findTimeSpent(void)
{
    return ebpfMonForeignGetCost() + ebpfMonClockThreadCpu();
}

/* Calls "use" with each line of the list of mappings, until it returns nonzero. 0; errno: the list cannot be read, or
 * it took too long. */
static int visitLines(pid_t pid, int (*use)(void *arg, char *line), void *arg)
{
    uint64_t begin = ebpfMonClockMonotonic(), spent = findTimeSpent();
    char name[32], *maps, *next;
    int err = 0;

    snprintf(name, sizeof(name), "/proc/%d/maps", (int)pid);
    maps = ebpfMonForeignReadAll(pid, name, MAPS_SECONDS, MAPS_MAX);
    if (!maps)
        return errno == ENOENT ? ESRCH : errno;
    for (char *line = maps; *line; line = next) {
        next = line + strcspn(line, "\n");
        next += *next == '\n';
        if (next > line && next[-1] == '\n')
            next[-1] = 0;
        if (use(arg, line))
            break;
        if (ebpfMonClockMonotonic() - begin > TIME_MAX && findTimeSpent() - spent > TIME_MAX) {
            err = ETIMEDOUT;
            break;
        }
    }
    free(maps);
    return err;
}

int ebpfMonImageRead(ebpfMonImageCache *cache, pid_t pid, ebpfMonImage *image)
{
    Search s = { .cache = cache, .pid = pid, .image = image };
    int err;

    memset(image, 0, sizeof(*image));
    image->program = ebpfMonProcProgram(pid);
    err = visitLines(pid, addLine, &s);
    if (!err && !s.core && s.isEmulator)
        err = visitLines(pid, addEmulatedLine, &s);
    if (err)
        s.why = err;
    /* A file that cannot be used does not prevent the use of the others; one that cannot be used now does. */
    if (!s.core || err || isForNow(s.why)) {
        errno = s.why;
        return s.why ? -1 : 1;
    }
    fillImage(s.parts, s.nParts, s.core, image);
    return 0;
}

typedef struct {
    ebpfMonImageCache *cache;
    pid_t pid;
    ebpfMonImageCallers *callers;
    int   why;   /* errno: a file could not be read now, and perhaps later */
} CallerSearch;

/* A file that is not as an IOC's, or not for us, stays so. */
static int isPassing(int err)
{
    return isForNow(err) || err == ENOMEM || err == EMFILE || err == ENFILE || err == ESRCH;
}

/* Not all callers are known. */
static int giveUp(CallerSearch *s, int err)
{
    s->callers->complete = 0;
    s->why = isPassing(err) ? err : 0;
    return 1;
}

/* Nonzero: a program with this in it can call any function by its name (Python's ctypes). */
static int callsByName(const char *path)
{
    const char *file = strrchr(path, '/') + 1;

    return strstr(file, "python") || strstr(file, "ffi") || strstr(file, "ctypes");
}

static int addCaller(void *arg, char *line)
{
    CallerSearch *s = arg;
    ebpfMonImageCallers *callers = s->callers;
    const ebpfMonKnown *known;
    ebpfMonMapping map;

    if (!ebpfMonMappingParse(line, &map))
        return 0;
    if (callsByName(map.path))
        return giveUp(s, 0);
    if (ebpfMonImageCacheFind(s->cache, s->pid, &map, &known) && errno != ENOENT)
        return giveUp(s, errno);
    if (known && known->binary.scansNow)
        callers->scansNow = 1;
    if (!known || !known->binary.usesLocks)
        return 0;
    for (unsigned i = 0; i < callers->count; i++)
        if (callers->file[i].binary == &known->binary)
            return 0;
    if (callers->count == EBPFMON_CALLERS_MAX || !known->binary.calls || !known->binary.calls->complete)
        return giveUp(s, 0);
    if (ebpfMonImageCacheFindPath(s->pid, &map, callers->file[callers->count].path, sizeof(callers->file[0].path)))
        return giveUp(s, errno);
    callers->file[callers->count++].binary = &known->binary;
    return 0;
}

int ebpfMonImageReadCallers(ebpfMonImageCache *cache, pid_t pid, ebpfMonImageCallers *callers)
{
    CallerSearch s = { cache, pid, callers, 0 };
    int err;

    callers->count = 0;
    callers->complete = 1;
    callers->scansNow = 0;
    err = visitLines(pid, addCaller, &s);
    if (err)
        giveUp(&s, err);
    if (!callers->count)
        callers->complete = 0;
    errno = s.why;
    return s.why ? -1 : 0;
}

int ebpfMonImageCallersAreSame(const ebpfMonImageCallers *a, const ebpfMonImageCallers *b)
{
    if (!a->complete || !b->complete)
        return a->complete == b->complete;
    if (a->count != b->count)
        return 0;
    for (unsigned i = 0; i < a->count; i++)
        if (a->file[i].binary != b->file[i].binary)
            return 0;
    return 1;
}
