/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The looking thread. A look reads the lists of clients in the CA servers of all watched IOCs. The thread looks every
 * ten seconds, and when another thread requests a look. It reads the memory of other processes; each read has a
 * deadline (host/foreign.h).
 */
#ifndef EBPFMON_CLIENTLOOKER_H
#define EBPFMON_CLIENTLOOKER_H

#include "clients/clientTable.h"

typedef struct ebpfMonClientLooker ebpfMonClientLooker;

/* The table stays the caller's. The looking thread calls, without a lock, publish(arg) after each look and by
 * ebpfMonClientLookerPublish, and then, after a look, looked(arg). NULL without memory. */
ebpfMonClientLooker *ebpfMonClientLookerNew(ebpfMonClientTable *table, void (*publish)(void *arg),
                                            void (*looked)(void *arg), void *arg);
void ebpfMonClientLookerFree(ebpfMonClientLooker *looker); /* the thread has ended. NULL does no harm */

/* 0, or -1 without memory. */
int ebpfMonClientLookerStart(ebpfMonClientLooker *looker);
/* As ebpfMonWorkerStop. NULL: 0. */
int ebpfMonClientLookerStop(ebpfMonClientLooker *looker);

/* Requests a look, and waits for its end, but at most "seconds". 0, or -1: the look has not ended. Any thread but
 * the looking thread; of several callers one waits after the other. */
int ebpfMonClientLookerLook(ebpfMonClientLooker *looker, double seconds);

/* Requests a look, and does not wait for it. Any thread. */
void ebpfMonClientLookerRequest(ebpfMonClientLooker *looker);

/* Call this when the patterns of the published clients were changed: the looking thread soon publishes the result of
 * the last look again. Any thread. */
void ebpfMonClientLookerPublish(ebpfMonClientLooker *looker);

#endif
