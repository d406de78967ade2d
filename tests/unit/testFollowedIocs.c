/* SPDX-License-Identifier: BSD-3-Clause */
/* shared/followedIocs.h: how often a query, or the watching of devices, enters and leaves which IOCs. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "common/clock.h"
#include "shared/followedIocs.h"

typedef struct {
    ebpfMonFollowedIoc ioc;
    int payload; /* to check that the part of its user begins with 0 and stays */
} Known;

static struct {
    unsigned entered, left, ended, oddPayload;
    int refuse; /* probes cannot be set */
} seen;

static ebpfMonTargets *targets;

static void enter(void *arg, ebpfMonFollowedIoc *ioc, uint64_t now)
{
    Known *known = (Known *)ioc;

    seen.entered++;
    seen.oddPayload += known->payload != 0;
    ioc->isOn = !seen.refuse;
    if (ioc->isOn)
        known->payload = 1;
    else
        ioc->retryAt = now + 3600 * EBPFMON_SECOND_NS;
}

static void leave(void *arg, ebpfMonFollowedIoc *ioc, int hasEnded)
{
    seen.left++;
    seen.ended += hasEnded != 0;
}

static ebpfMonTarget *addTarget(const char *name, ebpfMonLevel level)
{
    ebpfMonTarget *t = calloc(1, sizeof(*t));

    if (!t)
        testAbort("out of memory");
    t->pid = 1;
    t->level = level;
    snprintf(t->name, sizeof(t->name), "%s", name);
    ebpfMonTargetsAdd(targets, t);
    return t;
}

static unsigned count(const ebpfMonFollowedIocs *iocs)
{
    unsigned n = 0;

    for (const ebpfMonFollowedIoc *ioc = ebpfMonFollowedIocsGetFirst(iocs); ioc; ioc = ioc->next)
        n++;
    return n;
}

static void follow(ebpfMonFollowedIocs *iocs, const char *pattern)
{
    memset(&seen, 0, offsetof(__typeof__(seen), refuse));
    ebpfMonFollowedIocsFollow(iocs, targets, pattern, NULL);
}

static void testRefused(ebpfMonFollowedIocs *iocs, const ebpfMonTarget *other)
{
    seen.refuse = 1;
    follow(iocs, "vac*");
    testOk(seen.entered == 1 && count(iocs) == 1, "an IOC in which probes cannot be set is not entered");
    follow(iocs, "vac*");
    testOk(seen.entered == 0, "… it is not tried again before its time");
    ((Known *)ebpfMonFollowedIocsGetFirst(iocs))->ioc.retryAt = 0;
    seen.refuse = 0;
    follow(iocs, "vac*");
    testOk(seen.entered == 1 && ebpfMonFollowedIocsGetFirst(iocs)->isOn, "… but it is then");
    follow(iocs, "ioc*");
    testOk(seen.left == 1 && seen.ended == 0 && count(iocs) == 0, "another pattern: the IOC is left while it runs");
    follow(iocs, "*");
    testOk(seen.entered == 1 && ebpfMonFollowedIocsGetFirst(iocs)->iocId == other->iocId,
           "the first pattern again: it is entered again");
}

MAIN(testFollowedIocs)
{
    static const ebpfMonFollowedUser user = { .size = sizeof(Known), .enter = enter, .leave = leave };
    ebpfMonFollowedIocs *iocs = ebpfMonFollowedIocsNew(&user);
    ebpfMonTarget *a, *b, *other, *off, *t;

    testPlan(15);
    targets = ebpfMonTargetsNew();
    if (!targets || !iocs)
        testAbort("out of memory");
    a = addTarget("iocA", ebpfMonLevelChains);
    b = addTarget("iocB", ebpfMonLevelCounts);
    other = addTarget("vacuum", ebpfMonLevelChains);
    off = addTarget("iocOff", ebpfMonLevelOff);

    follow(iocs, "ioc*");
    testOk(seen.entered == 2 && count(iocs) == 2, "IOCs that match are entered, except one at level off");
    testOk(seen.left == 0 && seen.oddPayload == 0, "the user's part of an IOC begins with zeros");
    follow(iocs, "ioc*");
    testOk(seen.entered == 0 && seen.left == 0 && count(iocs) == 2, "… an IOC is entered once");
    off->level = ebpfMonLevelChains;
    follow(iocs, "ioc*");
    testOk(seen.entered == 1 && count(iocs) == 3, "an IOC that is watched later is entered then");
    b->level = ebpfMonLevelOff;
    follow(iocs, "ioc*");
    testOk(seen.left == 1 && seen.ended == 0 && count(iocs) == 2,
           "an IOC that goes to level off is left while it runs");
    a->gone = 1;
    follow(iocs, "ioc*");
    testOk(seen.left == 1 && seen.ended == 1 && count(iocs) == 1, "an IOC that has ended is left as ended");
    ebpfMonTargetsRemove(targets, off);
    free(off);
    follow(iocs, "ioc*");
    testOk(seen.left == 1 && seen.ended == 1 && count(iocs) == 0, "… and so is one that is not in the list any more");
    testOk1(seen.entered == 0);

    testRefused(iocs, other);
    memset(&seen, 0, sizeof(seen));
    ebpfMonFollowedIocsFree(iocs);
    testOk(seen.left == 1 && seen.ended == 0, "when the list is freed, all IOCs are left");
    ebpfMonFollowedIocsFree(NULL);
    testPass("freeing NULL does nothing");

    while ((t = ebpfMonTargetsGetFirst(targets)) != NULL) {
        ebpfMonTargetsRemove(targets, t);
        free(t);
    }
    ebpfMonTargetsFree(targets);
    return testDone();
}
