/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/hash.h"
#include "common/text.h"
#include "host/tcpSockets.h"
#include "search/search.h"

/* --- keys --- */

#define EBPFMON_KEY_NONE UINT32_MAX

static ebpfMonKeyHead *getHead(const ebpfMonKeyTable *table, uint32_t at)
{
    return (ebpfMonKeyHead *)(void *)(table->entries + at * table->size);
}

static uint32_t getPlace(const ebpfMonKeyTable *table, const void *entry)
{
    return (uint32_t)((size_t)((const char *)entry - table->entries) / table->size);
}

static uint32_t *getBucket(const ebpfMonKeyTable *table, uint64_t key)
{
    return &table->buckets[ebpfMonHashMix(key ^ table->seed) & (table->number - 1)];
}

void ebpfMonKeyTableInit(ebpfMonKeyTable *table, void *entries, size_t size, uint32_t number, uint32_t *buckets,
                    uint64_t seed)
{
    memset(table, 0, sizeof(*table));
    table->entries = entries;
    table->size = size;
    table->number = number;
    table->buckets = buckets;
    table->seed = seed;
    for (uint32_t i = 0; i < number; i++) {
        getHead(table, i)->used = 0;
        getHead(table, i)->chain = i + 1 < number ? i + 1 : EBPFMON_KEY_NONE;
        buckets[i] = EBPFMON_KEY_NONE;
    }
    for (int i = 0; i < 2; i++)
        table->list[i].newest = table->list[i].oldest = EBPFMON_KEY_NONE;
}

static void leaveList(ebpfMonKeyTable *table, uint32_t at)
{
    ebpfMonKeyHead *h = getHead(table, at);
    ebpfMonKeyList *list = &table->list[h->raised];

    if (h->newer != EBPFMON_KEY_NONE)
        getHead(table, h->newer)->older = h->older;
    else
        list->newest = h->older;
    if (h->older != EBPFMON_KEY_NONE)
        getHead(table, h->older)->newer = h->newer;
    else
        list->oldest = h->newer;
    list->members--;
}

static void joinList(ebpfMonKeyTable *table, uint32_t at, int raised)
{
    ebpfMonKeyHead *h = getHead(table, at);
    ebpfMonKeyList *list = &table->list[raised];

    h->raised = (uint8_t)raised;
    h->newer = EBPFMON_KEY_NONE;
    h->older = list->newest;
    if (list->newest != EBPFMON_KEY_NONE)
        getHead(table, list->newest)->newer = at;
    else
        list->oldest = at;
    list->newest = at;
    list->members++;
}

static void removeEntry(ebpfMonKeyTable *table, uint32_t at)
{
    ebpfMonKeyHead *h = getHead(table, at);
    uint32_t *link = getBucket(table, h->key);

    while (*link != at)
        link = &getHead(table, *link)->chain;
    *link = h->chain;
    leaveList(table, at);
    h->used = 0;
    h->chain = table->unused;
    table->unused = at;
}

void *ebpfMonKeyTableFind(const ebpfMonKeyTable *table, uint64_t key)
{
    for (uint32_t at = *getBucket(table, key); at != EBPFMON_KEY_NONE; at = getHead(table, at)->chain)
        if (getHead(table, at)->key == key)
            return getHead(table, at);
    return NULL;
}

void *ebpfMonKeyTableGet(ebpfMonKeyTable *table, uint64_t key, uint64_t time)
{
    ebpfMonKeyHead *h = ebpfMonKeyTableFind(table, key);
    uint32_t at, *first;

    if (h) {
        at = getPlace(table, h);
        leaveList(table, at);
        joinList(table, at, h->raised);
    } else {
        if (table->unused == EBPFMON_KEY_NONE) {
            const ebpfMonKeyList *list = &table->list[table->list[1].members > table->number / 4 * 3];

            /* If more keys than entries come in the same order again and again, the oldest entry is always the one
             * that is needed next. If always the oldest were replaced, no key would ever be found. So every other
             * time the newest is replaced. */
            removeEntry(table, table->replaced++ % 2 ? list->newest : list->oldest);
        }
        at = table->unused;
        h = getHead(table, at);
        table->unused = h->chain;
        memset(h, 0, table->size);
        h->key = key;
        h->used = 1;
        first = getBucket(table, key);
        h->chain = *first;
        *first = at;
        joinList(table, at, 0);
    }
    h->touched = time;
    return h;
}

