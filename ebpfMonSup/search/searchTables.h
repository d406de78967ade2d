/* SPDX-License-Identifier: BSD-3-Clause */
/* What search.c fills and searchPublish.c makes lists of. */
#ifndef EBPFMON_SEARCHTABLES_H
#define EBPFMON_SEARCHTABLES_H

#include <epicsMutex.h>

#include "model/published.h"
#include "search/keyTable.h"
#include "search/searchHost.h"

#define EBPFMON_SEARCH_QUESTIONS 16384 /* that an answer by number can belong to; a power of two */
#define EBPFMON_SEARCH_ASKERS    4     /* channels that are followed for each name */
#define EBPFMON_SEARCH_ENOUGH    3     /* questions of one channel, over a second: nobody has the name */

/* A channel that asks for a name. */
typedef struct {
    uint64_t client;          /* key; 0: none */
    uint32_t cid, count;
    uint64_t first, last;
} ebpfMonSearchAsker;

typedef struct {
    ebpfMonKeyHead head;
    ebpfMonSearchProtocol protocol;
    ebpfMonSearchHost client; /* the last that asked */
    char     text[EBPFMON_SEARCH_NAME_SIZE];
    uint64_t asked;
    uint64_t first;
    uint64_t clients;         /* a bit for each client, by its hash: enough for an estimate of their number */
    ebpfMonSearchAsker asker[EBPFMON_SEARCH_ASKERS];
} ebpfMonSearchName;

typedef struct {
    ebpfMonKeyHead head;
    uint64_t name;            /* key */
} ebpfMonSearchQuestion;

typedef struct {
    ebpfMonKeyHead head;
    ebpfMonSearchProtocol protocol;
    ebpfMonSearchHost host;
    uint64_t asked, before;   /* now, at the last call of Publish */
    double   rate;
    unsigned open;            /* names that nobody has */
} ebpfMonSearchClient;

typedef struct {
    ebpfMonKeyHead head;
    ebpfMonSearchProtocol protocol;
    ebpfMonSearchHost host;
    uint64_t beacons, restarts;
    uint64_t began;           /* first heard of, or begun anew */
    uint64_t last, longest;   /* beacon, and interval since it began */
} ebpfMonSearchServer;

/* For sorting. */
typedef struct {
    double   first;           /* larger first; where equal, */
    uint64_t second;          /* the larger of these */
    const void *entry;
} ebpfMonSearchRank;

struct ebpfMonSearch {
    epicsMutexId lock;        /* of all that follows; the lock of what is published is taken under it */
    uint64_t asked, beacons;
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
