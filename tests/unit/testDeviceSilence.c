/* SPDX-License-Identifier: BSD-3-Clause */
/* device/deviceRows.h: how often a device did not answer. */
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "device/deviceRows.h"

static ebpfMonDeviceSilence *silence;

static uint64_t count(uint64_t user, uint64_t ended, uint64_t left)
{
    struct ebpfMonDeviceKey key;

    memset(&key, 0, sizeof(key));
    key.pvt = user;
    key.tgid = 1 + user % 2;
    return ebpfMonDeviceSilenceCount(silence, &key, ended, left);
}

MAIN(testDeviceSilence)
{
    testPlan(15);
    silence = ebpfMonDeviceSilenceNew();
    testOk(count(1, 50, 7) == 0, "what was before the first look does not count");
    testOk(count(1, 53, 7) == 0, "a record that ended since the last look is judged at the next one …");
    testOk(count(1, 53, 7) == 3, "… when a request that left the queue would be counted, too");
    testOk(count(1, 55, 9) == 3 && count(1, 55, 9) == 3, "two more ended because their requests left the queue");
    testOk(count(1, 56, 9) == 3 && count(1, 56, 9) == 4, "one more did not");
    testOk(count(2, 10, 0) == 0 && count(2, 11, 0) == 0 && count(2, 11, 0) == 1,
           "each user of a port has its own count");
    testOk(count(1, 56, 12) == 4, "requests that left are counted before their records: the number does not go back");
    testOk(count(1, 60, 12) == 4 && count(1, 60, 12) == 5, "… and goes on from where it was");
    testOk(count(1, 2, 12) == 5, "the IOC is looked at anew, and its records begin at 0: nothing is lost");
    testOk(count(1, 9, 12) == 5 && count(1, 9, 12) == 7, "what is counted from then on can make it more");
    ebpfMonDeviceSilenceFree(silence);

    silence = ebpfMonDeviceSilenceNew();
    for (uint64_t user = 1; user <= 4097; user++)
        count(user, 0, 0);
    for (int i = 0; i < 2; i++)
        count(4096, 5, 0), count(4097, 5, 0);
    testOk(count(4096, 5, 0) == 5, "4096 users are known");
    testOk(count(4097, 5, 0) == UINT64_MAX, "there is no room for more: their count is not known");
    ebpfMonDeviceSilenceForget(silence, 2); /* users with odd numbers */
    testOk(count(4097, 5, 0) == 0 && count(4097, 7, 0) == 0 && count(4097, 7, 0) == 2,
           "when a process has ended there is room again");
    testOk(count(4096, 5, 0) == 5 && count(1, 5, 0) == 0 && count(1, 5, 0) == 0,
           "its users are forgotten, those of others are not");
    ebpfMonDeviceSilenceFree(silence);
    ebpfMonDeviceSilenceFree(NULL);
    testPass("freeing NULL does nothing");
    return testDone();
}
