/* SPDX-License-Identifier: BSD-3-Clause */
/* See imageCache.h. A file is opened and read when it is met for the first time, then looked at by stat. Each look is a job
 * that can be abandoned (foreign.h). */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "common/clock.h"
#include "common/hash.h"
#include "ioc/foreign.h"
#include "ioc/imageCache.h"

#define BUCKETS      1024u
#define MAX_OTHERS   8192u     /* files known to be of no interest; beyond it they are all forgotten */
#define MAX_KNOWN    2048u     /* files of interest, kept because watched IOCs point to them */
#define MAX_FUNCTION 4096u     /* bytes of code read per function, to see its branches */
#define LOOK_SECONDS 2.0       /* for one file */
#define CHECK_AFTER  (10 * EBPFMON_SECOND_NS)
#define OLD_NAMES    2
#define SCAN_NOW     ((int)ebpfMonFnCount + (int)ebpfMonVarCount + OLD_NAMES)
#define NAMES        (SCAN_NOW + 1)

static void freeKnown(ebpfMonKnown *known)
{
    if (known)
        free((void *)known->binary.calls);
    free(known);
}

const char *const ebpfMonFnNames[ebpfMonFnCount] = {
    "dbPut", "dbPutField", "dbProcessNotify", "rsrvCheckPut", "camessage", "dbScanLock", "dbScanUnlock",
    "dbScanUnlockMany", "dbCaPutLinkCallback", "recGblFwdLink", "dbProcess",
    "callbackRequest", "callbackRequestDelayed", "scanOnceCallback", "epicsRingPointerPop",
};

/* What does the same in older releases, with the same first argument. */
static const struct { ebpfMonFn fn; const char *name; } oldNames[OLD_NAMES] = {
    { ebpfMonFnProcessNotify, "dbPutNotify" }, { ebpfMonFnScanOnce, "scanOnce" },
};

static const unsigned fnArgs[ebpfMonFnCount] = {
    [ebpfMonFnPut] = EBPFMON_ARG1 | EBPFMON_ARG2 | EBPFMON_ARG3 | EBPFMON_ARG4,
    [ebpfMonFnPutField] = EBPFMON_ARG1 | EBPFMON_ARG2 | EBPFMON_ARG3 | EBPFMON_ARG4,
    [ebpfMonFnProcessNotify] = EBPFMON_ARG1, [ebpfMonFnCheckPut] = EBPFMON_ARG1,
    [ebpfMonFnCamessage] = EBPFMON_ARG1, [ebpfMonFnScanLock] = EBPFMON_ARG1,
    [ebpfMonFnScanUnlock] = EBPFMON_ARG1, [ebpfMonFnScanUnlockMany] = EBPFMON_ARG1,
    [ebpfMonFnCaPutLink] = EBPFMON_ARG1, [ebpfMonFnFwdLink] = EBPFMON_ARG1, [ebpfMonFnProcess] = EBPFMON_ARG1,
    [ebpfMonFnCallback] = EBPFMON_ARG1, [ebpfMonFnCallbackDelayed] = EBPFMON_ARG1,
    [ebpfMonFnScanOnce] = EBPFMON_ARG1 | EBPFMON_ARG3, [ebpfMonFnRingPop] = EBPFMON_ARG1,
};

static const char *const varNames[ebpfMonVarCount] = {
    "pdbbase", "interruptAccept", "asActive", "epicsReleaseVersion", "clientQ", "lset_stack_count",
};

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
} Seen;

struct ebpfMonImageCache {
    Seen    *bucket[BUCKETS];
    ebpfMonKnown *known;   /* all of them, also those whose file was replaced */
    unsigned nOthers, nKnown;
};

ebpfMonImageCache *ebpfMonImageCacheNew(void)
{
    return calloc(1, sizeof(ebpfMonImageCache));
}

static void forgetOthers(ebpfMonImageCache *cache)
{
    for (unsigned i = 0; i < BUCKETS; i++) {
        for (Seen **at = &cache->bucket[i]; *at; ) {
            Seen *seen = *at;

            if (seen->known) {
                at = &seen->next;
            } else {
                *at = seen->next;
                free(seen);
            }
        }
    }
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
        freeKnown(known);
    }
    free(cache);
}

void ebpfMonImageEach(ebpfMonImageCache *cache, void (*each)(void *arg, const ebpfMonBinary *b), void *arg)
{
    for (const ebpfMonKnown *known = cache->known; known; known = known->next)
        if (known->binary.isIoc)
            each(arg, &known->binary);
}

