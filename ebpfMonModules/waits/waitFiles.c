/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/text.h"
#include "host/memory.h"
#include "host/procInfo.h"
#include "host/tcpSockets.h"
#include "waits/waitFiles.h"

#define ALL_STATES  0xffffu
#define MOUNTS_MAX  65536 /* bytes of mountinfo */
#define FUSE_DEVICE "/dev/fuse"
#define LOOKS_MAX   100000 /* open files of other processes, some 0.2 s of CPU time: who is behind them is not named */

typedef struct {
    unsigned long inode;
    const char *protocol; /* "" of TCP, "UDP " */
    char text[100];
} socketPeer;

static int findPeer(void *arg, const ebpfMonTcpRow *row)
{
    socketPeer *p = arg;
    char addr[INET6_ADDRSTRLEN] = "?";

    if (row->inode != p->inode)
        return 0;
    inet_ntop(row->v4 ? AF_INET : AF_INET6, row->v4 ? (const void *)&row->remote : row->remote6, addr, sizeof(addr));
    if (row->remotePort)
        snprintf(p->text, sizeof(p->text), "%s%s:%u", p->protocol, addr, (unsigned)ntohs(row->remotePort));
    else
        snprintf(p->text, sizeof(p->text), "%s to %sport %u", p->protocol[0] ? "datagrams" : "connections", p->protocol,
                 (unsigned)ntohs(row->localPort));
    return 1;
}

/* --- who else has a file open ----------------------------------------------------------------------------------- */

/* A number of /proc/PID/fdinfo/FD; "name" with its colon. -1: it is not there. */
static long readInfo(pid_t pid, int file, const char *name, int base)
{
    char path[32], buf[512], *at;

    snprintf(path, sizeof(path), "fdinfo/%d", file);
    at = ebpfMonProcReadText(pid, path, buf, sizeof(buf)) > 0 ? strstr(buf, name) : NULL;
    return at ? strtol(at + strlen(name), NULL, base) : -1;
}

/* "link": what /proc/PID/fd says of the file. "access": O_RDONLY or O_WRONLY: who can do no more is left out; -1: all.
 * "fuse": only who has this connection of FUSE, as far as the kernel tells (Linux 6.11); -1: all. Returns how many
 * processes there are, one more if there may be others; "text" gets the first ones. */
static int findHolders(pid_t self, const char *link, int access, long fuse, char *text, size_t size)
{
    pid_t *pids = NULL;
    int count = ebpfMonProcList(&pids), holders = 0, looks = 0;
    char name[16], found[64], comm[32];

    for (int i = 0; i < count; i++) {
        int isFound = 0, *files, fileCount = ebpfMonProcListNumbers(pids[i], "fd", LOOKS_MAX, &files);

        for (int k = 0; k < fileCount && !isFound && looks++ < LOOKS_MAX; k++) {
            snprintf(name, sizeof(name), "fd/%d", files[k]);
            ebpfMonProcReadLink(pids[i], name, found, sizeof(found));
            isFound = strcmp(found, link) == 0 &&
                      (access < 0 || (readInfo(pids[i], files[k], "flags:", 8) & O_ACCMODE) != access) &&
                      (fuse < 0 || readInfo(pids[i], files[k], "fuse_connection:", 10) == fuse);
        }
        free(files);
        if (!isFound)
            continue;
        holders++;
        if (strlen(text) > size / 2)
            continue;
        ebpfMonProcReadText(pids[i], "comm", comm, sizeof(comm));
        comm[strcspn(comm, "\n")] = 0;
        ebpfMonTextClean(comm, sizeof(comm));
        ebpfMonTextAdd(text, size, "%s%.20s (pid %d)%s", text[0] ? ", " : "", comm, (int)pids[i],
                       pids[i] == self ? " itself" : "");
    }
    free(pids);
    return holders + (looks > LOOKS_MAX);
}

/* --- what a path is on ------------------------------------------------------------------------------------------ */

/* A mount: the parts of a line of mountinfo (proc(5)). */
typedef struct {
    char at[200], type[32], source[100];
    unsigned minor;
} mount;

/* The mount on which the path is: that with the longest name that it begins with. 0, or -1. */
static int findMount(pid_t pid, const char *path, mount *m)
{
    char *buf = malloc(MOUNTS_MAX), *rest = buf;
    size_t longest = 0;

    if (buf && ebpfMonProcReadText(pid, "mountinfo", buf, MOUNTS_MAX) > 0) {
        for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
            const char *behind = strstr(line, " - ");
            mount one = { .at = "" };
            size_t length;

            if (!behind || sscanf(line, "%*d %*d %*u:%u %*s %199s", &one.minor, one.at) != 2 ||
                sscanf(behind, " - %31s %99s", one.type, one.source) != 2)
                continue;
            length = strcmp(one.at, "/") == 0 ? 0 : strlen(one.at);
            if (strncmp(path, one.at, length) == 0 && (path[length] == '/' || !path[length]) && length >= longest) {
                longest = length;
                *m = one;
            }
        }
    }
    free(buf);
    return m->type[0] ? 0 : -1;
}

