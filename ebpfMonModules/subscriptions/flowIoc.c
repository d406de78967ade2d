/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/array.h"
#include "common/clock.h"
#include "common/text.h"
#include "common/worker.h"
#include "code/elfSymbols.h"
#include "code/image.h"
#include "code/mapping.h"
#include "host/foreign.h"
#include "host/memory.h"
#include "host/procStat.h"
#include "subscriptions/flowIoc.h"

#define STALL_NS (2 * EBPFMON_SECOND_NS) /* what does not move for so long stands still */
#define FILE_SECONDS 2.0
#define OTHERS_COST  0.001 /* cores */
#define TRIES    3   /* the lists change while they are read */

/* --- a look at the clients --------------------------------------------------------------------------------------- */

static void freeLook(ebpfMonFlowLook *look)
{
    free(look->at);
    free(look->client);
    free(look->channel);
    free(look->place);
    ebpfMonCatalogueRelease(look->cat);
    *look = (ebpfMonFlowLook){ .id = 0 };
}

static void copyClient(ebpfMonFlowClient *c, const ebpfMonCaClient *from, const ebpfMonClientFacts *facts)
{
    char addr[INET_ADDRSTRLEN] = "?";

    c->at = from->at;
    snprintf(c->name, sizeof(c->name), "%s@%s", from->user, from->host);
    inet_ntop(AF_INET, &from->addr, addr, sizeof(addr));
    snprintf(c->peer, sizeof(c->peer), "%s:%u", addr, (unsigned)ntohs(from->port));
    snprintf(c->command, sizeof(c->command), "%s", facts->who.command);
    c->pid = (pid_t)facts->who.peerPid;
    c->key = facts->peer;
}

void ebpfMonFlowLookCopy(ebpfMonFlowLook *look, const ebpfMonClientIoc *from)
{
    const ebpfMonCaClients *c = from->clients;
    size_t uses = 0;

    for (size_t i = 0; i < c->uses; i++)
        uses += c->use[i].subscriptions != 0;
    look->at = calloc(c->clients + 1u, sizeof(*look->at));
    look->client = calloc(c->clients + 1u, sizeof(*look->client));
    look->channel = calloc(uses + 1, sizeof(*look->channel));
    look->place = calloc(uses + 1, sizeof(*look->place));
    if (!look->at || !look->client || !look->channel || !look->place) {
        freeLook(look);
        return;
    }
    look->id = from->id;
    look->pid = from->pid;
    snprintf(look->name, sizeof(look->name), "%s", from->name);
    look->base = from->cat->base;
    look->cat = ebpfMonCatalogueHold(from->cat);
    look->clientQ = from->clientQ;
    look->readAt = from->readAt;
    for (look->clients = 0; look->clients < c->clients; look->clients++) {
        look->at[look->clients] = c->client[look->clients].at;
        copyClient(&look->client[look->clients], &c->client[look->clients], &from->facts[look->clients]);
    }
    for (size_t i = 0; i < c->uses; i++) {
        ebpfMonFlowChannel *channel = &look->channel[look->channels];

        if (!c->use[i].subscriptions)
            continue;
        channel->at = c->use[i].at;
        channel->record = c->use[i].record;
        channel->subscriptions = c->use[i].subscriptions;
        if (from->counts)
            channel->sent = from->counts[i];
        channel->rate = NAN;
        ebpfMonTextCopy(channel->pv, sizeof(channel->pv), c->names + c->use[i].name);
        look->place[look->channels++] = (ebpfMonEventChannel){ c->use[i].at, c->use[i].client };
    }
}

static int areSameClients(const ebpfMonFlowIoc *ioc, const ebpfMonFlowLook *look)
{
    if (ioc->clients != look->clients)
        return 0;
    for (unsigned i = 0; i < ioc->clients; i++)
        if (ioc->client[i].at != look->at[i] || memcmp(&ioc->client[i].key, &look->client[i].key,
                                                       sizeof(ioc->client[i].key)) != 0)
            return 0;
    return 1;
}

