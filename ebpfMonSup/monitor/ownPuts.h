/* SPDX-License-Identifier: BSD-3-Clause */
/* The puts of clients to the monitor's own PVs (access/guardedPuts.h) become puts as any other. */
#ifndef EBPFMON_OWNPUTS_H
#define EBPFMON_OWNPUTS_H

#include "model/put.h"

struct ebpfMonMonitor;
typedef struct ebpfMonOwnPuts ebpfMonOwnPuts;

/* NULL without memory. */
ebpfMonOwnPuts *ebpfMonOwnPutsNew(struct ebpfMonMonitor *m);
void ebpfMonOwnPutsFree(ebpfMonOwnPuts *puts);

/* Publishes what has come. Event thread; waits for user names (put/userNames.h). */
void ebpfMonOwnPutsPublish(ebpfMonOwnPuts *puts);

/* Nonzero: the put is one of those, seen once more by a probe or in a packet, because the monitor watches itself. */
int ebpfMonOwnPutsHas(const ebpfMonOwnPuts *puts, const ebpfMonPut *put);

#endif
