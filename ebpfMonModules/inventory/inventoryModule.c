/* SPDX-License-Identifier: BSD-3-Clause */
/* The module: its PVs, its commands, its registration. One user of inventories sends them to a RecSync server, the
 * other keeps them in a file. */
#include <string.h>

#include <dbDefs.h>
#include <epicsExport.h>
#include <epicsStdio.h>
#include <epicsStdlib.h>
#include <errlog.h>

#include "inventory/inventoryDiff.h"
#include "inventory/inventoryFile.h"
#include "inventory/recSync.h"
#include "model/published.h"
#include "record/shellCommand.h"

#define RECSYNC_PORT 5049
#define KEEP_SECONDS 60
#define KEEP_FILES   10
#define KEEP_MOST    1000

/* One per process, because Base calls registrars and commands without a context. */
static ebpfMonRecSync         *recSync;
static ebpfMonInventoryKeeper *keeper;
static ebpfMonTargets         *iocs; /* NULL: the monitor does not run yet */

/* --- the module --- */

static const void *getValues(const struct ebpfMonPublished *published, unsigned index)
{
    return index ? NULL : ebpfMonRecSyncGetValues(recSync);
}

#define VALUE(member) offsetof(ebpfMonRecSyncValues, member)

static ebpfMonPv pvs[] = {
    {"RECSYNC_STATE", 0, getValues, ebpfMonCellInt, VALUE(state), 1, .cause = 1 + VALUE(message), .light = 1},
    {"RECSYNC_MSG", 0, getValues, ebpfMonCellText, VALUE(message), 1},
    {"RECSYNC_IOC_CNT", 0, getValues, ebpfMonCellUnsigned, VALUE(iocs), 1},
    {"RECSYNC_RECORD_CNT", 0, getValues, ebpfMonCellUnsigned, VALUE(records), 1},
};

static int startModule(void *arg, const ebpfMonModuleCore *core)
{
    iocs = core->targets;
    if (ebpfMonRecSyncBegin(recSync, core->targets, core->packetServers) |
        ebpfMonInventoryKeeperBegin(keeper, core->targets))
        errlogSevPrintf(errlogMajor, "ebpfMon: cannot start a thread for inventories: raise the limits of this process "
                        "(ulimit -u, TasksMax), then call ebpfMonRecSync or ebpfMonInventoryKeep again\n");
    return 0;
}

/* The threads use no table of the kernel part, so one that does not end does no harm. */
static int stopModule(void *arg, double seconds)
{
    ebpfMonRecSyncStop(recSync, seconds);
    ebpfMonInventoryKeeperStop(keeper, seconds);
    return 0;
}

static void wakeThreads(void *arg)
{
    ebpfMonRecSyncWake(recSync);
    ebpfMonInventoryKeeperWake(keeper);
}

static ebpfMonModule module = {
    .name = "inventory", .pvs = pvs, .pvCount = NELEMENTS(pvs), .start = startModule, .stop = stopModule,
    .iocs = wakeThreads,
};

/* --- commands --- */

/* Whether the monitor runs: before that there is nothing to read. */
static ebpfMonOpStatus getStatus(void)
{
    const ebpfMonPublished *published = ebpfMonPublishedLock();
    int hasFailed = published->state == ebpfMonFailed;

    ebpfMonPublishedUnlock();
    return iocs ? ebpfMonOpDone : hasFailed ? ebpfMonOpStartFailed : ebpfMonOpNotStarted;
}

static void refuseRecSync(const char *why)
{
    ebpfMonShellFail("ebpfMonRecSync: %s\n", why);
}

/* 0, or -1: this word says nothing. */
static int readOthers(const char *text, ebpfMonRecSyncOthers *others)
{
    if (strcmp(text, "servers") == 0)
        *others = ebpfMonRecSyncServers;
    else if (strcmp(text, "pvs") == 0)
        *others = ebpfMonRecSyncPvs;
    else
        return text[0] ? -1 : 0;
    return 0;
}

