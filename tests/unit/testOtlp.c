/* SPDX-License-Identifier: BSD-3-Clause */
#include <epicsUnitTest.h>
#include <testMain.h>
MAIN(testOtlp)
{
    testPlan(0);
    return testDone();
}
