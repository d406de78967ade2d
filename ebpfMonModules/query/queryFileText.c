/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/text.h"
#include "host/procRead.h"
#include "host/syscallName.h"
#include "query/queryFileText.h"

#define SHOWN           39   /* characters of a string PV; of a long path the last ones are shown */
#define DESCRIPTORS_MAX 4096 /* descriptors of a process that are looked at */

void ebpfMonQueryFindFileCalls(uint64_t bits[EBPFMON_QUERY_SYSCALLS / 64])
{
    static const char *const names[] = {
        "read", "write", "close", "fstat", "lseek", "ioctl", "pread64", "pwrite64", "readv", "writev", "preadv",
        "pwritev", "sendfile", "connect", "accept", "accept4", "sendto", "recvfrom", "sendmsg", "recvmsg", "sendmmsg",
        "recvmmsg", "shutdown", "bind", "listen", "getsockname", "getpeername", "setsockopt", "getsockopt", "fcntl",
        "flock", "fsync", "fdatasync", "ftruncate", "fallocate", "getdents64", "fchmod", "fchown", "epoll_wait",
        "epoll_pwait", "epoll_ctl", "timerfd_settime", "dup", "dup2", "dup3",
    };

    memset(bits, 0, EBPFMON_QUERY_SYSCALLS / 8);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        long number = ebpfMonSyscallNumber(names[i]);

        if (number >= 0 && number < EBPFMON_QUERY_SYSCALLS)
            bits[number / 64] |= 1ull << number % 64;
    }
}

/* Reads the inode of a descriptor from its fdinfo. stat() of the file could wait for a file server. 0: not known;
 * fdinfo has the inode since Linux 5.14. */
static uint64_t readInode(uint32_t tgid, int descriptor)
{
    char name[32], text[512];

    snprintf(name, sizeof(name), "fdinfo/%d", descriptor);
    ebpfMonProcReadText((pid_t)tgid, name, text, sizeof(text));
    return ebpfMonProcFindNumber(text, "\nino:", 0);
}

/* Nonzero: a path, or a text such as "pipe:[1]", ends with this name. The kernel part may have cut the name. */
static int endsWith(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/'), *colon = strchr(path, ':');

    return strncmp(slash ? slash + 1 : colon ? colon + 1 : path, name, strlen(name)) == 0;
}

/* Finds the path of a file among the open files of its process. 0, or -1: the process does not have it open any
 * more. */
static int findPath(const struct ebpfMonQueryFile *file, char *path, size_t size)
{
    char name[16];
    int found = 0, *files, count = ebpfMonProcListNumbers((pid_t)file->tgid, "fd", DESCRIPTORS_MAX, &files);

    for (int i = 0; !found && i < count; i++) {
        snprintf(name, sizeof(name), "fd/%d", files[i]);
        if (ebpfMonProcReadLink((pid_t)file->tgid, name, path, size) <= 0)
            continue;
        found = endsWith(path, file->file.name) && readInode(file->tgid, files[i]) == file->file.inode;
    }
    free(files);
    return found ? 0 : -1;
}

static void describePeer(const struct ebpfMonQueryFile *file, char *raw, size_t size)
{
    char address[INET6_ADDRSTRLEN] = "";
    const char *format = file->peer.family == AF_INET6 ? "[%s]:%u" : "%s:%u";
    size_t used = 0;

    if (!file->peer.port) {
        snprintf(raw, size, "port %u", (unsigned)file->peer.ownPort);
        return;
    }
    inet_ntop(file->peer.family, file->peer.addr, address, sizeof(address));
    if (file->peer.ownPort)
        used = (size_t)snprintf(raw, size, "%u to ", (unsigned)file->peer.ownPort);
    snprintf(raw + used, size - used, format, address, (unsigned)ntohs(file->peer.port));
}

void ebpfMonQueryFileText(const struct ebpfMonQueryFile *key, char *text, size_t size)
{
    struct ebpfMonQueryFile file = *key;
    char raw[PATH_MAX] = "-";

    switch (file.kind) {
    case EBPFMON_QUERY_IS_FILE:
        file.file.name[sizeof(file.file.name) - 1] = 0;
        if (findPath(&file, raw, sizeof(raw)))
            snprintf(raw, sizeof(raw), "%s", file.file.name[0] ? file.file.name : "pipe");
        break;
    case EBPFMON_QUERY_IS_INET:
        describePeer(&file, raw, sizeof(raw));
        break;
    case EBPFMON_QUERY_IS_SOCKET:
        strcpy(raw, "socket");
        break;
    default:
        break;
    }
    if (strlen(raw) > SHOWN)
        memcpy(memmove(raw, raw + strlen(raw) - SHOWN, SHOWN + 1), "...", 3);
    ebpfMonTextCopy(text, size, raw);
}