/* The order of the channels is that of the table in both, so the same ones have the same index. */
static int areSameChannels(const ebpfMonFlowIoc *ioc, const ebpfMonFlowLook *look)
{
    if (ioc->channels != look->channels)
        return 0;
    for (size_t i = 0; i < ioc->channels; i++)
        if (ioc->channel[i].at != look->channel[i].at || ioc->channel[i].record != look->channel[i].record ||
            ioc->channel[i].subscriptions != look->channel[i].subscriptions)
            return 0;
    return 1;
}

/* The elements of an array by the address that each of them has at "offset". */
typedef struct {
    uint64_t at;
    size_t   index;
} addressKey;

static int compareAddresses(const void *left, const void *right)
{
    uint64_t l = ((const addressKey *)left)->at, r = ((const addressKey *)right)->at;

    return (l > r) - (l < r);
}

/* The caller frees it. NULL without memory. */
static addressKey *indexAddresses(const void *array, size_t count, size_t size, size_t offset)
{
    addressKey *keys = malloc((count + 1) * sizeof(*keys));

    for (size_t i = 0; keys && i < count; i++) {
        memcpy(&keys[i].at, (const char *)array + i * size + offset, sizeof(keys[i].at));
        keys[i].index = i;
    }
    if (keys)
        qsort(keys, count, sizeof(*keys), compareAddresses);
    return keys;
}

/* The index of the element with this address; SIZE_MAX: there is none. */
static size_t findAddress(const addressKey *keys, size_t count, uint64_t at)
{
    const addressKey key = { .at = at };
    const addressKey *found = keys ? bsearch(&key, keys, count, sizeof(key), compareAddresses) : NULL;

    return found ? found->index : SIZE_MAX;
}

/* The rates are those between the look before and this one. */
static void setRates(const ebpfMonFlowIoc *ioc, ebpfMonFlowLook *look)
{
    double seconds = (double)(look->readAt - ioc->readAt) / 1e9;
    addressKey *old = indexAddresses(ioc->channel, ioc->channels, sizeof(*ioc->channel),
                                     offsetof(ebpfMonFlowChannel, at));

    for (size_t i = 0; ioc->readAt && seconds > 0 && i < look->channels; i++) {
        ebpfMonFlowChannel *c = &look->channel[i];
        size_t k = findAddress(old, ioc->channels, c->at);
        uint64_t before = k == SIZE_MAX ? 0 : ioc->channel[k].sent.updates;

        if (before && c->sent.updates >= before)
            c->rate = (double)(c->sent.updates - before) / seconds;
    }
    free(old);
}

/* What is known of a client that was there before. */
static void carryClients(const ebpfMonFlowIoc *ioc, ebpfMonFlowLook *look)
{
    addressKey *old = indexAddresses(ioc->client, ioc->clients, sizeof(*ioc->client), offsetof(ebpfMonFlowClient, at));

    for (unsigned i = 0; i < look->clients; i++) {
        ebpfMonFlowClient *c = &look->client[i], before;
        size_t k = findAddress(old, ioc->clients, c->at);

        if (k == SIZE_MAX || memcmp(&ioc->client[k].key, &c->key, sizeof(c->key)) != 0)
            continue;
        before = ioc->client[k];
        memcpy(before.name, c->name, sizeof(before.name)); /* it may have told its name since */
        memcpy(before.command, c->command, sizeof(before.command));
        before.pid = c->pid;
        *c = before;
    }
    free(old);
}

static ebpfMonEventLists *readLists(ebpfMonFlowIoc *ioc, const ebpfMonFlowLook *look)
{
    ebpfMonMem *mem = ebpfMonMemNew(look->pid);
    ebpfMonEventLists *lists = NULL;

    ioc->why[0] = 0;
    for (int i = 0; mem && !lists && !ioc->why[0] && i < TRIES; i++) {
        ebpfMonMemFlush(mem);
        lists = ebpfMonEventListsRead(mem, look->base, look->clientQ, look->at, look->clients, look->place,
                                      look->channels, ioc->why, sizeof(ioc->why));
    }
    ebpfMonMemFree(mem);
    return lists;
}