/* Fills the site of one function. On aarch64 it is the entry, taken to be stepped. */
static void findSite(const ebpfMonElfFile *file, const ebpfMonElfSymbol *sym, ebpfMonFn fn, ebpfMonSite *site)
{
    uint8_t code[MAX_FUNCTION];
    uint64_t size = sym->size ? sym->size : 64, offset;

    if (!sym->vaddr || ebpfMonElfOffset(file, sym->vaddr, PF_X, &offset))
        return;
    if (file->machine == EM_X86_64) {
        size_t len = size < sizeof(code) ? (size_t)size : sizeof(code);

        len = ebpfMonElfRead(file, sym->vaddr, code, len);
        ebpfMonSitePickX86(code, len, fnArgs[fn], fn == ebpfMonFnPut, site);
    } else {
        *site = (ebpfMonSite){ .cls = ebpfMonSiteStepped, .canReturn = 1, .insn = "entry" };
    }
    site->offset = offset + site->skip;
    site->vaddr = sym->vaddr + site->skip;
}

/* The release is a macro in Base, so there is no variable of that name; its text is what coreRelease,
 * the neighbour of dbProcess, prints (epicsRelease.c, epicsVersion.h): "EPICS R7.0.8.1", and "EPICS 7.0..."
 * in the Python builds of epicscorelibs. libCom has the same text (osdAssert.c), which is all that EPICS 3.14 shows. */
static void findRelease(const ebpfMonElfFile *file, ebpfMonElfSymbol *var)
{
    char text[32];

    for (int i = 0; i < 14 && !var->vaddr; i++) {
        snprintf(text, sizeof(text), "EPICS %s%d.", i % 2 ? "" : "R", 9 - i / 2);
        var->vaddr = ebpfMonElfSearch(file, text);
    }
}

static void useOldNames(ebpfMonElfSymbol *found, ebpfMonBinary *b)
{
    for (int i = 0; i < OLD_NAMES; i++) {
        ebpfMonFn fn = oldNames[i].fn;

        if (found[fn].vaddr)
            continue;
        found[fn] = found[ebpfMonFnCount + ebpfMonVarCount + i];
        b->oldNames |= found[fn].vaddr ? 1u << fn : 0;
    }
}

/* Nonzero: it can be in another file than dbProcess: in libCom, and in EPICS 3.14 in librsrvIoc. */
static int isElsewhere(int fn)
{
    return fn == ebpfMonFnRingPop || fn == ebpfMonFnCheckPut || fn == ebpfMonFnCamessage;
}

static int usesLocks(const ebpfMonElfSymbol *found)
{
    const ebpfMonElfSymbol *lock = &found[ebpfMonFnScanLock], *unlock = &found[ebpfMonFnScanUnlock];

    return lock->isImported || lock->vaddr || unlock->isImported || unlock->vaddr;
}

/* Reads the file open as "fd"; *known is NULL when it holds nothing of interest. 0, or errno: no memory, or EFBIG. */
static int readFile(int fd, ebpfMonKnown **known)
{
    int over;
    ebpfMonElfFile file;
    const char *names[NAMES];
    ebpfMonElfSymbol found[NAMES];

    *known = NULL;
    if (ebpfMonElfOpen(&file, fd))
        return 0;
    memcpy(names, ebpfMonFnNames, sizeof(ebpfMonFnNames));
    memcpy(names + ebpfMonFnCount, varNames, sizeof(varNames));
    for (int i = 0; i < OLD_NAMES; i++)
        names[ebpfMonFnCount + ebpfMonVarCount + i] = oldNames[i].name;
    names[SCAN_NOW] = "scanIoImmediate";
    if (!ebpfMonElfFind(&file, names, NAMES, found) && !usesLocks(found) && !found[SCAN_NOW].isImported) {
        over = ebpfMonElfIsOver(&file);
        ebpfMonElfClose(&file);
        return over ? EFBIG : 0;
    }

    ebpfMonKnown *k = *known = calloc(1, sizeof(*k));

    if (k) {
        ebpfMonBinary *b = &k->binary;

        memcpy(b->buildId, file.buildId, sizeof(b->buildId));
        memcpy(k->var, found + ebpfMonFnCount, sizeof(k->var));
        memcpy(k->segment, file.segment, sizeof(k->segment));
        k->nSegments = file.nSegments;
        k->isProgram = file.hasInterp;
        b->isIoc = found[ebpfMonFnProcess].vaddr && k->var[ebpfMonVarBase].vaddr;
        useOldNames(found, b);
        for (int fn = 0; fn < ebpfMonFnCount; fn++)
            if (b->isIoc || isElsewhere(fn))
                findSite(&file, &found[fn], (ebpfMonFn)fn, &b->site[fn]);
        if ((b->isIoc || found[ebpfMonFnRingPop].vaddr) && !k->var[ebpfMonVarRelease].vaddr)
            findRelease(&file, &k->var[ebpfMonVarRelease]);
        b->usesLocks = usesLocks(found);
        b->scansNow = found[SCAN_NOW].isImported;
        if (b->usesLocks)
            b->calls = ebpfMonCallsRead(&file);
    }
    over = ebpfMonElfIsOver(&file);
    ebpfMonElfClose(&file);
    return !k ? ENOMEM : over ? EFBIG : 0;
}

