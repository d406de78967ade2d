/* SPDX-License-Identifier: BSD-3-Clause */
/* watch/followedIocs.h: how often a query, or the watching of devices, enters and leaves which IOCs. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "common/clock.h"
#include "watch/followedIocs.h"

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

    (void)arg;
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
    (void)arg;
    (void)ioc;
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
    testOk(seen.entered == 2 && count(iocs) == 2, "those that match are entered, but for one at level off");
    testOk(seen.left == 0 && seen.oddPayload == 0, "its user's part begins with 0");
    follow(iocs, "ioc*");
    testOk(seen.entered == 0 && seen.left == 0 && count(iocs) == 2, "… once");
    off->level = ebpfMonLevelChains;
    follow(iocs, "ioc*");
    testOk(seen.entered == 1 && count(iocs) == 3, "one that is watched later is entered then");
    b->level = ebpfMonLevelOff;
    follow(iocs, "ioc*");
    testOk(seen.left == 1 && seen.ended == 0 && count(iocs) == 2, "one that goes to level off is left while it lives");
    a->gone = 1;
    follow(iocs, "ioc*");
    testOk(seen.left == 1 && seen.ended == 1 && count(iocs) == 1, "one that is gone is left as one that has ended");
    ebpfMonTargetsRemove(targets, off);
    free(off);
    follow(iocs, "ioc*");
    testOk(seen.left == 1 && seen.ended == 1 && count(iocs) == 0, "… and one that is not in the list any more");
    testOk1(seen.entered == 0);

    seen.refuse = 1;
    follow(iocs, "vac*");
    testOk(seen.entered == 1 && count(iocs) == 1, "one in which probes cannot be set");
    follow(iocs, "vac*");
    testOk(seen.entered == 0, "… is not asked again before its time");
    ((Known *)ebpfMonFollowedIocsGetFirst(iocs))->ioc.retryAt = 0;
    seen.refuse = 0;
    follow(iocs, "vac*");
    testOk(seen.entered == 1 && ebpfMonFollowedIocsGetFirst(iocs)->isOn, "… but then");
    follow(iocs, "ioc*");
    testOk(seen.left == 1 && seen.ended == 0 && count(iocs) == 0, "another pattern leaves it while it lives");
    follow(iocs, "*");
    testOk(seen.entered == 1 && ebpfMonFollowedIocsGetFirst(iocs)->iocId == other->iocId, "and this one enters it again");
    memset(&seen, 0, sizeof(seen));
    ebpfMonFollowedIocsFree(iocs);
    testOk(seen.left == 1 && seen.ended == 0, "freed, it leaves all");
    ebpfMonFollowedIocsFree(NULL);
    testPass("NULL does no harm");

    while ((t = ebpfMonTargetsGetFirst(targets)) != NULL) {
        ebpfMonTargetsRemove(targets, t);
        free(t);
    }
    ebpfMonTargetsFree(targets);
    return testDone();
}
