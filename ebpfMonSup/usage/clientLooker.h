/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The thread that looks at the clients of all watched IOCs: every ten seconds, and when somebody asks. It reads memory
 * of other processes, each read with a deadline (host/foreign.h).
 */
#ifndef EBPFMON_CLIENTLOOKER_H
#define EBPFMON_CLIENTLOOKER_H

#include "usage/clientTable.h"

#define EBPFMON_CLIENT_PERIOD 10.0 /* s */

typedef struct ebpfMonClientLooker ebpfMonClientLooker;

/* The table stays the caller's. "looked" is called after each look, by the looking thread; NULL: nobody. NULL without
 * memory. */
ebpfMonClientLooker *ebpfMonClientLookerNew(ebpfMonClientTable *table, void (*looked)(void *arg), void *arg);
void ebpfMonClientLookerFree(ebpfMonClientLooker *looker); /* NULL does no harm */

/* 0, or -1 without memory. */
int ebpfMonClientLookerStart(ebpfMonClientLooker *looker);
/* As ebpfMonWorkerStop. NULL: 0. */
int ebpfMonClientLookerStop(ebpfMonClientLooker *looker);

/* A look now, which is waited for at most "seconds". 0; -1: it is not over. Any thread but the looking one. */
int ebpfMonClientLookerLook(ebpfMonClientLooker *looker, double seconds);

/* The patterns are others: publishes what was seen last, soon. Any thread. */
void ebpfMonClientLookerPublish(ebpfMonClientLooker *looker);

#endif
