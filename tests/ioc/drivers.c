/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What drivers do with records besides processing them in order. Routines of aSub records: input A names a record, B is
 * how often; each goes on in a thread of its own.
 */
#include <stdlib.h>

#include <aSubRecord.h>
#include <cantProceed.h>
#include <dbAccess.h>
#include <dbScan.h>
#include <devSup.h>
#include <epicsExport.h>
#include <epicsThread.h>
#include <epicsTime.h>
#include <registryFunction.h>
#include <waveformRecord.h>

static IOSCANPVT interrupt;

static long initDriver(int after)
{
    if (!after)
        scanIoInit(&interrupt);
    return 0;
}

static long getInterrupt(int cmd, dbCommon *prec, IOSCANPVT *scan)
{
    *scan = interrupt;
    return 0;
}

static long readDriver(waveformRecord *prec)
{
    ((double *)prec->bptr)[0]++;
    prec->nord = 1;
    return 0;
}

static struct {
    dset common;
    long (*read)(waveformRecord *);
} devDriverWf = {{5, NULL, initDriver, NULL, getInterrupt}, readDriver};
epicsExportAddress(dset, devDriverWf);

typedef struct {
    dbCommon *first, *second;
    int times;
} Work;

static dbCommon *findRecord(const char *name)
{
    DBADDR addr;

    return dbNameToAddr(name, &addr) ? NULL : addr.precord;
}

static long startWork(const aSubRecord *prec, void (*run)(void *))
{
    Work *work = callocMustSucceed(1, sizeof(*work), "startWork");

    work->first = findRecord(prec->a);
    work->second = findRecord(prec->c);
    work->times = (int)*(double *)prec->b;
    if (!work->first)
        return -1;
    epicsThreadMustCreate("driver", epicsThreadPriorityMedium, epicsThreadGetStackSize(epicsThreadStackMedium), run,
                          work);
    return 0;
}

#define PAUSE 0.01 /* s; a callback thread processes meanwhile */

/* As the device support of asyn for arrays does: the time stamp is set first, then the record is processed. */
static void stampAndScan(void *arg)
{
    Work *work = arg;

    for (int i = 0; i < work->times; i++) {
        dbScanLock(work->first);
        epicsTimeGetCurrent(&work->first->time);
        dbScanUnlock(work->first);
        scanIoRequest(interrupt);
        epicsThreadSleep(PAUSE);
    }
    free(work);
}

/* Only requests scans: a well-behaved driver. */
static void scanOnly(void *arg)
{
    Work *work = arg;

    for (int i = 0; i < work->times; i++) {
        scanIoRequest(interrupt);
        epicsThreadSleep(PAUSE);
    }
    free(work);
}

/* Processes two records under one lock. They may be the same one. */
static void processBoth(void *arg)
{
    Work *work = arg;

    for (int i = 0; i < work->times; i++) {
        dbScanLock(work->first);
        dbProcess(work->first);
        dbProcess(work->second);
        dbScanUnlock(work->first);
        epicsThreadSleep(PAUSE);
    }
    free(work);
}

static long driveStamps(aSubRecord *prec)
{
    return startWork(prec, stampAndScan);
}

static long driveScans(aSubRecord *prec)
{
    return startWork(prec, scanOnly);
}

static long driveBoth(aSubRecord *prec)
{
    return startWork(prec, processBoth);
}

epicsRegisterFunction(driveStamps);
epicsRegisterFunction(driveScans);
epicsRegisterFunction(driveBoth);
