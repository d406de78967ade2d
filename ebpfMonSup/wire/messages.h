/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes messages from the bytes of one direction of a circuit, for its protocol. */
#ifndef EBPFMON_MESSAGES_H
#define EBPFMON_MESSAGES_H

#include "wire/circuit.h"
#include "wire/stream.h"

/* --- where messages begin ---
 *
 * Finds where messages begin in a stream that began before we watched. One header proves little, two that follow each
 * other prove much. A header at the begin of a segment is between both. */

#define EBPFMON_RETAIN 2048 /* bytes that are kept while a message is searched for: limits how much is searched twice */

typedef enum { ebpfMonResyncNone, ebpfMonResyncPerhaps, ebpfMonResyncFound } ebpfMonResyncResult;

/* Finds where in the buffer a message begins: *offset. For Perhaps and None, *offset is the begin of the bytes that are
 * still needed. "segAt": where the last segment begins. "trusted": nonzero if the protocol is known, or likely. */
ebpfMonResyncResult ebpfMonResync(const ebpfMonProtocol *protocol, int fromServer, const ebpfMonAssembly *assembly,
    size_t segAt, int trusted, size_t *offset);

/* --- messages --- */

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
