/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The TCP connections of this host with itself, and who owns their client ends; see procInfo.h.
 *
 * /proc/net/tcp names a socket by inode, and the links in /proc/PID/fd ("socket:[INODE]") say who has it
 * (proc(5)). Going through all descriptors of a host is the dear part: it ends with the last inode found.
 */
#include <dirent.h>
#include <arpa/inet.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "target/procInfo.h"

#define MAX_ENDS   (1u << 17)
#define MAX_FDS    65536u     /* of one process */

enum { Established = 1, Listening = 10 }; /* include/net/tcp_states.h */

typedef struct {
    uint32_t local, remote;   /* network byte order, ports too */
    uint16_t localPort, remotePort;
    uid_t    uid;
    unsigned long inode;
    pid_t    pid;
} End;

typedef struct {
    End     *end;
    size_t   count, room;
    uint8_t  listening[65536 / 8];
} Ends;

static int addEnd(Ends *ends, const End *end)
{
    if (ends->count == ends->room) {
        size_t room = ends->room ? 2 * ends->room : 256;
        End *more = room <= MAX_ENDS ? realloc(ends->end, room * sizeof(*more)) : NULL;

        if (!more)
            return -1;
        ends->end = more;
        ends->room = room;
    }
    ends->end[ends->count++] = *end;
    return 0;
}

/* An address in hex as the tables print it, each word in host byte order: so it reads as it is in memory.
 * 0 when it is an IPv6 one that is not v4-mapped. */
static int parseAddress(const char *text, uint32_t *address)
{
    char mapped[25];
    uint32_t mark = htonl(0xffff);

    if (strlen(text) == 32) {
        snprintf(mapped, sizeof(mapped), "%016d%08X", 0, (unsigned)mark);
        if (strncmp(text, mapped, 24))
            return 0;
        text += 24;
    }
    *address = (uint32_t)strtoul(text, NULL, 16);
    return 1;
}

/* Reads one table into "ends". 0, or -1: no memory. A table that is not there is an empty one. */
static int readTable(const char *path, Ends *ends)
{
    FILE *table = fopen(path, "re");
    char line[512];
    int result = 0;

    while (table && !result && fgets(line, sizeof(line), table)) {
        char local[33], remote[33];
        unsigned localPort, remotePort, state, uid;
        End end = { .pid = 0 };

        if (sscanf(line, " %*u: %32[0-9A-F]:%x %32[0-9A-F]:%x %x %*x:%*x %*x:%*x %*x %u %*u %lu", local,
                &localPort, remote, &remotePort, &state, &uid, &end.inode) != 7
            || localPort > 65535 || remotePort > 65535)
            continue;
        if (state == Listening)
            ends->listening[localPort / 8] |= (uint8_t)(1u << localPort % 8);
        if (state != Established || !parseAddress(local, &end.local) || !parseAddress(remote, &end.remote))
            continue;
        end.localPort = htons((uint16_t)localPort);
        end.remotePort = htons((uint16_t)remotePort);
        end.uid = (uid_t)uid;
        result = addEnd(ends, &end);
    }
    if (table)
        fclose(table);
    return result;
}

static int byAddress(const void *a, const void *b)
{
    const End *x = a, *y = b;

    if (x->local != y->local)
        return x->local < y->local ? -1 : 1;
    if (x->localPort != y->localPort)
        return x->localPort < y->localPort ? -1 : 1;
    if (x->remote != y->remote)
        return x->remote < y->remote ? -1 : 1;
    return x->remotePort < y->remotePort ? -1 : x->remotePort > y->remotePort;
}

static int byInode(const void *a, const void *b)
{
    unsigned long x = ((const End *)a)->inode, y = ((const End *)b)->inode;

    return x < y ? -1 : x > y;
}

/* Keeps the client ends of connections whose other end is here too. */
static int keepClients(const Ends *ends, Ends *clients)
{
    for (size_t i = 0; i < ends->count; i++) {
        const End *end = &ends->end[i];
        End other = { .local = end->remote, .remote = end->local,
                      .localPort = end->remotePort, .remotePort = end->localPort };
        unsigned port = ntohs(end->localPort);

        if ((ends->listening[port / 8] >> port % 8 & 1)
            || !bsearch(&other, ends->end, ends->count, sizeof(other), byAddress))
            continue;
        if (addEnd(clients, end))
            return -1;
    }
    return 0;
}

