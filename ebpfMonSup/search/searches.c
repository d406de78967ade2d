/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <arpa/inet.h>

#include <epicsMutex.h>
#include <epicsThread.h>

#include "common/text.h"
#include "model/published.h"
#include "search/keyTable.h"
#include "search/searches.h"

#define MS         1000000u
#define SECOND     1000000000u
#define QUESTIONS  16384      /* that an answer by number can belong to */
#define ASKERS     4          /* channels that are followed for each name */
#define ENOUGH     3          /* questions of one channel … */
#define LONG       SECOND     /* … over so long: never found */
#define SAME       (10 * MS)  /* one question or beacon goes to several addresses: copies come this close */
#define LOUD       16         /* questions that make a client worth its place; */
#define STEADY     4          /* beacons that do so for a server */
#define SMOOTH     0.3        /* of the last second in a rate, as PUT_RATE */
#define SPEEDUP    4          /* beacons so much faster than before: the server has begun anew */

typedef struct {
    uint64_t client;          /* key; 0: none */
    uint32_t cid, count;
    uint64_t first, last;
} Asker;

typedef struct {
    ebpfMonKeyHead head;
    ebpfMonSearchProtocol protocol;
    ebpfMonSearchHost client; /* the last that asked */
    char     text[EBPFMON_SEARCH_NAME_SIZE];
    uint64_t asked;
    uint64_t first;
    uint64_t clients;         /* a bit for each, by its hash: enough to say about how many */
    int      never;
    Asker    asker[ASKERS];
} Name;

typedef struct {
    ebpfMonKeyHead head;
    uint64_t name;            /* key */
} Question;

typedef struct {
    ebpfMonKeyHead head;
    ebpfMonSearchProtocol protocol;
    ebpfMonSearchHost host;
    uint64_t asked, before;   /* now, at the last snapshot */
    double   rate;
    unsigned open;            /* names never found */
} Client;

typedef struct {
    ebpfMonKeyHead head;
    ebpfMonSearchProtocol protocol;
    ebpfMonSearchHost host;
    uint64_t beacons, restarts;
    uint64_t began;           /* first heard of, or begun anew */
    uint64_t last, longest;   /* beacon, and interval since it began */
} Server;

/* All under the lock. */
static epicsMutexId lock; /* leaf */
static Name names[EBPFMON_SEARCH_NAMES];
static Question questions[QUESTIONS];
static Client clients[EBPFMON_SEARCH_CLIENTS];
static Server servers[EBPFMON_SEARCH_SERVERS];
static uint32_t nameBuckets[EBPFMON_SEARCH_NAMES], questionBuckets[QUESTIONS], clientBuckets[EBPFMON_SEARCH_CLIENTS],
    serverBuckets[EBPFMON_SEARCH_SERVERS];
static ebpfMonKeyTable nameTable, questionTable, clientTable, serverTable;
static uint64_t asked, beacons;

static void init(void *unused)
{
    struct timespec t;
    uint64_t seed;

    (void)unused;
    clock_gettime(CLOCK_MONOTONIC, &t);
    seed = ebpfMonKeyMix((uint64_t)t.tv_nsec << 32 ^ (uint64_t)t.tv_sec);
    lock = epicsMutexMustCreate();
    ebpfMonKeyInit(&nameTable, names, sizeof(*names), EBPFMON_SEARCH_NAMES, nameBuckets, seed);
    ebpfMonKeyInit(&questionTable, questions, sizeof(*questions), QUESTIONS, questionBuckets, seed);
    ebpfMonKeyInit(&clientTable, clients, sizeof(*clients), EBPFMON_SEARCH_CLIENTS, clientBuckets, seed);
    ebpfMonKeyInit(&serverTable, servers, sizeof(*servers), EBPFMON_SEARCH_SERVERS, serverBuckets, seed);
}

static void begin(void)
{
    static epicsThreadOnceId once = EPICS_THREAD_ONCE_INIT;

    epicsThreadOnce(&once, init, NULL);
    epicsMutexMustLock(lock);
}

/* The clock may have been set back. */
static uint64_t since(uint64_t time, uint64_t before)
{
    return time > before ? time - before : 0;
}

static uint64_t hostKey(ebpfMonSearchProtocol protocol, ebpfMonSearchHost host)
{
    return (uint64_t)host.addr << 32 | (uint64_t)host.port << 8 | (uint64_t)protocol << 1 | 1;
}

static uint64_t questionKey(uint64_t client, uint32_t cid)
{
    return ebpfMonKeyMix(ebpfMonKeyMix(client) + cid);
}

/* FNV-1a, and what it was asked by: who has a name on one protocol need not have it on the other. */
static uint64_t nameKey(ebpfMonSearchProtocol protocol, const char *name)
{
    uint64_t hash = 0xcbf29ce484222325u;

    while (*name)
        hash = (hash ^ (unsigned char)*name++) * 0x100000001b3u;
    return hash + (unsigned)protocol;
}