/* The i-th path that may open the mapped file: the first one always does, if we may use it; the others do not once the
 * file is deleted, or its name is too long. */
static int makePath(pid_t pid, const ebpfMonMapping *map, int i, char *path, size_t size)
{
    int n = i == 0 ? snprintf(path, size, "/proc/%d/map_files/%llx-%llx", (int)pid,
                              (unsigned long long)map->start, (unsigned long long)map->end)
          : i == 1 ? snprintf(path, size, "/proc/%d/root%s", (int)pid, map->path)
          : snprintf(path, size, "/proc/%d/exe", (int)pid);

    return i < 3 && n > 0 && (size_t)n < size;
}

/* Finds a path that opens the mapped file. What is not a map_files link is the file only if it has its inode; the
 * device may differ, since maps shows that of the file system under an overlay or subvolume. 0, or -1. */
static int findPath(pid_t pid, const ebpfMonMapping *map, char *path, size_t size, struct stat *st)
{
    int why = ENOENT;

    for (int i = 0; i < 3; i++) {
        if (!makePath(pid, map, i, path, size))
            continue;
        if (stat(path, st) != 0) {
            if (errno == EACCES || errno == EPERM)
                why = errno;
            continue;
        }
        if (S_ISREG(st->st_mode)
            && (i == 0 || (st->st_ino == map->ino && (st->st_dev == map->dev || !major(st->st_dev)))))
            return 0;
    }
    errno = why;
    return -1;
}

/* A look at a mapped file, as a job: a file system may never answer. What is known of the file comes from its cache. */
typedef struct {
    pid_t pid;
    ebpfMonMapping map;        /* its path is "name" */
    char  name[4096];
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

/* 0 or errno. A file of a FUSE file system is not for us: to set a probe, the kernel reads its page while it holds a lock
 * that each fork on this host needs (dup_mmap_sem, kernel/events/uprobes.c), and a user's program decides when the page
 * comes. */
static int openAndRead(fileLook *look)
{
    int fd = open(look->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), err;
    struct statfs fs;

    if (fd < 0)
        return errno;
    if (fstat(fd, &look->st) || fstatfs(fd, &fs)) {
        err = errno;
        close(fd);
        return err;
    }
    err = readFile(fd, &look->known);
    close(fd);
    if (!err && look->known && fs.f_type == FUSE_SUPER_MAGIC)
        err = ENOTSUP;
    look->isRead = 1;
    return err;
}

static void lookAtFile(void *data)
{
    fileLook *look = data;

    if (findPath(look->pid, &look->map, look->path, sizeof(look->path), &look->st))
        look->err = errno;
    else if (!isSame(look))
        look->err = openAndRead(look);
}

static void dropLook(void *data)
{
    fileLook *look = data;

    freeKnown(look->known);
    free(look);
}

/* The look, which the caller drops. NULL with errno. */
static fileLook *lookAt(pid_t pid, const ebpfMonMapping *map, const Seen *seen)
{
    static const ebpfMonForeignJob job = { lookAtFile, dropLook };
    fileLook *look = calloc(1, sizeof(*look));

    if (!look)
        return NULL;
    look->pid = pid;
    look->map = *map;
    snprintf(look->name, sizeof(look->name), "%s", map->path);
    look->map.path = look->name;
    if (seen) {
        look->isSeen = seen->size >= 0;
        look->size = seen->size;
        look->modified = seen->modified;
    }
    return ebpfMonForeignRun(pid, LOOK_SECONDS, &job, look) ? NULL : look;
}

/* Notes in "seen" what was read. 0, or -1 with errno. */
static int noteRead(ebpfMonImageCache *cache, const ebpfMonMapping *map, fileLook *look, Seen *seen)
{
    ebpfMonKnown *known = look->err ? NULL : look->known;

    if (known && cache->nKnown >= MAX_KNOWN) {
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

/* Brings what is known of the file up to date. 0, or -1 with errno: it cannot be had, or cannot be read whole. */
static int update(ebpfMonImageCache *cache, pid_t pid, const ebpfMonMapping *map, Seen **bucket, Seen **seen)
{
    fileLook *look = lookAt(pid, map, *seen);
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
    if (!seen || seen->known || seen->pathHash != pathHash || now - seen->checked >= CHECK_AFTER) {
        if (update(cache, pid, map, bucket, &seen))
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

    look->err = findPath(look->pid, &look->map, look->path, sizeof(look->path), &st) ? errno : 0;
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