/* The subscriptions that were there before go on from their old count of merged updates. */
static void carryMerged(const ebpfMonFlowLists *from, const ebpfMonEventLists *lists, uint64_t *merged)
{
    size_t olds = from->lists ? from->lists->subs : 0;
    addressKey *old = indexAddresses(olds ? from->lists->sub : NULL, olds, sizeof(ebpfMonEventSubscription),
                                     offsetof(ebpfMonEventSubscription, at));

    for (size_t i = 0; i < lists->subs; i++) {
        size_t k = findAddress(old, olds, lists->sub[i].at);

        merged[i] = k == SIZE_MAX || from->lists->sub[k].ext != lists->sub[i].ext ? UINT64_MAX : from->mergedBefore[k];
    }
    free(old);
}

static void freeLists(ebpfMonFlowLists *lists)
{
    ebpfMonEventListsFree(lists->lists);
    free(lists->mergedBefore);
    free(lists->mergedRate);
}

/* Puts new lists in the place of the old ones. 0, or -1 without memory: then they stay the caller's. */
static int replaceLists(ebpfMonFlowLists *to, ebpfMonEventLists *lists)
{
    uint64_t *merged = calloc(lists->subs + 1, sizeof(*merged));
    double *rates = calloc(lists->subs + 1, sizeof(*rates));

    if (!merged || !rates) {
        free(merged);
        free(rates);
        return -1;
    }
    carryMerged(to, lists, merged);
    freeLists(to);
    to->lists = lists;
    to->mergedBefore = merged;
    to->mergedRate = rates;
    return 0;
}

static void freeIoc(ebpfMonFlowIoc *ioc)
{
    freeLists(&ioc->ca);
    freeLists(&ioc->others);
    free(ioc->client);
    free(ioc->channel);
    ebpfMonCatalogueRelease(ioc->cat);
}

void ebpfMonFlowIocClear(ebpfMonFlowIoc *ioc)
{
    freeIoc(ioc);
    ebpfMonAccessStateClear(&ioc->access);
    *ioc = (ebpfMonFlowIoc){ .id = 0 };
}

/* The clients and channels of the look stand in the place of the old ones. */
static void replaceClients(ebpfMonFlowIoc *ioc, ebpfMonFlowLook *look)
{
    carryClients(ioc, look);
    free(ioc->client);
    free(ioc->channel);
    ioc->client = look->client;
    ioc->clients = look->clients;
    ioc->channel = look->channel;
    ioc->channels = look->channels;
    look->client = NULL;
    look->channel = NULL;
}

/* --- others ------------------------------------------------------------------------------------------------------ */

/* Which file of the process has this code. */
typedef struct {
    pid_t    pid;
    uint64_t at;
    char     file[64];      /* its name without folders; "": not found */
    char     function[128]; /* "": the file has no symbol for it */
} fileOfCode;

static void readFunction(fileOfCode *f, const ebpfMonMapping *map)
{
    char path[4352];
    int fd = ebpfMonImageCacheFindPath(f->pid, map, path, sizeof(path)) ? -1 : ebpfMonForeignOpenFile(path);
    uint64_t bias, offset;
    ebpfMonElfFile elf;

    if (fd < 0)
        return;
    if (ebpfMonElfOpen(&elf, fd) == 0) {
        if (ebpfMonMappingBias(elf.segment, elf.nSegments, map, &bias) == 0)
            ebpfMonElfNameCode(&elf, f->at - bias, f->function, sizeof(f->function), &offset);
        ebpfMonElfClose(&elf);
    }
    close(fd);
}

