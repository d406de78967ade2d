/* SPDX-License-Identifier: BSD-3-Clause */
/* watch/packetReader.h: a connection of this process on loopback, and its owner. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "watch/packetReader.h"

#define NETNS 4711

static uint16_t clientPort, serverPort; /* network byte order */
static unsigned found, wrongWay;
static struct ebpfMonPeer peerFound;
static struct ebpfMonOwner ownerFound;

static int onOwner(const struct ebpfMonPeer *peer, const struct ebpfMonOwner *owner)
{
    if (peer->port == clientPort && peer->sport == serverPort) {
        found++;
        peerFound = *peer;
        ownerFound = *owner;
    }
    wrongWay += peer->port == serverPort && peer->sport == clientPort;
    return 0;
}

MAIN(testConnectionOwners)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof(at);
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
        client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int accepted;

    testPlan(6);
    if (bind(server, (struct sockaddr *)&at, sizeof(at)) || listen(server, 1) ||
        getsockname(server, (struct sockaddr *)&at, &size) || connect(client, (struct sockaddr *)&at, sizeof(at)))
        testAbort("no connection on loopback");
    serverPort = at.sin_port;
    accepted = accept(server, NULL, NULL);
    if (accepted < 0 || getsockname(client, (struct sockaddr *)&at, &size))
        testAbort("no connection on loopback");
    clientPort = at.sin_port;

    ebpfMonConnectionOwnersRead(0, NETNS, onOwner);
    testOk(found == 1 && wrongWay == 0, "a connection is listed once: at its client, not at its server");
    testOk1(peerFound.addr == htonl(INADDR_LOOPBACK) && peerFound.saddr == htonl(INADDR_LOOPBACK));
    testOk(peerFound.netns == NETNS, "the network namespace is part of the address");
    testOk(ownerFound.pid == (uint32_t)getpid() && ownerFound.uid == getuid(), "this process is the owner: pid %u",
           ownerFound.pid);
    testOk(strncmp(ownerFound.comm, "testConnectionOwners", sizeof(ownerFound.comm) - 1) == 0, "its command: %.16s",
           ownerFound.comm);
    close(client);
    close(accepted);
    close(server);
    found = 0;
    ebpfMonConnectionOwnersRead(0x7fffffff, NETNS, onOwner);
    testOk(found == 0, "a process that has ended has no connections");
    return testDone();
}
