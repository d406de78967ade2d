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
#include <sys/sysmacros.h>
#include <unistd.h>
#include "ioc/imageCache.h"

#define MAX_PARTS    32u       /* files of interest in one process */
#define MAX_LINES    (1u << 20)

typedef struct {
    const ebpfMonKnown *known;
    uint64_t bias;
} Part;

/* "start-end perms offset major:minor inode path" */
int ebpfMonMappingParse(char *line, ebpfMonMapping *map)
{
    char *p = line;

    map->start = strtoull(p, &p, 16);
    if (*p++ != '-')
        return 0;
    map->end = strtoull(p, &p, 16);
    if (*p != ' ' || strnlen(p, 6) < 6 || p[3] != 'x' || p[5] != ' ')
        return 0;
    map->offset = strtoull(p + 6, &p, 16);

    unsigned maj = (unsigned)strtoul(p, &p, 16);

    if (*p++ != ':')
        return 0;
    map->dev = makedev(maj, (unsigned)strtoul(p, &p, 16));
    map->ino = strtoull(p, &p, 10);
    p += strspn(p, " ");
    p[strcspn(p, "\n")] = 0;
    map->path = p;
    return map->ino && *p == '/' && map->start < map->end;
}

int ebpfMonMappingBias(const ebpfMonElfSegment *segment, unsigned segments, const ebpfMonMapping *map, uint64_t *bias)
{
    uint64_t mask = (uint64_t)sysconf(_SC_PAGESIZE) - 1;

    for (unsigned i = 0; i < segments; i++) {
        const ebpfMonElfSegment *s = &segment[i];
        uint64_t begin = s->offset & ~mask, size = s->fileSize + (s->offset & mask);

        if ((s->flags & PF_X) && map->offset >= begin && map->offset - begin < size) {
            *bias = map->start - (map->offset - begin) - (s->vaddr & ~mask);
            return 0;
        }
    }
    return -1;
}

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

static void fillImage(const Part *parts, unsigned nParts, const Part *core, ebpfMonImage *image)
{
    uint64_t *const address[ebpfMonVarCount] = {
        &image->pdbbase, &image->interruptAccept, &image->asActive, &image->epicsReleaseVersion, &image->clientQ,
        &image->breakpoints,
    };

    image->core = &core->known->binary;
    image->coreBias = core->bias;
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

int ebpfMonImageRead(ebpfMonImageCache *cache, pid_t pid, ebpfMonImage *image)
{
    Part parts[MAX_PARTS];
    const Part *core = NULL;
    unsigned nParts = 0, lines = 0;
    int whole = 1, why = 0;
    char name[32], line[8192]; /* a path has up to 4096 bytes, more when some are escaped */

    memset(image, 0, sizeof(*image));
    snprintf(name, sizeof(name), "/proc/%d/maps", (int)pid);

    FILE *maps = fopen(name, "re");

    if (!maps) {
        if (errno == ENOENT)
            errno = ESRCH;
        return -1;
    }

    char buffer[4096]; /* as much as the kernel gives at once; stdio's own would be a quarter of it */

    setvbuf(maps, buffer, _IOFBF, sizeof(buffer));
    while (nParts < MAX_PARTS && lines++ < MAX_LINES && fgets(line, sizeof(line), maps)) {
        int begins = whole;
        ebpfMonMapping map;

        whole = strchr(line, '\n') != NULL;
        if (!begins || !whole || !ebpfMonMappingParse(line, &map) || !addPart(cache, pid, &map, parts, nParts, &why))
            continue;

        const Part *part = &parts[nParts++];

        if (!image->com && part->known->binary.site[ebpfMonFnRingPop].cls != ebpfMonSiteNone &&
            !ebpfMonImageCacheFindPath(pid, &map, image->comPath, sizeof(image->comPath)))
            image->com = &part->known->binary;
        if (!core && part->known->binary.isIoc) {
            core = part;
            if (ebpfMonImageCacheFindPath(pid, &map, image->openPath, sizeof(image->openPath)))
                image->openPath[0] = 0;
        }
    }
    fclose(maps);
    if (!core) {
        errno = why;
        return why ? -1 : 1;
    }
    fillImage(parts, nParts, core, image);
    return 0;
}
