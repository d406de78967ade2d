/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The records of all watched IOCs for a RecSync server (RecCeiver), which has them for Channel Finder. For each IOC there is
 * one connection, as if the IOC had the RecSync client in it: it opens when the IOC is up, and closes when it is gone.
 *
 * A server announces itself by UDP; we connect to it, one IOC after the other, so the records of one IOC at a time wait
 * to be sent. If a connection is lost we wait for the next announcement, and then begin anew: a server forgets an IOC with
 * its connection.
 *
 * A thread of its own, at ordinary priority; all sockets are non-blocking. Off until Configure says otherwise.
 */
#ifndef EBPFMON_RECSYNC_H
#define EBPFMON_RECSYNC_H

#include "model/recSyncConf.h"
#include "watch/target.h"

typedef struct ebpfMonRecSync ebpfMonRecSync;

/* It stays for the life of the process, as "targets". NULL without memory. */
ebpfMonRecSync *ebpfMonRecSyncNew(ebpfMonTargets *targets);

/* The monitor runs: what was configured before begins. 0, or -1 without memory. */
int ebpfMonRecSyncBegin(ebpfMonRecSync *sync);

/* Any thread, at any time. The thread starts with the first configuration that is on. 0, or -1 without memory. */
int ebpfMonRecSyncConfigure(ebpfMonRecSync *sync, const ebpfMonRecSyncConf *conf);

/* IOCs came, went, or are watched otherwise. Any thread. */
void ebpfMonRecSyncWake(ebpfMonRecSync *sync);

/* Ends the thread and all connections. 0, or -1: it still runs. */
int ebpfMonRecSyncStop(ebpfMonRecSync *sync);

#endif
