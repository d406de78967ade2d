/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "code/elfXz.h"
#include "code/symbolFile.h"
#include "host/foreign.h"

#define SECTIONS_MAX 1024u
#define FOLDERS_MAX  16u
#define LINK_WAYS    3u
#define DEBUG_FOLDER "/usr/lib/debug"

/* What the program says of its symbols. */
typedef struct {
    const ebpfMonSymbolPlaces *places;
    const char *buildId;
    char  link[128];     /* .gnu_debuglink; empty: none */
    char  folder[256];   /* of the program */
} Program;

void ebpfMonSymbolPlacesInit(ebpfMonSymbolPlaces *places)
{
    const char *folders = getenv("EBPFMON_SYMBOLS"), *path = getenv("DEBUGINFOD_CACHE_PATH");
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

    memset(places, 0, sizeof(*places));
    snprintf(places->folders, sizeof(places->folders), "%s", folders ? folders : "");
    if (path && *path)
        snprintf(places->cache, sizeof(places->cache), "%s", path);
    else if (cache && *cache)
        snprintf(places->cache, sizeof(places->cache), "%s/debuginfod_client", cache);
    else if (home && *home)
        snprintf(places->cache, sizeof(places->cache), "%s/.cache/debuginfod_client", home);
}

static int findSection(const ebpfMonElfFile *file, const char *wanted, Elf64_Shdr *section)
{
    char name[24];

    for (uint32_t i = 1; i < SECTIONS_MAX && ebpfMonElfSection(file, i, section); i++) {
        ebpfMonElfSectionName(file, section, name, sizeof(name));
        if (strcmp(name, wanted) == 0)
            return 1;
    }
    return 0;
}

static void readProgram(const ebpfMonElfFile *file, const ebpfMonSymbolPlaces *places, Program *p)
{
    Elf64_Shdr section;
    size_t n = 0;

    p->places = places;
    p->buildId = file->buildId;
    if (findSection(file, ".gnu_debuglink", &section))
        n = ebpfMonElfReadSection(file, &section, 0, p->link, sizeof(p->link) - 1);
    p->link[n] = 0;
    if (strchr(p->link, '/')) /* it is the name of a file, and no way to elsewhere */
        p->link[0] = 0;
    snprintf(p->folder, sizeof(p->folder), "%s", places->program);
    if (strrchr(p->folder, '/'))
        *strrchr(p->folder, '/') = 0;
}

/* The n-th folder of the list. 0, or -1. */
static int pickFolder(const char *list, unsigned n, char *folder, size_t size)
{
    size_t len = strcspn(list, ":");

    for (; n && list[len]; n--) {
        list += len + 1;
        len = strcspn(list, ":");
    }
    if (n || !len || len >= size)
        return -1;
    memcpy(folder, list, len);
    folder[len] = 0;
    return 0;
}

/* The place with this number. 1: it has a path; 0: it has none, but the next one may have; -1: there are no more
 * places. */
static int makeDebugPath(const Program *p, unsigned place, char *path, size_t size)
{
    enum { ROOTS = 2 };
    static const char *const linkForms[LINK_WAYS] = { "%s%s/%s", "%s%s/.debug/%s", "%s" DEBUG_FOLDER "%s/%s" };
    char root[32] = "", folder[256];
    int n = -1;

    if (place < ROOTS * (LINK_WAYS + 1) && place % ROOTS == 0)
        snprintf(root, sizeof(root), "/proc/%d/root", (int)p->places->pid);
    if (place < ROOTS * LINK_WAYS) {
        if (p->link[0])
            n = snprintf(path, size, linkForms[place / ROOTS], root, p->folder, p->link);
    } else if (place < ROOTS * (LINK_WAYS + 1)) {
        n = snprintf(path, size, "%s" DEBUG_FOLDER "/.build-id/%.2s/%s.debug", root, p->buildId, p->buildId + 2);
    } else if (place == ROOTS * (LINK_WAYS + 1)) {
        if (p->places->cache[0])
            n = snprintf(path, size, "%s/%s/debuginfo", p->places->cache, p->buildId);
    } else {
        unsigned i = place - ROOTS * (LINK_WAYS + 1) - 1;

        if (i >= FOLDERS_MAX || pickFolder(p->places->folders, i, folder, sizeof(folder)))
            return -1;
        n = snprintf(path, size, "%s/%.2s/%s.debug", folder, p->buildId, p->buildId + 2);
    }
    return n > 0 && (size_t)n < size;
}

/* Opens the file of symbols in "fd", which is closed with it. NULL: the file is not believed. */
static ebpfMonElfFile *takeUp(const ebpfMonElfFile *file, int fd, int isPart)
{
    ebpfMonElfFile *symbols = calloc(1, sizeof(*symbols));

    if (symbols && ebpfMonElfOpen(symbols, fd) == 0) {
        /* a part of the program may leave its build-id out, for it cannot be another's */
        if (symbols->machine == file->machine &&
            (strcmp(symbols->buildId, file->buildId) == 0 || (isPart && !symbols->buildId[0])))
            return symbols;
        ebpfMonElfClose(symbols);
    }
    free(symbols);
    close(fd);
    return NULL;
}

static ebpfMonElfFile *openNext(const ebpfMonElfFile *file, const ebpfMonSymbolPlaces *places,
                                ebpfMonSymbolSearch *search)
{
    ebpfMonElfFile *symbols = NULL;
    Elf64_Shdr section;
    char path[1280];
    Program program;
    int fd, rc = 0;

    if (search->place == 0) {
        search->place = 1;
        fd = findSection(file, ".gnu_debugdata", &section) ? ebpfMonElfUnpack(file, &section) : -1;
        symbols = fd >= 0 ? takeUp(file, fd, 1) : NULL;
    }
    if (symbols || !file->buildId[0])
        return symbols;
    memset(&program, 0, sizeof(program));
    readProgram(file, places, &program);
    while (!symbols && (rc = makeDebugPath(&program, search->place - 1, path, sizeof(path))) >= 0) {
        search->place++;
        fd = rc ? ebpfMonForeignOpenFile(path) : -1;
        symbols = fd >= 0 ? takeUp(file, fd, 0) : NULL;
    }
    return symbols;
}

int ebpfMonSymbolFileAdd(ebpfMonElfFile *file, const ebpfMonSymbolPlaces *places, ebpfMonSymbolSearch *search)
{
    ebpfMonElfFile **end = &file->symbols;

    while (*end)
        end = &(*end)->symbols;
    *end = openNext(file, places, search);
    return *end != NULL;
}

static void closeFile(ebpfMonElfFile *symbols)
{
    close(symbols->fd);
    ebpfMonElfClose(symbols);
    free(symbols);
}

void ebpfMonSymbolFileDrop(ebpfMonElfFile *file)
{
    while (file->symbols && file->symbols->symbols)
        file = file->symbols;
    if (file->symbols)
        closeFile(file->symbols);
    file->symbols = NULL;
}

void ebpfMonSymbolFilesClose(ebpfMonElfFile *file)
{
    while (file->symbols) {
        ebpfMonElfFile *symbols = file->symbols;

        file->symbols = symbols->symbols;
        closeFile(symbols);
    }
}