void ebpfMonKeyTableRaise(ebpfMonKeyTable *table, void *entry)
{
    uint32_t at = getPlace(table, entry);

    if (getHead(table, at)->raised)
        return;
    leaveList(table, at);
    joinList(table, at, 1);
}

void ebpfMonKeyTableRemove(ebpfMonKeyTable *table, void *entry)
{
    removeEntry(table, getPlace(table, entry));
}

void ebpfMonKeyTableExpire(ebpfMonKeyTable *table, uint64_t time, uint64_t age)
{
    for (int i = 0; i < 2; i++) {
        uint32_t at;

        while ((at = table->list[i].oldest) != EBPFMON_KEY_NONE && getHead(table, at)->touched + age < time)
            removeEntry(table, at);
    }
}

void *ebpfMonKeyTableGetNext(const ebpfMonKeyTable *table, int raised, const void *entry)
{
    uint32_t at = entry ? ((const ebpfMonKeyHead *)entry)->older : table->list[raised].newest;

    return at == EBPFMON_KEY_NONE ? NULL : getHead(table, at);
}

/* --- the list --- */

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
    uint64_t searches, before; /* so far, and at the last call of Publish */
    uint64_t first;           /* time of the first one */
    struct ebpfMonPeer way;   /* of the last one … */
    uint32_t minor;           /* … and the minor version of its client, as in ebpfMonSearchState */
    char     asker[100];      /* ebpfMonSearchSetAsker */
    uint64_t clients;         /* each client sets the bit of its hash: their number is estimated from the bits */
    ebpfMonSearchAsker channel[EBPFMON_SEARCH_ASKERS];
} ebpfMonSearchName;

/* A search, by client and cid. */
typedef struct {
    ebpfMonKeyHead head;
    uint64_t name;            /* key of the name */
} ebpfMonSearchQuestion;

/* The servers that answered a search for a name. */
typedef struct {
    ebpfMonKeyHead head;
    struct ebpfMonPeer server[2]; /* the newest first */
    uint64_t time[2];         /* 0: there is none */
} ebpfMonSearchAnswer;

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
    uint64_t vain, vainBefore;  /* searches for names that nobody has, and at the last call of Publish */
    ebpfMonKeyTable nameTable, questionTable, answerTable, clientTable, serverTable;
    ebpfMonSearchName names[EBPFMON_SEARCH_NAMES];
    ebpfMonSearchQuestion questions[EBPFMON_SEARCH_QUESTIONS];
    ebpfMonSearchAnswer answers[EBPFMON_SEARCH_ANSWERS];
    ebpfMonSearchClient clients[EBPFMON_SEARCH_CLIENTS];
    ebpfMonSearchServer servers[EBPFMON_SEARCH_SERVERS];
    uint32_t nameBuckets[EBPFMON_SEARCH_NAMES], questionBuckets[EBPFMON_SEARCH_QUESTIONS];
    uint32_t answerBuckets[EBPFMON_SEARCH_ANSWERS];
    uint32_t clientBuckets[EBPFMON_SEARCH_CLIENTS], serverBuckets[EBPFMON_SEARCH_SERVERS];
    ebpfMonSearchRank nameRank[EBPFMON_SEARCH_NAMES], clientRank[EBPFMON_SEARCH_CLIENTS];
    ebpfMonSearchRank serverRank[EBPFMON_SEARCH_SERVERS];
};

/* --- searches, answers and beacons --- */

#define NEVER_NS         EBPFMON_SECOND_NS /* EBPFMON_SEARCH_ENOUGH searches over this time (ns): nobody has the name */
#define COPY_NS          10000000u /* A search or beacon goes to several addresses: its copies come within this time */
#define CLIENT_SEARCHES  16 /* after so many searches the client's entry is raised */
#define BOTH_NS          (2 * EBPFMON_SECOND_NS) /* two servers that answer one search do so within this time */
#define SERVER_BEACONS   4  /* after so many beacons the server's entry is raised */
#define RESTART_SPEEDUP  4  /* if beacons come so many times faster than before, the server has restarted */

