/* SPDX-License-Identifier: BSD-3-Clause */
/* The lists of subscriptions of a CA server (dbEvent.c, rsrv/server.h) as each release of Base has them, made in the
 * memory of this program. The monitor's code reads them as the memory of any other process. */
#include <string.h>
#include <unistd.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "ioc/baseLayout.h"
#include "subscriptions/eventLists.h"

#define EVENTS(range, ...) { range, EVENT_NUMBERS(__VA_ARGS__) },
#define EVENT_NUMBERS(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o) \
    { a, b, c, d, e, f, g }, { h, i }, { j, k }, { l, m }, { n, o }
#define SUBS 3 /* the last one is in the second queue */

static const ebpfMonEventLayout layouts[] = {
#include "subscriptions/events.h"
};

static struct {
    struct layoutList clientQ;
    char client[256], ciu[128], user[4608], queue[4608], ext[SUBS][64], sub[SUBS][80];
} server __attribute__((aligned(8)));

static const ebpfMonBaseRelease *base;
static ebpfMonMem *mem;

static uint64_t at(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

static void set64(char *bytes, unsigned offset, uint64_t value)
{
    memcpy(bytes + offset, &value, sizeof(value));
}

static void makeSubscription(const ebpfMonEventLayout *l, int i)
{
    char *ext = server.ext[i], *sub = server.sub[i];

    set64(ext, 0, i + 1 < SUBS ? at(server.ext[i + 1]) : 0);
    set64(ext, 8, i ? at(server.ext[i - 1]) : 0);
    set64(ext, l->ext.pciu, at(server.ciu));
    set64(ext, l->ext.pdbev, at(sub));
    set64(sub, l->subscription.user_arg, at(ext));
    set64(sub, l->subscription.ev_que, at(i + 1 < SUBS ? server.user : server.queue));
    set64(sub, l->subscription.npend, (uint64_t)i);
    set64(sub, l->subscription.nreplace, 100u + (unsigned)i);
    sub[l->subscription.select] = 5;
    sub[l->subscription.enabled] = 1;
    sub[l->subscription.useValque] = i != 1;
}

static void makeServer(const ebpfMonEventLayout *l)
{
    struct layoutList events = { at(server.ext[0]), at(server.ext[SUBS - 1]), SUBS, 0 }, channels = { at(server.ciu),
                                 at(server.ciu), 1, 0 };
    uint32_t inBuffer = 77;

    memset(&server, 0, sizeof(server));
    server.clientQ = (struct layoutList){ at(server.client), at(server.client), 1, 0 };
    memcpy(server.client + base->client.chanList, &channels, sizeof(channels));
    memcpy(server.client + l->client.sendStk, &inBuffer, sizeof(inBuffer));
    set64(server.client, l->client.evuser, at(server.user));
    memcpy(server.ciu + base->channel.eventq, &events, sizeof(events));
    set64(server.user, l->queue.evUser, at(server.user));
    set64(server.queue, l->queue.evUser, at(server.user));
    set64(server.user, l->user.extralabor_arg, at(server.client));
    for (int i = 0; i < SUBS; i++)
        makeSubscription(l, i);
}

static ebpfMonEventLists *readServer(char *why, size_t size)
{
    const uint64_t client = at(server.client);
    const ebpfMonEventChannel channel = { at(server.ciu), 0 };

    ebpfMonMemFlush(mem);
    return ebpfMonEventListsRead(mem, base, at(&server.clientQ), &client, 1, &channel, 1, why, size);
}

static void testLayout(const ebpfMonEventLayout *l)
{
    ebpfMonEventLists *lists;
    char why[160];
    int areRight = 1;

    makeServer(l);
    lists = readServer(why, sizeof(why));
    if (!lists) {
        testFail("%s: %s", l->releases, why);
        testSkip(5, "no lists");
        return;
    }
    testOk(strcmp(lists->layout->releases, l->releases) == 0, "%s is recognised", l->releases);
    testOk(ebpfMonEventListsUpdate(lists, getpid()) == 0 && lists->subs == SUBS && lists->queues == 2, "lists");
    for (unsigned i = 0; i < SUBS; i++) {
        const ebpfMonEventSubscription *s = &lists->sub[i];

        areRight &= s->waiting == i && s->merged == 100 + i && s->mask == 5 && s->isCopied == (i != 1) && s->isEnabled;
    }
    testOk(areRight && lists->client[0].inBuffer == 77 && !lists->client[0].isPaused, "numbers");
    server.user[l->user.flowCtrlMode] = 1;
    server.queue[l->queue.getix] = 3;
    testOk(ebpfMonEventListsUpdate(lists, getpid()) == 0 && lists->client[0].isPaused && lists->client[0].taken == 1,
           "a pause, and an update that was taken");
    set64(server.sub[1], l->subscription.user_arg, 0);
    set64(server.sub[2], l->subscription.npend, 4);
    testOk(ebpfMonEventListsUpdate(lists, getpid()) == 1 && lists->sub[1].isGone && !lists->sub[2].isGone &&
           lists->sub[2].waiting == 4, "a subscription that is gone, and another one");
    ebpfMonEventListsFree(lists);
    lists = readServer(why, sizeof(why));
    testOk(!lists && !why[0], "what does not lead back is not believed");
    ebpfMonEventListsFree(lists);
}

static void testOdd(void)
{
    char why[160];
    ebpfMonEventLists *lists;

    makeServer(&layouts[0]);
    set64(server.user, layouts[0].user.extralabor_arg, 0);
    lists = readServer(why, sizeof(why));
    testOk(!lists && strstr(why, "event_user"), "an unknown release is named: %s", why);
    ebpfMonEventListsFree(lists);
}

MAIN(testEventLists)
{
    testPlan((int)(6 * sizeof(layouts) / sizeof(layouts[0])) + 1);
    base = ebpfMonBaseReleaseGet(1);
    mem = ebpfMonMemNew(getpid());
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
        testLayout(&layouts[i]);
    testOdd();
    ebpfMonMemFree(mem);
    return testDone();
}
