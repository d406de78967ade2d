/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ids of traces and spans. The ids of a message are computed from its connection and its TCP sequence number, which
 * both ends know. So two monitors compute the same ids without talking to each other. The ids of a chain are this
 * monitor's own. Any thread.
 */
#ifndef EBPFMON_SPANID_H
#define EBPFMON_SPANID_H

#include <stdint.h>

#include "ebpfMonEvent.h"
#include "model/chainId.h"

/* Ids of a message. "peer": its connection; the network namespace does not count. "seq": TCP sequence number of its
 * first byte. */
void ebpfMonMessageGetTraceId(const struct ebpfMonPeer *peer, uint32_t seq, uint8_t trace[16]);
void ebpfMonMessageGetSpanId(const struct ebpfMonPeer *peer, uint32_t seq, uint8_t span[8]);

/* Ids of a chain. "salt": random, the same for the life of the monitor. "part": of the chain, 0: the chain itself. */
void ebpfMonChainGetTraceId(uint64_t salt, const ebpfMonChainId *chain, uint8_t trace[16]);
void ebpfMonChainGetSpanId(uint64_t salt, const ebpfMonChainId *chain, uint32_t part, uint8_t span[8]);

#endif