/* A file system that a program or another host serves: what is known of it behind the path. */
static void addServer(pid_t pid, char *text, size_t size)
{
    char servers[120] = "";
    mount m = { .at = "" };
    int count;

    if (text[0] != '/' || findMount(pid, text, &m))
        return;
    if (strncmp(m.type, "fuse", 4) != 0) {
        if (strchr(m.source, ':') || strncmp(m.source, "//", 2) == 0)
            ebpfMonTextAdd(text, size, " (%s %s)", m.type, m.source);
        return;
    }
    count = findHolders(pid, FUSE_DEVICE, -1, m.minor, servers, sizeof(servers));
    if (!count && findHolders(pid, FUSE_DEVICE, -1, -1, servers, sizeof(servers)) != 1)
        servers[0] = 0; /* the kernel does not tell whose it is, and there is not one only */
    ebpfMonTextAdd(text, size, " (%s %s%s%s)", m.type, m.source, servers[0] ? ", served by " : "", servers);
}

/* --- names ------------------------------------------------------------------------------------------------------ */

/* The file with this number. "isWrite": the thread waits to write. */
static void nameNumber(pid_t pid, unsigned file, int isWrite, char *text, size_t size)
{
    char name[16], link[200], peers[120] = "";
    socketPeer peer = { .protocol = "" };

    snprintf(name, sizeof(name), "fd/%u", file);
    ebpfMonProcReadLink(pid, name, link, sizeof(link));
    ebpfMonTextClean(link, sizeof(link));
    if (sscanf(link, "socket:[%lu]", &peer.inode) == 1 &&
        (ebpfMonTcpRows(pid, ALL_STATES, findPeer, &peer) ||
         (peer.protocol = "UDP ", ebpfMonUdpRows(pid, findPeer, &peer))))
        snprintf(text, size, "%s", peer.text);
    else if (strncmp(link, "pipe:", 5) == 0) {
        findHolders(pid, link, isWrite ? O_WRONLY : O_RDONLY, -1, peers, sizeof(peers));
        snprintf(text, size, !peers[0] ? "a pipe%s" : isWrite ? "a pipe that %s has to read" : "a pipe of %s", peers);
    } else {
        snprintf(text, size, "%s", peer.inode ? "a socket" : link[0] ? link : "a file");
        addServer(pid, text, size);
    }
}

int ebpfMonWaitFileName(pid_t pid, const char *call, const uint64_t *arg, char *text, size_t size)
{
    static const struct {
        const char *call;
        char        kind; /* 'r' and 'w': of a file by its number; '0' and '1': of a path, which is this argument */
    } calls[] = {
        { "read", 'r' }, { "readv", 'r' }, { "pread64", 'r' }, { "recvfrom", 'r' }, { "recvmsg", 'r' },
        { "accept", 'r' }, { "accept4", 'r' }, { "ioctl", 'r' }, { "fcntl", 'r' }, { "flock", 'r' },
        { "connect", 'w' }, { "write", 'w' }, { "writev", 'w' }, { "pwrite64", 'w' }, { "sendto", 'w' },
        { "sendmsg", 'w' }, { "fsync", 'w' }, { "fdatasync", 'w' }, { "close", 'w' }, { "fstat", 'r' },
        { "getdents64", 'r' }, { "open", '0' }, { "stat", '0' }, { "lstat", '0' }, { "access", '0' },
        { "unlink", '0' }, { "rename", '0' }, { "mkdir", '0' }, { "openat", '1' }, { "openat2", '1' },
        { "newfstatat", '1' }, { "statx", '1' }, { "faccessat", '1' }, { "faccessat2", '1' }, { "unlinkat", '1' },
        { "renameat", '1' }, { "renameat2", '1' }, { "mkdirat", '1' }
    };

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        if (strcmp(call, calls[i].call) != 0)
            continue;
        if (calls[i].kind == 'r' || calls[i].kind == 'w') {
            nameNumber(pid, (unsigned)arg[0], calls[i].kind == 'w', text, size);
            return 1;
        }
        if (ebpfMonMemTextNow(pid, arg[calls[i].kind - '0'], text, size) <= 0)
            return 0;
        ebpfMonTextClean(text, size);
        addServer(pid, text, size);
        return 1;
    }
    return 0;
}
