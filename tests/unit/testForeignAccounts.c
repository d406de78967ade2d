/* SPDX-License-Identifier: BSD-3-Clause */
/* host/foreign.h: what processes and users that do not answer may cost, by a clock of its own. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "host/foreign.h"
#include "host/procRead.h"

#define MS     1000000ull
#define SECOND (1000 * MS)
#define WANTED (250 * MS)

static ebpfMonForeignAccounts *accounts;
static uint64_t now = 1000 * SECOND;
static pid_t mine, child, stranger; /* the last one belongs to another user */

static pid_t startChild(uid_t uid)
{
    pid_t pid = fork();

    if (pid == 0) {
        if (uid && setuid(uid))
            _exit(1);
        for (;;)
            pause();
    }
    return pid;
}

static uint64_t findLimit(pid_t pid)
{
    return ebpfMonForeignAccountsFindLimit(accounts, pid, WANTED, now);
}

static void testSetAside(void)
{
    uid_t uid;

    testDiag("a process that does not answer");
    testOk(findLimit(mine) == WANTED && !ebpfMonForeignAccountsIsCharged(accounts, mine, now),
           "at first all have all the time");
    uid = ebpfMonForeignAccountsAbandon(accounts, child, now);
    testOk(uid == geteuid() && ebpfMonForeignAccountsCountStuck(accounts) == 1, "its reader is abandoned");
    testOk(findLimit(child) == 0 && ebpfMonForeignAccountsIsAside(accounts, child, now), "it is set aside");
    now += 5 * SECOND;
    testOk(findLimit(child) == 0, "as long as its reader does not come back");
    testOk(findLimit(mine) == WANTED && !ebpfMonForeignAccountsIsAside(accounts, mine, now),
           "another process of its user is not");
    ebpfMonForeignAccountsReturn(accounts, child, uid, now);
    testOk(findLimit(child) == WANTED && ebpfMonForeignAccountsCountStuck(accounts) == 0, "then it is read again");

    ebpfMonForeignAccountsReturn(accounts, child, ebpfMonForeignAccountsAbandon(accounts, child, now), now);
    now += 2 * SECOND - 1;
    testOk(findLimit(child) == 0, "the second time it is set aside for 2 s, also if its reader comes back at once");
    now += 1;
    testOk(findLimit(child) == WANTED, "… and not longer");
    for (int i = 0; i < 20; i++)
        ebpfMonForeignAccountsReturn(accounts, child, ebpfMonForeignAccountsAbandon(accounts, child, now), now);
    now += 256 * SECOND - 1;
    testOk(findLimit(child) == 0, "for 256 s at most");
    now += 1;
    testOk1(findLimit(child) == WANTED);
    now += 601 * SECOND;
    ebpfMonForeignAccountsReturn(accounts, child, ebpfMonForeignAccountsAbandon(accounts, child, now), now);
    now += SECOND;
    testOk(findLimit(child) == WANTED, "after ten minutes without trouble it begins with 1 s again");
}

static void testUser(void)
{
    testDiag("what the processes of a user cost together");
    now += 3600 * SECOND;
    ebpfMonForeignAccountsCharge(accounts, child, 900 * MS, now);
    testOk(findLimit(mine) == 100 * MS, "a user has 1 s: the rest of it is left");
    ebpfMonForeignAccountsCharge(accounts, mine, 200 * MS, now);
    testOk(ebpfMonForeignAccountsIsCharged(accounts, child, now) && findLimit(child) == WANTED / 8,
           "when it is used up, each job has an eighth of its time");
    testOk(findLimit(stranger) == WANTED && !ebpfMonForeignAccountsIsCharged(accounts, stranger, now),
           "another user has its own second");
    now += 4 * SECOND;
    testOk(!ebpfMonForeignAccountsIsCharged(accounts, mine, now),
           "a twentieth of the time comes back: 0.2 s after 4 s");
    now += 20 * SECOND;
    testOk(findLimit(mine) == WANTED, "and all of it after 24 s");
}