ebpfMonSearch *ebpfMonSearchNew(void)
{
    ebpfMonSearch *s = calloc(1, sizeof(*s));
    uint64_t seed = ebpfMonHashMix(ebpfMonClockMonotonic());

    if (!s)
        return NULL;
    s->lock = epicsMutexMustCreate();
    ebpfMonKeyTableInit(&s->nameTable, s->names, sizeof(*s->names), EBPFMON_SEARCH_NAMES, s->nameBuckets, seed);
    ebpfMonKeyTableInit(&s->questionTable, s->questions, sizeof(*s->questions), EBPFMON_SEARCH_QUESTIONS,
                        s->questionBuckets, seed);
    ebpfMonKeyTableInit(&s->answerTable, s->answers, sizeof(*s->answers), EBPFMON_SEARCH_ANSWERS, s->answerBuckets,
                        seed);
    ebpfMonKeyTableInit(&s->clientTable, s->clients, sizeof(*s->clients), EBPFMON_SEARCH_CLIENTS, s->clientBuckets,
                        seed);
    ebpfMonKeyTableInit(&s->serverTable, s->servers, sizeof(*s->servers), EBPFMON_SEARCH_SERVERS, s->serverBuckets,
                        seed);
    return s;
}

void ebpfMonSearchFree(ebpfMonSearch *s)
{
    if (!s)
        return;
    epicsMutexDestroy(s->lock);
    free(s);
}

/* 0 if "before" is later: the clock may have been set back. */
static uint64_t getAge(uint64_t time, uint64_t before)
{
    return time > before ? time - before : 0;
}

static uint64_t makeHostKey(ebpfMonSearchProtocol protocol, ebpfMonSearchHost host)
{
    uint64_t address = (uint64_t)host.addr << 32;

    if (host.addr6[0] | host.addr6[1] | host.addr6[2] | host.addr6[3])
        address = ebpfMonHashMix(ebpfMonHashMix((uint64_t)host.addr6[0] << 32 | host.addr6[1]) +
                                 ((uint64_t)host.addr6[2] << 32 | host.addr6[3])) & ~0xffffffull;
    return address ^ ((uint64_t)host.port << 8 | (uint64_t)protocol << 1 | 1);
}

static uint64_t makeQuestionKey(uint64_t client, uint32_t cid)
{
    return ebpfMonHashMix(ebpfMonHashMix(client) + cid);
}

/* The key has the protocol, because a CA server and a PVA server may have different names. */
static uint64_t makeNameKey(ebpfMonSearchProtocol protocol, const char *name)
{
    return ebpfMonHashFnv64(EBPFMON_FNV64_BEGIN, name, strlen(name)) + (unsigned)protocol;
}

/*
 * Finds the place of a channel among the channels that are followed for a name. A new channel gets a place if one is
 * free. NULL: the channel is new, or all places are taken. Each name has four places, and a place is free when its
 * channel was silent for the time in "patience". Two places wait ten seconds: for channels that have just begun, and
 * search several times within seconds. Two wait 310 s: for channels that search every five minutes. Of several free
 * places the one with the longest silence is taken.
 */
static ebpfMonSearchAsker *followChannel(ebpfMonSearchName *name, uint64_t client, uint32_t cid, uint64_t time)
{
    static const uint64_t patience[EBPFMON_SEARCH_ASKERS] = {
        10 * EBPFMON_SECOND_NS, 10 * EBPFMON_SECOND_NS, 310 * EBPFMON_SECOND_NS, 310 * EBPFMON_SECOND_NS
    };
    ebpfMonSearchAsker *room = NULL;

    for (unsigned i = 0; i < EBPFMON_SEARCH_ASKERS; i++) {
        ebpfMonSearchAsker *asker = &name->channel[i];

        if (asker->client == client && asker->cid == cid && getAge(time, asker->last) <= EBPFMON_SEARCH_FORGET)
            return asker;
        if (getAge(time, asker->last) > patience[i] && (!room || asker->last < room->last))
            room = asker;
    }
    if (room)
        *room = (ebpfMonSearchAsker){.client = client, .cid = cid, .count = 1, .first = time, .last = time};
    return NULL;
}

