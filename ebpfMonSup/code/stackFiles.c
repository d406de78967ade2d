/* SPDX-License-Identifier: BSD-3-Clause */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "code/imageCache.h"
#include "code/stackFiles.h"
#include "common/text.h"
#include "host/foreign.h"
#include "host/memory.h"

#define MAPS_MAX   65536 /* lines of maps */
#define VDSO       "[vdso]"
#define VDSO_MAX   65536 /* bytes */

/* The library of the kernel, in which clock_gettime runs, is no file. It is read from the memory of the process. */
static int openVdso(pid_t pid, const ebpfMonMapping *map)
{
    size_t size = map->end - map->start;
    char *bytes = size <= VDSO_MAX ? malloc(size) : NULL;
    int fd = -1;

    if (bytes && ebpfMonMemReadNow(pid, map->start, bytes, size) == 0)
        fd = memfd_create("vdso", MFD_CLOEXEC);
    if (fd >= 0 && write(fd, bytes, size) != (ssize_t)size) {
        close(fd);
        fd = -1;
    }
    free(bytes);
    return fd;
}

static int openFile(pid_t pid, const ebpfMonMapping *map)
{
    char path[4352];

    return ebpfMonImageCacheFindPath(pid, map, path, sizeof(path)) ? -1
         : ebpfMonForeignOpenFile(path);
}

static ebpfMonStackFile *openModule(ebpfMonStackFiles *p, const ebpfMonMapping *map)
{
    ebpfMonStackFile *m = &p->file[p->count];
    const char *slash = strrchr(map->path, '/');

    m->fd = *map->path == '/' ? openFile(p->pid, map) : openVdso(p->pid, map);
    if (m->fd < 0)
        return NULL;
    if (ebpfMonElfOpen(&m->elf, m->fd)) {
        close(m->fd);
        return NULL;
    }
    if (m->elf.machine != EM_X86_64 || ebpfMonMappingBias(m->elf.segment, m->elf.nSegments, map, &m->bias)) {
        ebpfMonElfClose(&m->elf);
        close(m->fd);
        return NULL;
    }
    m->start = map->start;
    m->end = map->end;
    ebpfMonTextCopy(m->name, sizeof(m->name), slash ? slash + 1 : map->path);
    p->count++;
    return m;
}

ebpfMonStackFile *ebpfMonStackFilesFind(ebpfMonStackFiles *p, uint64_t pc)
{
    char path[32], line[8192];
    ebpfMonStackFile *m = NULL;
    FILE *maps;

    for (unsigned i = 0; i < p->count; i++)
        if (pc >= p->file[i].start && pc < p->file[i].end)
            return &p->file[i];
    snprintf(path, sizeof(path), "/proc/%d/maps", (int)p->pid);
    maps = p->count < EBPFMON_STACK_FILES ? fopen(path, "re") : NULL;
    for (unsigned i = 0; maps && i < MAPS_MAX && fgets(line, sizeof(line), maps); i++) {
        ebpfMonMapping map = { .path = VDSO };

        if (strstr(line, " " VDSO "\n") && sscanf(line, "%lx-%lx", &map.start, &map.end) != 2)
            continue;
        if ((!map.end && !ebpfMonMappingParse(line, &map)) || pc < map.start || pc >= map.end)
            continue;
        m = openModule(p, &map);
        break;
    }
    if (maps)
        fclose(maps);
    return m;
}

void ebpfMonStackFilesInit(ebpfMonStackFiles *p, pid_t pid)
{
    p->pid = pid;
    p->count = 0;
}

void ebpfMonStackFilesClose(ebpfMonStackFiles *p)
{
    for (unsigned i = 0; i < p->count; i++) {
        ebpfMonElfClose(&p->file[i].elf);
        close(p->file[i].fd);
    }
    p->count = 0;
}
