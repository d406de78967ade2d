/* SPDX-License-Identifier: BSD-3-Clause */
/* The driver: starts and stops the parts of the monitor with the IOC, and reports to dbior. */
/* This chooses the type-safe support table of Base; it must stand before its headers. */
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
#include "export/log/putLogs.h"
#include "model/ops.h"
#include "model/published.h"
#include "module/modules.h"
#include "record/filterSub.h"
#include "record/pvScan.h"
#include "record/shellCommand.h"
#include "record/tables.h"

/* One per process, because Base passes no context to drivers and init hooks. Made once, in the thread of iocInit. NULL:
 * there was no memory, and no table is served. */
static ebpfMonTables *tables;

static void postTables(ebpfMonGroup group)
{
    if (tables)
        ebpfMonTablesPost(tables, group);
}

static long initDriver(void)
{
    if (!tables)
        tables = ebpfMonTablesNew();
    if (!tables)
        errlogSevPrintf(errlogMajor, "ebpfMon: out of memory: there are no tables over PV Access. Free memory on this "
                        "host, then restart the monitor\n");
    ebpfMonScanInit(postTables); /* before the records, which join the scan lists */
    return 0;
}

static long reportDriver(int level)
{
    const ebpfMonMonitorOps *monitor = ebpfMonOpsGet()->monitor;
    ebpfMonTextReport *report = ebpfMonTextReportNew();
    ebpfMonOpStatus status = monitor->addReport(monitor->arg, report, level);

    ebpfMonTextReportPrint(report);
    ebpfMonShellCheckOp("ebpfMon", status, "");
    if (ebpfMonOpsGet()->logs)
        ebpfMonPutLogsReport(ebpfMonOpsGet()->logs, level);
    ebpfMonModulesReport(level);
    ebpfMonGuardReport(level);
    return 0;
}

static drvet drvEbpfMon = {2, reportDriver, initDriver};
epicsExportAddress(drvet, drvEbpfMon);

static void guardRecords(void)
{
    char text[sizeof(((ebpfMonPublished *)0)->operators)];
    ebpfMonPublished *published;

    ebpfMonGuardStart();
    ebpfMonOperatorsFormat(ebpfMonJudgeGetOperators(), text, sizeof(text));
    published = ebpfMonPublishedLock();
    memcpy(published->operators, text, sizeof(text));
    ebpfMonPublishedUnlock();
}

static void initHook(initHookState state)
{
    const ebpfMonMonitorOps *monitor = ebpfMonOpsGet()->monitor;

    if (state == initHookAfterScanInit) {
        guardRecords(); /* access security has read its file, and no server runs yet */
    } else if (state == initHookAfterIocBuilt) {
        if (tables)
            ebpfMonTablesServe(tables);
    } else if (state == initHookAfterIocRunning) {
        monitor->start(monitor->arg);
        ebpfMonFilterReprocess();
        ebpfMonServiceTell("READY=1"); /* also if the start failed: the PVs exist, and STATE_MSG says why */
    } else if (state == initHookAtShutdown) {
        ebpfMonScanStop();
        if (tables)
            ebpfMonTablesRemove(tables);
    } else if (state == initHookAfterShutdown) {
        ebpfMonGuardStop();
    }
}

/* Sets HOSTNAME, if it is not set, and EBPFMON_HOST, which is part of the default prefix of the PVs. Shells seldom
 * export HOSTNAME, and service managers never do. In a PV name a dot begins the field, so EBPFMON_HOST ends before
 * the first dot. */
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
    /* One per process, as the list of init hooks of Base. Base runs a registrar once, but again after testdbCleanup
     * (clearRegistrarOnce). Then our hook must not be in the list twice. Only the thread that runs registrars uses
     * it. */
    static int isRegistered;

    ebpfMonMonitorShellRegister();
    ebpfMonListShellRegister();
    ebpfMonConsoleShellRegister();
    if (isRegistered)
        return;
    isRegistered = 1;
    nameHost();
    ebpfMonGuardInit();
    if (initHookRegister(initHook))
        errlogSevPrintf(errlogMajor, "ebpfMon: out of memory: the monitor does not start with the IOC. Call "
                        "ebpfMonStart after iocInit\n");
}
epicsExportRegistrar(ebpfMonDriverRegistrar);
