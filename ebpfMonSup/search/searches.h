/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who asks for which names, which of them nobody has, and which servers say that they live. Fed with what
 * was heard on the network; once a second it makes the published's lists of it. Knows neither packets nor BPF.
 *
 * An answer goes to the one who asked, so those between other hosts are never heard. But a client stops
 * asking when it is answered (libca: searchTimer.cpp; PVA clients too): a name counts as never found when
 * one channel of one client has asked for it three times over at least a second. An answer that is heard
 * takes it off the list, and so does silence for ten minutes (libca asks every five minutes in the end,
 * EPICS_CA_MAX_SEARCH_PERIOD).
 *
 * Memory is fixed; in a full table some make room for others (model/keyTable.h), which is counted.
 * Addresses and ports in network byte order, times CLOCK_REALTIME ns. Any thread.
 */
#ifndef EBPFMON_SEARCHES_H
#define EBPFMON_SEARCHES_H

#include <stdint.h>

#define EBPFMON_SEARCH_NAMES   8192
#define EBPFMON_SEARCH_CLIENTS 1024
#define EBPFMON_SEARCH_SERVERS 1024
#define EBPFMON_SEARCH_FORGET  600000000000u /* ns of silence */

typedef enum { ebpfMonSearchCa, ebpfMonSearchPva } ebpfMonSearchProtocol;

typedef struct {
    uint32_t addr;
    uint16_t port;
} ebpfMonSearchHost;

/* A client's question. "cid" is its number for the channel, by which an answer can come. */
void ebpfMonSearchAsked(uint64_t time, ebpfMonSearchProtocol protocol, ebpfMonSearchHost client, uint32_t cid,
                        const char *name);
/* An answer to a client: by name, or with name "" by cid. */
void ebpfMonSearchFound(ebpfMonSearchProtocol protocol, ebpfMonSearchHost client, uint32_t cid, const char *name);
void ebpfMonSearchBeacon(uint64_t time, ebpfMonSearchProtocol protocol, ebpfMonSearchHost server);

/* Rates and lists to the published, "seconds" after the last time. Takes the published's lock; tells nobody. */
void ebpfMonSearchSnapshot(uint64_t time, double seconds);

#endif
