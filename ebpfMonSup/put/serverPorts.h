/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * On which ports servers of a watched IOC listen. A thread of an IOC reads from many sockets; only a connection to such
 * a port is a client's. What a driver thread reads from a device comes from elsewhere. Event thread only.
 */
#ifndef EBPFMON_SERVERPORTS_H
#define EBPFMON_SERVERPORTS_H

#include <stdint.h>
#include <sys/types.h>

typedef struct ebpfMonServerPorts ebpfMonServerPorts;

ebpfMonServerPorts *ebpfMonServerPortsNew(void); /* NULL without memory */
void ebpfMonServerPortsFree(ebpfMonServerPorts *ports);

/* Whether something listens on "port" (network byte order) where the process lives. Reads /proc for a port that is not
 * known, at most once a second for each IOC, so no lock of the event path may be held. "now": monotonic ns. */
int ebpfMonServerPortsHas(ebpfMonServerPorts *ports, uint32_t iocId, pid_t pid, uint16_t port, uint64_t now);

#endif