static void findFile(void *data)
{
    fileOfCode *f = data;
    ebpfMonMappings mappings;
    ebpfMonMapping map;

    if (ebpfMonMappingsOpen(&mappings, f->pid))
        return;
    while (!f->file[0] && ebpfMonMappingsReadNext(&mappings, &map)) {
        const char *name = strrchr(map.path, '/');

        if (f->at < map.start || f->at >= map.end || !name)
            continue;
        snprintf(f->file, sizeof(f->file), "%s", name + 1);
        readFunction(f, &map);
    }
    ebpfMonMappingsClose(&mappings);
}

/* The library of the function tells it; of a program that has all in itself, the name of the function (pdbsingle.cpp
 * and pdbgroup.cpp of pva2pva, namespace pvxs::ioc, dbSubscriptionIO.cpp of Base). */
static ebpfMonFlowOwner findOwner(pid_t pid, uint64_t at)
{
    static const ebpfMonForeignJob job = { findFile, free };
    fileOfCode *f = calloc(1, sizeof(*f));
    ebpfMonFlowOwner owner = ebpfMonFlowNobody;

    if (!f)
        return owner;
    f->pid = pid;
    f->at = at;
    if (ebpfMonForeignRun(pid, FILE_SECONDS, &job, f))
        return owner;
    if (strncmp(f->file, "libqsrv", strlen("libqsrv")) == 0)
        owner = ebpfMonFlowQsrv1;
    else if (strncmp(f->file, "libpvxsIoc", strlen("libpvxsIoc")) == 0)
        owner = ebpfMonFlowQsrv2;
    else
        owner = strstr(f->function, "pdb_single_event") || strstr(f->function, "pdb_group_event") ? ebpfMonFlowQsrv1 :
                strstr(f->function, "pvxs") ? ebpfMonFlowQsrv2 :
                strcmp(f->function, "dbSubscriptionEventCallback") == 0 ? ebpfMonFlowInside : ebpfMonFlowNobody;
    free(f);
    return owner;
}

static void findOwners(ebpfMonFlowIoc *ioc)
{
    const ebpfMonEventLists *lists = ioc->others.lists;

    for (size_t i = 0; i < lists->others; i++) {
        uint64_t at = lists->other[i].function;
        unsigned k = 0;

        while (k < ioc->functions && ioc->function[k].at != at)
            k++;
        if (k == ioc->functions && k < EBPFMON_FLOW_FUNCTIONS) {
            ioc->function[k].owner = findOwner(ioc->pid, at);
            ioc->function[ioc->functions++].at = at;
        }
    }
}

ebpfMonFlowOwner ebpfMonFlowIocGetOwner(const ebpfMonFlowIoc *ioc, const ebpfMonEventSubscription *sub)
{
    uint64_t at = ioc->others.lists->other[sub->channel].function;

    for (unsigned i = 0; i < ioc->functions; i++)
        if (ioc->function[i].at == at)
            return ioc->function[i].owner;
    return ebpfMonFlowNobody;
}

unsigned ebpfMonFlowIocCountOthers(const ebpfMonFlowIoc *ioc, long record, unsigned count[EBPFMON_FLOW_OWNERS])
{
    const ebpfMonEventLists *lists = ioc && ioc->isRead ? ioc->others.lists : NULL;
    unsigned all = 0;

    memset(count, 0, EBPFMON_FLOW_OWNERS * sizeof(*count));
    for (size_t i = 0; lists && i < lists->subs; i++) {
        const ebpfMonEventSubscription *s = &lists->sub[i];

        if (lists->other[s->channel].record != record || s->isGone || !s->isEnabled)
            continue;
        all++;
        count[ebpfMonFlowIocGetOwner(ioc, s)]++;
    }
    return all;
}

