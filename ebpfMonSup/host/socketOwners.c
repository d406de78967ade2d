/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "host/procRead.h"
#include "host/procTcp.h"
#include "host/socketOwners.h"

/* A process that may have sockets. */
typedef struct {
    pid_t    pid;
    uint64_t start; /* 0: gone, or its files could not be read: the next time it is new */
    uint32_t netns;
    int      isNew; /* its files were not gone through before this call */
} ownerProcess;

struct ebpfMonSocketOwners {
    ebpfMonServerSocket *sockets; /* of the last call, by inode */
    size_t        socketCount;
    ownerProcess *processes;     /* of the last call, the youngest first */
    unsigned      processCount;
    uint64_t      signature;     /* of the processes and sockets of the last call; 0: nothing is known */
};

/* A socket in one call of ebpfMonSocketOwnersFind. */
typedef enum {
    socketIsMissing,  /* not known, or its process has closed it */
    socketIsNobodys,  /* none of the processes that were searched before has it */
    socketIsKept,     /* the same process still has it */
    socketIsFound     /* in this call */
} socketState;

typedef struct {
    ebpfMonServerSocket *sockets; /* the caller's, by inode */
    socketState  *state;         /* of each */
    size_t        count;
    ownerProcess *processes;     /* the youngest first */
    unsigned      processCount;
    pid_t         pid;           /* whose files are gone through */
} ownerSearch;

ebpfMonSocketOwners *ebpfMonSocketOwnersNew(void)
{
    return calloc(1, sizeof(ebpfMonSocketOwners));
}

void ebpfMonSocketOwnersForget(ebpfMonSocketOwners *owners)
{
    free(owners->sockets);
    free(owners->processes);
    memset(owners, 0, sizeof(*owners));
}

void ebpfMonSocketOwnersFree(ebpfMonSocketOwners *owners)
{
    if (!owners)
        return;
    ebpfMonSocketOwnersForget(owners);
    free(owners);
}

/* The kernel lists sockets in the same order each time. */
static uint64_t signSockets(const pid_t *pids, unsigned count, const ebpfMonServerSocket *sockets, size_t socketCount)
{
    uint64_t hash = ebpfMonHashFnv64(EBPFMON_FNV64_BEGIN, pids, count * sizeof(*pids));

    for (size_t i = 0; i < socketCount; i++) {
        const uint64_t socket[] = { sockets[i].inode, sockets[i].netns };

        hash = ebpfMonHashFnv64(hash, socket, sizeof(socket));
    }
    return hash ? hash : 1;
}

int ebpfMonSocketOwnersKnow(const ebpfMonSocketOwners *owners, const pid_t *pids, unsigned count,
                            const ebpfMonServerSocket *sockets, size_t socketCount)
{
    return owners->signature == signSockets(pids, count, sockets, socketCount);
}

static int compareSocketInodes(const void *a, const void *b)
{
    unsigned long x = ((const ebpfMonServerSocket *)a)->inode, y = ((const ebpfMonServerSocket *)b)->inode;

    return (x > y) - (x < y);
}

/* The youngest first; of two that were started in the same clock tick, the one with the larger pid. */
static int compareAges(const void *a, const void *b)
{
    const ownerProcess *x = a, *y = b;

    return x->start != y->start ? (x->start < y->start) - (x->start > y->start) : (x->pid < y->pid) - (x->pid > y->pid);
}

static ebpfMonServerSocket *findSocket(ebpfMonServerSocket *sockets, size_t count, unsigned long inode)
{
    const ebpfMonServerSocket key = { .inode = inode };

    return count ? bsearch(&key, sockets, count, sizeof(key), compareSocketInodes) : NULL;
}

static int isProcessKnown(const ebpfMonSocketOwners *owners, const ownerProcess *p)
{
    for (unsigned i = 0; i < owners->processCount; i++)
        if (owners->processes[i].pid == p->pid && owners->processes[i].start == p->start)
            return 1;
    return 0;
}

static int isProcessListed(const ownerSearch *s, pid_t pid)
{
    for (unsigned i = 0; i < s->processCount; i++)
        if (s->processes[i].pid == pid)
            return 1;
    return 0;
}

static void listProcesses(const ebpfMonSocketOwners *owners, ownerSearch *s, const pid_t *pids, const uint32_t *netns)
{
    for (unsigned i = 0; i < s->processCount; i++) {
        ownerProcess *p = &s->processes[i];

        *p = (ownerProcess){ .pid = pids[i], .start = ebpfMonProcStart(pids[i]), .netns = netns[i] };
        p->isNew = p->start && !isProcessKnown(owners, p);
    }
    if (s->processCount)
        qsort(s->processes, s->processCount, sizeof(*s->processes), compareAges);
}

