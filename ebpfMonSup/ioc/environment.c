/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "code/elfSymbols.h"
#include "code/mapping.h"
#include "common/array.h"
#include "host/foreign.h"
#include "ioc/environment.h"

#define MAPS_MAX     (4u << 20) /* bytes */
#define MAPS_SECONDS 0.5
#define FILE_SECONDS 0.5
#define VALUE_MAX    4096       /* a longer variable is left out */

/* Looks for "environ" in a mapped file, as a job: a file system may never answer. */
typedef struct {
    pid_t    pid;
    ebpfMonMapping map;     /* its path is "name" */
    char     name[4096];
    int      isFound;
    uint64_t address;       /* of the variable, in the process */
} symbolLook;

static void lookForSymbol(void *data)
{
    static const char *const names[] = {"environ"};
    symbolLook *look = data;
    ebpfMonElfSymbol symbol;
    ebpfMonElfFile file;
    struct stat st;
    uint64_t bias;
    char path[4352];
    int fd = -1;

    if (ebpfMonMappingFindPath(look->pid, &look->map, path, sizeof(path), &st) == 0)
        fd = ebpfMonForeignOpenFile(path);
    if (fd < 0)
        return;
    if (ebpfMonElfOpen(&file, fd) == 0) {
        if (ebpfMonElfFind(&file, names, 1, &symbol) && symbol.vaddr &&
            ebpfMonMappingBias(file.segment, file.nSegments, &look->map, &bias) == 0) {
            look->isFound = 1;
            look->address = bias + symbol.vaddr;
        }
        ebpfMonElfClose(&file);
    }
    close(fd);
}

/* 0: it is not in this file. */
static uint64_t findInFile(pid_t pid, const ebpfMonMapping *map)
{
    static const ebpfMonForeignJob job = { lookForSymbol, free };
    symbolLook *look = calloc(1, sizeof(*look));
    uint64_t address = 0;

    if (!look)
        return 0;
    look->pid = pid;
    look->map = *map;
    snprintf(look->name, sizeof(look->name), "%s", map->path);
    look->map.path = look->name;
    if (ebpfMonForeignRun(pid, FILE_SECONDS, &job, look))
        return 0;
    if (look->isFound)
        address = look->address;
    free(look);
    return address;
}

static int isLibc(const char *path)
{
    const char *file = strrchr(path, '/') + 1;

    return strncmp(file, "libc.so", 7) == 0 || strncmp(file, "libc-", 5) == 0 || strncmp(file, "ld-musl", 7) == 0;
}

/* Where the variable "environ" is: in the program, if that has a copy of its own (copy relocation) or the whole C
 * library, else in the C library. The program's code is the first that is mapped. 0: not found. */
static uint64_t findVariable(pid_t pid)
{
    char name[32], *maps, *next;
    uint64_t address = 0;
    int isFirst = 1;

    snprintf(name, sizeof(name), "/proc/%d/maps", (int)pid);
    maps = ebpfMonForeignReadAll(pid, name, MAPS_SECONDS, MAPS_MAX);
    if (!maps)
        return 0;
    for (char *line = maps; *line && !address; line = next) {
        ebpfMonMapping map;

        next = line + strcspn(line, "\n");
        if (*next)
            *next++ = 0;
        if (!ebpfMonMappingParse(line, &map))
            continue;
        if (isFirst || isLibc(map.path))
            address = findInFile(pid, &map);
        isFirst = 0;
    }
    free(maps);
    return address;
}

static int addVariable(ebpfMonEnvironment *env, size_t *room, const char *text)
{
    size_t size = strlen(text) + 1;

    if (env->size + size > EBPFMON_ENV_BYTES || ebpfMonArrayGrow(&env->text, room, env->size + size, 4096, 1))
        return -1;
    memcpy(env->text + env->size, text, size);
    env->size += size;
    env->count++;
    return 0;
}

/* The list as it is now. The process may change it meanwhile (setenv): then some of it is left out. Nonzero: it has
 * some. */
static int readList(pid_t pid, ebpfMonMem *mem, ebpfMonEnvironment *env)
{
    uint64_t variable = findVariable(pid), list = variable ? ebpfMonMemPtr(mem, variable) : 0;
    char text[VALUE_MAX];
    size_t room = 0;

    for (unsigned i = 0; list && i < EBPFMON_ENV_MAX; i++) {
        uint64_t at = ebpfMonMemPtr(mem, list + 8u * i);

        if (!at)
            break;
        if (ebpfMonMemStr(mem, at, text, sizeof(text)) < 0 || !strchr(text, '='))
            continue;
        if (addVariable(env, &room, text))
            break;
    }
    return env->count > 0;
}

int ebpfMonEnvironmentRead(pid_t pid, ebpfMonMem *mem, ebpfMonEnvironment *env)
{
    char name[32], *file;
    ssize_t n;

    memset(env, 0, sizeof(*env));
    if (readList(pid, mem, env))
        return 0;
    env->isOfStart = 1;
    snprintf(name, sizeof(name), "/proc/%d/environ", (int)pid);
    file = malloc(EBPFMON_ENV_BYTES);
    n = file ? ebpfMonForeignReadFile(pid, name, FILE_SECONDS, file, EBPFMON_ENV_BYTES) : -1;
    if (n <= 0) {
        free(file);
        return -1;
    }
    env->text = file;
    env->size = (size_t)n;
    file[n] = 0;
    for (size_t at = 0; at < env->size; at += strlen(file + at) + 1)
        env->count++;
    return 0;
}

void ebpfMonEnvironmentFree(ebpfMonEnvironment *env)
{
    free(env->text);
    memset(env, 0, sizeof(*env));
}

const char *ebpfMonEnvironmentGet(const ebpfMonEnvironment *env, const char *name)
{
    size_t length = strlen(name);

    for (size_t at = 0; at < env->size; at += strlen(env->text + at) + 1)
        if (strncmp(env->text + at, name, length) == 0 && env->text[at + length] == '=')
            return env->text + at + length + 1;
    return NULL;
}
