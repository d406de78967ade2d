/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ids of traces and spans that nobody has to be told. Those of a message follow from its connection and its TCP sequence
 * number, which both ends know: two monitors that share nothing give it the same ones. Those of a chain are this
 * monitor's own.
 */
#ifndef EBPFMON_SPANID_H
#define EBPFMON_SPANID_H

#include <stdint.h>
#include "model/put.h"

/* Addresses and ports in network byte order; the client's, then the server's; the number of the message's first byte. */
void ebpfMonMessageTrace(uint32_t addr, uint16_t port, uint32_t saddr, uint16_t sport, uint32_t seq, uint8_t trace[16]);
void ebpfMonMessageSpan(uint32_t addr, uint16_t port, uint32_t saddr, uint16_t sport, uint32_t seq, uint8_t span[8]);

/* "salt": random, the same for the life of the monitor. "part": of the chain, 0: the chain itself. */
void ebpfMonChainTrace(uint64_t salt, const ebpfMonChainId *chain, uint8_t trace[16]);
void ebpfMonChainSpan(uint64_t salt, const ebpfMonChainId *chain, uint32_t part, uint8_t span[8]);

#endif
