/* SPDX-License-Identifier: BSD-3-Clause */
/* Which connections of an IOC's servers are seen neither in packets nor in the list of its CA server; and what its pvxs
 * server knows of them. */
#ifndef EBPFMON_IOCCONNECTIONS_H
#define EBPFMON_IOCCONNECTIONS_H

#include <sys/types.h>
#include "clients/caClients.h"
#include "clients/packetClients.h"
#include "clients/pvxsServer.h"
#include "host/tcpSockets.h"
#include "put/putClients.h"
#include "wire/wireEvent.h"

/* --- circuits that packets show ---
 *
 * The circuits of which packets show each message from the first byte on. What comes through another connection (TLS,
 * an older one, one with a gap) is not seen. The packet thread adds and removes them; any thread may ask.
 */

typedef struct ebpfMonFollowedCircuits ebpfMonFollowedCircuits;

ebpfMonFollowedCircuits *ebpfMonFollowedCircuitsNew(void); /* NULL without memory */
void ebpfMonFollowedCircuitsFree(ebpfMonFollowedCircuits *followed);

/* A circuit was opened, has a gap, or ended; other events are ignored. */
void ebpfMonFollowedCircuitsAdd(ebpfMonFollowedCircuits *followed, const ebpfMonWireEvent *event);

/* --- the sockets of an IOC --- */

typedef struct {
    ebpfMonTcpRow *row;     /* those that are connected */
    size_t   rows;
    uint8_t  listening[65536 / 8]; /* by port in host byte order */
    uint32_t netns;
} ebpfMonIocSockets;

/* Asks the kernel for the TCP sockets of process "pid". NULL without memory. */
ebpfMonIocSockets *ebpfMonIocSocketsRead(pid_t pid);
void ebpfMonIocSocketsFree(ebpfMonIocSockets *sockets); /* NULL does no harm */

/* The number of connections that clients have opened to the IOC, and that are not seen. "clients": those that its CA
 * server lists; NULL: none is known. */
unsigned ebpfMonIocSocketsCountUnseen(const ebpfMonIocSockets *sockets, const ebpfMonCaClients *clients,
                                      ebpfMonFollowedCircuits *followed);

/* --- what pvxs knows of them --- */

typedef struct {
    struct ebpfMonPeer peer;
    ebpfMonPutClient who;    /* "user": as the server knows it, "x509/NAME" by a certificate */
    const ebpfMonPvxsClient *is;
    uint64_t since;          /* it was seen first (monotonic ns); 0: at the first look, so it may be older */
    int64_t  bytes;          /* as in ebpfMonClientFacts */
} ebpfMonHiddenClient;

typedef struct {
    ebpfMonHiddenClient *client;
    unsigned clients;
    ebpfMonPvxsClients *all; /* of the server; also those that are not hidden */
} ebpfMonHiddenClients;

/* Those of "all" that are seen in no other way. "all": of its server, read before its sockets; it is freed with the
 * result. "before": of the last look; NULL: there was none. NULL: they are not known. */
ebpfMonHiddenClients *ebpfMonHiddenClientsFind(ebpfMonPvxsClients *all, const ebpfMonIocSockets *sockets,
                                               ebpfMonFollowedCircuits *followed, ebpfMonPutClients *putClients,
                                               const ebpfMonHiddenClients *before);
/* Sets what the kernel and packets know of them; "packets" may be NULL. "pid", "iocId": their server. */
void ebpfMonHiddenClientsComplete(ebpfMonHiddenClients *hidden, pid_t pid, uint32_t iocId,
                                  ebpfMonPacketClients *packets);
void ebpfMonHiddenClientsFree(ebpfMonHiddenClients *hidden); /* NULL does no harm */

#endif