void ebpfMonFlowIocTellUses(const ebpfMonFlowIoc *ioc, const ebpfMonUseSink *sink)
{
    const ebpfMonEventLists *lists = ioc->others.lists;

    for (size_t i = 0; sink->subscribed && lists && i < lists->subs; i++) {
        const ebpfMonEventOther *other = &lists->other[lists->sub[i].channel];

        if (!lists->sub[i].isGone && !other->monitors &&
            ebpfMonFlowIocGetOwner(ioc, &lists->sub[i]) == ebpfMonFlowQsrv1)
            sink->subscribed(sink->arg, ioc->name, other->name);
    }
}

void ebpfMonFlowIocTakeOthers(ebpfMonFlowIoc *ioc)
{
    uint64_t now = ebpfMonClockMonotonic(), cpu = ebpfMonForeignGetCpu();
    ebpfMonEventLists *lists = NULL;
    ebpfMonMem *mem;
    long *recordOf;

    if (!ioc->ca.lists || !ioc->cat || now < ioc->othersNext)
        return;
    mem = ebpfMonMemNew(ioc->pid);
    recordOf = calloc(ioc->channels + 1, sizeof(*recordOf));
    for (size_t i = 0; recordOf && i < ioc->channels; i++)
        recordOf[i] = ioc->channel[i].record;
    if (mem && recordOf)
        lists = ebpfMonEventListsReadOthers(mem, ioc->pid, ioc->cat, ioc->ca.lists, recordOf);
    ebpfMonMemFree(mem);
    free(recordOf);
    if (lists && replaceLists(&ioc->others, lists)) {
        ebpfMonEventListsFree(lists);
    } else if (lists) {
        ioc->serial++;
        findOwners(ioc);
    }
    ioc->othersNext = now + (uint64_t)((double)(ebpfMonForeignGetCpu() - cpu) / OTHERS_COST);
    ebpfMonWorkerGiveSignHere();
}

/* ---------------------------------------------------------------------------------------------------------------- */

int ebpfMonFlowIocTake(ebpfMonFlowIoc *ioc, ebpfMonFlowLook *look)
{
    int isSame = ioc->ca.lists && !ioc->isChanged && areSameClients(ioc, look) && areSameChannels(ioc, look);
    ebpfMonEventLists *lists;

    ioc->pid = look->pid;
    memcpy(ioc->name, look->name, sizeof(ioc->name));
    setRates(ioc, look);
    ioc->readAt = look->readAt;
    if (isSame) {
        free(ioc->channel);
        ioc->channel = look->channel;
        look->channel = NULL;
        carryClients(ioc, look);
        free(ioc->client);
        ioc->client = look->client;
        look->client = NULL;
    } else {
        lists = readLists(ioc, look);
        if (!lists || replaceLists(&ioc->ca, lists)) {
            ebpfMonEventListsFree(lists);
            ioc->isChanged = 1; /* the next look is taken as a whole */
        } else {
            replaceClients(ioc, look);
            ioc->isChanged = 0;
        }
    }
    if (ioc->cat != look->cat) {
        ebpfMonCatalogueRelease(ioc->cat);
        ioc->cat = ebpfMonCatalogueHold(look->cat);
        freeLists(&ioc->others); /* they have indexes of the old one */
        ioc->others = (ebpfMonFlowLists){ .lists = NULL };
        ioc->serial++;
    }
    freeLook(look);
    ebpfMonFlowIocTakeOthers(ioc);
    return 1;
}

/* --- each second ------------------------------------------------------------------------------------------------- */

static void updateClient(ebpfMonFlowClient *c, const ebpfMonEventClient *from, uint64_t now)
{
    if (!c->takenAt || c->taken != from->taken) {
        c->takenAt = now;
        c->pausedAt = 0;
    }
    c->taken = from->taken;
    c->inBuffer = from->inBuffer;
    c->isPaused = from->isPaused;
    c->pausedAt = !from->isPaused ? 0 : c->pausedAt ? c->pausedAt : now;
    c->waits = 0;
}

