/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds out from the bytes of a connection which protocol it has, and which side is the server. */
#ifndef EBPFMON_DETECT_H
#define EBPFMON_DETECT_H

#include "wire/circuit.h"

/* The next bytes of a circuit of any phase; 0 < n. */
void ebpfMonDetectBytes(ebpfMonCircuit *circuit, int side, uint32_t seq, const uint8_t *p, size_t n, uint64_t time);

#endif
