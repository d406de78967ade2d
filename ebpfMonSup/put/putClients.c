/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsMutex.h>

#include "host/peerText.h"
#include "host/procInfo.h"
#include "host/procNetns.h"
#include "put/putClients.h"
#include "put/serverPorts.h"

#define PROCESSES   256 /* that are clients, remembered by pid */
#define CONNECTIONS 256 /* whose texts are remembered */

/* What /proc says of a client's process. */
typedef struct {
    struct ebpfMonOwner owner;
    char command[64];
    char container[64];
} clientProcess;

/* A connection with its texts: many puts come through one. */
typedef struct {
    struct ebpfMonPeer  peer;
    struct ebpfMonOwner owner;
    char user[EBPFMON_USER_MAX], host[EBPFMON_HOST_MAX]; /* as claimed */
    int  isComplete; /* the user's name is known */
    ebpfMonPutClient client;
} clientConnection;

struct ebpfMonPutClients {
    ebpfMonUserNames   *users;     /* the caller's */
    ebpfMonOwnerFinder  findOwner;
    epicsMutexId        lock;      /* guards "process" */
    clientProcess       process[PROCESSES];
    /* event thread only */
    ebpfMonServerPorts *ports;
    clientConnection    connection[CONNECTIONS];
};

ebpfMonPutClients *ebpfMonPutClientsNew(ebpfMonUserNames *users, ebpfMonOwnerFinder findOwner)
{
    ebpfMonPutClients *clients = calloc(1, sizeof(*clients));

    if (!clients)
        return NULL;
    clients->users = users;
    clients->findOwner = findOwner;
    clients->ports = ebpfMonServerPortsNew();
    if (!clients->ports) {
        free(clients);
        return NULL;
    }
    clients->lock = epicsMutexMustCreate();
    return clients;
}

void ebpfMonPutClientsFree(ebpfMonPutClients *clients)
{
    if (!clients)
        return;
    ebpfMonServerPortsFree(clients->ports);
    epicsMutexDestroy(clients->lock);
    free(clients);
}

static int isSameOwner(const struct ebpfMonOwner *a, const struct ebpfMonOwner *b)
{
    return a->pid == b->pid && a->uid == b->uid && strncmp(a->comm, b->comm, sizeof(a->comm)) == 0;
}

/* If the pid runs another program now, its comm differs; in the worst case the old name of a script is shown. */
static void findProcess(ebpfMonPutClients *clients, const struct ebpfMonOwner *owner, clientProcess *process)
{
    clientProcess *known = &clients->process[owner->pid % PROCESSES];

    epicsMutexMustLock(clients->lock);
    *process = *known;
    epicsMutexUnlock(clients->lock);
    if (isSameOwner(&process->owner, owner))
        return;
    memset(process, 0, sizeof(*process));
    process->owner = *owner;
    if (ebpfMonProcCommand((pid_t)owner->pid, process->command, sizeof(process->command)))
        ebpfMonTextCopyBytes(process->command, sizeof(process->command), owner->comm, EBPFMON_COMM_MAX);
    ebpfMonProcContainer((pid_t)owner->pid, process->container, sizeof(process->container));
    epicsMutexMustLock(clients->lock);
    *known = *process;
    epicsMutexUnlock(clients->lock);
}

