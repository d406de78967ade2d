/* SPDX-License-Identifier: BSD-3-Clause */
/* watch/requests.h: the rule that applies to an IOC, and the rule that is dropped; waiting until a filter is
 * applied; links. */
#include <stdio.h>
#include <string.h>

#include <epicsAtomic.h>
#include <epicsUnitTest.h>
#include <testMain.h>

#include "common/clock.h"
#include "watch/requests.h"

static ebpfMonRequests *requests;
static int woken; /* atomic: another thread sets filters, too */

static void wake(void *arg)
{
    epicsAtomicIncrIntT(arg);
}

static int reference;

static ebpfMonLevel levelOf(const char *ioc)
{
    ebpfMonFilter f;

    ebpfMonRequestsGetFilter(requests, &f);
    return ebpfMonRequestsFindLevel(requests, ioc, &f, &reference);
}

static unsigned rules(void)
{
    ebpfMonLevelRule copy[EBPFMON_LEVEL_RULES_MAX];

    return ebpfMonRequestsGetLevelRules(requests, copy);
}

static void testLevels(void)
{
    testDiag("levels");
    testOk1(levelOf("vac1") == ebpfMonLevelChains && levelOf("other") == ebpfMonLevelOff);
    testOk(levelOf("vac1#123") == ebpfMonLevelChains && levelOf("other#1") == ebpfMonLevelOff,
           "a second IOC with this name has the level, too");
    testOk1(ebpfMonRequestsSetLevel(requests, "vac7", ebpfMonLevelTrace) == 0 &&
            levelOf("vac7#99") == ebpfMonLevelTrace && levelOf("vac7#") == ebpfMonLevelChains &&
            levelOf("vac7#9a") == ebpfMonLevelChains && levelOf("vac77#9") == ebpfMonLevelChains);
    testOk1(ebpfMonRequestsHasLevelRule(requests, "vac7#99") && !ebpfMonRequestsHasLevelRule(requests, "vac77#99"));
    testOk1(ebpfMonRequestsSetLevel(requests, "vac7", -1) == 0 && levelOf("vac7#99") == ebpfMonLevelChains);
    testOk1(ebpfMonRequestsSetLevel(requests, "vac*", ebpfMonLevelTrace) == 0 && levelOf("vac1") == ebpfMonLevelTrace);
    testOk1(ebpfMonRequestsSetLevel(requests, "*", ebpfMonLevelPuts) == 0);
    testOk1(levelOf("vac1") == ebpfMonLevelPuts && levelOf("other") == ebpfMonLevelPuts);
    testOk1(ebpfMonRequestsSetLevel(requests, "vac*", ebpfMonLevelCounts) == 0 && rules() == 2);
    testOk(levelOf("vac1") == ebpfMonLevelCounts, "the newest request counts, also one that was made again");
    testOk1(ebpfMonRequestsSetReference(requests, "vac*", 1) == 0 && rules() == 3);
    testOk1(levelOf("vac1") == ebpfMonLevelCounts && reference == 1);
    testOk1(ebpfMonRequestsSetLevel(requests, "vac*", -1) == 0);
    testOk(rules() == 1 && levelOf("vac1") == ebpfMonLevelPuts && !reference,
           "all requests of the pattern are cancelled");
    testOk1(ebpfMonRequestsSetLevel(requests, "*", -1) == 0 && rules() == 0 && levelOf("vac1") == ebpfMonLevelChains);
}

static void testReference(void)
{
    testDiag("reference");
    testOk1(ebpfMonRequestsSetReference(requests, "vac1", 0) == 0 && rules() == 0);
    testOk1(ebpfMonRequestsSetReference(requests, "*", 1) == 0 &&
            ebpfMonRequestsSetReference(requests, "vac1", 0) == 0 && rules() == 2);
    testOk1((levelOf("vac1"), reference == 0) && (levelOf("vac2"), reference == 1));
    testOk(ebpfMonRequestsSetReference(requests, "*", 0) == 0 && rules() == 0,
           "a rule that says nothing any more goes, too");
}

static void testFull(void)
{
    char pattern[16];
    int i, failed = 0;

    testDiag("as many as there may be");
    for (i = 0; i < EBPFMON_LEVEL_RULES_MAX; i++) {
        sprintf(pattern, "ioc%d", i);
        failed += ebpfMonRequestsSetLevel(requests, pattern, ebpfMonLevelPuts) != 0;
    }
    testOk1(!failed && rules() == EBPFMON_LEVEL_RULES_MAX);
    testOk1(ebpfMonRequestsSetLevel(requests, "more", ebpfMonLevelPuts) == -1 &&
            ebpfMonRequestsSetReference(requests, "more", 1) == -1);
    testOk1(ebpfMonRequestsSetLevel(requests, "ioc7", ebpfMonLevelTrace) == 0 && levelOf("ioc7") == ebpfMonLevelTrace);
    testOk1(ebpfMonRequestsSetLevel(requests, "ioc8", -1) == 0 &&
            ebpfMonRequestsSetLevel(requests, "more", ebpfMonLevelPuts) == 0);
    testOk1(rules() == EBPFMON_LEVEL_RULES_MAX);
}