static void updateRates(ebpfMonFlowLists *f, uint64_t now)
{
    double seconds = f->updatedAt ? (double)(now - f->updatedAt) / 1e9 : 0;

    f->hasMoved = 0;
    for (size_t i = 0; i < f->lists->subs; i++) {
        const ebpfMonEventSubscription *s = &f->lists->sub[i];
        uint64_t before = f->mergedBefore[i];

        if (s->isGone)
            continue;
        f->mergedRate[i] = before < s->merged && seconds > 0 ? (double)(s->merged - before) / seconds : 0;
        f->mergedBefore[i] = s->merged;
        f->hasMoved |= f->mergedRate[i] > 0 || s->waiting;
    }
    f->updatedAt = now;
}

/* Lists of others that cannot be read, or have changed, are read again with the next look. */
static void updateOthers(ebpfMonFlowIoc *ioc, uint64_t now)
{
    ebpfMonFlowLists *f = &ioc->others;

    if (!f->lists)
        return;
    if (ebpfMonEventListsUpdate(f->lists, ioc->pid) < 0) {
        freeLists(f);
        *f = (ebpfMonFlowLists){ .lists = NULL };
        ioc->serial++;
        return;
    }
    updateRates(f, now);
    ioc->hasMoved |= f->hasMoved;
}

int ebpfMonFlowIocUpdate(ebpfMonFlowIoc *ioc, uint64_t now)
{
    int status = ioc->ca.lists ? ebpfMonEventListsUpdate(ioc->ca.lists, ioc->pid) : -1;

    ebpfMonWorkerGiveSignHere();
    ioc->hasMoved = 0;
    ioc->isRead = status >= 0;
    if (!ebpfMonProcStandsStill(ioc->pid, ioc->pid))
        ioc->stoppedAt = 0;
    else if (!ioc->stoppedAt)
        ioc->stoppedAt = now;
    if (status < 0) { /* something may be gone, so that the lists must be read again */
        ioc->isChanged = 1;
        return !ioc->why[0];
    }
    for (unsigned i = 0; i < ioc->clients; i++) {
        ebpfMonFlowClient *c = &ioc->client[i];

        ioc->hasMoved |= c->taken != ioc->ca.lists->client[i].taken;
        updateClient(c, &ioc->ca.lists->client[i], now);
    }
    updateRates(&ioc->ca, now);
    ioc->hasMoved |= ioc->ca.hasMoved;
    for (size_t i = 0; i < ioc->ca.lists->subs; i++) {
        const ebpfMonEventSubscription *s = &ioc->ca.lists->sub[i];

        ioc->client[s->client].waits |= !s->isGone && s->waiting;
    }
    updateOthers(ioc, now);
    for (unsigned i = 0; i < ioc->clients; i++) {
        ebpfMonFlowClient *c = &ioc->client[i];

        c->waitsAt = !c->waits ? 0 : c->waitsAt ? c->waitsAt : now;
    }
    ioc->isChanged |= status;
    return status;
}

/* --- sockets ----------------------------------------------------------------------------------------------------- */

/* Both ends of a connection, as a socket of the server has them. */
struct flowKey {
    uint32_t netns, addr, saddr, addr6[4], saddr6[4];
    uint16_t port, sport;
    ebpfMonFlowClient *client;
    pid_t    server;
};

static int compareKeys(const void *left, const void *right)
{
    return memcmp(left, right, offsetof(struct flowKey, client));
}

void ebpfMonFlowKeysBegin(ebpfMonFlowKeys *keys)
{
    keys->keys = 0;
    keys->isOld = 0;
}

void ebpfMonFlowKeysAdd(ebpfMonFlowKeys *keys, pid_t server, ebpfMonFlowClient *client)
{
    const struct ebpfMonPeer *p = &client->key;
    struct flowKey *key;

    if (!p->sport || ebpfMonArrayGrow(&keys->key, &keys->room, keys->keys + 1, 64, sizeof(*keys->key)))
        return;
    key = &keys->key[keys->keys++];
    *key = (struct flowKey){ .netns = p->netns, .addr = p->addr, .saddr = p->saddr, .port = p->port, .sport = p->sport,
                             .client = client, .server = server };
    memcpy(key->addr6, p->addr6, sizeof(key->addr6));
    memcpy(key->saddr6, p->saddr6, sizeof(key->saddr6));
}

