/* SPDX-License-Identifier: BSD-3-Clause */
/* The iocsh commands of the inventory. */
#include <string.h>

#include <epicsStdio.h>
#include <errlog.h>

#include "model/monitorOps.h"
#include "record/shell.h"
#include "record/shellCommand.h"

#define RECSYNC_PORT 5049

static void refuse(const char *why)
{
    errlogSevPrintf(errlogMajor, "ebpfMonRecSync: %s\n", why);
    ebpfMonShellSetStatus(-1);
}

static void setRecSync(const iocshArgBuf *args)
{
    const char *state = ebpfMonShellGetText(args[0].sval, ""), *variables = ebpfMonShellGetText(args[2].sval, "");
    ebpfMonRecSyncConf conf = { .isOn = strcmp(state, "on") == 0, .port = RECSYNC_PORT };

    if (!conf.isOn && strcmp(state, "off") != 0) {
        refuse("say on or off");
        return;
    }
    if (args[1].ival < 0 || args[1].ival > 65535) {
        refuse("the port is a number up to 65535");
        return;
    }
    if (strlen(variables) >= sizeof(conf.variables)) {
        refuse("too many names of variables");
        return;
    }
    if (args[1].ival)
        conf.port = (unsigned)args[1].ival;
    strcpy(conf.variables, variables);
    ebpfMonShellSetStatus(ebpfMonShellCheckOp("ebpfMonRecSync", ebpfMonMonitorOpsGet()->setRecSync(&conf), ""));
}

static void writeInventory(const iocshArgBuf *args)
{
    ebpfMonTextReport *report;
    ebpfMonOpStatus status = ebpfMonOpRefused;
    char why[240] = "give the path of the file to write";

    report = ebpfMonTextReportNew();
    if (ebpfMonShellHasText(args[0].sval))
        status = ebpfMonMonitorOpsGet()->writeInventory(args[0].sval, ebpfMonShellGetText(args[1].sval, "*"), report, why,
                                                        sizeof(why));
    ebpfMonShellPrintReport("ebpfMonInventory", report, status, why);
}

static void compareInventories(const iocshArgBuf *args)
{
    ebpfMonTextReport *report = ebpfMonTextReportNew();
    ebpfMonOpStatus status = ebpfMonOpRefused;
    char why[240] = "give two files that ebpfMonInventory wrote: the older one first";

    if (ebpfMonShellHasText(args[0].sval) && ebpfMonShellHasText(args[1].sval))
        status = ebpfMonMonitorOpsGet()->compareInventories(args[0].sval, args[1].sval, report, why, sizeof(why));
    ebpfMonShellPrintReport("ebpfMonInventoryDiff", report, status, why);
}

static const ebpfMonShellCommand commands[] = {
    {"ebpfMonInventory", writeInventory, {{"file", iocshArgString}, {"iocPattern", iocshArgString}},
     "Writes what the watched IOCs have, as lines of JSON: records, aliases, info tags, descriptions,\n"
     "limits, device types, links. Without a pattern: of all.\n"
     "Example: ebpfMonInventory /var/lib/ebpfMon/monday.json \"vac*\"\n"},
    {"ebpfMonInventoryDiff", compareInventories, {{"before", iocshArgString}, {"after", iocshArgString}},
     "Prints what differs between two of these files: records that came (+), went (-) or changed (~),\n"
     "and what changed of them.\n"
     "Example: ebpfMonInventoryDiff /var/lib/ebpfMon/monday.json /var/lib/ebpfMon/today.json\n"},
    {"ebpfMonRecSync", setRecSync, {{"state", iocshArgString}, {"port", iocshArgInt}, {"variables", iocshArgString}},
     "Announces the records of all watched IOCs to a RecSync server (RecCeiver), for Channel Finder.\n"
     "  state      on or off. It is off until this command\n"
     "  port       UDP port to which servers announce themselves (5049)\n"
     "  variables  names of environment variables of the IOCs to send, besides the usual ones\n"
     "Example: ebpfMonRecSync on 0 \"SECTOR BUILDING\"\n"}
};

void ebpfMonInventoryShellRegister(void)
{
    ebpfMonShellRegisterCommands(commands, sizeof(commands) / sizeof(commands[0]));
}
