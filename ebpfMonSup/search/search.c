/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/hash.h"
#include "common/text.h"
#include "search/search.h"
#include "search/searchTables.h"

#define LONG    EBPFMON_SECOND_NS /* EBPFMON_SEARCH_ENOUGH questions over so long: nobody has the name */
#define SAME    10000000u /* ns. One question or beacon goes to several addresses: copies come within this time */
#define LOUD    16        /* questions that make a client worth its place */
#define STEADY  4         /* beacons that make a server worth its place */
#define SPEEDUP 4         /* beacons so much faster than before: the server has begun anew */

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

/* The clock may have been set back. */
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

/* With the protocol: a server of one protocol need not speak the other. */
static uint64_t makeNameKey(ebpfMonSearchProtocol protocol, const char *name)
{
    return ebpfMonHashFnv64(EBPFMON_FNV64_BEGIN, name, strlen(name)) + (unsigned)protocol;
}

/*
 * The place of a channel among those that are followed for a name; NULL when it is new or gets none. Of the four
 * places, two are for channels that have just begun and ask several times within seconds, and two for channels that
 * have asked for long and come back every five minutes. The channel that was silent for longest makes room.
 */
static ebpfMonSearchAsker *findAsker(ebpfMonSearchName *name, uint64_t client, uint32_t cid, uint64_t time)
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
    s->asked++;
    client = ebpfMonKeyTableGet(&s->clientTable, who, time);
    client->protocol = protocol;
    client->host = host;
    if (++client->asked == LOUD)
        ebpfMonKeyTableRaise(&s->clientTable, client);
    name = ebpfMonKeyTableGet(&s->nameTable, key, time);
    if (!name->asked++) {
        name->protocol = protocol;
        name->first = time;
        ebpfMonTextCopy(name->text, sizeof(name->text), text);
    }
    name->client = host;
    name->clients |= 1ull << (ebpfMonHashMix(who) & 63);
    ((ebpfMonSearchQuestion *)ebpfMonKeyTableGet(&s->questionTable, makeQuestionKey(who, cid), time))->name = key;
    asker = findAsker(name, who, cid, time);
    if (asker && getAge(time, asker->last) > SAME) {
        asker->last = time;
        if (++asker->count >= EBPFMON_SEARCH_ENOUGH && getAge(time, asker->first) >= LONG)
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
    uint64_t interval;
    ebpfMonSearchServer *server;

    epicsMutexMustLock(s->lock);
    s->beacons++;
    server = ebpfMonKeyTableGet(&s->serverTable, makeHostKey(protocol, host), time);
    interval = getAge(time, server->last);
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
        ebpfMonKeyTableRaise(&s->serverTable, server);
    epicsMutexUnlock(s->lock);
}