void ebpfMonFlowKeysEnd(ebpfMonFlowKeys *keys)
{
    if (keys->keys)
        qsort(keys->key, keys->keys, sizeof(*keys->key), compareKeys);
}

/* The client whose server has this socket; or, "isTurned", that has it itself. */
static ebpfMonFlowClient *findClient(const ebpfMonFlowKeys *keys, const ebpfMonTcpBytes *of, int isTurned)
{
    struct flowKey key = { .netns = keys->netns, .addr = isTurned ? of->local : of->remote,
                           .saddr = isTurned ? of->remote : of->local,
                           .port = isTurned ? of->localPort : of->remotePort,
                           .sport = isTurned ? of->remotePort : of->localPort };
    const struct flowKey *found;

    memcpy(key.addr6, isTurned ? of->local6 : of->remote6, sizeof(key.addr6));
    memcpy(key.saddr6, isTurned ? of->remote6 : of->local6, sizeof(key.saddr6));
    found = keys->keys ? bsearch(&key, keys->key, keys->keys, sizeof(key), compareKeys) : NULL;
    return found ? found->client : NULL;
}

/* While the other end has no room, the kernel knows when it sent data last. */
static void noteServerSocket(ebpfMonFlowClient *c, const ebpfMonTcpBytes *bytes, uint64_t now)
{
    if (!bytes->waiting || (c->seenAt && bytes->sent != c->tcp.sent))
        c->sentAt = now;
    else if (!c->seenAt)
        c->sentAt = bytes->inFlight ? now : now - bytes->sentAgo * 1000000ull;
    c->tcp = *bytes;
    c->seenAt = now;
    c->fullAt = !bytes->notSent ? 0 : c->fullAt ? c->fullAt : now;
}

static void noteClientSocket(ebpfMonFlowClient *c, const ebpfMonTcpBytes *bytes, uint64_t now)
{
    uint64_t eaten = bytes->received - bytes->unread;

    if (!bytes->unread || !c->peerSeenAt || eaten != c->eaten)
        c->eatenAt = now;
    c->eaten = eaten;
    c->unread = bytes->unread;
    c->peerSeenAt = now;
}

static void noteSocket(void *arg, const ebpfMonTcpBytes *bytes)
{
    const ebpfMonFlowKeys *keys = arg;
    ebpfMonFlowClient *c = findClient(keys, bytes, 0);

    if (c)
        noteServerSocket(c, bytes, keys->now);
    c = findClient(keys, bytes, 1);
    if (c)
        noteClientSocket(c, bytes, keys->now);
}

void ebpfMonFlowKeysReadSockets(ebpfMonFlowKeys *keys, uint64_t now)
{
    keys->now = now;
    for (size_t i = 0; i < keys->keys; i++) {
        if (i && keys->key[i].netns == keys->netns)
            continue; /* the keys of a namespace stand together */
        keys->netns = keys->key[i].netns;
        ebpfMonTcpBytesRead(keys->key[i].server, noteSocket, keys);
        ebpfMonWorkerGiveSignHere();
    }
    for (size_t i = 0; i < keys->keys; i++) {
        ebpfMonFlowClient *c = keys->key[i].client;

        c->hasTcp = c->seenAt == now;
        c->hasPeer = c->peerSeenAt == now;
        c->seenAt = c->hasTcp ? now : 0;
        c->peerSeenAt = c->hasPeer ? now : 0;
    }
}

/* --- judgement --------------------------------------------------------------------------------------------------- */

