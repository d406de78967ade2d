/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages out of the bytes of one direction of a circuit, for its protocol. */
#ifndef EBPFMON_MESSAGES_H
#define EBPFMON_MESSAGES_H

#include "wire/circuit.h"

/*
 * For an open circuit. Afterwards it may be foreign; or new again, when its roles were guessed wrong: then what is
 * left of the bytes waits as after ebpfMonMessagesWait.
 */
void ebpfMonMessagesBytes(ebpfMonCircuit *circuit, int side, uint32_t seq, const uint8_t *p, size_t n, uint64_t time);
/* From the buffer of a search on, once the protocol is known and a header was found at "offset". */
void ebpfMonMessagesBegin(ebpfMonCircuit *circuit, int side, size_t offset, uint64_t time);

/* For a new one: bytes wait in the assembly's buffer until it is known whose they are. Empty: no memory for them. */
void ebpfMonMessagesWait(ebpfMonCircuit *circuit, int side, uint32_t seq, const uint8_t *p, size_t n);

/* For any: bytes that will not come, before those that come next. */
void ebpfMonMessagesLost(ebpfMonCircuit *circuit, int side, uint64_t bytes, uint64_t time);

#endif
