/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which names clients ask for, which of them nobody has, and which servers send beacons. It gets what was heard on the
 * network; once a second it makes the published lists of that. It knows neither packets nor BPF.
 *
 * An answer goes to the client that asked, so the monitor never hears answers between other hosts. But a client stops
 * asking when it is answered (libca: searchTimer.cpp; PVA clients too). So a name counts as never found when one
 * channel of one client has asked for it three times over at least a second. An answer that is heard takes it off the
 * list, and so does silence for ten minutes (in the end libca asks every five minutes, EPICS_CA_MAX_SEARCH_PERIOD).
 *
 * Memory is fixed; in a full table some entries make room for others (search/keyTable.h), which is counted. Addresses
 * and ports in network byte order, times CLOCK_REALTIME ns. Any thread may call these functions, Free excepted.
 */
#ifndef EBPFMON_SEARCH_H
#define EBPFMON_SEARCH_H

#include "search/searchHost.h"

typedef struct ebpfMonSearch ebpfMonSearch;

/* NULL without memory. */
ebpfMonSearch *ebpfMonSearchNew(void);

/* When no other thread uses it any more. */
void ebpfMonSearchFree(ebpfMonSearch *search);

/* A client's question. "cid" is its number for the channel, by which an answer can come. */
void ebpfMonSearchAddQuestion(ebpfMonSearch *search, uint64_t time, ebpfMonSearchProtocol protocol,
                              ebpfMonSearchHost client, uint32_t cid, const char *name);

/* An answer to a client: by name, or with name "" by cid. */
void ebpfMonSearchAddAnswer(ebpfMonSearch *search, ebpfMonSearchProtocol protocol, ebpfMonSearchHost client,
                            uint32_t cid, const char *name);

void ebpfMonSearchAddBeacon(ebpfMonSearch *search, uint64_t time, ebpfMonSearchProtocol protocol,
                            ebpfMonSearchHost server);

/* Rates and lists to what is published, "seconds" after the last call. Takes the lock of what is published, and does
 * not notify its listener. */
void ebpfMonSearchPublish(ebpfMonSearch *search, uint64_t time, double seconds);

#endif
