/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "watch/connectionOwners.h"
#include "probe/loader.h"
#include "ioc/procInfo.h"

void ebpfMonConnectionOwnersRead(pid_t pid, uint32_t netns)
{
    ebpfMonProcConn *conns = NULL;
    int n = ebpfMonProcReadConns(pid, &conns);

    for (int i = 0; i < n; i++) {
        struct ebpfMonPeer peer = {
            .addr = conns[i].addr, .saddr = conns[i].saddr, .port = conns[i].port, .sport = conns[i].sport,
        };
        struct ebpfMonOwner own = { .pid = (uint32_t)conns[i].pid, .uid = conns[i].uid };

        if (!conns[i].pid)
            continue;
        memcpy(own.comm, conns[i].comm, sizeof(own.comm));
        if ((ntohl(peer.addr) >> 24) == 127)
            peer.netns = netns;
        ebpfMonKernelSetOwner(&peer, &own);
    }
    free(conns);
}
