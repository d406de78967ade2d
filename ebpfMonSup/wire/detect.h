/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds out from the bytes of a connection which protocol it has, and which side is the server. For the thread of the
 * wire. */
#ifndef EBPFMON_DETECT_H
#define EBPFMON_DETECT_H

#include "wire/circuit.h"

/* Takes the next "n" bytes (at least 1) that "side" sent. "seq": TCP sequence number of the first one. */
void ebpfMonDetectBytes(ebpfMonCircuit *circuit, int side, uint32_t seq, const uint8_t *p, size_t n, uint64_t time);

#endif
