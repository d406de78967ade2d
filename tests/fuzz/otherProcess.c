/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "otherProcess.h"

#define AREAS 4
#define FILES 32

/* File-scope, because the functions that are replaced have no context. */
static struct {
    uint64_t address;
    const void *bytes;
    size_t size;
} area[AREAS];
static struct {
    const char *name;
    const void *bytes;
    size_t size;
} file[FILES];
static unsigned areas, files;

ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *to, unsigned long nTo, const struct iovec *from,
    unsigned long nFrom, unsigned long flags);
int __wrap_open(const char *path, int flags, ...);
int __real_open(const char *path, int flags, ...);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__real_fopen(const char *path, const char *mode);
int __wrap_stat(const char *path, struct stat *st);
int __real_stat(const char *path, struct stat *st);
ssize_t __wrap_readlink(const char *path, char *buf, size_t size);
ssize_t __real_readlink(const char *path, char *buf, size_t size);
DIR *__wrap_opendir(const char *path);
DIR *__real_opendir(const char *path);

void fuzzProcessClear(void)
{
    areas = files = 0;
}

void fuzzProcessSetMemory(uint64_t address, const void *bytes, size_t size)
{
    if (areas < AREAS) {
        area[areas].address = address;
        area[areas].bytes = bytes;
        area[areas++].size = size;
    }
}

void fuzzProcessSetFile(const char *name, const void *bytes, size_t size)
{
    if (files < FILES) {
        file[files].name = name;
        file[files].bytes = bytes;
        file[files++].size = size;
    }
}

/* Reads as the kernel does: up to the first byte that cannot be read. Our code uses one buffer on each side. */
ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *to, unsigned long nTo, const struct iovec *from,
    unsigned long nFrom, unsigned long flags)
{
    uint64_t at = (uint64_t)(uintptr_t)from->iov_base;

    if (nTo != 1 || nFrom != 1)
        abort();
    for (unsigned i = 0; i < areas; i++)
        if (at >= area[i].address && at - area[i].address < area[i].size) {
            size_t offset = (size_t)(at - area[i].address), n = area[i].size - offset;

            n = n < from->iov_len ? n : from->iov_len;
            n = n < to->iov_len ? n : to->iov_len;
            memcpy(to->iov_base, (const char *)area[i].bytes + offset, n);
            return (ssize_t)n;
        }
    errno = EFAULT;
    return -1;
}

/* Returns the index of the file; FILES: there is no such file; -1: the path is not one of another process. */
static int findFile(const char *path)
{
    size_t length = strlen(path);

    if (strncmp(path, "/proc/", 6) != 0 || strncmp(path, "/proc/self/", 11) == 0) /* for example files of libFuzzer */
        return -1;
    for (int i = (int)files - 1; i >= 0; i--) {
        size_t n = strlen(file[i].name);

        if (file[i].name[n - 1] == '/' ? strstr(path, file[i].name) != NULL :
            length >= n && strcmp(path + length - n, file[i].name) == 0)
            return i;
    }
    errno = ENOENT;
    return FILES;
}

static int openCopy(int i)
{
    int fd = i == FILES ? -1 : memfd_create("fuzz", MFD_CLOEXEC);

    if (fd >= 0 && (write(fd, file[i].bytes, file[i].size) != (ssize_t)file[i].size || lseek(fd, 0, SEEK_SET)))
        abort();
    return fd;
}

int __wrap_open(const char *path, int flags, ...)
{
    int i = findFile(path);
    mode_t mode;
    va_list args;

    va_start(args, flags);
    mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    return i < 0 ? __real_open(path, flags, mode) : openCopy(i);
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
    int i = findFile(path), fd = i < 0 ? -1 : openCopy(i);

    return i < 0 ? __real_fopen(path, mode) : fd < 0 ? NULL : fdopen(fd, "r");
}

int __wrap_stat(const char *path, struct stat *st)
{
    int i = findFile(path);

    if (i < 0)
        return __real_stat(path, st);
    if (i == FILES)
        return -1;
    *st = (struct stat){ .st_mode = S_IFREG, .st_ino = 7, .st_size = (off_t)file[i].size };
    return 0;
}

ssize_t __wrap_readlink(const char *path, char *buf, size_t size)
{
    int i = findFile(path);
    size_t n;

    if (i < 0)
        return __real_readlink(path, buf, size);
    if (i == FILES)
        return -1;
    n = file[i].size < size ? file[i].size : size;
    memcpy(buf, file[i].bytes, n);
    return (ssize_t)n;
}

/* The kernel makes the names in these folders: ids of processes and threads, and numbers of descriptors. An input
 * cannot change them, so our own folders serve. */
DIR *__wrap_opendir(const char *path)
{
    return __real_opendir(strncmp(path, "/proc", 5) != 0 ? path : strstr(path, "/fd") ? "/proc/self/fd" :
                          "/proc/self/task");
}