void ebpfMonSearchAddQuestion(ebpfMonSearch *s, uint64_t time, ebpfMonSearchProtocol protocol,
                              ebpfMonSearchHost host, uint32_t cid, const char *text)
{
    uint64_t key = makeNameKey(protocol, text), who = makeHostKey(protocol, host);
    ebpfMonSearchClient *client;
    ebpfMonSearchName *name;
    ebpfMonSearchAsker *asker;

    epicsMutexMustLock(s->lock);
    s->searches++;
    client = ebpfMonKeyTableGet(&s->clientTable, who, time);
    client->protocol = protocol;
    client->host = host;
    if (++client->searches == CLIENT_SEARCHES)
        ebpfMonKeyTableRaise(&s->clientTable, client);
    name = ebpfMonKeyTableGet(&s->nameTable, key, time);
    if (!name->searches++) {
        name->protocol = protocol;
        name->first = time;
        ebpfMonTextCopy(name->text, sizeof(name->text), text);
    }
    s->vain += name->head.raised;
    name->client = host;
    name->clients |= 1ull << (ebpfMonHashMix(who) & 63);
    ((ebpfMonSearchQuestion *)ebpfMonKeyTableGet(&s->questionTable, makeQuestionKey(who, cid), time))->name = key;
    asker = followChannel(name, who, cid, time);
    if (asker && getAge(time, asker->last) > COPY_NS) {
        asker->last = time;
        if (++asker->count >= EBPFMON_SEARCH_ENOUGH && getAge(time, asker->first) >= NEVER_NS)
            ebpfMonKeyTableRaise(&s->nameTable, name);
    }
    epicsMutexUnlock(s->lock);
}

void ebpfMonSearchAddAnswer(ebpfMonSearch *s, ebpfMonSearchProtocol protocol, ebpfMonSearchHost client,
                            uint32_t cid, const char *text)
{
    const ebpfMonSearchQuestion *question;
    ebpfMonSearchName *name = NULL;

    epicsMutexMustLock(s->lock);
    if (text[0]) {
        name = ebpfMonKeyTableFind(&s->nameTable, makeNameKey(protocol, text));
    } else {
        question = ebpfMonKeyTableFind(&s->questionTable, makeQuestionKey(makeHostKey(protocol, client), cid));
        if (question)
            name = ebpfMonKeyTableFind(&s->nameTable, question->name);
    }
    if (name)
        ebpfMonKeyTableRemove(&s->nameTable, name);
    epicsMutexUnlock(s->lock);
}

void ebpfMonSearchAddBeacon(ebpfMonSearch *s, uint64_t time, ebpfMonSearchProtocol protocol,
                            ebpfMonSearchHost host)
{
    uint64_t interval, lesser;
    ebpfMonSearchServer *server;

    epicsMutexMustLock(s->lock);
    s->beacons++;
    server = ebpfMonKeyTableGet(&s->serverTable, makeHostKey(protocol, host), time);
    interval = getAge(time, server->last);
    if (!server->beacons++) {
        server->protocol = protocol;
        server->host = host;
        server->began = server->last = time;
    } else if (interval > COPY_NS) {
        /* A CA server waits 20 ms after its first beacon, and doubles this time for each further beacon up to 15 s
         * (rsrv_online_notify_task in rsrv/online_notify.c). A pvAccess server sends ten beacons every 15 s, and
         * then one every 180 s. One long interval says nothing: the network may have paused. */
        if (interval < server->longest / RESTART_SPEEDUP) {
            server->restarts++;
            server->began = time;
            server->longest = server->interval = 0;
        }
        lesser = interval < server->interval ? interval : server->interval;
        if (lesser > server->longest)
            server->longest = lesser;
        server->interval = interval;
        server->last = time;
    }
    if (server->beacons == SERVER_BEACONS)
        ebpfMonKeyTableRaise(&s->serverTable, server);
    epicsMutexUnlock(s->lock);
}

/* --- published values --- */

/* Sets the published lists and rates of searches and beacons. */

#define SMOOTH 0.3 /* weight of the last second in a rate, as for PUT_RATE */

static int compareRanks(const void *left, const void *right)
{
    const ebpfMonSearchRank *l = left, *r = right;

    if (l->first != r->first)
        return l->first < r->first ? 1 : -1;
    return (l->second < r->second) - (l->second > r->second);
}

static double smoothRate(double rate, uint64_t count, double seconds)
{
    double now = seconds > 0 ? (double)count / seconds : 0;

    return now == 0 && rate < 0.01 ? 0 : rate + SMOOTH * (now - rate);
}

