/* SPDX-License-Identifier: BSD-3-Clause */
/* The iocsh commands about who uses which PV. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <errlog.h>

#include "common/textReport.h"
#include "model/ops.h"
#include "record/shell.h"
#include "record/shellCommand.h"

static void listClients(const iocshArgBuf *args)
{
    const ebpfMonMonitorOps *monitor = ebpfMonOpsGet()->monitor;
    char ioc[EBPFMON_PATTERN_SIZE];
    ebpfMonTextReport *report;

    if (ebpfMonShellReadPattern("ebpfMonClients", args[0].sval, "IOC", ioc))
        return;
    report = ebpfMonTextReportNew();
    ebpfMonShellPrintReport("ebpfMonClients", report, monitor->addClients(monitor->arg, report, ioc), "");
}

static void listUsers(const iocshArgBuf *args)
{
    const ebpfMonMonitorOps *monitor = ebpfMonOpsGet()->monitor;
    char pv[EBPFMON_PATTERN_SIZE];
    ebpfMonTextReport *report;

    if (ebpfMonShellReadPattern("ebpfMonUsers", args[0].sval, "PV", pv))
        return;
    report = ebpfMonTextReportNew();
    ebpfMonShellPrintReport("ebpfMonUsers", report, monitor->addUsers(monitor->arg, report, pv), "");
}

static void setUsage(const iocshArgBuf *args)
{
    const ebpfMonMonitorOps *monitor = ebpfMonOpsGet()->monitor;
    char why[160] = "give a file, such as /var/lib/ebpfmon/uses.db";
    ebpfMonOpStatus status = ebpfMonOpRefused;

    if (ebpfMonShellHasText(args[0].sval))
        status = monitor->setUsage(monitor->arg, args[0].sval, args[1].ival, why, sizeof(why));
    ebpfMonShellSetStatus(ebpfMonShellCheckOp("ebpfMonUsage", status, why));
}

/* Writes the text to a file, and sets the status of the command. */
static void writeFile(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    int isWritten = file && fputs(text, file) >= 0;

    if (file && fclose(file))
        isWritten = 0;
    if (!isWritten)
        errlogSevPrintf(errlogMajor, "ebpfMonUnused: %s cannot be written: %s\n", name, strerror(errno));
    ebpfMonShellSetStatus(isWritten ? 0 : -1);
}

static void listUnused(const iocshArgBuf *args)
{
    const ebpfMonMonitorOps *monitor = ebpfMonOpsGet()->monitor;
    ebpfMonTextReport *report = ebpfMonTextReportNew();
    const char *pattern = ebpfMonShellGetText(args[1].sval, "*");
    char why[256] = "give a number of days";
    ebpfMonOpStatus status = ebpfMonOpRefused;

    if (args[0].dval > 0)
        status = monitor->addUnused(monitor->arg, report, args[0].dval, pattern, why, sizeof(why));
    if (status == ebpfMonOpDone && ebpfMonShellHasText(args[2].sval)) {
        writeFile(args[2].sval, ebpfMonTextReportGetText(report));
        ebpfMonTextReportFree(report);
    } else {
        ebpfMonShellPrintReport("ebpfMonUnused", report, status, why);
    }
}

static const ebpfMonShellCommand commands[] = {
    {"ebpfMonClients", listClients, {{"iocPattern", iocshArgString}},
     "Lists the clients of the CA servers of the IOCs that match, read now from the servers' own lists.\n"
     "Without a pattern: all. Example: ebpfMonClients \"vac*\"\n"},
    {"ebpfMonUsers", listUsers, {{"pattern", iocshArgString}},
     "Lists who is connected now to the PVs that match, and how many subscriptions each has.\n"
     "Without a pattern: all. Example: ebpfMonUsers \"RING:*\"\n"},
    {"ebpfMonUsage", setUsage, {{"file", iocshArgString}, {"megabytes", iocshArgInt}},
     "Keeps in this SQLite file who last read, wrote and subscribed to each PV. The file grows to at most\n"
     "so many megabytes (256). Before iocInit. Example: ebpfMonUsage /var/lib/ebpfmon/uses.db\n"},
    {"ebpfMonUnused", listUnused, {{"days", iocshArgDouble}, {"pattern", iocshArgString}, {"file", iocshArgString}},
     "Lists the records that match and that nobody was seen to use for so many days, and when the IOCs were\n"
     "watched. With a file, writes the list there. Needs ebpfMonUsage.\n"
     "Example: ebpfMonUnused 30 \"RING:*\" /tmp/unused.txt\n"}
};

void ebpfMonUsageShellRegister(void)
{
    ebpfMonShellRegisterCommands(commands, sizeof(commands) / sizeof(commands[0]));
}