static void testApplied(void)
{
    ebpfMonFilter f = ebpfMonFilterDefault;
    unsigned first, second;

    testDiag("until it is applied");
    ebpfMonRequestsTakeFilter(requests, &f);
    testOk1(ebpfMonRequestsTakeFilter(requests, &f) == 0);
    first = ebpfMonRequestsSetFilter(requests, &f);
    testOk1(first && !ebpfMonRequestsIsApplied(requests, first) && epicsAtomicGetIntT(&woken) > 0);
    testOk1(ebpfMonRequestsTakeFilter(requests, &f) == 1 && !ebpfMonRequestsIsApplied(requests, first));
    second = ebpfMonRequestsSetFilter(requests, &f);
    ebpfMonRequestsSetApplied(requests);
    testOk1(ebpfMonRequestsIsApplied(requests, first) && !ebpfMonRequestsIsApplied(requests, second));
    testOk1(ebpfMonRequestsTakeFilter(requests, &f) == 1);
    ebpfMonRequestsSetApplied(requests);
    testOk1(ebpfMonRequestsIsApplied(requests, first) && ebpfMonRequestsIsApplied(requests, second));
}

#define RECORDS 2000 /* more than the list of links holds */

typedef struct {
    unsigned count;
    uint64_t last;
} calls;

static void onLinks(void *arg, uint32_t iocId, uint64_t precord)
{
    calls *c = arg;

    c->count += iocId == 7;
    c->last = precord;
}

static void testLinks(void)
{
    static const uint64_t ms = 1000000;
    calls c = { 0 };
    unsigned before = epicsAtomicGetIntT(&woken);
    uint64_t now = 1000 * ms;
    double wait;

    testDiag("links that are read again");
    wait = ebpfMonRequestsTakeLinksDue(requests, now, onLinks, &c);
    testOk(c.count == 0 && wait > 5, "without a request the follower need not look again soon: %g s", wait);
    ebpfMonRequestsAddLinks(requests, 7, 0x1000);
    ebpfMonRequestsAddLinks(requests, 7, 0x1000);
    wait = ebpfMonRequestsTakeLinksDue(requests, now, onLinks, &c);
    testOk(c.count == 1 && c.last == 0x1000 && wait > 0 && wait < 0.001, "a record is read once, and soon again: %g s",
           wait);
    testOk((unsigned)epicsAtomicGetIntT(&woken) == before + 2, "each request wakes the follower");
    ebpfMonRequestsTakeLinksDue(requests, now, onLinks, &c);
    testOk(c.count == 1, "a record is not read again at once");
    for (int i = 0; i < 1500; i++)
        wait = ebpfMonRequestsTakeLinksDue(requests, now += ms, onLinks, &c);
    testOk(c.count == 6 && wait > 1, "a record is read six times in the first 1.5 s: %u", c.count);
    for (int i = 0; i < 58500; i++)
        wait = ebpfMonRequestsTakeLinksDue(requests, now += ms, onLinks, &c);
    testOk(c.count == 10 && wait > 1, "… then ever more seldom: %u times in a minute", c.count);
    for (int i = 0; i < 100000; i++)
        wait = ebpfMonRequestsTakeLinksDue(requests, now += ms, onLinks, &c);
    testOk(c.count == 11 && wait > 5, "… and then never again: %u", c.count);
    testOk1(!ebpfMonRequestsTakeLinksMissed(requests));
    for (int i = 0; i < RECORDS; i++)
        ebpfMonRequestsAddLinks(requests, 7, 0x1000u + (unsigned)i);
    testOk1(ebpfMonRequestsTakeLinksMissed(requests) && !ebpfMonRequestsTakeLinksMissed(requests));
    c.count = 0;
    wait = ebpfMonRequestsTakeLinksDue(requests, now, onLinks, &c);
    testOk(c.count == 64 && wait == 0, "at most so many records are read at a time: %u", c.count);
    for (int i = 0; i < 1500; i++)
        ebpfMonRequestsTakeLinksDue(requests, now += ms, onLinks, &c);
    ebpfMonRequestsAddLinks(requests, 7, 1);
    ebpfMonRequestsTakeLinksDue(requests, now, onLinks, &c);
    testOk(!ebpfMonRequestsTakeLinksMissed(requests) && c.last == 1,
           "a new put takes the place of one that was read most of its times");
}

MAIN(testRequests)
{
    ebpfMonFilter first = ebpfMonFilterDefault;

    testPlan(41);
    strcpy(first.ioc, "vac*");
    requests = ebpfMonRequestsNew(&first);
    if (!requests)
        testAbort("out of memory");
    ebpfMonRequestsSetWake(requests, wake, &woken);
    testLevels();
    testReference();
    testFull();
    testApplied();
    testLinks();
    ebpfMonRequestsFree(requests);
    ebpfMonRequestsFree(NULL);
    return testDone();
}
