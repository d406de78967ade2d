/* SPDX-License-Identifier: BSD-3-Clause */
/* publish/rootAudit.h: sums that agree, sums that differ because chains are still running, and sums that do not
 * agree. */
#include <stdio.h>
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "model/audits.h"
#include "publish/rootAudit.h"
#include "targetTest.h"

static const char *const names[] = { "A:ROOT", "A:OTHER", NULL };
static ebpfMonTargets *targets;
static ebpfMonAudits *audits;
static ebpfMonTarget *t;
static struct ebpfMonRootStat root[2];
static uint64_t snapshots, lostRoots;

static uint64_t countSnapshots(const ebpfMonTarget *of)
{
    (void)of;
    return snapshots;
}

/* This number of chains of root "i" ends. Each has "records" records. */
static void run(unsigned i, uint64_t chains, uint64_t records)
{
    root[i].chains += chains;
    root[i].count += chains;
    root[i].processed += chains * records;
    root[i].hist[7] += (uint32_t)chains;
}

/* Looks this number of times. Returns the number of disagreements until now. */
static uint64_t look(unsigned times, ebpfMonAudit kind)
{
    ebpfMonAuditResults results;

    while (times--) {
        ebpfMonRootAuditBegin(targets);
        for (unsigned i = 0; i < 2; i++)
            ebpfMonRootAuditAddRoot(audits, t, i, &root[i]);
        ebpfMonRootAuditEnd(audits, targets, countSnapshots, lostRoots);
    }
    ebpfMonAuditsGet(audits, &results);
    return results.count[kind];
}

static void testSums(void)
{
    ebpfMonAuditResults results;
    uint64_t more = 0;

    testDiag("chains by root, and their records");
    run(0, 100, 5);
    run(1, 7, 1);
    snapshots = 507;
    testOk1(look(20, ebpfMonAuditRootSum) == 0);
    for (int i = 0; i < 20; i++) { /* busy: records are counted, and their roots not yet read */
        snapshots += 1000;
        more += look(1, ebpfMonAuditRootSum);
        run(0, 200, 5);
    }
    testOk(!more, "the sums of a busy IOC agree");
    testOk(look(20, ebpfMonAuditRootSum) == 0, "the sums of an IOC that stands still agree");
    snapshots++;
    testOk(look(4, ebpfMonAuditRootSum) == 0, "one processing too many is not believed at once");
    testOk(look(30, ebpfMonAuditRootSum) == 1, "a lasting difference is reported once");
    ebpfMonAuditsGet(audits, &results);
    testOk(results.lastKind == ebpfMonAuditRootSum && strcmp(results.last, "a") == 0, "the report names the IOC: %s",
           results.last);
    run(1, 3, 1);
    testOk(look(10, ebpfMonAuditRootSum) == 4, "three processings that no record has are three more reports");
    lostRoots = 1;
    snapshots += 100;
    testOk(look(10, ebpfMonAuditRootSum) == 4, "with too many roots nothing is reported");
    lostRoots = 0;
    snapshots -= 100;
}

static void testHistogram(void)
{
    testDiag("the numbers of one root");
    root[0].hist[8] += 10;
    testOk(look(10, ebpfMonAuditHistogram) == 0, "chains that end while they are copied are no difference");
    root[0].hist[8] += 10;
    testOk(look(10, ebpfMonAuditHistogram) == 1, "a histogram with more chains than there were is reported once");
    t->publisher.sums.isReported = 0;
    root[0].hist[8] -= 20;
    testOk1(look(10, ebpfMonAuditHistogram) == 1);
    root[1].count += 100;
    root[1].hist[3] += 100;
    testOk(look(10, ebpfMonAuditHistogram) == 2, "more timed chains than chains are reported");
    t->publisher.sums.isReported = 0;
    root[1].count -= 100;
    root[1].hist[3] -= 100;
    root[1].chains += 100; /* quick ones: another root has what they processed */
    root[1].quick += 100;
    testOk(look(10, ebpfMonAuditHistogram) == 2, "quick chains need no records of their own");
    root[1].chains += 100;
    testOk(look(10, ebpfMonAuditHistogram) == 3, "... but others do");
}

MAIN(testRootAudit)
{
    testPlan(14);
    targets = ebpfMonTargetsNew();
    audits = ebpfMonAuditsNew();
    t = targetTestNew(targets, "a", 1, 0, names);
    testSums();
    testHistogram();
    ebpfMonAuditsFree(audits);
    return testDone();
}