static void setRecSync(const iocshArgBuf *args)
{
    const char *state = ebpfMonShellGetText(args[0].sval, ""), *variables = ebpfMonShellGetText(args[2].sval, "");
    ebpfMonRecSyncConf conf = { .isOn = strcmp(state, "on") == 0, .port = RECSYNC_PORT };

    if (!conf.isOn && strcmp(state, "off") != 0) {
        refuseRecSync("say on or off");
        return;
    }
    if (args[1].ival < 0 || args[1].ival > 65535) {
        refuseRecSync("the port is a number up to 65535");
        return;
    }
    if (strlen(variables) >= sizeof(conf.variables)) {
        refuseRecSync("the names of variables are too long: leave some out");
        return;
    }
    if (readOthers(ebpfMonShellGetText(args[3].sval, ""), &conf.others)) {
        refuseRecSync("of other servers, say servers or pvs");
        return;
    }
    if (args[1].ival)
        conf.port = (unsigned)args[1].ival;
    strcpy(conf.variables, variables);
    ebpfMonRecSyncConfigure(recSync, &conf);
}

/* Writes the inventory of the IOCs that match to a file, and adds the numbers of IOCs and records. */
static ebpfMonOpStatus writeFile(ebpfMonTextReport *report, const char *path, const char *iocPattern, char *why,
                                 size_t size)
{
    ebpfMonInventoryCount count;
    ebpfMonOpStatus status = getStatus();
    char reason[240];

    if (status != ebpfMonOpDone)
        return status;
    if (ebpfMonInventoryFileWrite(iocs, path, iocPattern, NULL, &count, reason, sizeof(reason))) {
        snprintf(why, size, "%s is not written: %s. Give a file in a folder that exists and that the monitor may write",
                 path, reason);
        return ebpfMonOpRefused;
    }
    ebpfMonTextReportAdd(report, "%s: %u IOCs, %u records\n", path, count.iocs, count.records);
    if (count.failed)
        ebpfMonTextReportAdd(report, "%u IOCs could not be read. %s\n", count.failed, reason);
    return ebpfMonOpDone;
}

static void writeInventory(const iocshArgBuf *args)
{
    ebpfMonTextReport *report = ebpfMonTextReportNew();
    ebpfMonOpStatus status = ebpfMonOpRefused;
    char why[600] = "give the path of the file to write";

    if (ebpfMonShellHasText(args[0].sval))
        status = writeFile(report, args[0].sval, ebpfMonShellGetText(args[1].sval, "*"), why, sizeof(why));
    ebpfMonShellPrintReport("ebpfMonInventory", report, status, why);
}

/* A relative path is refused. It would be in the folder in which the monitor was started, where nobody would look
 * for it. */
static void keepInventory(const iocshArgBuf *args)
{
    static const char name[] = "ebpfMonInventoryKeep";
    const char *file = ebpfMonShellGetText(args[0].sval, "");
    ebpfMonInventoryConf conf = { .seconds = args[1].ival ? (unsigned)args[1].ival : KEEP_SECONDS,
                                  .keep = KEEP_FILES };
    ebpfMonOpStatus status;

    if (!file[0]) {
        ebpfMonTextReport *report = ebpfMonTextReportNew();

        status = getStatus();
        if (status == ebpfMonOpDone)
            ebpfMonInventoryKeeperReport(keeper, report);
        ebpfMonShellPrintReport(name, report, status, "");
        return;
    }
    if (strcmp(file, "off") != 0) {
        if (file[0] != '/' || strlen(file) >= sizeof(conf.file)) {
            ebpfMonShellFail("%s: give a path that begins with / and has less than 256 characters, or off\n", name);
            return;
        }
        strcpy(conf.file, file);
    }
    if (args[1].ival < 0) {
        ebpfMonShellFail("%s: seconds is 1 or more\n", name);
        return;
    }
    if (ebpfMonShellHasText(args[2].sval) &&
        (epicsParseUInt32(args[2].sval, &conf.keep, 10, NULL) || conf.keep > KEEP_MOST)) {
        ebpfMonShellFail("%s: keep is the number of older files, 0 to 1000\n", name);
        return;
    }
    ebpfMonInventoryKeeperConfigure(keeper, &conf);
}

