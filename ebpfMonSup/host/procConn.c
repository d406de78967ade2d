/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP connections, and who owns their client ends; see procInfo.h.
 *
 * To go through all descriptors of a host takes most of the time. So the processes that live in the namespace of the
 * sockets come first, and it ends with the last inode found.
 */
#include <arpa/inet.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/array.h"
#include "host/procInfo.h"
#include "host/procNetns.h"
#include "host/procTcp.h"

#define MAX_ENDS   (1u << 17)

typedef struct {
    uint32_t local, remote;   /* network byte order, ports too; those of IPv6 as in struct ebpfMonPeer */
    uint32_t local6[4], remote6[4];
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
    if (ends->count >= MAX_ENDS || ebpfMonArrayGrow(&ends->end, &ends->room, ends->count + 1, 256, sizeof(*ends->end)))
        return -1;
    ends->end[ends->count++] = *end;
    return 0;
}

/* Notes an established connection, and the port of a listening socket. Nonzero: no memory. */
static int addConnRow(void *arg, const ebpfMonTcpRow *row)
{
    Ends *ends = arg;
    unsigned port = ntohs(row->localPort);
    End end = { .local = row->local, .remote = row->remote, .localPort = row->localPort,
                .remotePort = row->remotePort, .uid = row->uid, .inode = row->inode };

    if (row->state == ebpfMonTcpListen)
        ends->listening[port / 8] |= (uint8_t)(1u << port % 8);
    if (!row->v4) {
        memcpy(end.local6, row->local6, sizeof(end.local6));
        memcpy(end.remote6, row->remote6, sizeof(end.remote6));
        end.local = ebpfMonShortAddress(end.local6);
        end.remote = ebpfMonShortAddress(end.remote6);
    }
    return row->state == ebpfMonTcpEstablished && (row->v4 || row->v6) ? addEnd(ends, &end) : 0;
}

static int byInode(const void *a, const void *b)
{
    unsigned long x = ((const End *)a)->inode, y = ((const End *)b)->inode;

    return x < y ? -1 : x > y;
}

static int keepClients(const Ends *ends, Ends *clients)
{
    for (size_t i = 0; i < ends->count; i++) {
        unsigned port = ntohs(ends->end[i].localPort);

        if (!(ends->listening[port / 8] >> port % 8 & 1) && addEnd(clients, &ends->end[i]))
            return -1;
    }
    return 0;
}

typedef struct {
    pid_t  pid;
    Ends  *clients;
    size_t found;
} Owner;

/* Notes the process as the owner of a socket that has none yet. */
static void findOwned(void *arg, unsigned file, unsigned long inode)
{
    Owner *owner = arg;
    End key = { .inode = inode };
    End *end = bsearch(&key, owner->clients->end, owner->clients->count, sizeof(key), byInode);

    (void)file;
    if (end && !end->pid) {
        end->pid = owner->pid;
        owner->found++;
    }
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

/* Goes through the files of the processes that live in this network namespace, or, with "isOutside", of all others,
 * until the owners of all client ends are found. Returns the number of those that are not. */
static size_t findOwners(Ends *clients, size_t left, const pid_t *pids, int count, uint32_t netns, int isOutside)
{
    for (int i = 0; i < count && left; i++) {
        Owner owner = { .pid = pids[i], .clients = clients };

        if ((ebpfMonProcNetns(owner.pid) != netns) != isOutside)
            continue;
        ebpfMonTcpOwned(owner.pid, findOwned, &owner);
        left -= owner.found;
    }
    return left;
}

/* Finds the owners of all client ends in the namespace of process "pid", and copies them out; returns their number, -1:
 * no memory. */
static int copyOut(pid_t pid, Ends *clients, ebpfMonProcConn **conns)
{
    pid_t *pids = NULL;
    int nPids = clients->count ? ebpfMonProcList(&pids) : 0;
    uint32_t netns = ebpfMonProcNetns(pid ? pid : getpid());

    *conns = calloc(clients->count ? clients->count : 1, sizeof(**conns));
    if (nPids < 0 || !*conns) {
        free(pids);
        free(*conns);
        *conns = NULL;
        return -1;
    }
    if (clients->count)
        qsort(clients->end, clients->count, sizeof(*clients->end), byInode);
    findOwners(clients, findOwners(clients, clients->count, pids, nPids, netns, 0), pids, nPids, netns, 1);
    free(pids);
    for (size_t i = 0; i < clients->count; i++) {
        const End *end = &clients->end[i];
        ebpfMonProcConn *conn = &(*conns)[i];

        *conn = (ebpfMonProcConn){ .addr = end->local, .saddr = end->remote, .port = end->localPort,
                                   .sport = end->remotePort, .pid = end->pid, .uid = end->uid };
        memcpy(conn->addr6, end->local6, sizeof(conn->addr6));
        memcpy(conn->saddr6, end->remote6, sizeof(conn->saddr6));
        if (end->pid)
            readComm(end->pid, conn->comm, sizeof(conn->comm));
    }
    return (int)clients->count;
}

int ebpfMonProcReadConns(pid_t pid, ebpfMonProcConn **conns)
{
    Ends ends = { .end = NULL }, clients = { .end = NULL };
    int result = -1;

    *conns = NULL;
    if (!ebpfMonTcpRows(pid, EBPFMON_TCP_STATE(ebpfMonTcpListen) | EBPFMON_TCP_STATE(ebpfMonTcpEstablished), addConnRow,
                        &ends) && !keepClients(&ends, &clients))
        result = copyOut(pid, &clients, conns);
    free(ends.end);
    free(clients.end);
    return result;
}

int ebpfMonProcListening(pid_t pid, uint8_t ports[EBPFMON_PORTS_BYTES])
{
    Ends ends = { 0 };
    int status = ebpfMonTcpRows(pid, EBPFMON_TCP_STATE(ebpfMonTcpListen), addConnRow, &ends);

    memcpy(ports, ends.listening, EBPFMON_PORTS_BYTES);
    free(ends.end);
    return status ? -1 : 0;
}

int ebpfMonProcUser(uid_t uid, char *buf, size_t size)
{
    char text[2048];
    struct passwd entry, *user = NULL;

    if (getpwuid_r(uid, &entry, text, sizeof(text), &user) || !user) {
        snprintf(buf, size, "%u", (unsigned)uid);
        return -1;
    }
    snprintf(buf, size, "%s", user->pw_name);
    return 0;
}
