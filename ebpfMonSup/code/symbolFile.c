/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "code/symbolFile.h"
#include "common/clock.h"
#include "host/foreign.h"

/* --- .gnu_debugdata --- */

/* .gnu_debugdata: a section that contains an ELF file with symbols, compressed by xz ("MiniDebugInfo" of Fedora and
 * others). */

#define PIECE       (64u << 10)
#define PACKED_MAX  (16u << 20)
#define UNPACKED_MAX (64u << 20)
#define MEMORY_MAX  (128u << 20)   /* xz -9 takes 65 MiB */
#define MAX_CPU     500000000ull   /* ns */

static int writeAll(int fd, const uint8_t *bytes, size_t size)
{
    while (size) {
        ssize_t n = write(fd, bytes, size);

        if (n <= 0)
            return -1;
        bytes += n;
        size -= (size_t)n;
    }
    return 0;
}

/* 0, or -1: it is no xz stream, too large, or not whole. */
static int unpackSection(const ebpfMonElfFile *file, const Elf64_Shdr *section, lzma_stream *xz, uint8_t *in,
                         uint8_t *out, int fd)
{
    uint64_t begin = ebpfMonClockThreadCpu(), at = 0;
    lzma_ret rc = LZMA_OK;

    while (rc == LZMA_OK && xz->total_out <= UNPACKED_MAX && ebpfMonClockThreadCpu() - begin < MAX_CPU) {
        if (!xz->avail_in && at < section->sh_size && at < PACKED_MAX) {
            xz->next_in = in;
            xz->avail_in = ebpfMonElfReadSection(file, section, at, in, PIECE);
            at += xz->avail_in;
        }
        xz->next_out = out;
        xz->avail_out = PIECE;
        rc = lzma_code(xz, xz->avail_in ? LZMA_RUN : LZMA_FINISH);
        if (writeAll(fd, out, PIECE - xz->avail_out))
            return -1;
    }
    return rc == LZMA_STREAM_END ? 0 : -1;
}

/* Unpacks a section into a file in memory, 64 MiB at most, and returns its descriptor. -1: it cannot be unpacked. */
static int unpackElf(const ebpfMonElfFile *file, const Elf64_Shdr *section)
{
    lzma_stream xz = LZMA_STREAM_INIT;
    uint8_t *buf = malloc(2 * PIECE);
    int fd = -1;

    if (buf && lzma_stream_decoder(&xz, MEMORY_MAX, 0) == LZMA_OK)
        fd = memfd_create("symbols", MFD_CLOEXEC);
    if (fd >= 0 && unpackSection(file, section, &xz, buf, buf + PIECE, fd)) {
        close(fd);
        fd = -1;
    }
    lzma_end(&xz);
    free(buf);
    return fd;
}

/* --- files with symbols --- */

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
        fd = findSection(file, ".gnu_debugdata", &section) ? unpackElf(file, &section) : -1;
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
