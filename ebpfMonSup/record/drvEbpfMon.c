/* SPDX-License-Identifier: BSD-3-Clause */
/* The driver: begins and ends with the IOC, and reports to dbior. */
/* These two choose the type-safe support tables of Base; they must stand before its headers. */
#define USE_TYPED_DRVET
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <drvSup.h>
#include <envDefs.h>
#include <epicsExport.h>
#include <errlog.h>
#include <initHooks.h>

#include "access/guard.h"
#include "common/serviceManager.h"
#include "model/ops.h"
#include "record/filterSub.h"
#include "record/pvScan.h"
#include "record/queryColumn.h"
#include "record/shellCommand.h"
#include "record/tables.h"

static long driverInit(void)
{
    ebpfMonScanInit(ebpfMonTablesPost); /* before the records, which join the scan lists */
    ebpfMonQueryScanInit();
    return 0;
}

static long driverReport(int level)
{
    const ebpfMonMonitorOps *monitor = ebpfMonOpsGet()->monitor;
    const ebpfMonLogOps *logs = ebpfMonOpsGet()->logs;
    ebpfMonTextReport *report = ebpfMonTextReportNew();
    ebpfMonOpStatus status = monitor->addReport(monitor->arg, report, level);

    ebpfMonTextReportPrint(report);
    ebpfMonShellCheckOp("ebpfMon", status, "");
    logs->report(logs->arg, level);
    ebpfMonGuardReport(level);
    return 0;
}

static drvet drvEbpfMon = {2, driverReport, driverInit};
epicsExportAddress(drvet, drvEbpfMon);

static void initHook(initHookState state)
{
    const ebpfMonMonitorOps *monitor = ebpfMonOpsGet()->monitor;

    if (state == initHookAfterScanInit) {
        ebpfMonGuardStart(); /* access security has read its file, and no server runs yet */
    } else if (state == initHookAfterIocBuilt) {
        ebpfMonTablesStart();
    } else if (state == initHookAfterIocRunning) {
        monitor->start(monitor->arg);
        ebpfMonFilterReprocess();
        ebpfMonServiceTell("READY=1"); /* also if it failed: the PVs are there, and STATE says why */
    } else if (state == initHookAtShutdown) {
        ebpfMonScanStop();
        ebpfMonTablesStop();
        ebpfMonQueryScanStop();
    } else if (state == initHookAfterShutdown) {
        ebpfMonGuardStop();
    }
}

/* The default prefix has the host's name. A shell exports HOSTNAME seldom and a service manager never; and
 * in a record name a dot would begin the field, so EBPFMON_HOST has the name up to the first one. */
static void nameHost(void)
{
    char host[256] = "";
    const char *name = getenv("HOSTNAME");

    if (name && name[0]) {
        snprintf(host, sizeof(host), "%s", name);
    } else {
        if (gethostname(host, sizeof(host) - 1) || !host[0])
            strcpy(host, "localhost");
        epicsEnvSet("HOSTNAME", host);
    }
    host[strcspn(host, ".")] = 0;
    epicsEnvSet("EBPFMON_HOST", host[0] ? host : "localhost");
}

static void ebpfMonDriverRegistrar(void)
{
    /* One per process, as Base's list of init hooks. Base runs a registrar once, but again after testdbCleanup
     * (clearRegistrarOnce), and our hook must not be in the list twice. One thread: the one that runs registrars. */
    static int isRegistered;

    if (isRegistered)
        return;
    isRegistered = 1;
    nameHost();
    ebpfMonGuardInit();
    if (initHookRegister(initHook))
        errlogSevPrintf(errlogMajor, "ebpfMon: out of memory, cannot begin with the IOC: "
                        "call ebpfMonStart after iocInit\n");
}
epicsExportRegistrar(ebpfMonDriverRegistrar);
