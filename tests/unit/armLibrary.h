/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the libraries of Debian 13's epics-base for arm64 lie. They are unpacked into the cache once, by
 * /usr/bin/python3 -m tests.harness.debian -s trixie arm64 ~/.cache/ebpfmon/aarch64/epics-base epics-base
 * Without them the tests that read them are skipped. */
#ifndef EBPFMON_ARMLIBRARY_H
#define EBPFMON_ARMLIBRARY_H

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

/* Finds the file with this name, followed by a release number. 0, or -1 if there is none. */
static int armLibrary(const char *name, char *path, size_t size)
{
    const char *cache = getenv("EBPFMON_CACHE"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char pattern[512];
    glob_t found;
    int n;

    n = cache && *cache ? snprintf(pattern, sizeof(pattern), "%s", cache)
      : xdg && *xdg     ? snprintf(pattern, sizeof(pattern), "%s/ebpfmon", xdg)
                        : snprintf(pattern, sizeof(pattern), "%s/.cache/ebpfmon", home ? home : "");
    if (n < 0 || (size_t)n + 100 > sizeof(pattern))
        return -1;
    snprintf(pattern + n, sizeof(pattern) - (size_t)n, "/aarch64/epics-base/usr/lib/*/%s.*", name);
    if (glob(pattern, 0, NULL, &found))
        return -1;
    n = snprintf(path, size, "%s", found.gl_pathv[0]);
    globfree(&found);
    return n > 0 && (size_t)n < size ? 0 : -1;
}

#endif
