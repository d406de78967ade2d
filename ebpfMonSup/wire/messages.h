/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes messages from the bytes of one direction of a circuit, for its protocol. */
#ifndef EBPFMON_MESSAGES_H
#define EBPFMON_MESSAGES_H

#include "wire/circuit.h"

/*
 * Takes bytes of an open circuit. Afterwards it may be foreign; or new again, if its sides were guessed wrong. Then the
 * rest of the bytes waits as after ebpfMonMessagesWait.
 */
void ebpfMonMessagesBytes(ebpfMonCircuit *circuit, int side, uint32_t seq, const uint8_t *p, size_t n, uint64_t time);
/* Begins with the bytes in the buffer, when the protocol is known and a header was found at "offset". */
void ebpfMonMessagesBegin(ebpfMonCircuit *circuit, int side, size_t offset, uint64_t time);

/* Takes bytes of a new circuit: they wait in the buffer until its protocol is known. Without memory the buffer is empty
 * afterwards. */
void ebpfMonMessagesWait(ebpfMonCircuit *circuit, int side, uint32_t seq, const uint8_t *p, size_t n);

/* For any circuit: "bytes" bytes will not come; those that come next are after them. */
void ebpfMonMessagesLost(ebpfMonCircuit *circuit, int side, uint64_t bytes, uint64_t time);

#endif
