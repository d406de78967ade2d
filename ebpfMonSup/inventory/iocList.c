/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "inventory/iocList.h"

static int isReady(ebpfMonTargets *targets, const ebpfMonTarget *t)
{
    return !t->gone && t->running && t->cat && t->wantedLevel > ebpfMonLevelOff && ebpfMonTargetIsCredible(targets, t);
}

static ebpfMonInventoryIoc makeOther(ebpfMonPacketServers *packetServers, const ebpfMonPacketServer *server)
{
    ebpfMonInventoryIoc ioc = { .pid = server->pid, .start = server->start, .iocId = server->id,
                                .packetServers = packetServers, .caPort = server->caPort, .pvaPort = server->pvaPort };

    memcpy(ioc.name, server->name, sizeof(ioc.name));
    return ioc;
}

ebpfMonInventoryIoc *ebpfMonIocListTake(ebpfMonTargets *targets, ebpfMonPacketServers *packetServers, unsigned *count)
{
    ebpfMonPacketServer other[EBPFMON_PACKET_SERVERS];
    unsigned others = packetServers ? ebpfMonPacketServersCopy(packetServers, other) : 0;
    ebpfMonInventoryIoc *list = NULL;
    unsigned all = others, n = 0;

    ebpfMonTargetsLock(targets);
    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(targets); t; t = t->next)
        all++;
    if (all)
        list = calloc(all, sizeof(*list));
    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(targets); t && list; t = t->next) {
        if (!isReady(targets, t))
            continue;
        list[n] = (ebpfMonInventoryIoc){ .pid = t->pid, .start = t->start, .iocId = t->iocId,
                                         .pdbbase = t->image.pdbbase, .cat = ebpfMonCatalogueHold(t->cat) };
        strcpy(list[n].name, t->name);
        strcpy(list[n].version, t->version);
        n++;
    }
    ebpfMonTargetsUnlock(targets);
    for (unsigned i = 0; i < others && list; i++)
        list[n++] = makeOther(packetServers, &other[i]);
    *count = n;
    return list;
}
