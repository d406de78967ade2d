/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes finished puts of the puts of clients to the monitor's own PVs (access/guard.h). */
#ifndef EBPFMON_OWNPUTS_H
#define EBPFMON_OWNPUTS_H

#include "model/losses.h"
#include "model/put.h"
#include "put/putClients.h"

typedef struct ebpfMonOwnPuts ebpfMonOwnPuts;

/* "publish" gets each put, with its texts. "watchSelf": the monitor is a target, too. Clients, users and losses stay
 * the caller's. NULL without memory. */
ebpfMonOwnPuts *ebpfMonOwnPutsNew(ebpfMonPutClients *clients, ebpfMonUserNames *users, ebpfMonLosses *losses,
                                  int watchSelf, void (*publish)(void *arg, ebpfMonPut *put), void *arg);
void ebpfMonOwnPutsFree(ebpfMonOwnPuts *puts);

/* Publishes what has come, and returns the number of puts. Event thread; waits for user names (put/userNames.h). */
unsigned ebpfMonOwnPutsPublish(ebpfMonOwnPuts *puts);

/* Nonzero: this put was already published by ebpfMonOwnPutsPublish. It was seen once more, by a probe or in a packet,
 * because the monitor watches itself. */
int ebpfMonOwnPutsHas(const ebpfMonOwnPuts *puts, const ebpfMonPut *put);

#endif
