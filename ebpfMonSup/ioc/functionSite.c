/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <epicsString.h>

#include "ioc/elfFile.h"
#include "ioc/foreign.h"
#include "ioc/functionSite.h"
#include "ioc/imageCache.h"
#include "ioc/machine.h"

#define LOOK_SECONDS 2.0
#define MAPPINGS_MAX 4096 /* lines of /proc/PID/maps that are looked at */
#define CODE_MAX     4096 /* bytes of a function, to see its branches */
#define CODE_UNSIZED 64   /* … whose symbol does not say how long it is */

typedef struct {
    pid_t pid;
    ebpfMonFunctionWanted wanted;
    /* the result */
    ebpfMonFunctionPlace place[EBPFMON_FUNCTION_SITES];
    unsigned count;
    unsigned objects; /* files that match the pattern */
    int      err;     /* why one of them, or the list of them, cannot be read */
    int      isFuse;
} Look;

static int isWanted(const Look *look, const char *path)
{
    const char *pattern = look->wanted.object, *name = strrchr(path, '/');

    return epicsStrGlobMatch(strchr(pattern, '/') || !name ? path : name + 1, pattern);
}

/* An exact place: what the caller asks for, and nothing is known of its instruction. */
static void setExact(ebpfMonSite *site, uint64_t offset, uint64_t vaddr)
{
    *site = (ebpfMonSite){ .cls = ebpfMonSiteStepped, .offset = offset, .vaddr = vaddr, .canReturn = 1 };
    snprintf(site->insn, sizeof(site->insn), "offset");
}

/* The place in one file. 0, or -1: it has none. */
static int findPlace(const Look *look, ebpfMonElfFile *file, ebpfMonSite *site)
{
    const char *name = look->wanted.symbol;
    ebpfMonElfSymbol symbol;
    uint8_t code[CODE_MAX];
    uint64_t offset;
    size_t len;

    if (!name[0]) {
        setExact(site, look->wanted.offset, 0);
        return 0;
    }
    if (!ebpfMonElfFind(file, &name, 1, &symbol) || ebpfMonElfOffset(file, symbol.vaddr, PF_X, &offset))
        return -1;
    if (look->wanted.offset) {
        setExact(site, offset + look->wanted.offset, symbol.vaddr + look->wanted.offset);
        return 0;
    }
    len = symbol.size ? symbol.size : CODE_UNSIZED;
    len = ebpfMonElfRead(file, symbol.vaddr, code, len < sizeof(code) ? len : sizeof(code));
    ebpfMonMachineFind(file->machine)->pickSite(code, len, look->wanted.args, look->wanted.needReturn, site);
    site->offset = offset + site->skip;
    site->vaddr = symbol.vaddr + site->skip;
    return site->cls == ebpfMonSiteNone || (look->wanted.needReturn && !site->canReturn) ? -1 : 0;
}

/* A FUSE file is not for us: see imageCache.c. */
static void lookAtFile(Look *look, const ebpfMonMapping *map)
{
    ebpfMonFunctionPlace *place = &look->place[look->count];
    ebpfMonElfFile file;
    struct statfs fs;
    int fd;

    snprintf(place->path, sizeof(place->path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)look->pid, map->start,
             map->end);
    fd = open(place->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstatfs(fd, &fs)) {
        look->err = errno;
    } else if (fs.f_type == FUSE_SUPER_MAGIC) {
        look->isFuse = 1;
    } else if (ebpfMonElfOpen(&file, fd) == 0) {
        look->objects++;
        look->count += findPlace(look, &file, &place->site) == 0;
        ebpfMonElfClose(&file);
    }
    if (fd >= 0)
        close(fd);
}

/* The files of the process that match, each once: its mappings follow one another. */
static void lookAtFiles(void *data)
{
    Look *look = data;
    char path[40], line[4352];
    unsigned lines = 0;
    dev_t dev = 0;
    ino_t ino = 0;
    FILE *maps;

    snprintf(path, sizeof(path), "/proc/%d/maps", (int)look->pid);
    maps = fopen(path, "re");
    if (!maps) {
        look->err = errno;
        return;
    }
    while (look->count < EBPFMON_FUNCTION_SITES && lines++ < MAPPINGS_MAX && fgets(line, sizeof(line), maps)) {
        ebpfMonMapping map;

        if (!ebpfMonMappingParse(line, &map) || (map.dev == dev && map.ino == ino))
            continue;
        dev = map.dev;
        ino = map.ino;
        if (isWanted(look, map.path))
            lookAtFile(look, &map);
    }
    fclose(maps);
}

static void explain(const Look *look, char *why, size_t size)
{
    if (look->objects)
        snprintf(why, size, "no file like \"%s\" has a function %s where it can be probed", look->wanted.object,
                 look->wanted.symbol);
    else if (look->isFuse)
        snprintf(why, size, "\"%s\" lies in a FUSE file system, where no probe is set", look->wanted.object);
    else if (look->err)
        snprintf(why, size, "\"%s\" cannot be read: %s", look->wanted.object, strerror(look->err));
    else
        snprintf(why, size, "no file like \"%s\" is mapped", look->wanted.object);
}

unsigned ebpfMonFunctionFind(pid_t pid, const ebpfMonFunctionWanted *wanted,
                             ebpfMonFunctionPlace place[EBPFMON_FUNCTION_SITES], char *why, size_t size)
{
    static const ebpfMonForeignJob job = { lookAtFiles, free };
    Look *look = calloc(1, sizeof(*look));
    unsigned count;

    why[0] = 0;
    if (!look) {
        snprintf(why, size, "out of memory");
        return 0;
    }
    look->pid = pid;
    look->wanted = *wanted;
    if (ebpfMonForeignRun(pid, LOOK_SECONDS, &job, look)) {
        snprintf(why, size, "its files do not answer");
        return 0;
    }
    count = look->count;
    memcpy(place, look->place, count * sizeof(*place));
    if (!count)
        explain(look, why, size);
    free(look);
    return count;
}
