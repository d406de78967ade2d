/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsThread.h>

#include "access/client.h"
#include "ioc/baseRelease.h"

/* The thread variable of the CA server: the struct client that the thread serves (camsgtask.c). Base does not
 * install rsrv/server.h, which declares it. dbServerClient() would give only names that the client claims. Weak: if
 * a program has no CA server, no CA client is known. */
extern epicsThreadPrivateId rsrvCurrentClient __attribute__((weak));

/* One in each thread, because the servers call us in the thread of the connection, and pass no context. */
static _Thread_local struct {
    const void         *caClient;  /* the struct client of rsrv from which "client" was made */
    struct sockaddr_in  pva;       /* sin_port 0: this thread serves no PVA client */
    int                 isFound;   /* "client" is set */
    ebpfMonAccessClient client;
} here;

static void findClient(ebpfMonClientServer server, const struct sockaddr_in *peer)
{
    here.client.server = server;
    ebpfMonPeerUserFind(peer, &here.client.user);
    here.isFound = 1;
}

/* Reads the client's address out of the struct client of rsrv. peerUser.c looks for this address among our own
 * connections. So if another release of Base has another struct, the client is unknown, but never a wrong one. */
static const ebpfMonAccessClient *getCaClient(const char *caClient)
{
    if (!here.isFound || here.caClient != caClient) {
        struct sockaddr_in peer;

        memcpy(&peer, caClient + ebpfMonBaseReleaseGet(0)->client.addr, sizeof(peer));
        here.caClient = caClient;
        findClient(ebpfMonClientCa, &peer);
    }
    return &here.client;
}

const ebpfMonAccessClient *ebpfMonAccessClientHere(void)
{
    const char *caClient = &rsrvCurrentClient && rsrvCurrentClient ? epicsThreadPrivateGet(rsrvCurrentClient) : NULL;

    if (caClient)
        return getCaClient(caClient);
    if (!here.pva.sin_port)
        return NULL;
    return &here.client;
}

void ebpfMonAccessClientNotePva(const char *peer)
{
    char addr[INET_ADDRSTRLEN];
    unsigned port;

    memset(&here, 0, sizeof(here));
    if (sscanf(peer, "%15[0-9.]:%u", addr, &port) != 2 || port == 0 || port > UINT16_MAX ||
        inet_pton(AF_INET, addr, &here.pva.sin_addr) != 1)
        return;
    here.pva.sin_family = AF_INET;
    here.pva.sin_port = htons((uint16_t)port);
    findClient(ebpfMonClientPva, &here.pva); /* now, while the client is connected */
}
