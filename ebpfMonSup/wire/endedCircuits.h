/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections that ended a moment ago. Their packets may come once more: of a connection between two network namespaces
 * of a host, each namespace has a copy. The end may be read in the one before anything is read in the other.
 */
#ifndef EBPFMON_ENDEDCIRCUITS_H
#define EBPFMON_ENDEDCIRCUITS_H

#include "wire/circuit.h"

ebpfMonEndedCircuits *ebpfMonEndedCircuitsNew(void);

/* "circuit" ended at "time". */
void ebpfMonEndedCircuitsAdd(ebpfMonEndedCircuits *ended, const ebpfMonCircuit *circuit, uint64_t time);

/* Nonzero: a segment that "side" sent is such a copy. */
int ebpfMonEndedCircuitsHas(const ebpfMonEndedCircuits *ended, const ebpfMonCircuitKey *key, int side,
    const ebpfMonSegment *segment, uint64_t time);

#endif
