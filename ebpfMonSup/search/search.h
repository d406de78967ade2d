/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which names clients search, which of these names no server has, and which servers send beacons. The caller adds the
 * searches, answers and beacons that the monitor saw in packets. Once a second ebpfMonSearchPublish makes the published
 * lists.
 *
 * An answer goes to the client that searched, so the monitor never sees answers between other hosts. But a client stops
 * searching when it has an answer (libca: searchTimer.cpp; PVA clients do the same). So a name counts as never found
 * when one channel of one client has searched it three times over at least a second. The name leaves the list when an
 * answer is seen, or when nobody searches it for ten minutes (in the end libca searches every five minutes,
 * EPICS_CA_MAX_SEARCH_PERIOD).
 *
 * The tables have a fixed size. In a full table new entries replace others (search.h); ebpfMonSearchPublish publishes
 * how many. Addresses and ports are in network byte order, times in ns of CLOCK_REALTIME. Any thread may call these
 * functions, except Free; they take a lock of their own for a short time.
 */
#ifndef EBPFMON_SEARCH_H
#define EBPFMON_SEARCH_H

#include <epicsMutex.h>
#include <stdint.h>
#include <stddef.h>

#include "model/published.h"
#include "wire/wireEvent.h"

/* --- keys ---
 *
 * A hash table of fixed size, by 64-bit key, which always has room: if it is full, a new entry replaces the oldest or
 * the newest entry, in turn. The oldest is the entry that was not touched for the longest time.
 *
 * The caller can raise an entry that is worth keeping. As long as at most three quarters of the entries are raised, a
 * new entry never replaces a raised one. So a flood of invented keys does not drive out what is known.
 *
 * No lock: one thread at a time. The caller owns the memory of the entries and buckets. No function fails. */

/* The head of each entry. Only this module writes it. */
typedef struct {
    uint64_t key;
    uint64_t touched;      /* ns */
    uint32_t chain;        /* the next entry of its bucket, or the next free entry */
    uint32_t newer, older; /* its neighbours in its list */
    uint8_t  used, raised;
} ebpfMonKeyHead;

typedef struct {
    uint32_t newest, oldest, members;
} ebpfMonKeyList;

typedef struct {
    char    *entries;      /* the caller's array of "number" entries, "size" bytes each */
    size_t   size;
    uint32_t number;
    uint32_t *buckets;     /* the caller's, as many as entries; a power of two */
    uint64_t seed;         /* a secret: else a sender of packets could put all keys into one bucket */
    uint64_t replaced;     /* how many entries new ones have replaced */
    uint32_t unused;       /* the first free entry */
    ebpfMonKeyList list[2];/* entries that are not raised, and raised ones */
} ebpfMonKeyTable;

void ebpfMonKeyTableInit(ebpfMonKeyTable *table, void *entries, size_t size, uint32_t number, uint32_t *buckets,
                    uint64_t seed);

/* NULL: there is no such entry. */
void *ebpfMonKeyTableFind(const ebpfMonKeyTable *table, uint64_t key);

/* Finds the entry of this key or makes a new one, and touches it at "time" (ns). A new entry is zero behind its
 * head. Never NULL. */
void *ebpfMonKeyTableGet(ebpfMonKeyTable *table, uint64_t key, uint64_t time);

/* Both take an entry that is in the table. */
void ebpfMonKeyTableRaise(ebpfMonKeyTable *table, void *entry);
void ebpfMonKeyTableRemove(ebpfMonKeyTable *table, void *entry);

/* Removes the entries that were not touched for "age" ns before "time" (ns). */
void ebpfMonKeyTableExpire(ebpfMonKeyTable *table, uint64_t time, uint64_t age);

/* The entry after "entry" in its list, newest first; NULL as "entry": the first one. Returns NULL after the last
 * one. */
void *ebpfMonKeyTableGetNext(const ebpfMonKeyTable *table, int raised, const void *entry);

