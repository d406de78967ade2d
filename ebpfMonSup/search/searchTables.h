/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of searches and beacons: search.c fills them, searchPublish.c makes lists of them. Private to this
 * room. */
#ifndef EBPFMON_SEARCHTABLES_H
#define EBPFMON_SEARCHTABLES_H

#include <epicsMutex.h>

#include "model/published.h"
#include "search/keyTable.h"
#include "search/searchHost.h"

#define EBPFMON_SEARCH_QUESTIONS 16384 /* searches that are kept for answers which have only the cid; a power of two */
#define EBPFMON_SEARCH_ASKERS    4     /* channels that are followed for each name */
#define EBPFMON_SEARCH_ENOUGH    3     /* searches of one channel over a second or more: nobody has the name */

/* A channel that searches a name. */
typedef struct {
    uint64_t client;          /* key of its client; 0: the place is free */
    uint32_t cid, count;      /* count: searches, copies left out */
    uint64_t first, last;     /* times of its first and last search */
} ebpfMonSearchAsker;

/* A name that clients search. */
typedef struct {
    ebpfMonKeyHead head;
    ebpfMonSearchProtocol protocol;
    ebpfMonSearchHost client; /* the last one that searched it */
    char     text[EBPFMON_SEARCH_NAME_SIZE];
    uint64_t searches;
    uint64_t first;           /* time of the first one */
    uint64_t clients;         /* each client sets the bit of its hash: their number is estimated from the bits */
    ebpfMonSearchAsker asker[EBPFMON_SEARCH_ASKERS];
} ebpfMonSearchName;

/* A search, by client and cid. */
typedef struct {
    ebpfMonKeyHead head;
    uint64_t name;            /* key of the name */
} ebpfMonSearchQuestion;

/* A client that searches. */
typedef struct {
    ebpfMonKeyHead head;
    ebpfMonSearchProtocol protocol;
    ebpfMonSearchHost host;
    uint64_t searches, before; /* so far, and at the last call of Publish */
    double   rate;            /* searches per second */
    unsigned never;           /* names that it searches and nobody has */
} ebpfMonSearchClient;

/* A server that sends beacons. */
typedef struct {
    ebpfMonKeyHead head;
    ebpfMonSearchProtocol protocol;
    ebpfMonSearchHost host;
    uint64_t beacons, restarts;
    uint64_t began;           /* time of its first beacon, or of the first one after its last restart */
    uint64_t last, interval;  /* time of the last beacon, and how long it came after the one before (ns) */
    uint64_t longest;         /* since it began, two intervals in a row were so long (ns) */
} ebpfMonSearchServer;

/* An entry while a list is sorted: the largest "first" comes first, and among equal ones the largest "second". */
typedef struct {
    double   first;
    uint64_t second;
    const void *entry;
} ebpfMonSearchRank;

struct ebpfMonSearch {
    epicsMutexId lock;        /* guards all members below. The lock of the published values may be taken under it */
    uint64_t searches, beacons; /* of all */
    ebpfMonKeyTable nameTable, questionTable, clientTable, serverTable;
    ebpfMonSearchName names[EBPFMON_SEARCH_NAMES];
    ebpfMonSearchQuestion questions[EBPFMON_SEARCH_QUESTIONS];
    ebpfMonSearchClient clients[EBPFMON_SEARCH_CLIENTS];
    ebpfMonSearchServer servers[EBPFMON_SEARCH_SERVERS];
    uint32_t nameBuckets[EBPFMON_SEARCH_NAMES], questionBuckets[EBPFMON_SEARCH_QUESTIONS];
    uint32_t clientBuckets[EBPFMON_SEARCH_CLIENTS], serverBuckets[EBPFMON_SEARCH_SERVERS];
    ebpfMonSearchRank nameRank[EBPFMON_SEARCH_NAMES], clientRank[EBPFMON_SEARCH_CLIENTS];
    ebpfMonSearchRank serverRank[EBPFMON_SEARCH_SERVERS];
};

#endif
