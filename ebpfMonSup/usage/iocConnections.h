/* SPDX-License-Identifier: BSD-3-Clause */
/* Which connections of an IOC's servers are seen neither in packets nor in the list of its CA server. */
#ifndef EBPFMON_IOCCONNECTIONS_H
#define EBPFMON_IOCCONNECTIONS_H

#include <sys/types.h>

#include "ioc/caServer.h"
#include "usage/followedCircuits.h"

/* The number of connections that clients have opened to process "pid", and that are not seen. "clients": those that
 * its CA server lists; NULL: none is known. Asks the kernel for the sockets. */
unsigned ebpfMonIocConnectionsCountUnseen(pid_t pid, const ebpfMonCaClients *clients,
                                          ebpfMonFollowedCircuits *followed);

#endif
