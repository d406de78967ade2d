/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Channels that a server has refused, as packets show it: Channel Access tells no reason, pvAccess does. Any thread.
 */
#ifndef EBPFMON_REFUSALS_H
#define EBPFMON_REFUSALS_H

#include "put/putClients.h"
#include "search/search.h"
#include "wire/wireEvent.h"

#define EBPFMON_REFUSALS_MAX 64 /* more replace the oldest */

typedef struct {
    char     name[EBPFMON_SEARCH_NAME_SIZE];
    ebpfMonSearchProtocol protocol;
    struct ebpfMonPeer peer;
    pid_t    client;        /* its process; 0: it is on another host, or not known … */
    uint64_t start;         /* … and its start (ebpfMonProcStart) */
    char     who[200];      /* user@host as it claims, and its address:port */
    char     message[120];  /* ""; valid UTF-8 */
    uint64_t first, last;   /* ns since 1970 */
} ebpfMonRefusal;

typedef struct ebpfMonRefusals ebpfMonRefusals;

ebpfMonRefusals *ebpfMonRefusalsNew(void); /* NULL without memory; there is one in a process, never freed */

/* Takes refusals; and channels that were made, since then the same client has the channel. Packet thread. Reads /proc,
 * a bounded number of times a second. */
void ebpfMonRefusalsAddEvent(ebpfMonRefusals *refusals, ebpfMonPutClients *clients, const ebpfMonWireEvent *ev);

/* Copies those of the last six minutes whose client still runs, as far as that is known. Returns their number. */
unsigned ebpfMonRefusalsList(ebpfMonRefusals *refusals, ebpfMonRefusal list[EBPFMON_REFUSALS_MAX]);

#endif
