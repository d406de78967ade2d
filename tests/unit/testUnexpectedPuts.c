/* SPDX-License-Identifier: BSD-3-Clause */
/* Unexpected puts stay open until they are acknowledged. An acknowledgement covers the puts that were shown. */
#include "model/published.h"
#include "rulesTest.h"

static void bad(unsigned n)
{
    begin("A", "1")->unexpected = 1;
    put.number = n;
    sprintf(put.val, "%u", n);
    ebpfMonPublishedAddUnexpected(&put);
}

/* The number of open puts, and the newest and the oldest of the puts that are kept. */
static void stillOpen(int number, const char *newest, const char *oldest)
{
    const ebpfMonPublished *published = ebpfMonPublishedLock();
    unsigned kept = 0;

    while (ebpfMonPublishedGetUnexpected(published, kept))
        kept++;
    testOk(published->unexpected.open == number &&
               (!kept || (strcmp(ebpfMonPublishedGetUnexpected(published, 0)->val, newest) == 0 &&
                          strcmp(ebpfMonPublishedGetUnexpected(published, kept - 1)->val, oldest) == 0)),
           "after %d open puts so many are kept: %u, %s to %s", published->unexpected.open, kept,
           kept ? ebpfMonPublishedGetUnexpected(published, 0)->val : "",
           kept ? ebpfMonPublishedGetUnexpected(published, kept - 1)->val : "");
    ebpfMonPublishedUnlock();
}

static void testAck(void)
{
    uint64_t shown;
    unsigned i;

    testDiag("acknowledgement covers what was shown");
    memset(&put, 0, sizeof(put));
    ebpfMonPublishedAddUnexpected(&put); /* an expected one */
    stillOpen(0, "", "");
    bad(1);
    bad(2);
    bad(3);
    stillOpen(3, "3", "1");
    testOk1(ebpfMonPublishedAcknowledge(ebpfMonShownByPvs) == 3); /* these were not shown */
    shown = ebpfMonPublishedCountUnexpected();
    bad(4);
    ebpfMonPublishedSetUnexpectedShown(ebpfMonShownByPvs, shown);
    bad(5); /* between publication and acknowledgement */
    testOk1(ebpfMonPublishedAcknowledge(ebpfMonShownByPvs) == 2);
    stillOpen(2, "5", "4");
    testOk1(ebpfMonPublishedAcknowledge(ebpfMonShownByPvs) == 2); /* once more: no new put was shown */
    ebpfMonPublishedSetUnexpectedShown(ebpfMonShownByShell, 4);
    testOk1(ebpfMonPublishedAcknowledge(ebpfMonShownByPvs) == 2 &&
            ebpfMonPublishedAcknowledge(ebpfMonShownByCode) == 2);
    testOk1(ebpfMonPublishedAcknowledge(ebpfMonShownByShell) == 1);
    ebpfMonPublishedSetUnexpectedShown(ebpfMonShownByPvs, 5);
    ebpfMonPublishedSetUnexpectedShown(ebpfMonShownByPvs, 3); /* the time does not go back */
    testOk1(ebpfMonPublishedAcknowledge(ebpfMonShownByPvs) == 0);
    stillOpen(0, "", "");
    for (i = 6; i <= 105; i++)
        bad(i);
    stillOpen(100, "105", "42");
    ebpfMonPublishedSetUnexpectedShown(ebpfMonShownByPvs, 100);
    testOk1(ebpfMonPublishedAcknowledge(ebpfMonShownByPvs) == 5);
    stillOpen(5, "105", "101");
    testOk1(ebpfMonPublishedLock()->unexpected.count == 105);
    ebpfMonPublishedUnlock();
}

MAIN(testUnexpectedPuts)
{
    testPlan(0);
    testAck();
    return testDone();
}
