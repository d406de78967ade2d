/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "host/procNetns.h"
#include "host/procRead.h"

#define SHORT_ID    12
#define FOLDER_SIZE 4096 /* of a path in a hierarchy of cgroups */

uint32_t ebpfMonProcNetns(pid_t pid)
{
    char path[48];
    struct stat st;

    snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
    return stat(path, &st) ? 0 : (uint32_t)st.st_ino;
}

/* The inode of the user namespace that owns the network namespace of a process (ioctl_ns(2)). 0: we may not know. */
static ino_t findOwner(const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC), owner = file < 0 ? -1 : ioctl(file, NS_GET_USERNS);
    struct stat st = { .st_ino = 0 };

    if (owner >= 0 && fstat(owner, &st))
        st.st_ino = 0;
    if (owner >= 0)
        close(owner);
    if (file >= 0)
        close(file);
    return st.st_ino;
}

int ebpfMonProcIsOurNetns(pid_t pid, uint32_t netns)
{
    char path[48];
    struct stat own;

    snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
    return netns == ebpfMonProcNetns(getpid()) ||
           (netns == ebpfMonProcNetns(pid) && stat("/proc/self/ns/user", &own) == 0 && findOwner(path) == own.st_ino);
}

int ebpfMonProcNetnsList(const pid_t *pids, size_t count, ebpfMonNetns **list)
{
    int n = 0, i;

    *list = calloc(count ? count : 1, sizeof(**list));
    if (!*list)
        return -1;
    for (size_t p = 0; p < count; p++) {
        uint32_t netns = ebpfMonProcNetns(pids[p]);

        for (i = 0; i < n && (*list)[i].netns != netns; i++)
            ;
        if (netns && i == n)
            (*list)[n++] = (ebpfMonNetns){ .netns = netns, .pid = pids[p] };
    }
    return n;
}

/* --- in which container ---------------------------------------------------------------------------------------- */

/* An id is 64 hexadecimal digits, with nothing or one of these behind it. */
static int isId(const char *p, size_t len)
{
    size_t n = 0;

    while (n < len && isxdigit((unsigned char)p[n]))
        n++;
    return n == 64 && (len == n || (len == n + 6 && !memcmp(p + n, ".scope", 6)));
}

/* systemd's unit names: "\x2d" is "-" (systemd.unit(5)). Characters that no container name has make it none. */
static int copyName(const char *p, size_t len, char *buf, size_t size)
{
    char name[256];
    size_t n = 0;

    for (size_t i = 0; i < len && n < sizeof(name) - 1; i++) {
        unsigned hex;
        char c = p[i];

        if (c == '\\' && len - i >= 4 && p[i + 1] == 'x' && sscanf(p + i + 2, "%2x", &hex) == 1) {
            c = (char)hex;
            i += 3;
        }
        if (!isalnum((unsigned char)c) && (!c || !strchr("-_.+@", c)))
            return 0;
        name[n++] = c;
    }
    name[n] = 0;
    if (!n)
        return 0;
    snprintf(buf, size, "%s", name);
    return 1;
}

/* One part of a cgroup's path, "before" the one before it. */
static int parsePart(const char *p, size_t len, const char *before, size_t beforeLen, char *buf, size_t size)
{
    /* Docker, Podman, and the runtimes of Kubernetes; under systemd with a prefix, else bare. With a prefix of its
     * own: what keeps the container ("libpod-conmon-"), which is not in it. */
    static const char *const prefixes[] = { "docker-", "libpod-", "cri-containerd-", "crio-", "" };
    static const char lxc[] = "lxc.payload.", machine[] = "machine-", scope[] = ".scope";
    size_t n;

    for (const char *colon; (colon = memchr(p, ':', len)) != NULL;) { /* containerd: "SLICE:cri-containerd:ID" */
        len -= (size_t)(colon + 1 - p);
        p = colon + 1;
    }
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        n = strlen(prefixes[i]);
        if (len > n && !memcmp(p, prefixes[i], n) && isId(p + n, len - n))
            return copyName(p + n, SHORT_ID, buf, size);
    }
    n = sizeof(lxc) - 1;
    if (len > n && !memcmp(p, lxc, n))
        return copyName(p + n, len - n, buf, size);
    if (beforeLen == 3 && !memcmp(before, "lxc", 3))
        return copyName(p, len, buf, size);
    n = sizeof(machine) - 1;
    if (len > n + sizeof(scope) - 1 && !memcmp(p, machine, n)
        && !memcmp(p + len - (sizeof(scope) - 1), scope, sizeof(scope) - 1))
        return copyName(p + n, len - n - (sizeof(scope) - 1), buf, size);
    return 0;
}

