/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * channel_in_use.eventq → event_ext (rsrv/server.h) → evSubscrip → event_que → event_user (dbEvent.c). The IOC goes on
 * meanwhile: each list leads back, each subscription names its event_ext, each queue its event_user, and this one its
 * client. evSubscrip, event_ext and event_que come from free lists that give no memory back, so what was freed can be
 * read, and shows by these addresses. What others have subscribed hangs on dbCommon.mlis of the record.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/clock.h"
#include "common/text.h"
#include "ioc/baseLayout.h"
#include "subscriptions/eventLists.h"

#define LOOK_NS   EBPFMON_SECOND_NS
#define USER_HEAD 4500 /* of an event_user: a queue of 3.14 and its own members */
#define EXT_HEAD  64
#define SUB_SIZE  80
#define GAP_MAX   512   /* what lies between two subscriptions is read with them, up to so many bytes */
#define PART_MAX  65536
#define SIZE_MAX_READ (32u << 20)
#define RECORDS_BATCH 4096 /* records whose lists are read in one job */

#define EVENTS(range, ...) { range, EVENT_NUMBERS(__VA_ARGS__) },
#define EVENT_NUMBERS(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o) \
    { a, b, c, d, e, f, g }, { h, i }, { j, k }, { l, m }, { n, o }

static const ebpfMonEventLayout layouts[] = {
#include "subscriptions/events.h"
};

#define LAYOUTS (sizeof(layouts) / sizeof(layouts[0]))

typedef struct {
    ebpfMonMem *mem;
    ebpfMonEventLists *to;
    uint64_t until;     /* monotonic ns */
    char    *why;
    size_t   size;
} eventLook;

/* Nonzero: in this layout an event_user leads back to itself and to its client. */
static int fitsUser(const ebpfMonEventLayout *l, const char *head, const ebpfMonEventClient *c)
{
    return ebpfMonMemNumberAt(head, l->queue.evUser) == c->user &&
           ebpfMonMemNumberAt(head, l->user.extralabor_arg) == c->at && (head[l->user.flowCtrlMode] & ~1) == 0;
}

/* rsrv adds its client as the argument of the extra labour before it serves it (camsgtask.c, create_tcp_client). */
static int checkUser(eventLook *l, const ebpfMonEventClient *c)
{
    char head[USER_HEAD];

    if (!c->user)
        return 0;
    if (ebpfMonMemRead(l->mem, c->user, head, sizeof(head)))
        return -1;
    for (size_t i = 0; !l->to->layout && i < LAYOUTS; i++)
        if (fitsUser(&layouts[i], head, c))
            l->to->layout = &layouts[i];
    if (l->to->layout)
        return fitsUser(l->to->layout, head, c) ? 0 : -1;
    snprintf(l->why, l->size, "event_user of its CA server lies otherwise than in EPICS Base 3.14.12 to 7.0.10");
    return -1;
}

static int addClients(eventLook *l, const uint64_t *client)
{
    ebpfMonEventLists *to = l->to;

    for (unsigned i = 0; i < to->clients; i++) {
        ebpfMonEventClient *c = &to->client[i];

        *c = (ebpfMonEventClient){ .at = client[i], .channels = -1 };
        /* evuser is at the same place in all of them (tools/layout.sh), so the first layout finds it */
        if (ebpfMonMemRead(l->mem, c->at + layouts[0].client.evuser, &c->user, sizeof(c->user)) || checkUser(l, c))
            return -1;
    }
    return 0;
}

/* Adds the queue of a subscription, if it is new. Those of a client stand together, because its channels do. */
static int addQueue(eventLook *l, uint64_t at, uint32_t client)
{
    ebpfMonEventLists *to = l->to;

    for (size_t i = to->queues; i-- > 0 && to->queue[i].client == client;)
        if (to->queue[i].at == at)
            return 0;
    if (ebpfMonArrayGrow(&to->queue, &to->queueRoom, to->queues + 1, 64, sizeof(*to->queue)) ||
        ebpfMonMemPtr(l->mem, at + to->layout->queue.evUser) != to->client[client].user)
        return -1;
    to->queue[to->queues++] = (ebpfMonEventQueue){ .at = at, .user = to->client[client].user, .client = client };
    return 0;
}

