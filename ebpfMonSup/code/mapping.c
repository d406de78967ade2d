/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "code/mapping.h"

#define LINES_MAX 65536 /* lines of /proc/PID/maps */
#define CODE_MAX  4096  /* … that are code of a file: each may be opened */

/* "start-end perms offset major:minor inode path" */
int ebpfMonMappingParseAny(char *line, ebpfMonMapping *map, int *isCode)
{
    char *p = line;

    map->start = strtoull(p, &p, 16);
    if (*p++ != '-')
        return 0;
    map->end = strtoull(p, &p, 16);
    if (*p != ' ' || strnlen(p, 6) < 6 || p[5] != ' ')
        return 0;
    *isCode = p[3] == 'x';
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

int ebpfMonMappingParse(char *line, ebpfMonMapping *map)
{
    int isCode;

    return ebpfMonMappingParseAny(line, map, &isCode) && isCode;
}

int ebpfMonMappingsOpen(ebpfMonMappings *p, pid_t pid)
{
    char path[40];

    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    p->lines = p->found = 0;
    p->maps = fopen(path, "re");
    return p->maps ? 0 : -1;
}

int ebpfMonMappingsReadNext(ebpfMonMappings *p, ebpfMonMapping *map)
{
    while (p->found < CODE_MAX && p->lines++ < LINES_MAX && fgets(p->line, sizeof(p->line), p->maps))
        if (ebpfMonMappingParse(p->line, map)) {
            p->found++;
            return 1;
        }
    return 0;
}

void ebpfMonMappingsClose(ebpfMonMappings *p)
{
    fclose(p->maps);
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

/* What is not a map_files link is the file only if it has its inode; the device may differ, since maps shows that of
 * the file system under an overlay or subvolume. */
int ebpfMonMappingFindPath(pid_t pid, const ebpfMonMapping *map, char *path, size_t size, struct stat *st)
{
    int why = ENOENT;

    for (int i = 0; i < 3; i++) {
        if (!makePath(pid, map, i, path, size)) {
            why = ENAMETOOLONG;
            continue;
        }
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
