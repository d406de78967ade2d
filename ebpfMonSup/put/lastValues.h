/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The last values that clients wrote to, or read from, the PVs of servers that are not watched IOCs. They are the old
 * values of the next puts. The number of PVs is limited; a PV may replace another one with the same hash. Packet thread
 * only.
 */
#ifndef EBPFMON_LASTVALUES_H
#define EBPFMON_LASTVALUES_H

#include "put/packetPut.h"
#include "wire/wireEvent.h"

typedef struct ebpfMonLastValues ebpfMonLastValues;

ebpfMonLastValues *ebpfMonLastValuesNew(void); /* NULL without memory */
void ebpfMonLastValuesFree(ebpfMonLastValues *values);

/* A value was read (ebpfMonWireValue). */
void ebpfMonLastValuesSet(ebpfMonLastValues *values, const ebpfMonWireEvent *event);

/* A put: *old is the value before it, and the value that it wrote is the last one now. */
void ebpfMonLastValuesExchange(ebpfMonLastValues *values, const ebpfMonWireEvent *event, ebpfMonOldValue *old);

/* The server of this connection ended, or may have ended: its PVs may begin anew. */
void ebpfMonLastValuesForgetServer(ebpfMonLastValues *values, const struct ebpfMonPeer *peer);

/* The server refused the put to which this is the reply: the last value is "old" again, unless another one came
 * since. */
void ebpfMonLastValuesRestore(ebpfMonLastValues *values, const ebpfMonWireEvent *reply, const ebpfMonOldValue *old);

#endif
