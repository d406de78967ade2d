/* SPDX-License-Identifier: BSD-3-Clause */
/* What is known of the puts of packets, from the file of a frozen history. One thread. */
#ifndef EBPFMON_PACKETCHAINS_H
#define EBPFMON_PACKETCHAINS_H

#include <stddef.h>

typedef struct ebpfMonPacketChains ebpfMonPacketChains;

/* NULL: the file cannot be read, or there is no memory. */
ebpfMonPacketChains *ebpfMonPacketChainsOpen(const char *file);
void ebpfMonPacketChainsClose(ebpfMonPacketChains *chains); /* NULL does no harm */

/* Lines about the put with this trace (historyStore.h), each with its line feed: its PV, who made it and by which
 * way, the records of its chain if they were kept, and what links wrote in it. Returns their length; 0:
 * nothing is known. */
size_t ebpfMonPacketChainsDescribe(ebpfMonPacketChains *chains, const char *trace, char *buf, size_t size);

#endif
