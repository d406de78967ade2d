/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose connection it is, from what is said on it: which protocol is spoken, and by whom as the server. */
#ifndef EBPFMON_DETECT_H
#define EBPFMON_DETECT_H

#include "wire/circuit.h"

/* The next bytes of a circuit of any phase; 0 < n. */
void ebpfMonDetectBytes(ebpfMonCircuit *circuit, int side, uint32_t seq, const uint8_t *p, size_t n, uint64_t time);

#endif
