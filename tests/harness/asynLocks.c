/* SPDX-License-Identifier: BSD-3-Clause */
/* A routine of aSub records that waits for ports of asyn, as SyncIO does. Preloaded into an IOC with asyn. */
#include <aSubRecord.h>
#include <asynDriver.h>
#include <dbAccess.h>
#include <epicsThread.h>
#include <registryFunction.h>

static int writers;

/* In the thread of a port, as a driver does that writes to a record. */
static void lockRecord(asynUser *user)
{
    __atomic_add_fetch(&writers, 1, __ATOMIC_SEQ_CST);
    dbScanLock(user->userPvt);
    dbScanUnlock(user->userPvt);
}

static asynUser *useName(const char *port, userCallback process, void *pvt)
{
    asynUser *user = pasynManager->createAsynUser(process, NULL);

    user->userPvt = pvt;
    return pasynManager->connectDevice(user, port, 0) == asynSuccess ? user : NULL;
}

/* Waits for port A. Before: two records let the threads of their ports B wait for their lock sets. */
static long waitForPort(aSubRecord *prec)
{
    asynUser *user = *(char *)prec->b ? useName(prec->b, lockRecord, prec) : NULL;

    if (user && pasynManager->queueRequest(user, asynQueuePriorityMedium, 0) != asynSuccess)
        return -1;
    while (user && __atomic_load_n(&writers, __ATOMIC_SEQ_CST) < 2)
        epicsThreadSleep(0.01);
    user = useName(prec->a, NULL, NULL);
    return user && pasynManager->queueLockPort(user) == asynSuccess ? pasynManager->queueUnlockPort(user) : -1;
}

__attribute__((constructor)) static void addRoutine(void)
{
    registryFunctionAdd("waitForPort", (REGISTRYFUNCTION)waitForPort);
}
