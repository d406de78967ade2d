/* SPDX-License-Identifier: BSD-3-Clause */
/* Which connections of an IOC's servers are seen neither in packets nor in the list of its CA server; and what its pvxs
 * server knows of them. */
#ifndef EBPFMON_IOCCONNECTIONS_H
#define EBPFMON_IOCCONNECTIONS_H

#include <sys/types.h>
#include "clients/caClients.h"
#include "clients/pvxsServer.h"
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

/* --- connections that nothing shows --- */

/* The number of connections that clients have opened to process "pid", and that are not seen. "clients": those that
 * its CA server lists; NULL: none is known. Asks the kernel for the sockets. */
unsigned ebpfMonIocConnectionsCountUnseen(pid_t pid, const ebpfMonCaClients *clients,
                                          ebpfMonFollowedCircuits *followed);

/* --- what pvxs knows of them --- */

typedef struct {
    struct ebpfMonPeer peer;
    ebpfMonPutClient who;    /* "user": as the server knows it, "x509/NAME" by a certificate */
    const ebpfMonPvxsClient *is;
    uint64_t since;          /* it was seen first (monotonic ns) */
} ebpfMonHiddenClient;

typedef struct {
    ebpfMonHiddenClient *client;
    unsigned clients;
    ebpfMonPvxsClients *all; /* of the server; also those that are not hidden */
} ebpfMonHiddenClients;

/* Reads the clients of process "pid" that are seen in no other way. "before": of the last look; NULL: there is none.
 * NULL: there are none, or they cannot be read. The caller frees the result. */
ebpfMonHiddenClients *ebpfMonHiddenClientsRead(pid_t pid, uint64_t variable, ebpfMonFollowedCircuits *followed,
                                               ebpfMonPutClients *putClients, const ebpfMonHiddenClients *before);
void ebpfMonHiddenClientsFree(ebpfMonHiddenClients *hidden); /* NULL does no harm */

#endif
