/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections that ended a moment ago. Their packets may come once more: between two network namespaces of a host each has
 * a copy, and what is read of the one may have the end before anything is read of the other.
 */
#ifndef EBPFMON_ENDED_H
#define EBPFMON_ENDED_H

#include "wire/circuit.h"

ebpfMonEnded *ebpfMonEndedNew(void);

/* It ended at "time". */
void ebpfMonEndedNote(ebpfMonEnded *ended, const ebpfMonCircuit *circuit, uint64_t time);

/* Whether a segment that "side" sent is such a copy. */
int ebpfMonEndedHas(const ebpfMonEnded *ended, const ebpfMonCircuitKey *key, int side, const ebpfMonSegment *segment,
    uint64_t time);

#endif