static void addDifference(ebpfMonTextReport *report, const ebpfMonInventoryDifference *d)
{
    if (d->iocs.added || d->iocs.removed || d->iocs.changed)
        ebpfMonTextReportAdd(report, "%u IOCs added, %u removed, %u changed, %u the same\n", d->iocs.added,
                             d->iocs.removed, d->iocs.changed, d->iocs.same);
    ebpfMonTextReportAdd(report, "%u records added, %u removed, %u changed, %u the same\n", d->records.added,
                         d->records.removed, d->records.changed, d->records.same);
    if (d->odd)
        ebpfMonTextReportAdd(report, "%u lines do not belong to an inventory: are these the right files?\n", d->odd);
}

static void compareInventories(const iocshArgBuf *args)
{
    ebpfMonTextReport *report = ebpfMonTextReportNew();
    ebpfMonInventoryDifference d;
    ebpfMonOpStatus status = ebpfMonOpRefused;
    char why[240] = "give two files that ebpfMonInventory wrote: the older one first";

    if (ebpfMonShellHasText(args[0].sval) && ebpfMonShellHasText(args[1].sval) &&
        ebpfMonInventoryDiffFiles(args[0].sval, args[1].sval, ebpfMonShellGetText(args[2].sval, "*"), report, &d, why,
                                  sizeof(why)) == 0) {
        addDifference(report, &d);
        status = ebpfMonOpDone;
    }
    ebpfMonShellPrintReport("ebpfMonInventoryDiff", report, status, why);
}

static const ebpfMonShellCommand commands[] = {
    {"ebpfMonInventory", writeInventory, {{"file", iocshArgString}, {"iocPattern", iocshArgString}},
     "Writes the records of the watched IOCs as lines of JSON: aliases, info tags, descriptions,\n"
     "limits, device types, links. Without a pattern: of all IOCs.\n"
     "Example: ebpfMonInventory /var/lib/ebpfmon/monday.json \"vac*\"\n"},
    {"ebpfMonInventoryKeep", keepInventory,
     {{"file", iocshArgString}, {"seconds", iocshArgInt}, {"keep", iocshArgString}},
     "Keeps the inventory of all watched IOCs in a file. The file is written when an IOC starts, ends, or has\n"
     "another database.\n"
     "  file     path of the file; off: stops. Without it: prints when the file was written\n"
     "  seconds  least time between two files (60)\n"
     "  keep     number of older files to keep, as FILE.1, FILE.2 ... (10)\n"
     "Example: ebpfMonInventoryKeep /var/lib/ebpfmon/inventory.json\n"},
    {"ebpfMonInventoryDiff", compareInventories,
     {{"before", iocshArgString}, {"after", iocshArgString}, {"iocPattern", iocshArgString}},
     "Compares two files of ebpfMonInventory. Prints the IOCs and records that are new (+), are gone (-) or have\n"
     "changed (~), and what has changed. Without a pattern: of all IOCs.\n"
     "Example: ebpfMonInventoryDiff /var/lib/ebpfmon/monday.json /var/lib/ebpfmon/today.json \"vac*\"\n"},
    {"ebpfMonRecSync", setRecSync,
     {{"state", iocshArgString}, {"port", iocshArgInt}, {"variables", iocshArgString}, {"others", iocshArgString}},
     "Announces the records of all watched IOCs to a RecSync server (RecCeiver), for Channel Finder.\n"
     "  state      on or off. It is off until this command\n"
     "  port       UDP port to which servers announce themselves (5049)\n"
     "  variables  names of environment variables of the IOCs to send, besides the usual ones\n"
     "  others     of servers that are not EPICS Base (none): servers: their environment and ports;\n"
     "             pvs: and the PVs that packets have shown, which are never all. Not beside a gateway\n"
     "Example: ebpfMonRecSync on 0 \"SECTOR BUILDING\"\n"}
};

static void ebpfMonInventoryRegistrar(void)
{
    recSync = ebpfMonRecSyncNew(&module);
    keeper = ebpfMonInventoryKeeperNew();
    ebpfMonShellAddModule(&module, keeper ? recSync : NULL, commands, sizeof(commands) / sizeof(commands[0]));
}

epicsExportRegistrar(ebpfMonInventoryRegistrar);
