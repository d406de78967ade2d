/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes of a fuzzer as packets of a few connections, through the whole of wire/. */
#ifndef EBPFMON_FUZZ_FEED_H
#define EBPFMON_FUZZ_FEED_H

#include <stddef.h>
#include <stdint.h>

/*
 * "data" is a sequence of records: a byte of what to do, two bytes of length (big-endian), that many bytes.
 * What to do, in its bits: 0 direction (1: from the server); 1, 2 which connection of four; 3, 4 how: 0 the next
 * segment, 1 a segment whose place the first two bytes tell, relative to the next one, 2 with TCP flags in the first
 * byte, 3 something else: the first byte tells what. The client's port is 40000 and up, the server's "port".
 */
int ebpfMonFuzzFeed(const uint8_t *data, size_t size, uint16_t port);

#endif