static void formatHost(char *buf, size_t size, ebpfMonSearchHost host, ebpfMonSearchProtocol protocol)
{
    char end[EBPFMON_PEERTEXT_SIZE + 8];

    ebpfMonPeerTextEnd(host.addr, host.addr6, host.port, end, sizeof(end));
    snprintf(buf, size, "%s %s", end, protocol == ebpfMonSearchPva ? "PVA" : "CA");
}

/* Estimates from the bits of a 64-bit map how many keys have set them (linear counting: Whang, Vander-Zanden, Taylor
 * 1990). */
static unsigned estimateCount(uint64_t bits)
{
    int zero = 64 - __builtin_popcountll(bits);

    return (unsigned)lround(-64 * log((zero ? zero : 0.5) / 64));
}

static void fillNameRow(ebpfMonSearchRow *row, const ebpfMonSearchName *name)
{
    char host[64];
    unsigned n = estimateCount(name->clients);

    strcpy(row->name, name->text);
    row->count = name->searches;
    row->first = ebpfMonClockStamp(name->first);
    row->last = ebpfMonClockStamp(name->head.touched);
    formatHost(host, sizeof(host), name->client, name->protocol);
    ebpfMonTextCopy(row->who, sizeof(row->who), name->asker);
    ebpfMonTextCopy(row->who + strlen(row->who), sizeof(row->who) - strlen(row->who), host);
    if (n > 1)
        snprintf(row->who + strlen(row->who), sizeof(row->who) - strlen(row->who), ", ~%u clients", n);
}

/* Nonzero: this channel of the name was searched often enough, and none before it by the same client. */
static int isFirstOfClient(const ebpfMonSearchName *name, unsigned index)
{
    const ebpfMonSearchAsker *asker = name->channel;

    if (asker[index].count < EBPFMON_SEARCH_ENOUGH)
        return 0;
    for (unsigned i = 0; i < index; i++)
        if (asker[i].count >= EBPFMON_SEARCH_ENOUGH && asker[i].client == asker[index].client)
            return 0;
    return 1;
}

/* Sets *worst to the name that was searched most since the last call; NULL: none was. */
static unsigned rankNames(ebpfMonSearch *s, const ebpfMonSearchName **worst)
{
    uint64_t most = 0;
    unsigned n = 0;

    *worst = NULL;

    for (unsigned i = 0; i < EBPFMON_SEARCH_CLIENTS; i++)
        s->clients[i].never = 0;
    for (ebpfMonSearchName *name = NULL; (name = ebpfMonKeyTableGetNext(&s->nameTable, 1, name)) != NULL;) {
        if (name->searches - name->before > most) {
            most = name->searches - name->before;
            *worst = name;
        }
        name->before = name->searches;
        s->nameRank[n++] = (ebpfMonSearchRank){(double)name->searches, name->head.touched, name};
        for (unsigned i = 0; i < EBPFMON_SEARCH_ASKERS; i++) {
            ebpfMonSearchClient *client = NULL;

            if (isFirstOfClient(name, i))
                client = ebpfMonKeyTableFind(&s->clientTable, name->channel[i].client);
            if (client)
                client->never++;
        }
    }
    qsort(s->nameRank, n, sizeof(*s->nameRank), compareRanks);
    return n;
}

static unsigned rankClients(ebpfMonSearch *s, double seconds)
{
    unsigned n = 0;

    for (int raised = 0; raised < 2; raised++)
        for (ebpfMonSearchClient *client = NULL;
             (client = ebpfMonKeyTableGetNext(&s->clientTable, raised, client)) != NULL;) {
            client->rate = smoothRate(client->rate, client->searches - client->before, seconds);
            client->before = client->searches;
            s->clientRank[n++] = (ebpfMonSearchRank){client->rate, client->searches, client};
        }
    qsort(s->clientRank, n, sizeof(*s->clientRank), compareRanks);
    return n;
}

static unsigned rankServers(ebpfMonSearch *s)
{
    unsigned n = 0;

    for (int raised = 0; raised < 2; raised++)
        for (const ebpfMonSearchServer *server = NULL;
             (server = ebpfMonKeyTableGetNext(&s->serverTable, raised, server)) != NULL;)
            s->serverRank[n++] = (ebpfMonSearchRank){0, server->began, server};
    qsort(s->serverRank, n, sizeof(*s->serverRank), compareRanks);
    return n;
}

