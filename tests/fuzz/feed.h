/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes packets of a few connections from the bytes of a fuzzer, and gives them to wire/. */
#ifndef EBPFMON_FUZZ_FEED_H
#define EBPFMON_FUZZ_FEED_H

#include <stddef.h>
#include <stdint.h>

/*
 * "data" is a sequence of pieces: one byte that says what to do, two bytes of length (big-endian), and as many bytes.
 * Bits of the first byte:
 *   0     direction (1: from the server)
 *   1, 2  which of four connections
 *   3, 4  how: 0: the next TCP segment; 1: the first two bytes are the place of the segment, relative to the next one;
 *         2: the first byte has the TCP flags; 3: the first byte says something else (special() in feed.c)
 * The ports of the clients are 40000 to 40003. The port of the server is "port".
 */
int ebpfMonFuzzFeed(const uint8_t *data, size_t size, uint16_t port);

#endif