/* Notes the process as the owner of those of its sockets that have none yet; returns how many. */
static size_t findOwned(pid_t pid, Ends *clients)
{
    char path[320], target[64];
    size_t found = 0;
    struct dirent *entry;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);

    DIR *dir = opendir(path);

    for (unsigned n = 0; dir && n < MAX_FDS && (entry = readdir(dir)) != NULL; n++) {
        snprintf(path, sizeof(path), "/proc/%d/fd/%s", (int)pid, entry->d_name);

        ssize_t length = readlink(path, target, sizeof(target) - 1);
        End key = { .inode = 0 };

        target[length > 0 ? length : 0] = 0;
        if (sscanf(target, "socket:[%lu]", &key.inode) != 1)
            continue;

        End *end = bsearch(&key, clients->end, clients->count, sizeof(key), byInode);

        if (end && !end->pid) {
            end->pid = pid;
            found++;
        }
    }
    if (dir)
        closedir(dir);
    return found;
}

static void readComm(pid_t pid, char *comm, size_t size)
{
    char path[32];

    comm[0] = 0;
    snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);

    FILE *file = fopen(path, "re");

    if (!file)
        return;
    if (!fgets(comm, (int)size, file))
        comm[0] = 0;
    fclose(file);
    comm[strcspn(comm, "\n")] = 0;
}

/* Finds the owners of all client ends and copies them out; returns their number, -1: no memory. */
static int copyOut(Ends *clients, ebpfMonProcConn **conns)
{
    pid_t *pids = NULL;
    int nPids = clients->count ? ebpfMonProcList(&pids) : 0;
    size_t left = clients->count;

    *conns = calloc(clients->count ? clients->count : 1, sizeof(**conns));
    if (nPids < 0 || !*conns) {
        free(pids);
        free(*conns);
        *conns = NULL;
        return -1;
    }
    qsort(clients->end, clients->count, sizeof(*clients->end), byInode);
    for (int i = 0; i < nPids && left; i++)
        left -= findOwned(pids[i], clients);
    free(pids);
    for (size_t i = 0; i < clients->count; i++) {
        const End *end = &clients->end[i];
        ebpfMonProcConn *conn = &(*conns)[i];

        *conn = (ebpfMonProcConn){ .addr = end->local, .saddr = end->remote, .port = end->localPort,
                                   .sport = end->remotePort, .pid = end->pid, .uid = end->uid };
        if (end->pid)
            readComm(end->pid, conn->comm, sizeof(conn->comm));
    }
    return (int)clients->count;
}

int ebpfMonProcConns(ebpfMonProcConn **conns)
{
    Ends ends = { .end = NULL }, clients = { .end = NULL };
    int result = -1;

    *conns = NULL;
    if (!readTable("/proc/net/tcp", &ends) && !readTable("/proc/net/tcp6", &ends)) {
        if (ends.count)
            qsort(ends.end, ends.count, sizeof(*ends.end), byAddress);
        if (!keepClients(&ends, &clients))
            result = copyOut(&clients, conns);
    }
    free(ends.end);
    free(clients.end);
    return result;
}

int ebpfMonProcListening(pid_t pid, uint8_t ports[EBPFMON_PORTS_BYTES])
{
    Ends ends = { 0 };
    char path[64];
    int status;

    snprintf(path, sizeof(path), "/proc/%d/net/tcp", (int)pid);
    status = readTable(path, &ends);
    snprintf(path, sizeof(path), "/proc/%d/net/tcp6", (int)pid);
    if (status == 0)
        readTable(path, &ends); /* not there without IPv6 */
    memcpy(ports, ends.listening, EBPFMON_PORTS_BYTES);
    free(ends.end);
    return status ? -1 : 0;
}

void ebpfMonProcUser(uid_t uid, char *buf, size_t size)
{
    char text[2048];
    struct passwd entry, *user = NULL;

    if (getpwuid_r(uid, &entry, text, sizeof(text), &user) || !user)
        snprintf(buf, size, "%u", (unsigned)uid);
    else
        snprintf(buf, size, "%s", user->pw_name);
}
