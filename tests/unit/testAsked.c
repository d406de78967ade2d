/* SPDX-License-Identifier: BSD-3-Clause */
/* What commands ask for single IOCs: which rule counts, which place is freed; waiting until it is applied. */
#include <stdio.h>
#include <string.h>

#include <epicsThread.h>
#include <epicsUnitTest.h>
#include <testMain.h>

#include "watch/requests.h"

static int woken;

static void wake(void)
{
    woken++;
}

static int reference;

static ebpfMonLevel levelOf(const char *ioc)
{
    ebpfMonFilter f;

    ebpfMonRequestsGetFilter(&f);
    return ebpfMonRequestsFindLevel(ioc, &f, &reference);
}

static unsigned rules(void)
{
    ebpfMonLevelRule copy[EBPFMON_LEVEL_RULES_MAX];

    return ebpfMonRequestsGetLevelRules(copy);
}

static void testLevels(void)
{
    testDiag("levels");
    testOk1(levelOf("vac1") == ebpfMonLevelChains && levelOf("other") == ebpfMonLevelOff);
    testOk1(ebpfMonRequestsSetLevel("vac*", ebpfMonLevelTrace) == 0 && levelOf("vac1") == ebpfMonLevelTrace);
    testOk1(ebpfMonRequestsSetLevel("*", ebpfMonLevelPuts) == 0);
    testOk1(levelOf("vac1") == ebpfMonLevelPuts && levelOf("other") == ebpfMonLevelPuts);
    testOk1(ebpfMonRequestsSetLevel("vac*", ebpfMonLevelCounts) == 0 && rules() == 2);
    testOk(levelOf("vac1") == ebpfMonLevelCounts, "the newest counts, one that was asked again too");
    testOk1(ebpfMonRequestsSetReference("vac*", 1) == 0 && rules() == 3);
    testOk1(levelOf("vac1") == ebpfMonLevelCounts && reference == 1);
    testOk1(ebpfMonRequestsSetLevel("vac*", -1) == 0);
    testOk(rules() == 1 && levelOf("vac1") == ebpfMonLevelPuts && !reference,
           "all of the pattern is cancelled");
    testOk1(ebpfMonRequestsSetLevel("*", -1) == 0 && rules() == 0 && levelOf("vac1") == ebpfMonLevelChains);
}

static void testReference(void)
{
    testDiag("reference");
    testOk1(ebpfMonRequestsSetReference("vac1", 0) == 0 && rules() == 0);
    testOk1(ebpfMonRequestsSetReference("*", 1) == 0 && ebpfMonRequestsSetReference("vac1", 0) == 0 && rules() == 2);
    testOk1((levelOf("vac1"), reference == 0) && (levelOf("vac2"), reference == 1));
    testOk(ebpfMonRequestsSetReference("*", 0) == 0 && rules() == 0, "what says nothing any more goes, too");
}

static void testFull(void)
{
    char pattern[16];
    int i, failed = 0;

    testDiag("as many as there may be");
    for (i = 0; i < EBPFMON_LEVEL_RULES_MAX; i++) {
        sprintf(pattern, "ioc%d", i);
        failed += ebpfMonRequestsSetLevel(pattern, ebpfMonLevelPuts) != 0;
    }
    testOk1(!failed && rules() == EBPFMON_LEVEL_RULES_MAX);
    testOk1(ebpfMonRequestsSetLevel("more", ebpfMonLevelPuts) == -1 && ebpfMonRequestsSetReference("more", 1) == -1);
    testOk1(ebpfMonRequestsSetLevel("ioc7", ebpfMonLevelTrace) == 0 && levelOf("ioc7") == ebpfMonLevelTrace);
    testOk1(ebpfMonRequestsSetLevel("ioc8", -1) == 0 && ebpfMonRequestsSetLevel("more", ebpfMonLevelPuts) == 0);
    testOk1(rules() == EBPFMON_LEVEL_RULES_MAX);
}

static void apply(void *unused)
{
    ebpfMonFilter f;

    (void)unused;
    epicsThreadSleep(0.05);
    ebpfMonRequestsTakeFilter(&f);
    ebpfMonRequestsSetApplied();
}

static void testWait(void)
{
    ebpfMonFilter f = ebpfMonFilterDefault;
    unsigned number;

    testDiag("until it is applied");
    ebpfMonRequestsTakeFilter(&f);
    testOk1(ebpfMonRequestsTakeFilter(&f) == 0);
    number = ebpfMonRequestsSetFilter(&f);
    testOk1(ebpfMonRequestsWait(number, 0.01) == -1);
    testOk1(ebpfMonRequestsTakeFilter(&f) == 1 && ebpfMonRequestsWait(number, 0) == -1);
    ebpfMonRequestsSetApplied();
    testOk1(ebpfMonRequestsWait(number, 0) == 0);
    number = ebpfMonRequestsSetFilter(&f);
    epicsThreadMustCreate("apply", epicsThreadPriorityLow, epicsThreadGetStackSize(epicsThreadStackSmall),
                          apply, NULL);
    testOk1(ebpfMonRequestsWait(number, 5) == 0);
    testOk1(ebpfMonRequestsWait(number, 5) == 0 && woken > 0);
}

MAIN(testAsked)
{
    ebpfMonFilter first = ebpfMonFilterDefault;

    testPlan(26);
    strcpy(first.ioc, "vac*");
    ebpfMonRequestsInit(&first, wake);
    testLevels();
    testReference();
    testFull();
    testWait();
    return testDone();
}
