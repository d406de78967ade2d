/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "code/mapping.h"

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
