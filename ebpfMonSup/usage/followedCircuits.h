/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The circuits of which packets show each message from the first byte on. What comes through another connection (TLS,
 * an older one, one with a gap) is not seen. The packet thread adds and removes them; any thread may ask.
 */
#ifndef EBPFMON_FOLLOWEDCIRCUITS_H
#define EBPFMON_FOLLOWEDCIRCUITS_H

#include "wire/wireEvent.h"

typedef struct ebpfMonFollowedCircuits ebpfMonFollowedCircuits;

ebpfMonFollowedCircuits *ebpfMonFollowedCircuitsNew(void); /* NULL without memory */
void ebpfMonFollowedCircuitsFree(ebpfMonFollowedCircuits *followed);

/* A circuit was opened, has a gap, or ended; other events are ignored. */
void ebpfMonFollowedCircuitsAdd(ebpfMonFollowedCircuits *followed, const ebpfMonWireEvent *event);

int ebpfMonFollowedCircuitsHas(ebpfMonFollowedCircuits *followed, const struct ebpfMonPeer *peer);

#endif
