/* SPDX-License-Identifier: BSD-3-Clause */
/* See ownMemory.h. Files: proc(5), Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst of the kernel. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "host/ownMemory.h"

#define LEVELS_MAX 32 /* of nested control groups */

/* One version of control groups: where it is mounted, and its files. */
typedef struct {
    const char *mark;  /* in the line of /proc/self/cgroup */
    const char *top;
    const char *limit, *used, *reclaimable;
} groupKind;

static const groupKind kinds[] = {
    { "0::", "/sys/fs/cgroup", "memory.max", "memory.current", "\ninactive_file " },
    { ":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "\ntotal_inactive_file " },
};

/* 0: no such file. */
static int readOwnText(const char *path, char *text, size_t size)
{
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, size - 1, f) : 0;

    if (f)
        fclose(f);
    text[n] = 0;
    return n > 0;
}

/* The number behind "name"; "otherwise" if there is none. */
static uint64_t findNumber(const char *text, const char *name, uint64_t otherwise)
{
    const char *p = strstr(text, name);
    char *end;
    uint64_t n = p ? strtoull(p + strlen(name), &end, 10) : 0;

    return p && end != p + strlen(name) ? n : otherwise;
}

/* In one control group. What was read from files and is not used goes when memory is needed. */
static uint64_t findLeftInGroup(const groupKind *kind, const char *folder)
{
    char path[PATH_MAX], text[8192];
    uint64_t limit, used, reclaimable = 0;

    snprintf(path, sizeof(path), "%s/%s", folder, kind->limit);
    if (!readOwnText(path, text, sizeof(text)))
        return UINT64_MAX;
    limit = findNumber(text, "", UINT64_MAX); /* "max" is no number */
    snprintf(path, sizeof(path), "%s/%s", folder, kind->used);
    if (limit == UINT64_MAX || !readOwnText(path, text, sizeof(text)))
        return UINT64_MAX;
    used = findNumber(text, "", 0);
    snprintf(path, sizeof(path), "%s/memory.stat", folder);
    if (readOwnText(path, text, sizeof(text)))
        reclaimable = findNumber(text, kind->reclaimable, 0);
    used = used > reclaimable ? used - reclaimable : 0;
    return limit > used ? limit - used : 0;
}

/* In the control group of this process, and in those around it. */
static uint64_t findLeftInGroups(const groupKind *kind, const char *groups)
{
    uint64_t left = UINT64_MAX, n;
    char folder[PATH_MAX / 2], *end;
    const char *p = strstr(groups, kind->mark);

    if (!p)
        return left;
    p += strlen(kind->mark);
    snprintf(folder, sizeof(folder), "%s%.*s", kind->top, (int)strcspn(p, "\n"), p);
    for (int i = 0; i < LEVELS_MAX && strlen(folder) >= strlen(kind->top); i++) {
        n = findLeftInGroup(kind, folder);
        left = n < left ? n : left;
        end = strrchr(folder, '/');
        if (!end)
            break;
        *end = 0;
    }
    return left;
}

/* Of the addresses that this process may use. */
static uint64_t findLeftOfAddresses(void)
{
    struct rlimit limit;
    char text[128];
    uint64_t used;

    if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY ||
        !readOwnText("/proc/self/statm", text, sizeof(text)))
        return UINT64_MAX;
    used = findNumber(text, "", 0) * (uint64_t)sysconf(_SC_PAGESIZE);
    return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

uint64_t ebpfMonOwnMemoryLeft(void)
{
    uint64_t left = findLeftOfAddresses(), n;
    char text[8192];

    if (readOwnText("/proc/meminfo", text, sizeof(text))) {
        n = findNumber(text, "MemAvailable:", UINT64_MAX / 1024) * 1024;
        left = n < left ? n : left;
    }
    if (readOwnText("/proc/self/cgroup", text, sizeof(text)))
        for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
            n = findLeftInGroups(&kinds[i], text);
            left = n < left ? n : left;
        }
    return left;
}
