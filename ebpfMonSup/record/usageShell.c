/* SPDX-License-Identifier: BSD-3-Clause */
/* The iocsh commands about who uses which PV. */
#include "common/textReport.h"
#include "model/monitorOps.h"
#include "record/shell.h"
#include "record/shellCommand.h"

static void listClients(const iocshArgBuf *args)
{
    ebpfMonTextReport *report = ebpfMonTextReportNew();
    const char *ioc = ebpfMonShellGetText(args[0].sval, "*");

    ebpfMonShellPrintReport("ebpfMonClients", report, ebpfMonMonitorOpsGet()->addClients(report, ioc), "");
}

static void listUsers(const iocshArgBuf *args)
{
    ebpfMonTextReport *report = ebpfMonTextReportNew();
    const char *pv = ebpfMonShellGetText(args[0].sval, "*");

    ebpfMonShellPrintReport("ebpfMonUsers", report, ebpfMonMonitorOpsGet()->addUsers(report, pv), "");
}

static const ebpfMonShellCommand commands[] = {
    {"ebpfMonClients", listClients, {{"iocPattern", iocshArgString}},
     "Lists the clients of the CA servers of the IOCs that match, read now from the servers' own lists.\n"
     "Nothing: all. Example: ebpfMonClients \"vac*\"\n"},
    {"ebpfMonUsers", listUsers, {{"pattern", iocshArgString}},
     "Lists who is connected now to the PVs that match, and how many subscriptions each has.\n"
     "Nothing: all. Example: ebpfMonUsers \"RING:*\"\n"}
};

void ebpfMonUsageShellRegister(void)
{
    ebpfMonShellRegisterCommands(commands, sizeof(commands) / sizeof(commands[0]));
}
