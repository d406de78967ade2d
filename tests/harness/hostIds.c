/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded into a monitor in a machine with process ids of its own (tests/programs/machine.sh): it is not told so, and
 * does all but find IOCs.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

int stat(const char *path, struct stat *found)
{
    int (*next)(const char *, struct stat *);

    if (strcmp(path, "/proc/self/ns/pid") == 0) {
        errno = ENOENT;
        return -1;
    }
    *(void **)&next = dlsym(RTLD_NEXT, "stat");
    return next(path, found);
}