static int addSubscription(eventLook *l, uint64_t ext, uint64_t at, uint32_t channel, uint32_t client)
{
    ebpfMonEventLists *to = l->to;
    char bytes[SUB_SIZE];

    if (ebpfMonMemRead(l->mem, at, bytes, sizeof(bytes)) ||
        ebpfMonMemNumberAt(bytes, to->layout->subscription.user_arg) != ext ||
        addQueue(l, ebpfMonMemNumberAt(bytes, to->layout->subscription.ev_que), client) ||
        ebpfMonArrayGrow(&to->sub, &to->subRoom, to->subs + 1, 256, sizeof(*to->sub)))
        return -1;
    to->sub[to->subs++] = (ebpfMonEventSubscription){ .at = at, .ext = ext, .channel = channel, .client = client };
    return 0;
}

static int addEventsOfChannel(eventLook *l, const ebpfMonEventChannel *channel, uint32_t index)
{
    ebpfMonEventLists *to = l->to;
    struct layoutList list;
    uint64_t at, before = 0;
    char ext[EXT_HEAD];
    int32_t n = 0;

    if (ebpfMonMemRead(l->mem, channel->at + to->base->channel.eventq, &list, sizeof(list)))
        return -1;
    for (at = list.first; at && n < list.count && to->subs < EBPFMON_EVENT_SUBSCRIPTIONS; n++) {
        uint64_t sub;

        if (ebpfMonClockMonotonic() >= l->until || at % sizeof(uint64_t) ||
            ebpfMonMemRead(l->mem, at, ext, sizeof(ext)))
            return -1;
        sub = ebpfMonMemNumberAt(ext, to->layout->ext.pdbev);
        if (ebpfMonMemNumberAt(ext, sizeof(uint64_t)) != before ||
            ebpfMonMemNumberAt(ext, to->layout->ext.pciu) != channel->at ||
            (sub && addSubscription(l, at, sub, index, channel->client)))
            return -1;
        before = at;
        at = ebpfMonMemNumberAt(ext, 0);
    }
    return to->subs < EBPFMON_EVENT_SUBSCRIPTIONS && (at || n != list.count) ? -1 : 0;
}

/* --- what an update reads --------------------------------------------------------------------------------------- */

static int addPart(ebpfMonEventLists *to, uint64_t addr, size_t size)
{
    if (to->size + size > SIZE_MAX_READ ||
        ebpfMonArrayGrow(&to->part, &to->partRoom, to->parts + 1, 64, sizeof(*to->part)))
        return -1;
    to->part[to->parts++] = (ebpfMonMemPart){ addr, (uint32_t)size };
    to->size += size;
    return 0;
}

static size_t sizeOfClient(const ebpfMonEventLists *l)
{
    const ebpfMonBaseRelease *b = l->base;
    size_t size = l->layout->client.evuser + sizeof(uint64_t);

    if (size < b->client.chanList + sizeof(struct layoutList))
        size = b->client.chanList + sizeof(struct layoutList);
    if (size < b->client.chanPendingUpdateARList + sizeof(struct layoutList))
        size = b->client.chanPendingUpdateARList + sizeof(struct layoutList);
    return size;
}

static size_t sizeOfUser(const ebpfMonEventLayout *l)
{
    return l->user.flowCtrlMode + 1u - l->user.extralabor_arg;
}

static size_t sizeOfQueue(const ebpfMonEventLayout *l)
{
    return l->queue.getix + 2u - l->queue.evUser;
}