/* The outermost container of a path: whoever is in it chooses the names of the cgroups below. 1: there is one, *before
 * is the length of the path before it. */
static int findOutermost(const char *path, size_t length, size_t *before, char *buf, size_t size)
{
    const char *end = path + length, *last = path;
    size_t lastLen = 0, len;

    for (const char *part = path + 1; part < end; part += len + 1) {
        const char *slash = memchr(part, '/', (size_t)(end - part));

        len = (size_t)((slash ? slash : end) - part);
        if (parsePart(part, len, last, lastLen, buf, size)) {
            *before = (size_t)(part - path) - 1;
            return 1;
        }
        last = part;
        lastLen = len;
    }
    return 0;
}

/* One line: HIERARCHY:CONTROLLERS:PATH (cgroups(7)). */
static int parseLine(const char *line, size_t length, ebpfMonCgroupJudge isRoots, char *buf, size_t size)
{
    const char *controllers = memchr(line, ':', length), *path;
    char names[128], folder[FOLDER_SIZE];
    size_t before;

    path = controllers ? memchr(controllers + 1, ':', (size_t)(line + length - controllers) - 1) : NULL;
    if (!path || path + 1 == line + length || path[1] != '/' ||
        !findOutermost(path + 1, (size_t)(line + length - path) - 1, &before, buf, size))
        return 0;
    if (before >= sizeof(folder) || (size_t)(path - controllers) > sizeof(names))
        return 0;
    snprintf(names, sizeof(names), "%.*s", (int)(path - controllers) - 1, controllers + 1);
    snprintf(folder, sizeof(folder), "%.*s", (int)before, path + 1);
    return isRoots(names, folder);
}

int ebpfMonContainerParse(const char *cgroup, ebpfMonCgroupJudge isRoots, char *buf, size_t size)
{
    for (const char *line = cgroup; *line;) {
        size_t length = strcspn(line, "\n");

        if (parseLine(line, length, isRoots, buf, size))
            return 1;
        line += length + (line[length] != 0);
    }
    buf[0] = 0;
    return 0;
}

/* Who may write to the folder chooses the names in it; systemd gives each user one. A folder outside of our own cgroup
 * namespace begins with "/.." (cgroup_namespaces(7)): it cannot be looked at. */
static int isRootsFolder(const char *controllers, const char *folder)
{
    static const char *const places[] = { "unified", "." }; /* of cgroup v2, beside v1 or alone */
    const char *v1 = strncmp(controllers, "name=", 5) == 0 ? controllers + 5 : controllers;
    int isV2 = !controllers[0], found = -1;
    char path[FOLDER_SIZE + 160];
    struct stat st;

    if (strstr(folder, "/..") || strchr(v1, '/'))
        return 0;
    for (int i = 0; i < (isV2 ? 2 : 1) && found; i++) {
        snprintf(path, sizeof(path), "/sys/fs/cgroup/%s%s", isV2 ? places[i] : v1, folder);
        found = stat(path, &st);
    }
    return !found && st.st_uid == 0 && !(st.st_mode & (S_IWGRP | S_IWOTH));
}

int ebpfMonProcContainer(pid_t pid, char *buf, size_t size)
{
    char text[8192];

    ebpfMonProcReadText(pid, "cgroup", text, sizeof(text));
    return ebpfMonContainerParse(text, isRootsFolder, buf, size);
}
