/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ways by which a value comes to a record within an IOC:
 * - the thread of a driver: by dbPutField, by dbPut, or by an I/O interrupt, after which device support reads the value
 * - a restore at start-up, in the same states of iocInit and by the same calls as autosave
 * Each shell command returns when the thread of the driver has finished.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <aiRecord.h>
#include <dbAccess.h>
#include <dbScan.h>
#include <dbStaticLib.h>
#include <devSup.h>
#include <epicsExport.h>
#include <epicsThread.h>
#include <errlog.h>
#include <initHooks.h>
#include <iocsh.h>

#include "roadsThread.h"

#define ARRAY_MAX 16

/* --- as a driver ------------------------------------------------------------------------------------- */

static IOSCANPVT interrupt;
static volatile double reading;

static long putByDriver(const char *pv, const char *value, const char *how)
{
    DBADDR addr;
    long status;

    if (strcmp(how, "interrupt") == 0) {
        reading = atof(value);
        scanIoRequest(interrupt);
        return 0;
    }
    status = dbNameToAddr(pv, &addr);
    if (status)
        return status;
    if (strcmp(how, "put") != 0)
        return dbPutField(&addr, DBR_STRING, value, 1);
    dbScanLock(addr.precord);
    status = dbPut(&addr, DBR_STRING, value, 1);
    dbScanUnlock(addr.precord);
    return status;
}

static roadsThread driver = {"drvDemo", putByDriver};
static const iocshArg pvArg = {"PV", iocshArgString}, valueArg = {"value", iocshArgString},
    howArg = {"how", iocshArgString};
static const iocshArg *const args[] = {&pvArg, &valueArg, &howArg};
static const iocshFuncDef driverDef = {"roadsDriver", 3, args,
    "Puts a value in the thread drvDemo: by dbPutField, or how = put: by dbPut with the record locked.\n"};
static const iocshFuncDef interruptDef = {"roadsInterrupt", 1, args + 1,
    "The thread drvDemo has a new value: records with DTYP roads and SCAN I/O Intr get it.\n"};

static void driverCall(const iocshArgBuf *a)
{
    roadsOrder(&driver, a[0].sval, a[1].sval, a[2].sval);
}

static void interruptCall(const iocshArgBuf *a)
{
    roadsOrder(&driver, "", a[0].sval, "interrupt");
}

static long aiInit(int after)
{
    if (!after)
        scanIoInit(&interrupt);
    return 0;
}

/* Takes as many seconds as the field SMOO says, as for a driver that has to ask its device. (SMOO has no effect,
 * because aiRead does not convert.) */
static long aiScanList(int leaves, dbCommon *prec, IOSCANPVT *list)
{
    double seconds = ((aiRecord *)prec)->smoo;

    if (!leaves && seconds > 0) {
        printf("asked for the I/O Intr list\n");
        fflush(stdout);
        epicsThreadSleep(seconds);
    }
    *list = interrupt;
    return 0;
}

static long aiRead(aiRecord *prec)
{
    prec->val = reading;
    prec->udf = FALSE;
    return 2; /* no conversion */
}

static aidset devRoadsAi = {{6, NULL, aiInit, NULL, aiScanList}, aiRead, NULL};
epicsExportAddress(dset, devRoadsAi);

/* --- as autosave -------------------------------------------------------------------------------------- */

/* Restores as autosave does (dbrestore.c): scalars by dbPutString in both passes, arrays by dbPut in the second pass.
 * The info tags restore0 and restore1 of the records have the values. */
static void restore(const char *tag, int pass)
{
    DBENTRY entry;
    long type, more;

    dbInitEntry(pdbbase, &entry);
    for (type = dbFirstRecordType(&entry); !type; type = dbNextRecordType(&entry))
        for (more = dbFirstRecord(&entry); !more; more = dbNextRecord(&entry)) {
            double array[ARRAY_MAX];
            const char *text;
            char *end;
            DBADDR addr;
            long n = 0, status;

            if (dbIsAlias(&entry) || dbFindInfo(&entry, tag))
                continue;
            text = dbGetInfoString(&entry);
            if (!dbFindField(&entry, "VAL") && entry.pflddes->field_type != DBF_NOACCESS) {
                status = dbPutString(&entry, text);
            } else {
                status = pass ? dbNameToAddr(dbGetRecordName(&entry), &addr) : -1;
                for (; n < ARRAY_MAX && *text; n++, text = end) {
                    array[n] = strtod(text, &end);
                    if (end == text)
                        break;
                }
                if (!status)
                    status = dbPut(&addr, DBR_DOUBLE, array, n);
            }
            if (status)
                errlogSevPrintf(errlogMajor, "roads: %s not restored: status %ld\n", dbGetRecordName(&entry), status);
        }
    dbFinishEntry(&entry);
}

static void hook(initHookState state)
{
    if (state == initHookAfterInitDevSup)
        restore("restore0", 0);
    else if (state == initHookAfterInitDatabase)
        restore("restore1", 1);
}

static void roadsRegistrar(void)
{
    initHookRegister(hook);
    iocshRegister(&driverDef, driverCall);
    iocshRegister(&interruptDef, interruptCall);
}
epicsExportRegistrar(roadsRegistrar);
