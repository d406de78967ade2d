/* SPDX-License-Identifier: BSD-3-Clause */
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "code/codePlace.h"
#include "code/elfSymbols.h"
#include "code/machine.h"
#include "code/mapping.h"
#include "host/foreign.h"
#include "host/memory.h"

#define LOOK_SECONDS 2.0
#define CODE_MAX     64   /* bytes of a function: its prologue */

typedef struct {
    pid_t    pid;
    uint64_t address;
    char     symbol[64];
    unsigned args;
    int      needReturn;
    /* the result */
    ebpfMonFunctionPlace place;
    uint64_t found;
} Look;

/* Calls "each" for the mapped code of the process, until it returns nonzero. */
static void visitMappings(Look *look, int (*each)(Look *look, const ebpfMonMapping *map))
{
    ebpfMonMappings mappings;
    ebpfMonMapping map;

    if (ebpfMonMappingsOpen(&mappings, look->pid))
        return;
    while (ebpfMonMappingsReadNext(&mappings, &map) && !each(look, &map))
        ;
    ebpfMonMappingsClose(&mappings);
}

/* --- code ----------------------------------------------------------------------------------------- */

static void pickSite(Look *look, size_t room)
{
    ebpfMonSite *site = &look->place.site;
    uint64_t offset = site->offset;

    uint8_t code[CODE_MAX];
    size_t len = room < sizeof(code) ? room : sizeof(code);

    if (ebpfMonMemReadNow(look->pid, look->address, code, len))
        return;
    ebpfMonMachineHost()->pickSite(code, len, look->args, look->needReturn, site);
    site->offset = offset + site->skip;
    look->found = site->cls != ebpfMonSiteNone && (!look->needReturn || site->canReturn);
}

static int takeCode(Look *look, const ebpfMonMapping *map)
{
    struct stat st;

    if (look->address < map->start || look->address >= map->end)
        return 0;
    if (ebpfMonMappingFindPath(look->pid, map, look->place.path, sizeof(look->place.path), &st))
        return 1;
    look->place.site.offset = look->address - map->start + map->offset;
    pickSite(look, (size_t)(map->end - look->address));
    return 1;
}

static void findCode(void *data)
{
    visitMappings(data, takeCode);
}

int ebpfMonCodePlaceFind(pid_t pid, uint64_t address, unsigned args, int needReturn, ebpfMonFunctionPlace *place)
{
    static const ebpfMonForeignJob job = { findCode, free };
    Look *look = calloc(1, sizeof(*look));
    int found;

    if (!look)
        return -1;
    *look = (Look){ .pid = pid, .address = address, .args = args, .needReturn = needReturn };
    if (ebpfMonForeignRun(pid, LOOK_SECONDS, &job, look))
        return -1;
    *place = look->place;
    found = look->found != 0;
    free(look);
    return found ? 0 : -1;
}

/* --- variables ------------------------------------------------------------------------------------ */

/* The difference between addresses in the process and vaddrs of the file, by the segment that is mapped here. */
static int findBias(const ebpfMonElfFile *file, const ebpfMonMapping *map, uint64_t *bias)
{
    for (unsigned i = 0; i < file->nSegments; i++) {
        const ebpfMonElfSegment *s = &file->segment[i];

        if ((s->flags & PF_X) && map->offset <= s->offset && s->offset - map->offset < map->end - map->start) {
            *bias = map->start - map->offset + s->offset - s->vaddr;
            return 0;
        }
    }
    return -1;
}

/* A FUSE file is not for us: see imageCache.c. */
static int takeVariable(Look *look, const ebpfMonMapping *map)
{
    const char *name = look->symbol;
    ebpfMonElfSymbol symbol;
    ebpfMonElfFile file;
    struct statfs fs;
    struct stat st;
    uint64_t bias;
    char path[4352];
    int fd;

    if (ebpfMonMappingFindPath(look->pid, map, path, sizeof(path), &st))
        return 0;
    fd = ebpfMonForeignOpenFile(path);
    if (fd < 0)
        return 0;
    if (fstatfs(fd, &fs) == 0 && fs.f_type != FUSE_SUPER_MAGIC && ebpfMonElfOpen(&file, fd) == 0) {
        if (ebpfMonElfFind(&file, &name, 1, &symbol) && !findBias(&file, map, &bias))
            look->found = bias + symbol.vaddr;
        ebpfMonElfClose(&file);
    }
    close(fd);
    return look->found != 0;
}

static void findVariable(void *data)
{
    visitMappings(data, takeVariable);
}

uint64_t ebpfMonVariableFind(pid_t pid, const char *symbol)
{
    static const ebpfMonForeignJob job = { findVariable, free };
    Look *look = calloc(1, sizeof(*look));
    uint64_t found;

    if (!look)
        return 0;
    look->pid = pid;
    snprintf(look->symbol, sizeof(look->symbol), "%s", symbol);
    if (ebpfMonForeignRun(pid, LOOK_SECONDS, &job, look))
        return 0;
    found = look->found;
    free(look);
    return found;
}