static int compareSubs(const void *left, const void *right)
{
    uint64_t l = (*(ebpfMonEventSubscription *const *)left)->at, r = (*(ebpfMonEventSubscription *const *)right)->at;

    return (l > r) - (l < r);
}

/* Subscriptions lie side by side in blocks of a free list, so they are read with what is between them: one part for
 * hundreds of them. */
static int addPartsOfSubs(ebpfMonEventLists *to)
{
    ebpfMonEventSubscription **order = malloc((to->subs + 1) * sizeof(*order));
    int status = order ? 0 : -1;

    for (size_t i = 0; order && i < to->subs; i++)
        order[i] = &to->sub[i];
    if (order)
        qsort(order, to->subs, sizeof(*order), compareSubs);
    for (size_t i = 0; !status && i < to->subs; i++) {
        ebpfMonMemPart *last = i ? &to->part[to->parts - 1] : NULL;
        uint64_t at = order[i]->at;

        if (last && at + SUB_SIZE - last->addr <= PART_MAX && at - last->addr <= last->size + GAP_MAX) {
            uint32_t size = (uint32_t)(at + SUB_SIZE - last->addr);

            to->size += size - last->size;
            last->size = size;
        } else {
            status = addPart(to, at, SUB_SIZE);
        }
        order[i]->from = (uint32_t)(to->size - SUB_SIZE);
    }
    free(order);
    return status;
}

static int addParts(ebpfMonEventLists *to)
{
    int status = to->clientQ ? addPart(to, to->clientQ, sizeof(struct layoutList)) : 0;

    for (unsigned i = 0; !status && i < to->clients; i++) {
        status = addPart(to, to->client[i].at, sizeOfClient(to));
        if (!status && to->client[i].user)
            status = addPart(to, to->client[i].user + to->layout->user.extralabor_arg, sizeOfUser(to->layout));
    }
    for (size_t i = 0; !status && i < to->queues; i++)
        status = addPart(to, to->queue[i].at + to->layout->queue.evUser, sizeOfQueue(to->layout));
    if (status || addPartsOfSubs(to))
        return -1;
    to->bytes = malloc(to->size + 1);
    return to->bytes ? 0 : -1;
}

ebpfMonEventLists *ebpfMonEventListsRead(ebpfMonMem *mem, const ebpfMonBaseRelease *base, uint64_t clientQ,
                                         const uint64_t *client, unsigned clients, const ebpfMonEventChannel *channel,
                                         size_t channels, char *why, size_t size)
{
    ebpfMonEventLists *to = calloc(1, sizeof(*to));
    eventLook l = { mem, to, ebpfMonClockMonotonic() + LOOK_NS, why, size };
    int status;

    why[0] = 0;
    if (!to)
        return NULL;
    to->base = base;
    to->clientQ = clientQ;
    to->clients = clients;
    to->client = calloc(clients + 1u, sizeof(*to->client));
    status = to->client ? addClients(&l, client) : -1;
    if (!to->layout) /* no client has an event_user: no subscription either */
        to->layout = &layouts[0];
    for (size_t i = 0; !status && i < channels; i++)
        status = addEventsOfChannel(&l, &channel[i], (uint32_t)i);
    if (status == 0 && addParts(to) == 0)
        return to;
    ebpfMonEventListsFree(to);
    return NULL;
}

/* --- others ----------------------------------------------------------------------------------------------------- */

typedef struct {
    eventLook look;
    pid_t    pid;
    const ebpfMonCatalogue *cat;
    const ebpfMonEventLists *ca;
    uint32_t *known;    /* by record: subscriptions of CA clients that are in its list */
    uint64_t *caSub;    /* their evSubscrip, ascending */
    size_t   caSubs;
} otherLook;

static int compareNumbers(const void *left, const void *right)
{
    uint64_t l = *(const uint64_t *)left, r = *(const uint64_t *)right;

    return (l > r) - (l < r);
}

