/* SPDX-License-Identifier: BSD-3-Clause */
/* watch/packetReader.h: what IOCs pay for the packets that their servers send. */
#include <math.h>
#include <stdlib.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "probe/calibrate.h"
#include "watch/packetReader.h"

#define MS 1000000ull

static ebpfMonTargets *targets;

static ebpfMonTarget *addIoc(void)
{
    ebpfMonTarget *t = calloc(1, sizeof(*t));

    ebpfMonTargetsAdd(targets, t);
    return t;
}

/* So long the IOC pays so much each second. */
static void pay(const ebpfMonTarget *t, uint64_t ns, int seconds)
{
    for (int i = 0; i < seconds; i++) {
        ebpfMonPacketCostAdd(targets, t->iocId, ns / 2);
        ebpfMonPacketCostAdd(targets, t->iocId, ns - ns / 2);
        ebpfMonPacketCostTick(targets, 1);
    }
}

MAIN(testPacketCost)
{
    double percent = ebpfMonCostOfPrograms(10 * MS) / 1e7;
    ebpfMonTarget *a, *b;

    testPlan(8);
    targets = ebpfMonTargetsNew();
    a = addIoc();
    b = addIoc();
    a->cost.now = 0.5;
    ebpfMonPacketCostTick(targets, 1);
    testOk(a->packets.cost == 0, "an IOC whose server sends nothing pays nothing");
    pay(a, 10 * MS, 60);
    testOk(fabs(a->packets.cost / percent - 1) < 0.01, "10 ms a second cost %.3f %%", a->packets.cost);
    testOk(percent > 1 && percent < 2, "… which has what it loses because of the caches");
    testOk(b->packets.cost == 0, "another IOC pays nothing");
    testOk(fabs(ebpfMonTargetGetWholeCost(a) - 0.5 - a->packets.cost) < 1e-9 && ebpfMonTargetGetCost(a) == 0.5,
           "the budget does not count packets");
    ebpfMonPacketCostTick(targets, 10); /* in a silence */
    testOk(fabs(a->packets.cost / percent - exp(-1)) < 0.01, "10 s later it pays a third: %.3f %%", a->packets.cost);
    pay(a, 0, 200);
    testOk(a->packets.cost == 0, "… and nothing in the end");
    ebpfMonPacketCostAdd(targets, b->iocId + 1, 10 * MS);
    ebpfMonPacketCostTick(targets, 0);
    ebpfMonPacketCostTick(targets, 1);
    testOk(a->packets.cost == 0 && b->packets.cost == 0, "an IOC that is forgotten pays nothing");
    return testDone();
}
