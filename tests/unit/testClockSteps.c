/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the clock of the host was set back. The test does not set it: other programs need it. tests/kernels does so
 * in an emulated machine. */
#include <epicsUnitTest.h>
#include <testMain.h>

#include "common/clock.h"

#define MS 1000000ull

MAIN(testClockSteps)
{
    ebpfMonClockSteps steps;

    testPlan(9);
    ebpfMonClockStepsBegin(&steps);
    testOk(steps.file >= 0, "the kernel tells if the clock was set");
    testOk(!ebpfMonClockStepsLook(&steps) && !ebpfMonClockStepsLook(&steps), "nobody set it");
    ebpfMonClockStepsEnd(&steps);
    testOk(steps.file == -1, "its file is closed");
    testOk(!ebpfMonClockStepsLook(&steps), "it works without the file, too");

    steps.offset = 5000 * MS;
    testOk(!ebpfMonClockStepsJudge(&steps, 1, 5100 * MS), "set to a later time: no stamp is repeated");
    testOk(ebpfMonClockStepsJudge(&steps, 1, 5099 * MS), "set back by a millisecond");
    testOk(ebpfMonClockStepsJudge(&steps, 1, 5099 * MS), "set, and as before: perhaps it went forward and back");
    testOk(!ebpfMonClockStepsJudge(&steps, 0, 5099 * MS - MS / 2), "readings of two clocks differ a little");
    testOk(ebpfMonClockStepsJudge(&steps, 0, 5000 * MS), "set back, without a word from the kernel");
    return testDone();
}
