/* SPDX-License-Identifier: BSD-3-Clause */
/* What commands ask for single IOCs: which rule counts, which place is freed; waiting until it is applied. */
#include <stdio.h>
#include <string.h>

#include <epicsThread.h>
#include <epicsUnitTest.h>
#include <testMain.h>

#include "monitor/asked.h"

static int woken;

static void wake(void)
{
    woken++;
}

static int reference;

static ebpfMonLevel levelOf(const char *ioc)
{
    ebpfMonFilter f;

    ebpfMonAskedFilterGet(&f);
    return ebpfMonAskedLevelOf(ioc, &f, &reference);
}

static unsigned rules(void)
{
    ebpfMonRule copy[EBPFMON_RULES_MAX];

    return ebpfMonAskedRules(copy);
}

static void testLevels(void)
{
    testDiag("levels");
    testOk1(levelOf("vac1") == ebpfMonLevelChains && levelOf("other") == ebpfMonLevelOff);
    testOk1(ebpfMonAskedLevel("vac*", ebpfMonLevelTrace) == 0 && levelOf("vac1") == ebpfMonLevelTrace);
    testOk1(ebpfMonAskedLevel("*", ebpfMonLevelPuts) == 0);
    testOk1(levelOf("vac1") == ebpfMonLevelPuts && levelOf("other") == ebpfMonLevelPuts);
    testOk1(ebpfMonAskedLevel("vac*", ebpfMonLevelCounts) == 0 && rules() == 2);
    testOk(levelOf("vac1") == ebpfMonLevelCounts, "the newest counts, one that was asked again too");
    testOk1(ebpfMonAskedReference("vac*", 1) == 0 && rules() == 3);
    testOk1(levelOf("vac1") == ebpfMonLevelCounts && reference == 1);
    testOk1(ebpfMonAskedLevel("vac*", -1) == 0);
    testOk(rules() == 1 && levelOf("vac1") == ebpfMonLevelPuts && !reference,
           "all of the pattern is cancelled");
    testOk1(ebpfMonAskedLevel("*", -1) == 0 && rules() == 0 && levelOf("vac1") == ebpfMonLevelChains);
}

static void testReference(void)
{
    testDiag("reference");
    testOk1(ebpfMonAskedReference("vac1", 0) == 0 && rules() == 0);
    testOk1(ebpfMonAskedReference("*", 1) == 0 && ebpfMonAskedReference("vac1", 0) == 0 && rules() == 2);
    testOk1((levelOf("vac1"), reference == 0) && (levelOf("vac2"), reference == 1));
    testOk(ebpfMonAskedReference("*", 0) == 0 && rules() == 0, "what says nothing any more goes, too");
}

static void testFull(void)
{
    char pattern[16];
    int i, failed = 0;

    testDiag("as many as there may be");
    for (i = 0; i < EBPFMON_RULES_MAX; i++) {
        sprintf(pattern, "ioc%d", i);
        failed += ebpfMonAskedLevel(pattern, ebpfMonLevelPuts) != 0;
    }
    testOk1(!failed && rules() == EBPFMON_RULES_MAX);
    testOk1(ebpfMonAskedLevel("more", ebpfMonLevelPuts) == -1 && ebpfMonAskedReference("more", 1) == -1);
    testOk1(ebpfMonAskedLevel("ioc7", ebpfMonLevelTrace) == 0 && levelOf("ioc7") == ebpfMonLevelTrace);
    testOk1(ebpfMonAskedLevel("ioc8", -1) == 0 && ebpfMonAskedLevel("more", ebpfMonLevelPuts) == 0);
    testOk1(rules() == EBPFMON_RULES_MAX);
}

static void apply(void *unused)
{
    ebpfMonFilter f;

    (void)unused;
    epicsThreadSleep(0.05);
    ebpfMonAskedTake(&f);
    ebpfMonAskedDone();
}

static void testWait(void)
{
    ebpfMonFilter f = ebpfMonFilterDefault;
    unsigned number;

    testDiag("until it is applied");
    ebpfMonAskedTake(&f);
    testOk1(ebpfMonAskedTake(&f) == 0);
    number = ebpfMonAskedFilter(&f);
    testOk1(ebpfMonAskedWait(number, 0.01) == -1);
    testOk1(ebpfMonAskedTake(&f) == 1 && ebpfMonAskedWait(number, 0) == -1);
    ebpfMonAskedDone();
    testOk1(ebpfMonAskedWait(number, 0) == 0);
    number = ebpfMonAskedFilter(&f);
    epicsThreadMustCreate("apply", epicsThreadPriorityLow, epicsThreadGetStackSize(epicsThreadStackSmall),
                          apply, NULL);
    testOk1(ebpfMonAskedWait(number, 5) == 0);
    testOk1(ebpfMonAskedWait(number, 5) == 0 && woken > 0);
}

MAIN(testAsked)
{
    ebpfMonFilter first = ebpfMonFilterDefault;

    testPlan(26);
    strcpy(first.ioc, "vac*");
    ebpfMonAskedInit(&first, wake);
    testLevels();
    testReference();
    testFull();
    testWait();
    return testDone();
}