/* Searches that are in vain: how often, and what and who is behind most of them. */
static void fillVain(ebpfMonSearch *s, ebpfMonSearches *out, const ebpfMonSearchName *worst, double seconds)
{
    ebpfMonSearchRow row;

    out->neverRate = smoothRate(out->neverRate, s->vain - s->vainBefore, seconds);
    s->vainBefore = s->vain;
    if (worst) {
        fillNameRow(&row, worst);
        snprintf(out->worst, sizeof(out->worst), "%.60s by %.90s", row.name, row.who);
    } else if (out->neverRate < 1) {
        out->worst[0] = 0;
    }
}

static unsigned countShown(unsigned n)
{
    return n < EBPFMON_TOP_MAX ? n : EBPFMON_TOP_MAX;
}

static void fillClientRow(ebpfMonSearchClientRow *row, const ebpfMonSearchClient *client)
{
    formatHost(row->name, sizeof(row->name), client->host, client->protocol);
    row->rate = client->rate;
    row->count = client->searches;
    row->never = client->never;
}

static void fillServerRow(ebpfMonBeaconRow *row, const ebpfMonSearchServer *server)
{
    formatHost(row->name, sizeof(row->name), server->host, server->protocol);
    row->count = server->beacons;
    row->restarts = server->restarts;
    row->began = ebpfMonClockStamp(server->began);
}

void ebpfMonSearchPublish(ebpfMonSearch *s, uint64_t time, double seconds)
{
    unsigned never, known, heard;
    const ebpfMonSearchName *worst;
    ebpfMonSearches *out;
    ebpfMonPublished *published;

    epicsMutexMustLock(s->lock);
    ebpfMonKeyTableExpire(&s->nameTable, time, EBPFMON_SEARCH_FORGET);
    ebpfMonKeyTableExpire(&s->clientTable, time, EBPFMON_SEARCH_FORGET);
    ebpfMonKeyTableExpire(&s->serverTable, time, EBPFMON_SEARCH_FORGET);
    never = rankNames(s, &worst);
    known = rankClients(s, seconds);
    heard = rankServers(s);

    published = ebpfMonPublishedLock();
    out = &published->searches;
    out->never = never;
    fillVain(s, out, worst, seconds);
    out->names = countShown(never);
    for (unsigned i = 0; i < out->names; i++)
        fillNameRow(&out->name[i], s->nameRank[i].entry);
    out->clients = countShown(known);
    for (unsigned i = 0; i < out->clients; i++)
        fillClientRow(&out->client[i], s->clientRank[i].entry);
    out->heard = heard;
    out->servers = countShown(heard);
    for (unsigned i = 0; i < out->servers; i++)
        fillServerRow(&out->server[i], s->serverRank[i].entry);
    out->rate = smoothRate(out->rate, s->searches - out->count, seconds);
    out->count = s->searches;
    out->beaconRate = smoothRate(out->beaconRate, s->beacons - out->beacons, seconds);
    out->beacons = s->beacons;
    out->replaced = s->nameTable.replaced + s->clientTable.replaced + s->serverTable.replaced;
    epicsTimeGetCurrent(&published->time[ebpfMonGroupSearch]);
    ebpfMonPublishedUnlock();
    epicsMutexUnlock(s->lock);
}

/* --- what is known of a name --- */

/* Under the lock, as the next two. */
static void noteWay(ebpfMonSearch *s, ebpfMonSearchProtocol protocol, const ebpfMonWireEvent *ev)
{
    ebpfMonSearchName *name = ebpfMonKeyTableFind(&s->nameTable, makeNameKey(protocol, ev->name));

    if (!name)
        return;
    if (name->way.addr != ev->peer.addr || name->way.port != ev->peer.port || name->way.netns != ev->peer.netns)
        name->asker[0] = 0;
    name->way = ev->peer;
    name->minor = ev->count;
}

static void noteAnswer(ebpfMonSearch *s, ebpfMonSearchProtocol protocol, uint64_t time, ebpfMonSearchHost client,
                       const ebpfMonWireEvent *ev)
{
    uint64_t key = makeNameKey(protocol, ev->name);
    const ebpfMonSearchQuestion *question;
    ebpfMonSearchAnswer *a;

    if (!ev->name[0]) {
        question = ebpfMonKeyTableFind(&s->questionTable, makeQuestionKey(makeHostKey(protocol, client), ev->cid));
        if (!question)
            return;
        key = question->name;
    }
    a = ebpfMonKeyTableGet(&s->answerTable, key, time);
    if (a->time[0] && (a->server[0].saddr != ev->peer.saddr || a->server[0].sport != ev->peer.sport)) {
        a->server[1] = a->server[0];
        a->time[1] = a->time[0];
    }
    a->server[0] = ev->peer;
    a->time[0] = time;
}