static void testCrowd(void)
{
    const unsigned most = geteuid() >= 1000 ? 8 : 32;
    pid_t gone = startChild(0);
    uid_t uid[80];
    unsigned n;

    testDiag("many readers that do not come back");
    now += 3600 * SECOND;
    for (n = 0; n < most; n++)
        uid[n] = ebpfMonForeignAccountsAbandon(accounts, child, now);
    testOk(findLimit(mine) == 0, "a user has 8 at most, a system user 32: no process of this user is read");
    testOk(findLimit(stranger) == WANTED, "others are");
    ebpfMonForeignAccountsTrust(accounts, mine);
    testOk(findLimit(mine) > 0, "so is an IOC that was read before");
    for (; n < 64; n++)
        uid[n] = ebpfMonForeignAccountsAbandon(accounts, 0, now);
    testOk(findLimit(stranger) == 0, "all users together have 64");
    testOk(findLimit(mine) > 0, "then IOCs that were read before are still read");
    ebpfMonForeignAccountsTrust(accounts, gone);
    testOk1(findLimit(gone) > 0);
    kill(gone, SIGKILL);
    waitpid(gone, NULL, 0);
    testOk(findLimit(gone) == 0, "the trust ends with the process: another one may get its pid");
    for (; n < 79; n++)
        uid[n] = ebpfMonForeignAccountsAbandon(accounts, 0, now);
    testOk1(findLimit(mine) > 0);
    uid[n++] = ebpfMonForeignAccountsAbandon(accounts, 0, now);
    testOk(findLimit(mine) == 0, "until 80 are abandoned");
    while (n-- > most)
        ebpfMonForeignAccountsReturn(accounts, 0, uid[n], now);
    testOk(findLimit(stranger) == WANTED, "readers that nobody is to blame for charge no user");
    for (n = 0; n < most; n++)
        ebpfMonForeignAccountsReturn(accounts, child, uid[n], now);
    testOk1(ebpfMonForeignAccountsCountStuck(accounts) == 0);
}

static void testCpu(void)
{
    const uid_t someone = 2000;

    testDiag("CPU time");
    ebpfMonForeignAccountsChargeCpu(accounts, 0, 100 * SECOND, now);
    testOk1(!ebpfMonForeignAccountsIsUserCharged(accounts, 0, now));
    ebpfMonForeignAccountsChargeCpu(accounts, someone, 3999 * MS, now);
    testOk1(!ebpfMonForeignAccountsIsUserCharged(accounts, someone, now));
    ebpfMonForeignAccountsChargeCpu(accounts, someone, 21 * MS, now);
    testOk1(ebpfMonForeignAccountsIsUserCharged(accounts, someone, now) &&
            !ebpfMonForeignAccountsIsUserCharged(accounts, someone + 1, now));
    now += 999 * MS;
    testOk1(ebpfMonForeignAccountsIsUserCharged(accounts, someone, now));
    now += 100 * MS;
    testOk(!ebpfMonForeignAccountsIsUserCharged(accounts, someone, now), "it may take 2 %% of the time");
    ebpfMonForeignAccountsChargeCpu(accounts, ebpfMonProcPayer(stranger), 4500 * MS, now);
    testOk(geteuid() || !ebpfMonForeignAccountsTakeLook(accounts, stranger, now), "who owes too much has no look");
    now += 6 * SECOND;
    testOk1(ebpfMonForeignAccountsTakeLook(accounts, stranger, now));
    testOk(geteuid() || !ebpfMonForeignAccountsTakeLook(accounts, stranger, now), "one look a second");
    testOk(ebpfMonForeignAccountsTakeLook(accounts, mine, now) && ebpfMonForeignAccountsTakeLook(accounts, mine, now),
           "others do not wait for it");
}

/* Most processes of a host are root's: its IOCs must not wait for those that do not answer. */
static void testSystemLooks(void)
{
    unsigned looks = 0;

    if (geteuid()) {
        testSkip(2, "not root");
        return;
    }
    now += 100 * SECOND;
    ebpfMonForeignAccountsCharge(accounts, mine, 20 * SECOND, now);
    while (looks < 100 && ebpfMonForeignAccountsTakeLook(accounts, mine, now))
        looks++;
    testOk(looks == 16, "a system user has 16 looks: %u", looks);
    now += SECOND;
    testOk(ebpfMonForeignAccountsTakeLook(accounts, mine, now), "… and again after a second");
}

MAIN(testForeignAccounts)
{
    testPlan(38);
    accounts = ebpfMonForeignAccountsNew();
    mine = getpid();
    child = startChild(0);
    stranger = geteuid() ? 1 : startChild(65534); /* process 1 is root's */
    while (geteuid() == 0 && ebpfMonForeignAccountsAbandon(accounts, stranger, now) == 0)
        ebpfMonForeignAccountsReturn(accounts, stranger, 0, now); /* until it has its user */
    free(accounts);
    accounts = ebpfMonForeignAccountsNew();
    testSetAside();
    testUser();
    testCrowd();
    testCpu();
    testSystemLooks();
    kill(child, SIGKILL);
    if (stranger != 1)
        kill(stranger, SIGKILL);
    while (wait(NULL) > 0)
        ;
    free(accounts);
    return testDone();
}
