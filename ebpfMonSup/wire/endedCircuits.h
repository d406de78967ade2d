/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections that ended a moment ago. A connection between two network namespaces of a host has a copy of each packet
 * in both. We may read the end in one namespace before we read anything in the other, so packets of such a connection
 * may still come.
 */
#ifndef EBPFMON_ENDEDCIRCUITS_H
#define EBPFMON_ENDEDCIRCUITS_H

#include "wire/circuit.h"

/* The caller frees it with free(). NULL: no memory. */
ebpfMonEndedCircuits *ebpfMonEndedCircuitsNew(void);

/* Notes that "circuit" ended at "time" (ns since 1970). */
void ebpfMonEndedCircuitsAdd(ebpfMonEndedCircuits *ended, const ebpfMonCircuit *circuit, uint64_t time);

/* Nonzero: a segment that "side" sent is such a copy. */
int ebpfMonEndedCircuitsHas(const ebpfMonEndedCircuits *ended, const ebpfMonCircuitKey *key, int side,
    const ebpfMonSegment *segment, uint64_t time);

#endif