static void fillState(ebpfMonSearch *s, const ebpfMonSearchName *name, uint64_t key, ebpfMonSearchState *state)
{
    const ebpfMonSearchAnswer *a = ebpfMonKeyTableFind(&s->answerTable, key);
    uint64_t now = ebpfMonClockReal();

    if (name) {
        ebpfMonTextSet(state->name, sizeof(state->name), name->text);
        state->protocol = name->protocol;
        state->first = name->first;
        state->way = name->way;
        state->minor = name->minor;
        state->isNever = name->head.raised != 0;
    }
    /* An answer long before that of another server is of one that has got another port, or is gone. */
    for (unsigned i = 0; a && i < 2; i++)
        if (a->time[i] && getAge(now, a->time[i]) < EBPFMON_SEARCH_FORGET && getAge(a->time[0], a->time[i]) < BOTH_NS)
            state->server[state->servers++] = a->server[i];
}

void ebpfMonSearchGetState(ebpfMonSearch *s, ebpfMonSearchProtocol protocol, const char *text,
                           ebpfMonSearchState *state)
{
    uint64_t key = makeNameKey(protocol, text);

    memset(state, 0, sizeof(*state));
    epicsMutexMustLock(s->lock);
    fillState(s, ebpfMonKeyTableFind(&s->nameTable, key), key, state);
    epicsMutexUnlock(s->lock);
}

unsigned ebpfMonSearchListNever(ebpfMonSearch *s, ebpfMonSearchState *list, unsigned max)
{
    const ebpfMonSearchName *name = NULL;
    unsigned n = 0;

    epicsMutexMustLock(s->lock);
    while (n < max && (name = ebpfMonKeyTableGetNext(&s->nameTable, 1, name)) != NULL) {
        memset(&list[n], 0, sizeof(list[n]));
        fillState(s, name, name->head.key, &list[n++]);
    }
    epicsMutexUnlock(s->lock);
    return n;
}

void ebpfMonSearchSetAsker(ebpfMonSearch *s, ebpfMonSearchProtocol protocol, const char *text, const char *who)
{
    ebpfMonSearchName *name;

    epicsMutexMustLock(s->lock);
    name = ebpfMonKeyTableFind(&s->nameTable, makeNameKey(protocol, text));
    if (name)
        ebpfMonTextCopy(name->asker, sizeof(name->asker), who);
    epicsMutexUnlock(s->lock);
}

/* --- packets --- */

int ebpfMonSearchAddPacket(ebpfMonSearch *search, const ebpfMonWireEvent *ev)
{
    ebpfMonSearchProtocol protocol = ev->protocol == ebpfMonWirePva ? ebpfMonSearchPva : ebpfMonSearchCa;
    ebpfMonSearchHost client = { .addr = ev->peer.addr, .port = ev->peer.port };
    ebpfMonSearchHost server = { .addr = ev->peer.saddr, .port = ev->peer.sport };

    memcpy(client.addr6, ev->peer.addr6, sizeof(client.addr6));
    memcpy(server.addr6, ev->peer.saddr6, sizeof(server.addr6));
    switch (ev->kind) {
    case ebpfMonWireSearch:
        ebpfMonSearchAddQuestion(search, ev->time, protocol, client, ev->cid, ev->name);
        epicsMutexMustLock(search->lock);
        noteWay(search, protocol, ev);
        epicsMutexUnlock(search->lock);
        return 1;
    case ebpfMonWireFound:
        epicsMutexMustLock(search->lock);
        noteAnswer(search, protocol, ev->time, client, ev);
        epicsMutexUnlock(search->lock);
        ebpfMonSearchAddAnswer(search, protocol, client, ev->cid, ev->name);
        return 1;
    case ebpfMonWireBeacon:
        ebpfMonSearchAddBeacon(search, ev->time, protocol, server);
        return 1;
    default:
        return 0;
    }
}
