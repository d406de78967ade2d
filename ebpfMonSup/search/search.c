/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/hash.h"
#include "common/text.h"
#include "search/search.h"
#include "search/searchTables.h"

#define NEVER_NS         EBPFMON_SECOND_NS /* EBPFMON_SEARCH_ENOUGH searches over this time (ns): nobody has the name */
#define COPY_NS          10000000u /* A search or beacon goes to several addresses: its copies come within this time */
#define CLIENT_SEARCHES  16 /* after so many searches the client's entry is raised */
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
    return (uint64_t)host.addr << 32 | (uint64_t)host.port << 8 | (uint64_t)protocol << 1 | 1;
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
        ebpfMonSearchAsker *asker = &name->asker[i];

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
