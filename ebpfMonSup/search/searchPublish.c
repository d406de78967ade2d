/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets the published lists and rates of searches and beacons. */
#include <arpa/inet.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "search/search.h"
#include "search/searchTables.h"

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
    char addr[INET_ADDRSTRLEN] = "?";

    inet_ntop(AF_INET, &host.addr, addr, sizeof(addr));
    snprintf(buf, size, "%s:%u %s", addr, ntohs(host.port), protocol == ebpfMonSearchPva ? "PVA" : "CA");
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
    char host[32];
    unsigned n = estimateCount(name->clients);

    strcpy(row->name, name->text);
    row->count = name->searches;
    row->first = ebpfMonClockStamp(name->first);
    row->last = ebpfMonClockStamp(name->head.touched);
    formatHost(host, sizeof(host), name->client, name->protocol);
    if (n > 1)
        snprintf(row->who, sizeof(row->who), "%s, ~%u clients", host, n);
    else
        snprintf(row->who, sizeof(row->who), "%s", host);
}

/* Nonzero: this channel of the name was searched often enough, and none before it by the same client. */
static int isFirstOfClient(const ebpfMonSearchName *name, unsigned index)
{
    const ebpfMonSearchAsker *asker = name->asker;

    if (asker[index].count < EBPFMON_SEARCH_ENOUGH)
        return 0;
    for (unsigned i = 0; i < index; i++)
        if (asker[i].count >= EBPFMON_SEARCH_ENOUGH && asker[i].client == asker[index].client)
            return 0;
    return 1;
}

static unsigned rankNames(ebpfMonSearch *s)
{
    unsigned n = 0;

    for (unsigned i = 0; i < EBPFMON_SEARCH_CLIENTS; i++)
        s->clients[i].never = 0;
    for (const ebpfMonSearchName *name = NULL; (name = ebpfMonKeyTableGetNext(&s->nameTable, 1, name)) != NULL;) {
        s->nameRank[n++] = (ebpfMonSearchRank){(double)name->searches, name->head.touched, name};
        for (unsigned i = 0; i < EBPFMON_SEARCH_ASKERS; i++) {
            ebpfMonSearchClient *client = NULL;

            if (isFirstOfClient(name, i))
                client = ebpfMonKeyTableFind(&s->clientTable, name->asker[i].client);
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
    ebpfMonSearches *out;
    ebpfMonPublished *published;

    epicsMutexMustLock(s->lock);
    ebpfMonKeyTableExpire(&s->nameTable, time, EBPFMON_SEARCH_FORGET);
    ebpfMonKeyTableExpire(&s->clientTable, time, EBPFMON_SEARCH_FORGET);
    ebpfMonKeyTableExpire(&s->serverTable, time, EBPFMON_SEARCH_FORGET);
    never = rankNames(s);
    known = rankClients(s, seconds);
    heard = rankServers(s);

    published = ebpfMonPublishedLock();
    out = &published->searches;
    out->never = never;
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