/*
 * The place of a channel among those that are followed for a name, NULL when it is new or has none. With more of
 * them than places, two are for those that have just begun, which ask several times within seconds, and two for
 * those that have asked for long and come back every five minutes. Who was silent for longest makes room.
 */
static Asker *askerOf(Name *name, uint64_t client, uint32_t cid, uint64_t time)
{
    static const uint64_t patience[ASKERS] = {
        10ull * SECOND, 10ull * SECOND, 310ull * SECOND, 310ull * SECOND
    };
    Asker *room = NULL;

    for (unsigned i = 0; i < ASKERS; i++) {
        Asker *asker = &name->asker[i];

        if (asker->client == client && asker->cid == cid && since(time, asker->last) <= EBPFMON_SEARCH_FORGET)
            return asker;
        if (since(time, asker->last) > patience[i] && (!room || asker->last < room->last))
            room = asker;
    }
    if (room)
        *room = (Asker){.client = client, .cid = cid, .count = 1, .first = time, .last = time};
    return NULL;
}

void ebpfMonSearchAsked(uint64_t time, ebpfMonSearchProtocol protocol, ebpfMonSearchHost host, uint32_t cid,
                        const char *text)
{
    uint64_t key = nameKey(protocol, text), who = hostKey(protocol, host);
    Client *client;
    Name *name;
    Asker *asker;

    begin();
    asked++;
    client = ebpfMonKeyGet(&clientTable, who, time);
    client->protocol = protocol;
    client->host = host;
    if (++client->asked == LOUD)
        ebpfMonKeyRaise(&clientTable, client);
    name = ebpfMonKeyGet(&nameTable, key, time);
    if (!name->asked++) {
        name->protocol = protocol;
        name->first = time;
        ebpfMonTextCopy(name->text, sizeof(name->text), text);
        ebpfMonTextRemoveControls(name->text);
    }
    name->client = host;
    name->clients |= 1ull << (ebpfMonKeyMix(who) & 63);
    ((Question *)ebpfMonKeyGet(&questionTable, questionKey(who, cid), time))->name = key;
    asker = askerOf(name, who, cid, time);
    if (asker && since(time, asker->last) > SAME) {
        asker->last = time;
        if (++asker->count >= ENOUGH && since(time, asker->first) >= LONG) {
            name->never = 1;
            ebpfMonKeyRaise(&nameTable, name);
        }
    }
    epicsMutexUnlock(lock);
}

void ebpfMonSearchFound(ebpfMonSearchProtocol protocol, ebpfMonSearchHost client, uint32_t cid, const char *text)
{
    const Question *question;
    Name *name = NULL;

    begin();
    if (text[0]) {
        name = ebpfMonKeyFind(&nameTable, nameKey(protocol, text));
    } else {
        question = ebpfMonKeyFind(&questionTable, questionKey(hostKey(protocol, client), cid));
        if (question)
            name = ebpfMonKeyFind(&nameTable, question->name);
    }
    if (name)
        ebpfMonKeyDrop(&nameTable, name);
    epicsMutexUnlock(lock);
}

void ebpfMonSearchBeacon(uint64_t time, ebpfMonSearchProtocol protocol, ebpfMonSearchHost host)
{
    uint64_t interval;
    Server *server;

    begin();
    beacons++;
    server = ebpfMonKeyGet(&serverTable, hostKey(protocol, host), time);
    interval = since(time, server->last);
    if (!server->beacons++) {
        server->protocol = protocol;
        server->host = host;
        server->began = server->last = time;
    } else if (interval > SAME) {
        /* A CA server that begins sends beacons after 20 ms, and doubles that up to 15 s (rsrv/online_notify.c);
         * pvAccess servers are not as strict, but begin faster than they go on. */
        if (interval < server->longest / SPEEDUP) {
            server->restarts++;
            server->began = time;
            server->longest = 0;
        }
        if (interval > server->longest)
            server->longest = interval;
        server->last = time;
    }
    if (server->beacons == STEADY)
        ebpfMonKeyRaise(&serverTable, server);
    epicsMutexUnlock(lock);
}

/* --- the lists --------------------------------------------------------------------------------------- */

typedef struct {
    double   first;           /* larger first; where equal, */
    uint64_t second;          /* the larger of these */
    const void *entry;
} Rank;

static Rank nameRank[EBPFMON_SEARCH_NAMES], clientRank[EBPFMON_SEARCH_CLIENTS], serverRank[EBPFMON_SEARCH_SERVERS];

static int byRank(const void *left, const void *right)
{
    const Rank *l = left, *r = right;

    if (l->first != r->first)
        return l->first < r->first ? 1 : -1;
    return (l->second < r->second) - (l->second > r->second);
}

static double smooth(double rate, uint64_t count, double seconds)
{
    double now = seconds > 0 ? (double)count / seconds : 0;

    return now == 0 && rate < 0.01 ? 0 : rate + SMOOTH * (now - rate);
}

static void hostText(char *buf, size_t size, ebpfMonSearchHost host, ebpfMonSearchProtocol protocol)
{
    char addr[INET_ADDRSTRLEN] = "?";

    inet_ntop(AF_INET, &host.addr, addr, sizeof(addr));
    snprintf(buf, size, "%s:%u %s", addr, ntohs(host.port), protocol == ebpfMonSearchPva ? "PVA" : "CA");
}