static int noteKnown(otherLook *o, const long *recordOf)
{
    size_t subs = o->ca ? o->ca->subs : 0;

    o->known = calloc(o->cat->count + 1u, sizeof(*o->known));
    o->caSub = malloc((subs + 1) * sizeof(*o->caSub));
    for (size_t i = 0; o->known && o->caSub && i < subs; i++) {
        const ebpfMonEventSubscription *s = &o->ca->sub[i];
        long record = recordOf[s->channel];

        o->caSub[o->caSubs++] = s->at;
        if (s->isEnabled && !s->isGone && record >= 0 && record < (long)o->cat->count)
            o->known[record]++;
    }
    if (!o->known || !o->caSub)
        return -1;
    qsort(o->caSub, o->caSubs, sizeof(*o->caSub), compareNumbers);
    return 0;
}

/* A queue leads to its event_user, which begins with a queue of its own. The place of that pointer is what differs
 * between releases. The index of the queue, or -1. */
static long addQueueOfOther(eventLook *l, uint64_t at)
{
    ebpfMonEventLists *to = l->to;
    uint64_t user = 0;

    for (size_t i = to->queues; i-- > 0;)
        if (to->queue[i].at == at)
            return (long)i;
    for (size_t i = 0; i < LAYOUTS; i++) {
        const ebpfMonEventLayout *layout = &layouts[i];

        if (to->layout && to->layout->queue.evUser != layout->queue.evUser)
            continue;
        user = ebpfMonMemPtr(l->mem, at + layout->queue.evUser);
        if (user && user % sizeof(uint64_t) == 0 && ebpfMonMemPtr(l->mem, user + layout->queue.evUser) == user) {
            to->layout = to->layout ? to->layout : layout;
            break;
        }
        user = 0;
    }
    if (!user || ebpfMonArrayGrow(&to->queue, &to->queueRoom, to->queues + 1, 64, sizeof(*to->queue)))
        return -1;
    to->queue[to->queues] = (ebpfMonEventQueue){ .at = at, .user = user, .client = EBPFMON_EVENT_OTHER };
    return (long)to->queues++;
}

/* Where evSubscrip has its channel and its function is the same in all releases. */
enum { subChannel = EBPFMON_EVENT_CHANNEL, subFunction = 24 };

/* 0; or -1: it does not lead back. */
static int addOther(otherLook *o, uint32_t record, uint64_t at, const char *bytes)
{
    ebpfMonEventLists *to = o->look.to;
    const ebpfMonEventLayout *layout = &layouts[0]; /* evSubscrip is the same in all of them */
    ebpfMonEventOther other = { .record = (long)record, .function = ebpfMonMemNumberAt(bytes, subFunction) };
    struct layoutDbChannel channel;
    char name[sizeof(other.name)];
    long queue;

    if (!other.function ||
        ebpfMonMemRead(o->look.mem, ebpfMonMemNumberAt(bytes, subChannel), &channel, sizeof(channel)) ||
        channel.addr.precord != o->cat->rec[record].addr)
        return -1;
    queue = addQueueOfOther(&o->look, ebpfMonMemNumberAt(bytes, layout->subscription.ev_que));
    if (queue < 0 || ebpfMonArrayGrow(&to->sub, &to->subRoom, to->subs + 1, 256, sizeof(*to->sub)) ||
        ebpfMonArrayGrow(&to->other, &to->otherRoom, to->others + 1, 256, sizeof(*to->other)))
        return -1;
    other.queue = (uint32_t)queue;
    if (ebpfMonMemStr(o->look.mem, channel.name, name, sizeof(name)) < 0)
        return -1;
    ebpfMonTextCopy(other.name, sizeof(other.name), name);
    to->sub[to->subs++] = (ebpfMonEventSubscription){
        .at = at, .ext = ebpfMonMemNumberAt(bytes, layout->subscription.user_arg), .channel = (uint32_t)to->others,
        .client = EBPFMON_EVENT_OTHER
    };
    to->other[to->others++] = other;
    return 0;
}

