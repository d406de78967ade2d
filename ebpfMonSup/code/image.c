/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See image.h. A look at a process costs one pass over its /proc/PID/maps, and a stat for each file in it
 * that holds something of EPICS. What the files hold is imageCache.c's.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "code/image.h"
#include "common/clock.h"
#include "host/foreign.h"
#include "host/procRead.h"

#define MAX_PARTS    128u      /* files of interest in one process */
#define MAPS_MAX     (16u << 20) /* bytes: vm.max_map_count mappings with long names */
#define MAPS_SECONDS 0.5
#define TIME_MAX     (3 * EBPFMON_SECOND_NS) /* for all files of one process */

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
        &image->pdbbase, &image->interruptAccept, &image->asActive, &image->epicsReleaseVersion, &image->clientQ,
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
    if (!s->image->com && part->known->binary.site[ebpfMonFnRingPop].cls != ebpfMonSiteNone &&
        !ebpfMonImageCacheFindPath(s->pid, &map, s->image->comPath, sizeof(s->image->comPath)))
        s->image->com = &part->known->binary;
    if (!s->image->server && !part->known->binary.isIoc &&
        part->known->binary.site[ebpfMonFnCheckPut].cls != ebpfMonSiteNone &&
        !ebpfMonImageCacheFindPath(s->pid, &map, s->image->serverPath, sizeof(s->image->serverPath)))
        s->image->server = &part->known->binary;
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

/* Calls "use" with each line of the list of mappings, until it returns nonzero. 0; errno: the list cannot be read, or
 * it took too long. */
static int visitLines(pid_t pid, int (*use)(void *arg, char *line), void *arg)
{
    uint64_t begin = ebpfMonClockMonotonic();
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
        if (ebpfMonClockMonotonic() - begin > TIME_MAX) {
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
