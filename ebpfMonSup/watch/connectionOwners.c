/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "host/procInfo.h"
#include "watch/connectionOwners.h"

void ebpfMonConnectionOwnersRead(pid_t pid, uint32_t netns, ebpfMonConnectionOwnersSet set)
{
    ebpfMonProcConn *conns = NULL;
    int n = ebpfMonProcReadConns(pid, &conns);

    for (int i = 0; i < n; i++) {
        struct ebpfMonPeer peer = {
            .addr = conns[i].addr, .saddr = conns[i].saddr, .port = conns[i].port, .sport = conns[i].sport,
            .netns = netns,
        };
        struct ebpfMonOwner owner = { .pid = (uint32_t)conns[i].pid, .uid = conns[i].uid };

        if (!conns[i].pid)
            continue;
        memcpy(peer.addr6, conns[i].addr6, sizeof(peer.addr6));
        memcpy(peer.saddr6, conns[i].saddr6, sizeof(peer.saddr6));
        memcpy(owner.comm, conns[i].comm, sizeof(owner.comm));
        set(&peer, &owner);
    }
    free(conns);
}