static int isOfCa(const otherLook *o, uint64_t at)
{
    return o->caSubs && bsearch(&at, o->caSub, o->caSubs, sizeof(at), compareNumbers);
}

static void addOthersOfRecord(otherLook *o, uint32_t record, const struct layoutList *list)
{
    ebpfMonEventLists *to = o->look.to;
    uint64_t at = list->first, before = 0;
    char bytes[SUB_SIZE];

    for (int32_t n = 0; at && n < list->count && to->subs < EBPFMON_EVENT_SUBSCRIPTIONS; n++) {
        if (at % sizeof(uint64_t) || ebpfMonMemRead(o->look.mem, at, bytes, sizeof(bytes)) ||
            ebpfMonMemNumberAt(bytes, sizeof(uint64_t)) != before ||
            (!isOfCa(o, at) && addOther(o, record, at, bytes)))
            return;
        before = at;
        at = ebpfMonMemNumberAt(bytes, 0);
    }
}

/* The lists of some records in one job. */
static int addOthersOfRecords(otherLook *o, uint32_t from, uint32_t count, ebpfMonMemPart *part,
                              struct layoutList *list)
{
    for (uint32_t i = 0; i < count; i++) {
        const ebpfMonRecord *r = &o->cat->rec[from + i];
        const ebpfMonField *f = ebpfMonCatalogueFieldNamed(o->cat, r->rtype, "MLIS");

        part[i] = (ebpfMonMemPart){ r->addr + (f ? f->offset : 0), sizeof(*list) };
        if (!f)
            return -1;
    }
    if (ebpfMonMemReadParts(o->pid, part, count, list, count * sizeof(*list)))
        return -1;
    for (uint32_t i = 0; i < count && ebpfMonClockMonotonic() < o->look.until; i++)
        if (list[i].count > 0 && (uint32_t)list[i].count > o->known[from + i])
            addOthersOfRecord(o, from + i, &list[i]);
    return 0;
}

ebpfMonEventLists *ebpfMonEventListsReadOthers(ebpfMonMem *mem, pid_t pid, const ebpfMonCatalogue *cat,
                                               const ebpfMonEventLists *ca, const long *recordOf)
{
    ebpfMonEventLists *to = calloc(1, sizeof(*to));
    otherLook o = { { mem, to, ebpfMonClockMonotonic() + LOOK_NS, NULL, 0 }, pid, cat, ca, NULL, NULL, 0 };
    ebpfMonMemPart *part = calloc(RECORDS_BATCH, sizeof(*part));
    struct layoutList *list = calloc(RECORDS_BATCH, sizeof(*list));
    int status = to && part && list ? noteKnown(&o, recordOf) : -1;

    if (!status && ca && ca->queues)
        to->layout = ca->layout;
    for (uint32_t i = 0; !status && i < cat->count; i += RECORDS_BATCH)
        status = addOthersOfRecords(&o, i, cat->count - i < RECORDS_BATCH ? cat->count - i : RECORDS_BATCH, part,
                                    list);
    if (!status && !to->layout)
        to->layout = &layouts[0];
    if (!status)
        status = addParts(to);
    free(o.known);
    free(o.caSub);
    free(part);
    free(list);
    if (!status)
        return to;
    ebpfMonEventListsFree(to);
    return NULL;
}

void ebpfMonEventListsFree(ebpfMonEventLists *lists)
{
    if (!lists)
        return;
    free(lists->client);
    free(lists->queue);
    free(lists->sub);
    free(lists->other);
    free(lists->part);
    free(lists->bytes);
    free(lists);
}

/* --- an update -------------------------------------------------------------------------------------------------- */

/* Takes the numbers of the clients out of the bytes. Returns how many bytes those were; *isChanged: a client or channel
 * came or went. */