static epicsTimeStamp stamp(uint64_t time)
{
    struct timespec ts = {(time_t)(time / SECOND), (long)(time % SECOND)};
    epicsTimeStamp t;

    epicsTimeFromTimespec(&t, &ts);
    return t;
}

/* How many keys set the bits of a 64-bit map (linear counting: Whang, Vander-Zanden, Taylor 1990). */
static unsigned about(uint64_t bits)
{
    int zero = 64 - __builtin_popcountll(bits);

    return (unsigned)lround(-64 * log((zero ? zero : 0.5) / 64));
}

static void nameRow(ebpfMonSearchRow *row, const Name *name)
{
    char host[32];
    unsigned n = about(name->clients);

    strcpy(row->name, name->text);
    row->count = name->asked;
    row->first = stamp(name->first);
    row->last = stamp(name->head.touched);
    hostText(host, sizeof(host), name->client, name->protocol);
    if (n > 1)
        snprintf(row->who, sizeof(row->who), "%s, ~%u clients", host, n);
    else
        snprintf(row->who, sizeof(row->who), "%s", host);
}

static unsigned rankNames(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < EBPFMON_SEARCH_CLIENTS; i++)
        clients[i].open = 0;
    for (const Name *name = NULL; (name = ebpfMonKeyNext(&nameTable, 1, name)) != NULL;) {
        nameRank[n++] = (Rank){(double)name->asked, name->head.touched, name};
        for (unsigned i = 0; i < ASKERS; i++) {
            Client *client = NULL;

            if (name->asker[i].count >= ENOUGH)
                client = ebpfMonKeyFind(&clientTable, name->asker[i].client);
            if (client)
                client->open++;
        }
    }
    qsort(nameRank, n, sizeof(*nameRank), byRank);
    return n;
}

static unsigned rankClients(double seconds)
{
    unsigned n = 0;

    for (int raised = 0; raised < 2; raised++)
        for (Client *client = NULL; (client = ebpfMonKeyNext(&clientTable, raised, client)) != NULL;) {
            client->rate = smooth(client->rate, client->asked - client->before, seconds);
            client->before = client->asked;
            clientRank[n++] = (Rank){client->rate, client->asked, client};
        }
    qsort(clientRank, n, sizeof(*clientRank), byRank);
    return n;
}

static unsigned rankServers(void)
{
    unsigned n = 0;

    for (int raised = 0; raised < 2; raised++)
        for (const Server *server = NULL; (server = ebpfMonKeyNext(&serverTable, raised, server)) != NULL;)
            serverRank[n++] = (Rank){0, server->began, server};
    qsort(serverRank, n, sizeof(*serverRank), byRank);
    return n;
}

static unsigned shown(unsigned n)
{
    return n < EBPFMON_TOP_MAX ? n : EBPFMON_TOP_MAX;
}

void ebpfMonSearchSnapshot(uint64_t time, double seconds)
{
    unsigned never, known, heard;
    ebpfMonSearches *out;
    ebpfMonPublished *published;

    begin();
    ebpfMonKeyExpire(&nameTable, time, EBPFMON_SEARCH_FORGET);
    ebpfMonKeyExpire(&clientTable, time, EBPFMON_SEARCH_FORGET);
    ebpfMonKeyExpire(&serverTable, time, EBPFMON_SEARCH_FORGET);
    never = rankNames();
    known = rankClients(seconds);
    heard = rankServers();

    published = ebpfMonPublishedLock();
    out = &published->searches;
    out->never = never;
    out->names = shown(never);
    for (unsigned i = 0; i < out->names; i++)
        nameRow(&out->name[i], nameRank[i].entry);
    out->clients = shown(known);
    for (unsigned i = 0; i < out->clients; i++) {
        const Client *client = clientRank[i].entry;
        ebpfMonSearchClientRow *row = &out->client[i];

        hostText(row->name, sizeof(row->name), client->host, client->protocol);
        row->rate = client->rate;
        row->count = client->asked;
        row->never = client->open;
    }
    out->heard = heard;
    out->servers = shown(heard);
    for (unsigned i = 0; i < out->servers; i++) {
        const Server *server = serverRank[i].entry;
        ebpfMonBeaconRow *row = &out->server[i];

        hostText(row->name, sizeof(row->name), server->host, server->protocol);
        row->count = server->beacons;
        row->restarts = server->restarts;
        row->began = stamp(server->began);
    }
    out->rate = smooth(out->rate, asked - out->count, seconds);
    out->count = asked;
    out->beaconRate = smooth(out->beaconRate, beacons - out->beacons, seconds);
    out->beacons = beacons;
    out->replaced = nameTable.replaced + clientTable.replaced + serverTable.replaced;
    epicsTimeGetCurrent(&published->time[ebpfMonGroupSearch]);
    ebpfMonPublishedUnlock();
    epicsMutexUnlock(lock);
}