/* Takes over what is known and still true. */
static void keepOwners(const ebpfMonSocketOwners *owners, ownerSearch *s)
{
    for (size_t i = 0; i < s->count; i++) {
        ebpfMonServerSocket *socket = &s->sockets[i];
        const ebpfMonServerSocket *old = findSocket(owners->sockets, owners->socketCount, socket->inode);

        socket->pid = 0;
        s->state[i] = socketIsMissing;
        if (!old || old->netns != socket->netns)
            continue;
        if (!old->pid) {
            s->state[i] = socketIsNobodys;
        } else if (isProcessListed(s, old->pid) && ebpfMonTcpHasSocket(old->pid, old->file, socket->inode)) {
            socket->pid = old->pid;
            socket->file = old->file;
            s->state[i] = socketIsKept;
        }
    }
}

static void noteOwner(void *arg, unsigned file, unsigned long inode)
{
    ownerSearch *s = arg;
    ebpfMonServerSocket *socket = findSocket(s->sockets, s->count, inode);

    if (!socket || socket->pid)
        return;
    socket->pid = s->pid;
    socket->file = file;
    s->state[socket - s->sockets] = socketIsFound;
}

/* Whether one of the sockets that nobody has may be found in this process. */
static int mayOwn(const ownerSearch *s, const ownerProcess *p)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->state[i] == socketIsMissing ? p->isNew || !p->netns || p->netns == s->sockets[i].netns
                                           : s->state[i] == socketIsNobodys && p->isNew)
            return 1;
    return 0;
}

/* Goes through the files of the processes that may have one of the sockets. Returns -1 if those of a process could not
 * be read. */
static int searchProcesses(ownerSearch *s)
{
    int result = 0;

    for (int isNew = 1; isNew >= 0; isNew--)
        for (unsigned i = 0; i < s->processCount; i++) {
            ownerProcess *p = &s->processes[i];

            s->pid = p->pid;
            if (!p->start || p->isNew != isNew || !mayOwn(s, p) || ebpfMonTcpOwned(p->pid, noteOwner, s) == 0)
                continue;
            p->start = 0;
            result = -1;
        }
    return result;
}

/* A child that was forked has the files of its parent, at the same numbers. The parent is the server. */
static void preferOldest(ownerSearch *s, size_t index)
{
    ebpfMonServerSocket *socket = &s->sockets[index];

    for (unsigned i = s->processCount; i-- > 0;) {
        const ownerProcess *p = &s->processes[i];

        if (p->pid == socket->pid)
            return;
        if (p->start && (p->isNew || s->state[index] == socketIsFound)
            && ebpfMonTcpHasSocket(p->pid, socket->file, socket->inode)) {
            socket->pid = p->pid;
            return;
        }
    }
}

/* "processes" is malloc'ed, and belongs to "owners" from now on. */
static void rememberSearch(ebpfMonSocketOwners *owners, const ownerSearch *s)
{
    ebpfMonSocketOwnersForget(owners);
    owners->processes = s->processes;
    owners->processCount = s->processCount;
    owners->sockets = malloc((s->count ? s->count : 1) * sizeof(*owners->sockets));
    if (!owners->sockets) {
        ebpfMonSocketOwnersForget(owners);
        return;
    }
    if (s->count)
        memcpy(owners->sockets, s->sockets, s->count * sizeof(*owners->sockets));
    owners->socketCount = s->count;
}

void ebpfMonSocketOwnersFind(ebpfMonSocketOwners *owners, const pid_t *pids, const uint32_t *netns, unsigned count,
                             ebpfMonServerSocket *sockets, size_t socketCount)
{
    uint64_t signature = signSockets(pids, count, sockets, socketCount);
    ownerSearch s = { .sockets = sockets, .count = socketCount, .processCount = count,
                      .state = calloc(socketCount ? socketCount : 1, sizeof(*s.state)),
                      .processes = calloc(count ? count : 1, sizeof(*s.processes)) };
    int result;

    for (size_t i = 0; i < socketCount; i++)
        sockets[i].pid = 0;
    if (!s.state || !s.processes) {
        ebpfMonSocketOwnersForget(owners);
        free(s.state);
        free(s.processes);
        return;
    }
    if (socketCount)
        qsort(sockets, socketCount, sizeof(*sockets), compareSocketInodes);
    listProcesses(owners, &s, pids, netns);
    keepOwners(owners, &s);
    result = searchProcesses(&s);
    for (size_t i = 0; i < socketCount; i++)
        if (sockets[i].pid)
            preferOldest(&s, i);
    rememberSearch(owners, &s);
    if (owners->sockets && result == 0)
        owners->signature = signature;
    free(s.state);
}