static size_t takeClients(ebpfMonEventLists *lists, int *isChanged)
{
    const ebpfMonEventLayout *l = lists->layout;
    struct layoutList q, chans, pending;
    size_t at = sizeof(q);

    *isChanged = 0;
    if (!lists->clientQ)
        return 0;
    memcpy(&q, lists->bytes, sizeof(q));
    *isChanged = q.count < 0 || (unsigned)q.count != lists->clients;
    for (unsigned i = 0; i < lists->clients; i++) {
        ebpfMonEventClient *c = &lists->client[i];
        const char *head = lists->bytes + at, *user = head + sizeOfClient(lists);
        int32_t channels;

        memcpy(&c->inBuffer, head + l->client.sendStk, sizeof(c->inBuffer));
        memcpy(&chans, head + lists->base->client.chanList, sizeof(chans));
        memcpy(&pending, head + lists->base->client.chanPendingUpdateARList, sizeof(pending));
        channels = chans.count + pending.count;
        *isChanged |= (c->channels >= 0 && channels != c->channels) ||
                      ebpfMonMemNumberAt(head, l->client.evuser) != c->user;
        c->channels = channels;
        at += sizeOfClient(lists);
        if (!c->user)
            continue;
        c->isPaused = user[l->user.flowCtrlMode - l->user.extralabor_arg] == 1;
        *isChanged |= ebpfMonMemNumberAt(user, 0) != c->at;
        at += sizeOfUser(l);
    }
    return at;
}

static size_t takeQueues(ebpfMonEventLists *lists, size_t at, int *isChanged)
{
    const ebpfMonEventLayout *l = lists->layout;

    for (size_t i = 0; i < lists->queues; i++) {
        ebpfMonEventQueue *q = &lists->queue[i];
        uint16_t getix;

        *isChanged |= ebpfMonMemNumberAt(lists->bytes + at, 0) != q->user;
        memcpy(&getix, lists->bytes + at + l->queue.getix - l->queue.evUser, sizeof(getix));
        q->taken += getix != q->getix;
        if (q->client != EBPFMON_EVENT_OTHER)
            lists->client[q->client].taken += getix != q->getix;
        q->getix = getix;
        at += sizeOfQueue(l);
    }
    return at;
}

static void takeSubscriptions(ebpfMonEventLists *lists, int *isChanged)
{
    const ebpfMonEventLayout *l = lists->layout;

    for (size_t i = 0; i < lists->subs; i++) {
        ebpfMonEventSubscription *s = &lists->sub[i];
        const char *bytes = lists->bytes + s->from;
        uint64_t waiting = ebpfMonMemNumberAt(bytes, l->subscription.npend);

        s->isGone |= ebpfMonMemNumberAt(bytes, l->subscription.user_arg) != s->ext || waiting > UINT16_MAX ||
                     (s->client == EBPFMON_EVENT_OTHER &&
                      ebpfMonMemNumberAt(bytes, subFunction) != lists->other[s->channel].function);
        if (s->isGone) {
            *isChanged = 1;
            continue;
        }
        s->waiting = (uint32_t)waiting;
        s->merged = ebpfMonMemNumberAt(bytes, l->subscription.nreplace);
        s->mask = (uint8_t)bytes[l->subscription.select];
        s->isCopied = bytes[l->subscription.useValque] != 0;
        s->isEnabled = bytes[l->subscription.enabled] != 0;
    }
}

int ebpfMonEventListsUpdate(ebpfMonEventLists *lists, pid_t pid)
{
    int isChanged;
    size_t at;

    if (ebpfMonMemReadParts(pid, lists->part, lists->parts, lists->bytes, lists->size))
        return -1;
    at = takeClients(lists, &isChanged);
    takeQueues(lists, at, &isChanged);
    takeSubscriptions(lists, &isChanged);
    return isChanged;
}