/* --- hosts ---
 *
 * The hosts that search and answer, and how many entries the tables have.
 */

#define EBPFMON_SEARCH_NAMES   8192
#define EBPFMON_SEARCH_CLIENTS 1024
#define EBPFMON_SEARCH_SERVERS 1024
#define EBPFMON_SEARCH_FORGET  600000000000u /* ns without a search or beacon, after which an entry is removed */

typedef enum { ebpfMonSearchCa, ebpfMonSearchPva } ebpfMonSearchProtocol;

typedef struct {
    uint32_t addr; /* as in struct ebpfMonPeer */
    uint32_t addr6[4];
    uint16_t port;
} ebpfMonSearchHost;

/* --- searches, answers and beacons --- */

typedef struct ebpfMonSearch ebpfMonSearch;

/* NULL without memory. */
ebpfMonSearch *ebpfMonSearchNew(void);

/* No other thread may use "search" any more. NULL does no harm. */
void ebpfMonSearchFree(ebpfMonSearch *search);

/* Adds the search of a client for a name. "cid": the client's number for the channel; an answer may have only this
 * number. */
void ebpfMonSearchAddQuestion(ebpfMonSearch *search, uint64_t time, ebpfMonSearchProtocol protocol,
                              ebpfMonSearchHost client, uint32_t cid, const char *name);

/* Adds an answer to a client: it has the name, or, if "name" is "", only the cid. */
void ebpfMonSearchAddAnswer(ebpfMonSearch *search, ebpfMonSearchProtocol protocol, ebpfMonSearchHost client,
                            uint32_t cid, const char *name);

/* Adds a beacon of a server. */
void ebpfMonSearchAddBeacon(ebpfMonSearch *search, uint64_t time, ebpfMonSearchProtocol protocol,
                            ebpfMonSearchHost server);

/* Sets the published rates and lists. "seconds": the time since the last call, for the rates. Takes the lock of the
 * published values under its own; the caller notifies the group ebpfMonGroupSearch afterwards. */
void ebpfMonSearchPublish(ebpfMonSearch *search, uint64_t time, double seconds);

/* --- what is known of a name ---
 *
 * For those who find out why a name is not reached.
 */

#define EBPFMON_SEARCH_ANSWERS 4096 /* names whose servers are kept */

typedef struct {
    char     name[EBPFMON_SEARCH_NAME_SIZE];
    ebpfMonSearchProtocol protocol;
    uint64_t first;           /* time of the first search since the last answer; 0: none was seen */
    struct ebpfMonPeer way;   /* the last search: client, where it went to, and in which namespace it was seen */
    uint32_t minor;           /* CA, by UDP: the minor version of its client; 0: not known */
    int      isNever;         /* it counts as never found */
    unsigned servers;         /* different servers that answered a search for it in the last ten minutes, 2 at most */
    struct ebpfMonPeer server[2]; /* … the newest first: saddr, sport */
} ebpfMonSearchState;

void ebpfMonSearchGetState(ebpfMonSearch *search, ebpfMonSearchProtocol protocol, const char *name,
                           ebpfMonSearchState *state);

/* Lists names that count as never found, the newest first, at most "max". Returns their number. */
unsigned ebpfMonSearchListNever(ebpfMonSearch *search, ebpfMonSearchState *list, unsigned max);

/* Who searches this name, for the published list: it stands before address and port. */
void ebpfMonSearchSetAsker(ebpfMonSearch *search, ebpfMonSearchProtocol protocol, const char *name, const char *who);

/* --- packets ---
 *
 * Adds the searches, answers and beacons that wire/ found in packets. No state; any thread.
 */

/* Nonzero: the event was a search, an answer or a beacon, and was added. 0: the event is of another kind. */
int ebpfMonSearchAddPacket(ebpfMonSearch *search, const ebpfMonWireEvent *ev);

#endif
