/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends the records of all watched IOCs to a RecSync server (RecCeiver), which gives them to Channel Finder. Each IOC
 * has a connection of its own, as if the RecSync client ran in the IOC. The connection opens when the IOC has completed
 * iocInit, and closes when the IOC ends.
 *
 * A server announces itself by UDP. Then we connect, one IOC after the other: so only the records of one IOC at a time
 * are in our memory. If a connection is lost, we wait for the next announcement and send the records of this IOC again,
 * because a server forgets an IOC when its connection ends.
 *
 * If the configuration wants it, the servers of this host that are not EPICS Base have a connection, too, with their
 * environment and ports. The PVs that packets have shown are sent as records of the type "unknown", if they are wanted.
 *
 * RecSync has a thread of low priority; all its sockets are non-blocking. There is no thread before the first
 * configuration that is on.
 */
#ifndef EBPFMON_RECSYNC_H
#define EBPFMON_RECSYNC_H

#include "ebpfMonModule.h"
#include "model/packetServers.h"
#include "model/published.h"
#include "watch/target.h"

typedef enum {
    ebpfMonRecSyncNoOthers,
    ebpfMonRecSyncServers, /* their environment and ports */
    ebpfMonRecSyncPvs      /* and the PVs that packets have shown */
} ebpfMonRecSyncOthers;

typedef struct {
    int      isOn;
    ebpfMonRecSyncOthers others; /* what is announced of servers that are not EPICS Base */
    unsigned port;           /* UDP port for the announcements of servers */
    char     variables[512]; /* names of more environment variables that are sent, with blanks between them */
} ebpfMonRecSyncConf;

#define EBPFMON_NO_RECSYNC "nothing is announced: ebpfMonRecSync begins it"

typedef struct {
    ebpfMonLogState state;
    char     message[256];
    unsigned iocs;           /* IOCs that the server knows with all records */
    unsigned records;        /* records of these IOCs */
} ebpfMonRecSyncValues;

typedef struct ebpfMonRecSync ebpfMonRecSync;

/* RecSync is never freed. Its values are shown by "module". NULL without memory. */
ebpfMonRecSync *ebpfMonRecSyncNew(const ebpfMonModule *module);

/* The published values. Under ebpfMonModuleLock. */
const ebpfMonRecSyncValues *ebpfMonRecSyncGetValues(const ebpfMonRecSync *sync);

/* Call this when the monitor runs: starts the thread. 0, or -1: the thread cannot be started. The other arguments must
 * stay as long as the process. */
int ebpfMonRecSyncBegin(ebpfMonRecSync *sync, ebpfMonTargets *targets, ebpfMonPacketServers *packetServers);

/* Sets the configuration, which is copied. Any thread, at any time. */
void ebpfMonRecSyncConfigure(ebpfMonRecSync *sync, const ebpfMonRecSyncConf *conf);

/* Call this when IOCs or other servers started or ended, or the level of an IOC was changed. Any thread. */
void ebpfMonRecSyncWake(ebpfMonRecSync *sync);

/* Ends the thread and all connections, after "seconds" at the latest. 0, or -1: it still runs. */
int ebpfMonRecSyncStop(ebpfMonRecSync *sync, double seconds);

#endif
