/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rsrv keeps its TCP clients in the list clientQ (caservertask.c, req_server; camsgtask.c takes them out), and each
 * client its channels in one of two lists (server.h, enum rsrvChanState). casr counts the same: log_one_client adds
 * the lengths of both. The server goes on meanwhile. What changes while we read it is read again.
 */
#include <stdlib.h>
#include <string.h>

#include "host/foreign.h"
#include "host/memory.h"
#include "ioc/baseLayout.h"
#include "ioc/caServer.h"

#define CLIENTS_MAX  20000
#define CHANNELS_MAX 50000000
#define TRIES        3
#define SECONDS      0.25
#define HEAD_MAX     256 /* of a struct client */

static int countClients(pid_t pid, uint64_t clientQ, const ebpfMonBaseRelease *o, unsigned *clients, unsigned *channels)
{
    uint16_t one = o->client.chanList, other = o->client.chanPendingUpdateARList, far = one > other ? one : other;
    size_t size = far + sizeof(struct layoutList);
    struct layoutList q, chans, pending;
    struct layoutNode node;
    char head[HEAD_MAX];
    uint64_t at, before = 0, sum = 0;
    int32_t n;

    if (size > sizeof(head) || ebpfMonMemReadNow(pid, clientQ, &q, sizeof(q)) || q.count < 0 || q.count > CLIENTS_MAX)
        return -1;
    at = q.first;
    for (n = 0; at && n < q.count; n++) {
        if (at % sizeof(uint64_t) || ebpfMonMemReadNow(pid, at, head, size))
            return -1;
        memcpy(&node, head, sizeof(node));
        memcpy(&chans, head + one, sizeof(chans));
        memcpy(&pending, head + other, sizeof(pending));
        if (node.prev != before || chans.count < 0 || pending.count < 0 || chans.count > CHANNELS_MAX ||
            pending.count > CHANNELS_MAX)
            return -1;
        sum += (uint64_t)chans.count + (uint64_t)pending.count;
        before = at;
        at = node.next;
    }
    if (at || n != q.count || before != q.last || sum > UINT32_MAX)
        return -1;
    *clients = (unsigned)n;
    *channels = (unsigned)sum;
    return 0;
}

/* One job for all clients, because a job for each read would cost ten times the read. */
typedef struct {
    pid_t    pid;
    uint64_t clientQ;
    const ebpfMonBaseRelease *base;
    unsigned clients, channels;
    int      isRead;
} countJob;

static void runCountJob(void *data)
{
    countJob *j = data;

    for (int i = 0; !j->isRead && i < TRIES; i++)
        j->isRead = countClients(j->pid, j->clientQ, j->base, &j->clients, &j->channels) == 0;
}

int ebpfMonCaServerCount(pid_t pid, uint64_t clientQ, const ebpfMonBaseRelease *base, unsigned *clients,
                         unsigned *channels)
{
    static const ebpfMonForeignJob job = { runCountJob, free };
    countJob *j = clientQ ? malloc(sizeof(*j)) : NULL;
    int isRead;

    if (!j)
        return -1;
    *j = (countJob){ .pid = pid, .clientQ = clientQ, .base = base };
    if (ebpfMonForeignRun(pid, SECONDS, &job, j))
        return -1;
    isRead = j->isRead;
    if (isRead) {
        *clients = j->clients;
        *channels = j->channels;
    }
    free(j);
    return isRead ? 0 : -1;
}