static uint64_t laterOf(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* What the sockets show. A client on this host shows itself whether it reads. Of another one: while the kernel has
 * data for it and nothing on the way, the client's host has said that it has no room; while nothing that is on the way
 * is acknowledged, although it was sent again, it does not arrive. */
static ebpfMonFlowState judgeSockets(const ebpfMonFlowClient *c, uint64_t now, uint64_t *since)
{
    int isUnread = c->hasPeer && c->unread && now - c->eatenAt >= STALL_NS;
    int isStill = c->hasTcp && c->tcp.waiting && now - c->sentAt >= STALL_NS;

    *since = isUnread ? c->eatenAt : c->sentAt;
    if (isUnread || (isStill && !c->hasPeer && !c->tcp.inFlight))
        return ebpfMonFlowNotRead;
    return isStill && c->tcp.inFlight && c->tcp.retransmits ? ebpfMonFlowNetwork : ebpfMonFlowFine;
}

void ebpfMonFlowJudge(uint64_t stoppedAt, ebpfMonFlowClient *c, uint64_t now)
{
    uint64_t since, movedAt = laterOf(c->takenAt, c->waitsAt);

    c->flow = ebpfMonFlowIocStopped;
    c->since = stoppedAt;
    if (stoppedAt)
        return;
    c->flow = judgeSockets(c, now, &since);
    c->since = since;
    if (c->flow != ebpfMonFlowFine)
        return;
    if (c->isPaused) {
        c->flow = ebpfMonFlowPaused;
        c->since = c->pausedAt;
    } else if (c->waits && c->hasTcp && c->fullAt && now - laterOf(c->fullAt, c->waitsAt) >= STALL_NS) {
        c->flow = ebpfMonFlowSlow;
        c->since = laterOf(c->fullAt, c->waitsAt);
    } else if (c->waits && (!c->hasTcp || !c->fullAt) && now - movedAt >= STALL_NS) {
        c->flow = ebpfMonFlowIocWaits;
        c->since = movedAt;
    }
}

int ebpfMonFlowNeedsSockets(const ebpfMonFlowClient *c)
{
    return c->waits || c->isPaused || c->inBuffer || (c->hasTcp && c->tcp.waiting) || (c->hasPeer && c->unread) ||
           c->flow != ebpfMonFlowFine;
}

int ebpfMonFlowIsStalled(const ebpfMonFlowClient *c)
{
    return c->flow == ebpfMonFlowNotRead || c->flow == ebpfMonFlowNetwork || (c->flow == ebpfMonFlowPaused && c->waits);
}

void ebpfMonFlowText(const ebpfMonFlowClient *c, char *text, size_t size)
{
    static const char *const words[] = {
        "ok", "client asked for a pause", "waits in the IOC", "client reads too slowly", "client takes no updates",
        "network does not take bytes", "client does not read", "IOC stands still"
    };

    if (c->flow == ebpfMonFlowFine)
        snprintf(text, size, "%s", c->isOfPackets && !c->hasTcp ? "not known: its socket is not seen" : words[0]);
    else if (c->flow == ebpfMonFlowSlow && !c->hasPeer)
        snprintf(text, size, "client or network is too slow since %.0f s",
                 (double)(ebpfMonClockMonotonic() - c->since) / 1e9);
    else
        snprintf(text, size, "%s since %.0f s", words[c->flow], (double)(ebpfMonClockMonotonic() - c->since) / 1e9);
}

int ebpfMonFlowIsNamed(const ebpfMonFlowClient *c, const char *text)
{
    return ebpfMonFlowIsText(text, c->name, c->peer, c->command, c->pid);
}

int ebpfMonFlowIsText(const char *text, const char *name, const char *peer, const char *command, pid_t pid)
{
    const char *port = strrchr(peer, ':');

    if (text[0] && !text[strspn(text, "0123456789")]) /* a part of a number names somebody else */
        return (pid && atol(text) == pid) || (port && strcmp(port + 1, text) == 0);
    return strstr(name, text) || strstr(peer, text) || strstr(command, text);
}
