/* SPDX-License-Identifier: BSD-3-Clause */
/* The iocsh commands of the inventory. */
#include <string.h>

#include <epicsStdio.h>
#include <epicsStdlib.h>
#include <errlog.h>

#include "model/ops.h"
#include "record/shell.h"
#include "record/shellCommand.h"

#define RECSYNC_PORT 5049
#define KEEP_SECONDS 60
#define KEEP_FILES   10
#define KEEP_MOST    1000

static void refuseCommand(const char *command, const char *why)
{
    errlogSevPrintf(errlogMajor, "%s: %s\n", command, why);
    ebpfMonShellSetStatus(-1);
}

static void refuseRecSync(const char *why)
{
    refuseCommand("ebpfMonRecSync", why);
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
    const ebpfMonInventoryOps *inventories = ebpfMonOpsGet()->inventories;
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
    ebpfMonShellSetStatus(ebpfMonShellCheckOp("ebpfMonRecSync", inventories->setRecSync(inventories->arg, &conf), ""));
}

static void writeInventory(const iocshArgBuf *args)
{
    const ebpfMonInventoryOps *inventories = ebpfMonOpsGet()->inventories;
    ebpfMonTextReport *report;
    ebpfMonOpStatus status = ebpfMonOpRefused;
    char why[240] = "give the path of the file to write";

    report = ebpfMonTextReportNew();
    if (ebpfMonShellHasText(args[0].sval))
        status = inventories->write(inventories->arg, report, args[0].sval, ebpfMonShellGetText(args[1].sval, "*"), why,
                                                 sizeof(why));
    ebpfMonShellPrintReport("ebpfMonInventory", report, status, why);
}

/* A relative path is refused. It would be in the folder in which the monitor was started, where nobody would look
 * for it. */
static void keepInventory(const iocshArgBuf *args)
{
    const ebpfMonInventoryOps *inventories = ebpfMonOpsGet()->inventories;
    static const char name[] = "ebpfMonInventoryKeep";
    const char *file = ebpfMonShellGetText(args[0].sval, "");
    ebpfMonInventoryConf conf = { .seconds = args[1].ival ? (unsigned)args[1].ival : KEEP_SECONDS,
                                  .keep = KEEP_FILES };

    if (!file[0]) {
        ebpfMonTextReport *report = ebpfMonTextReportNew();

        ebpfMonShellPrintReport(name, report, inventories->addKept(inventories->arg, report), "");
        return;
    }
    if (strcmp(file, "off") != 0) {
        if (file[0] != '/' || strlen(file) >= sizeof(conf.file)) {
            refuseCommand(name, "give a path that begins with / and has less than 256 characters, or off");
            return;
        }
        strcpy(conf.file, file);
    }
    if (args[1].ival < 0) {
        refuseCommand(name, "seconds is 1 or more");
        return;
    }
    if (ebpfMonShellHasText(args[2].sval) &&
        (epicsParseUInt32(args[2].sval, &conf.keep, 10, NULL) || conf.keep > KEEP_MOST)) {
        refuseCommand(name, "keep is the number of older files, 0 to 1000");
        return;
    }
    ebpfMonShellSetStatus(ebpfMonShellCheckOp(name, inventories->keep(inventories->arg, &conf), ""));
}

static void compareInventories(const iocshArgBuf *args)
{
    const ebpfMonInventoryOps *inventories = ebpfMonOpsGet()->inventories;
    ebpfMonTextReport *report = ebpfMonTextReportNew();
    ebpfMonOpStatus status = ebpfMonOpRefused;
    char why[240] = "give two files that ebpfMonInventory wrote: the older one first";

    if (ebpfMonShellHasText(args[0].sval) && ebpfMonShellHasText(args[1].sval))
        status = inventories->compare(inventories->arg, report, args[0].sval, args[1].sval,
                                      ebpfMonShellGetText(args[2].sval, "*"), why, sizeof(why));
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

void ebpfMonInventoryShellRegister(void)
{
    ebpfMonShellRegisterCommands(commands, sizeof(commands) / sizeof(commands[0]));
}
