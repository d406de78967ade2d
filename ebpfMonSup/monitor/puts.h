/* SPDX-License-Identifier: BSD-3-Clause */
/* The modules of the room put/, made once and connected to the other rooms. */
#ifndef EBPFMON_PUTS_H
#define EBPFMON_PUTS_H

#include "put/iocPuts.h"
#include "put/lastValues.h"
#include "put/packetPuts.h"
#include "put/servers.h"
#include "publish/putPublisher.h"
#include "watch/requests.h"

typedef struct {
    ebpfMonRequests     *requests;  /* the caller's; links to be read again */
    ebpfMonPutPublisher *publisher; /* the caller's; gets all puts */
    ebpfMonUserNames  *users;      /* any thread */
    ebpfMonPutClients *clients;    /* any thread, but for what its header says */
    ebpfMonLinkWrites *linkWrites; /* any thread */
    ebpfMonPutJoin    *join;       /* any thread */
    ebpfMonThreadPuts *threadPuts; /* event thread */
    ebpfMonIocPuts    *iocPuts;    /* event thread */
    ebpfMonServers    *servers;    /* packet thread, as all that follows */
    ebpfMonLastValues *lastValues;
    ebpfMonPacketPuts *packetPuts;
} ebpfMonPuts;

/* Targets, requests and publisher stay the caller's. 0, or -1 without memory: then nothing is left. */
int ebpfMonPutsMake(ebpfMonPuts *puts, ebpfMonTargets *targets, ebpfMonRequests *requests,
                    ebpfMonPutPublisher *publisher);

/* After the event thread and the packet thread have ended. */
void ebpfMonPutsFree(ebpfMonPuts *puts);

#endif
