/* SPDX-License-Identifier: BSD-3-Clause */
/* The common parts of files, log servers and collectors: trouble, back-off, losses. */
#include <stdlib.h>
#include <string.h>

#include <epicsUnitTest.h>
#include <errlog.h>
#include <testMain.h>

#include "export/shared/destination.h"

static unsigned messages;
static char newest[512];

static void onMessage(void *arg, const char *message)
{
    messages++;
    strncpy(newest, message, sizeof(newest) - 1);
}

static void testTrouble(void)
{
    ebpfMonDestination d = {.name = "place"};

    testDiag("trouble");
    ebpfMonDestinationSetTrouble(&d, 100, 5, "%s is off", "it");
    errlogFlush();
    testOk(d.trouble && strcmp(d.why, "it is off") == 0 && messages == 1 && strstr(newest, "log place: it is off"),
           "a message: %s", newest);
    testOk1(d.retryAt == 101);
    ebpfMonDestinationSetTrouble(&d, 101, 5, "it is off");
    errlogFlush();
    testOk(messages == 1 && d.retryAt == 103, "the same reason: no message, and the next try comes later");
    ebpfMonDestinationSetTrouble(&d, 103, 5, "it is off");
    ebpfMonDestinationSetTrouble(&d, 107, 5, "it burns");
    errlogFlush();
    testOk(messages == 2 && d.retryAt == 112, "another reason: a message; the next try comes after 5 s at most: %g",
           d.retryAt - 107);
    ebpfMonDestinationAddLost(&d, 3);
    ebpfMonDestinationAddLost(&d, 4);
    ebpfMonDestinationSetWorking(&d);
    errlogFlush();
    testOk(!d.trouble && messages == 3 && strstr(newest, "works again, 7 lines were lost"), "%s", newest);
    testOk1(d.lost == 7 && d.lostNow == 7 && strcmp(d.why, "it burns") == 0);
    ebpfMonDestinationSetWorking(&d);
    errlogFlush();
    testOk1(messages == 3);
    d.lostNow = 0;
    ebpfMonDestinationSetTrouble(&d, 200, 5, "it is off");
    ebpfMonDestinationSetWorking(&d);
    errlogFlush();
    testOk(d.retryAt == 201 && strstr(newest, "nothing was lost"), "after a success the waits begin anew: %s", newest);
}

static void testLines(void)
{
    testDiag("lines");
    testOk1(ebpfMonDestinationCountLines("", 0) == 0 && ebpfMonDestinationCountLines("a\nb\n", 4) == 2);
    testOk1(ebpfMonDestinationCountLines("a\nb\n", 3) == 1 && ebpfMonDestinationCountLines("\n\n\n", 3) == 3);
}

MAIN(testDestination)
{
    testPlan(0);
    eltc(0);
    errlogAddListener(onMessage, NULL);
    testTrouble();
    testLines();
    errlogRemoveListeners(onMessage, NULL);
    return testDone();
}
