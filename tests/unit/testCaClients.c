/* SPDX-License-Identifier: BSD-3-Clause */
/* The lists of a CA server (rsrv/server.h), made in the memory of this program. The monitor's code reads them as the
 * memory of any other process. */
#include <arpa/inet.h>
#include <stdio.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "common/clock.h"
#include "fakeIoc.h"
#include "clients/caClients.h"

#define CLIENTS  3
#define CHANNELS 4 /* channels of each client: two in each of its lists */

static struct {
    struct layoutList q;
    char client[CLIENTS][256];
    char ciu[CLIENTS][CHANNELS][128];
    struct layoutDbChannel chan[CLIENTS][CHANNELS];
    struct layoutNode events[CLIENTS][CHANNELS];
} rsrv;
static char names[CLIENTS][CHANNELS][24];
static ebpfMonMem *mem;

static uint64_t at(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

static void set(char *bytes, unsigned offset, const void *from, size_t size)
{
    memcpy(bytes + offset, from, size);
}

static void set64(char *bytes, unsigned offset, uint64_t value)
{
    set(bytes, offset, &value, sizeof(value));
}

static void chain(char *node, const char *before, const char *after)
{
    set64(node, 0, at(after));
    set64(node, sizeof(uint64_t), at(before));
}

static void makeChannel(const ebpfMonBaseRelease *b, int i, int k)
{
    char *ciu = rsrv.ciu[i][k];
    struct layoutList events = { 0, 0, k, 0 };
    struct layoutDbAddr addr = { .precord = at(&fake.rec[k]), .pfldDes = fake.field[1].addr };
    epicsTimeStamp since = { 1000000000u + (unsigned)(10 * i + k), 5 };
    uint32_t sid = 100 + (uint32_t)(k ^ 3); /* not in the order of the lists */

    if (k)
        events.first = events.last = at(&rsrv.events[i][k]);
    chain(ciu, k % 2 ? rsrv.ciu[i][k - 1] : NULL, k % 2 ? NULL : rsrv.ciu[i][k + 1]);
    set(ciu, fake.t->cat->base->channel.eventq, &events, sizeof(events));
    set(ciu, fake.t->cat->base->channel.sid, &sid, sizeof(sid));
    set(ciu, fake.t->cat->base->channel.time_at_creation, &since, sizeof(since));
    set64(ciu, b->channel.client, at(rsrv.client[i]));
    snprintf(names[i][k], sizeof(names[i][k]), "C%d:%d", i, k);
    rsrv.chan[i][k] = (struct layoutDbChannel){ .name = at(names[i][k]), .addr = addr };
    if (b->has.channels)
        set64(ciu, b->channel.dbch, at(&rsrv.chan[i][k]));
    else
        set(ciu, b->channel.dbch, &addr, sizeof(addr));
}

static void makeServer(const ebpfMonBaseRelease *b)
{
    memset(&rsrv, 0, sizeof(rsrv));
    rsrv.q = (struct layoutList){ at(rsrv.client[0]), at(rsrv.client[CLIENTS - 1]), CLIENTS, 0 };
    for (int i = 0; i < CLIENTS; i++) {
        struct layoutList chans = { at(rsrv.ciu[i][0]), at(rsrv.ciu[i][1]), 2, 0 };
        struct layoutList pending = { at(rsrv.ciu[i][2]), at(rsrv.ciu[i][3]), 2, 0 };
        uint16_t port = htons((uint16_t)(5000 + i));
        uint32_t addr = htonl(0x0a000001);

        chain(rsrv.client[i], i ? rsrv.client[i - 1] : NULL, i < CLIENTS - 1 ? rsrv.client[i + 1] : NULL);
        set(rsrv.client[i], b->client.addr + 2u, &port, sizeof(port));
        set(rsrv.client[i], b->client.addr + 4u, &addr, sizeof(addr));
        set64(rsrv.client[i], b->client.pUserName, i ? at("an\033na") : 0);
        set64(rsrv.client[i], b->client.pHostName, at("office1"));
        set(rsrv.client[i], b->client.chanList, &chans, sizeof(chans));
        set(rsrv.client[i], b->client.chanPendingUpdateARList, &pending, sizeof(pending));
        for (int k = 0; k < CHANNELS; k++)
            makeChannel(b, i, k);
    }
}

static ebpfMonCaClients *readServer(void)
{
    return ebpfMonCaClientsRead(mem, fake.t->cat, at(&rsrv.q));
}

static int isRefused(void)
{
    ebpfMonCaClients *c = readServer();
    int refused = c == NULL;

    ebpfMonCaClientsFree(c);
    makeServer(fake.t->cat->base);
    return refused;
}

static void testWhole(int is314)
{
    const ebpfMonBaseRelease *b = ebpfMonBaseReleaseGet(0);
    ebpfMonCaClients *c;
    const ebpfMonCaUse *use;

    testDiag("EPICS %s", is314 ? "3.14" : "7");
    for (unsigned i = 1; is314 && b->has.channels; i++)
        b = ebpfMonBaseReleaseGet(i);
    fake.t->cat->base = b;
    makeServer(b);
    c = readServer();
    testOk(c && c->clients == CLIENTS && c->uses == CLIENTS * CHANNELS && !c->leftOut, "all clients and channels");
    if (!c)
        testAbort("nothing was read");
    testOk(!c->client[0].user[0] && strcmp(c->client[1].user, "an\\x1bna") == 0 &&
               strcmp(c->client[2].host, "office1") == 0,
           "the names that the clients claim: '%s' '%s'", c->client[0].user, c->client[1].user);
    testOk1(ntohs(c->client[2].port) == 5002 && ntohl(c->client[2].addr) == 0x0a000001);
    testOk1(c->client[1].channels == CHANNELS && c->client[1].subscriptions == 0 + 1 + 2 + 3);
    testOk(c->client[2].since.secPastEpoch == 1000000020, "a client is connected since its oldest channel");
    use = ebpfMonCaClientsFindUse(c, htonl(0x0a000001), htons(5001), 100);
    if (!use)
        testAbort("a channel is not found");
    testOk1(use->client == 1 && use->record == 3 && use->sid == 100 && use->subscriptions == 3 &&
            use->since.secPastEpoch == 1000000013 && use->since.nsec == 5);
    testOk(!ebpfMonCaClientsFindUse(c, htonl(0x0a000001), htons(5001), 104) &&
           !ebpfMonCaClientsFindUse(c, htonl(0x0a000001), htons(5003), 100) &&
           !ebpfMonCaClientsFindUse(c, htonl(0x0a000002), htons(5001), 100), "no other channel, port or address");
    testOk(strcmp(c->names + use->name, is314 ? "A:SEQ.VAL" : "C1:3") == 0, "the name of the PV: %s",
           c->names + use->name);
    ebpfMonCaClientsFree(c);
    rsrv.q = (struct layoutList){ 0, 0, 0, 0 };
    c = readServer();
    testOk(c && !c->clients && !c->uses && !ebpfMonCaClientsFindUse(c, 0, 0, 0), "a server without clients");
    ebpfMonCaClientsFree(c);
    makeServer(b);
}

/* Damage as it is seen if a list changes while it is read. */
static void testTorn(void)
{
    const ebpfMonBaseRelease *b = fake.t->cat->base;

    testDiag("Damaged lists");
    testOk(!ebpfMonCaClientsRead(mem, fake.t->cat, 0), "there is no list");
    rsrv.q.count = 2;
    testOk(isRefused(), "the list has more clients than it says");
    rsrv.q.count = 4;
    testOk(isRefused(), "the list has fewer clients than it says");
    rsrv.q.count = -1;
    testOk1(isRefused());
    set64(rsrv.client[2], 0, at(rsrv.client[0]));
    testOk(isRefused(), "the clients form a ring");
    set64(rsrv.ciu[1][1], 0, at(rsrv.ciu[1][0]));
    testOk(isRefused(), "the channels form a ring");
    set64(rsrv.ciu[1][1], sizeof(uint64_t), 0);
    testOk(isRefused(), "a channel does not lead back to its neighbour");
    set64(rsrv.ciu[2][3], b->channel.client, at(rsrv.client[0]));
    testOk(isRefused(), "a channel names another client");
    rsrv.chan[0][2].addr.precord++;
    testOk(isRefused(), "a channel leads to memory that is not a record");
    set64(rsrv.ciu[0][2], b->channel.dbch, 16);
    testOk(isRefused(), "a channel leads to an address that cannot be read");
    set64(rsrv.ciu[0][2], fake.t->cat->base->channel.eventq, 0);
    testOk(isRefused(), "a list of subscriptions has no first element");
    set64(rsrv.client[1], b->client.pUserName, 16);
    testOk(isRefused(), "the user name is at an address that cannot be read");
    set64(rsrv.client[0], 0, at(rsrv.client[1]) + 1);
    testOk(isRefused(), "a client is at an odd address");
}

static void testGarbage(void)
{
    uint64_t seed = 42;
    unsigned wrong = 0, whole = 0;

    for (int i = 0; i < 5000; i++) {
        ebpfMonCaClients *c;

        makeServer(fake.t->cat->base);
        for (int k = 0; k < 3; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            ((uint8_t *)&rsrv)[(seed >> 33) % sizeof(rsrv)] = (uint8_t)(seed >> 24);
        }
        c = readServer();
        if (!c)
            continue;
        whole++;
        wrong += c->clients != CLIENTS || c->uses != CLIENTS * CHANNELS;
        for (size_t k = 0; k < c->uses; k++)
            wrong += c->use[k].client >= c->clients || c->use[k].record >= FAKE_RECORDS ||
                     c->use[k].name >= c->nameBytes;
        ebpfMonCaClientsFree(c);
    }
    testOk(!wrong && whole > 100, "garbage: %u of 5000 looked whole, %u wrong", whole, wrong);
}

/* The thread of packets asks for a name at each read on a channel that it does not know. */
static void testMany(void)
{
    ebpfMonCaClient client[2] = { { .port = 1 }, { .port = 2, .firstUse = 1 } };
    ebpfMonCaClients many = { .client = client, .clients = 2, .uses = EBPFMON_CACLIENT_CHANNELS };
    uint64_t before = ebpfMonClockThreadCpu();
    unsigned found = 0;

    many.use = calloc(many.uses, sizeof(*many.use));
    for (uint32_t i = 0; i < many.uses; i++)
        many.use[i] = (ebpfMonCaUse){ .client = i > 0, .sid = 2 * i };
    for (uint32_t i = 1; i < many.uses; i++)
        found += ebpfMonCaClientsFindUse(&many, 0, 2, 2 * i) == &many.use[i];
    testOk(found == many.uses - 1 && ebpfMonClockThreadCpu() - before < EBPFMON_SECOND_NS,
           "%u names of as many channels are found in %.3f s", found, (double)(ebpfMonClockThreadCpu() - before) / 1e9);
    free(many.use);
}

MAIN(testCaClients)
{
    testPlan(9 + 9 + 13 + 1 + 1);
    fakeMake();
    mem = ebpfMonMemNew(getpid());
    testWhole(1);
    testWhole(0);
    testTorn();
    testGarbage();
    testMany();
    ebpfMonMemFree(mem);
    return testDone();
}
