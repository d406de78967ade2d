/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "model/put.h"
#include "publish/rootAudit.h"

#define CHECKS 5  /* so many times in a row the sums must disagree */
#define TORN  16 /* so many chains may end while we copy the numbers of one root */

void ebpfMonRootAuditBegin(ebpfMonTargets *targets)
{
    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(targets); t; t = t->next)
        t->publisher.sums.byRoots = 0;
}

/* Nonzero: the numbers differ by more than the chains that ended meanwhile. */
static int isDifferent(uint64_t a, uint64_t b)
{
    return (a > b ? a - b : b - a) > TORN;
}

void ebpfMonRootAuditAddRoot(ebpfMonAudits *audits, ebpfMonTarget *t, uint32_t index, const struct ebpfMonRootStat *s)
{
    const char *record = ebpfMonCatalogueName(t->cat, index);
    char about[EBPFMON_IOCNAME_SIZE + EBPFMON_NAME_SIZE + 4];
    uint32_t sum = 0; /* a bucket has 32 bits, so the sum is modulo 2^32 */

    t->publisher.sums.byRoots += s->processed;
    for (unsigned b = 0; b < EBPFMON_BUCKETS; b++)
        sum += s->hist[b];
    if (t->publisher.sums.isReported || !(isDifferent(sum, (uint32_t)s->count) || s->count > s->chains + TORN ||
                                          s->chains > s->quick + s->processed + TORN))
        return;
    t->publisher.sums.isReported = 1;
    snprintf(about, sizeof(about), "%s, %s", t->name, record);
    ebpfMonAuditsAdd(audits, ebpfMonAuditHistogram, 1, about);
}

/* The kernel part counts the records of a chain before its root, and we read the records after the roots. So the sum by
 * records cannot be smaller than the sum by roots. What the sum by records had a second ago, the sum by roots has now;
 * so the difference cannot be greater than what came in this second. */
static int doSumsAgree(const ebpfMonTarget *t)
{
    int64_t difference = (int64_t)(t->publisher.sums.bySnapshots - t->publisher.sums.byRoots) - t->publisher.sums.known;
    int64_t more = (int64_t)(t->publisher.sums.bySnapshots - t->publisher.sums.bySnapshotsBefore);

    return difference >= 0 && difference <= more;
}

static void compareSums(ebpfMonAudits *audits, ebpfMonTarget *t)
{
    int64_t now = (int64_t)(t->publisher.sums.bySnapshots - t->publisher.sums.byRoots);
    int64_t more = now - t->publisher.sums.known;

    if (doSumsAgree(t)) {
        t->publisher.sums.wrong = 0;
        return;
    }
    if (++t->publisher.sums.wrong < CHECKS)
        return;
    t->publisher.sums.wrong = 0;
    t->publisher.sums.known = now;
    ebpfMonAuditsAdd(audits, ebpfMonAuditRootSum, (uint64_t)(more < 0 ? -more : more), t->name);
}

void ebpfMonRootAuditEnd(ebpfMonAudits *audits, ebpfMonTargets *targets,
                         uint64_t (*countSnapshots)(const ebpfMonTarget *t), uint64_t lostRoots)
{
    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(targets); t; t = t->next) {
        if (t->slot == UINT32_MAX || !t->cat)
            continue;
        t->publisher.sums.bySnapshotsBefore = t->publisher.sums.bySnapshots;
        t->publisher.sums.bySnapshots = countSnapshots(t);
        if (!lostRoots)
            compareSums(audits, t);
    }
}