/* Nonzero: all is known of it. 0: its user's name comes later. */
static int makeClient(ebpfMonPutClients *clients, const struct ebpfMonPeer *peer, const struct ebpfMonOwner *owner,
                      const char *user, const char *host, ebpfMonPutClient *client)
{
    int isComplete = 1;

    memset(client, 0, sizeof(*client));
    ebpfMonPeerTextEnd(peer->addr, peer->addr6, peer->port, client->peer, sizeof(client->peer));
    if (peer->saddr)
        ebpfMonPeerTextEnd(peer->saddr, peer->saddr6, peer->sport, client->server, sizeof(client->server));
    if (owner->pid) {
        clientProcess process;

        findProcess(clients, owner, &process);
        client->peerPid = owner->pid;
        client->peerUid = owner->uid;
        ebpfMonTextCopy(client->command, sizeof(client->command), process.command);
        ebpfMonTextCopy(client->container, sizeof(client->container), process.container);
        isComplete = ebpfMonUserNamesFind(clients->users, (uid_t)owner->uid, client->realUser,
                                          sizeof(client->realUser));
    }
    ebpfMonTextCopy(client->user, sizeof(client->user), user[0] ? user : client->realUser);
    if (host[0])
        ebpfMonTextCopy(client->host, sizeof(client->host), host);
    else
        ebpfMonPeerTextAddress(peer->addr, peer->addr6, client->host, sizeof(client->host));
    return isComplete;
}

void ebpfMonPutClientsFind(ebpfMonPutClients *clients, const struct ebpfMonPeer *peer,
                           const struct ebpfMonFirst *first, const char *user, const char *host,
                           ebpfMonPutClient *client)
{
    struct ebpfMonOwner owner = { .pid = 0 };

    clients->findOwner(peer, first, &owner);
    makeClient(clients, peer, &owner, user, host, client);
}

void ebpfMonPutClientsFindOuter(ebpfMonPutClients *clients, const struct ebpfMonPeer *peer,
                                const struct ebpfMonPeer *outer, const struct ebpfMonFirst *first, const char *user,
                                const char *host, ebpfMonPutClient *client)
{
    ebpfMonPutClientsFind(clients, outer, first, user, host, client);
    memcpy(client->published, client->server, sizeof(client->published));
    ebpfMonPeerTextEnd(peer->saddr, peer->saddr6, peer->sport, client->server, sizeof(client->server));
}

int ebpfMonPutClientsFindByThread(ebpfMonPutClients *clients, const struct ebpfMonHead *head,
                                  const struct ebpfMonWho *who, ebpfMonPutClient *client)
{
    clientConnection *c;

    if (!who->isCA && (!who->peer.addr || !ebpfMonServerPortsHas(clients->ports, head->iocId, (pid_t)head->tgid,
                                                                 who->peer.sport, head->ktime)))
        return 0;
    c = &clients->connection[(who->peer.addr ^ who->peer.port * 40503u ^ who->peer.sport) % CONNECTIONS];
    if (memcmp(&c->peer, &who->peer, sizeof(who->peer)) != 0 || !isSameOwner(&c->owner, &who->owner) ||
        strncmp(c->user, who->user, sizeof(who->user)) != 0 || strncmp(c->host, who->host, sizeof(who->host)) != 0) {
        c->peer = who->peer;
        c->owner = who->owner;
        snprintf(c->user, sizeof(c->user), "%.*s", EBPFMON_USER_MAX - 1, who->user);
        snprintf(c->host, sizeof(c->host), "%.*s", EBPFMON_HOST_MAX - 1, who->host);
        c->isComplete = 0;
    }
    if (!c->isComplete)
        c->isComplete = makeClient(clients, &c->peer, &c->owner, c->user, c->host, &c->client);
    *client = c->client;
    client->isUnsure = who->isShared;
    return 1;
}

void ebpfMonPutClientSet(const ebpfMonPutClient *client, ebpfMonPut *put)
{
    memcpy(put->peer, client->peer, sizeof(put->peer));
    memcpy(put->server, client->server, sizeof(put->server));
    memcpy(put->published, client->published, sizeof(put->published));
    memcpy(put->user, client->user, sizeof(put->user));
    memcpy(put->host, client->host, sizeof(put->host));
    memcpy(put->realUser, client->realUser, sizeof(put->realUser));
    memcpy(put->command, client->command, sizeof(put->command));
    memcpy(put->container, client->container, sizeof(put->container));
    put->peerPid = client->peerPid;
    put->peerUid = client->peerUid;
    put->isUnsure = client->isUnsure;
}
