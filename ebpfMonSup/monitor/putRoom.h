/* SPDX-License-Identifier: BSD-3-Clause */
/* The modules of the room put/, made once and connected to the other rooms. */
#ifndef EBPFMON_PUTROOM_H
#define EBPFMON_PUTROOM_H

#include "put/ownPuts.h"
#include "put/iocPuts.h"
#include "put/packetEvents.h"

struct ebpfMonMonitor;

typedef struct {
    ebpfMonUserNames  *users;      /* any thread */
    ebpfMonPutClients *clients;    /* any thread, but for what its header says */
    ebpfMonLinkWrites *linkWrites; /* any thread */
    ebpfMonPutJoin    *join;       /* any thread */
    ebpfMonThreadPuts *threadPuts; /* event thread */
    ebpfMonIocPuts    *iocPuts;    /* event thread */
    ebpfMonOwnPuts    *ownPuts;    /* event thread, but for what ebpfMonOwnPutsHas reads */
    ebpfMonServers    *servers;    /* packet thread, as all that follows */
    ebpfMonPacketPuts *packetPuts;
    ebpfMonPacketEvents *packetEvents;
} ebpfMonPutRoom;

/* Makes m->put, when m->targets and m->watch are made. 0, or -1 without memory: then nothing is left. */
int ebpfMonPutRoomMake(struct ebpfMonMonitor *m);

/* Only while no thread uses them. */
void ebpfMonPutRoomFree(ebpfMonPutRoom *room);

#endif
