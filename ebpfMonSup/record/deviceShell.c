/* SPDX-License-Identifier: BSD-3-Clause */
/* The iocsh commands about ports of asyn. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <errlog.h>

#include "model/ops.h"
#include "model/published.h"
#include "record/shell.h"
#include "record/shellCommand.h"

static void watchDevices(const iocshArgBuf *args)
{
    const ebpfMonDeviceOps *devices = ebpfMonOpsGet()->devices;
    long status = devices->watch(devices->arg, args[0].sval ? args[0].sval : "*");

    if (status)
        errlogSevPrintf(errlogMajor, "ebpfMonDeviceWatch: this IOC is not linked with ebpfMon, or had no memory at its "
                        "start\n");
    ebpfMonShellSetStatus(status);
}

static void addRow(ebpfMonTextReport *report, const ebpfMonDeviceRow *row)
{
    ebpfMonTextReportAddCell(report, "%s", row->port);
    ebpfMonTextReportAddCell(report, "%s", row->user);
    ebpfMonTextReportAddCell(report, "%d", (int)row->reason);
    ebpfMonTextReportAddCell(report, "%llu", (unsigned long long)row->count);
    ebpfMonTextReportAddCell(report, "%.3f", row->waitMean);
    ebpfMonTextReportAddCell(report, "%.3f", row->waitP99);
    ebpfMonTextReportAddCell(report, "%.3f", row->waitMax);
    ebpfMonTextReportAddCell(report, "%.3f", row->serveMean);
    ebpfMonTextReportAddCell(report, "%.3f", row->serveMax);
    ebpfMonTextReportAddCell(report, "%llu", (unsigned long long)row->timeouts);
    ebpfMonTextReportAddCell(report, isnan(row->silent) ? "-" : "%.0f", row->silent);
    ebpfMonTextReportAddCell(report, "%s", row->behind);
    ebpfMonTextReportAddCell(report, "%s", row->link);
    ebpfMonTextReportAddCell(report, "%s", row->ioc);
}

static void listDevices(const iocshArgBuf *args)
{
    static const ebpfMonReportColumn columns[] = {
        {"port", -12}, {"record", -24}, {"reason", 6}, {"requests", 9}, {"wait ms", 9}, {"99 %", 9}, {"max", 9},
        {"served ms", 9}, {"max", 9}, {"timeouts", 8}, {"no answer", 9}, {"behind", -20}, {"link", -24}, {"IOC", 0},
    };
    ebpfMonTextReport *report = ebpfMonTextReportNew();
    const ebpfMonPublished *published = ebpfMonPublishedLock();
    const ebpfMonDeviceValues *v = &published->devices;

    (void)args;
    ebpfMonTextReportAdd(report, "%s\n", v->state[0] ? v->state : "the monitor does not run");
    if (v->rows)
        ebpfMonTextReportBeginTable(report, columns, sizeof(columns) / sizeof(columns[0]));
    for (unsigned i = 0; i < v->rows; i++)
        addRow(report, &v->row[i]);
    ebpfMonPublishedUnlock();
    ebpfMonTextReportPrint(report);
}

static const ebpfMonShellCommand commands[] = {
    {"ebpfMonDeviceWatch", watchDevices, {{"pattern", iocshArgString}},
     "Watches requests to ports of asyn, in the IOCs with a matching name (default: *). \"\" watches none.\n"
     "Example: ebpfMonDeviceWatch \"vac*\"\n"},
    {"ebpfMonDevices", listDevices, EBPFMON_NO_ARGS,
     "Lists which record waited for which port of asyn, how long the port served it, and for which other\n"
     "record it waited longest (documentation/device.md).\n"}
};

void ebpfMonDeviceShellRegister(void)
{
    ebpfMonShellRegisterCommands(commands, sizeof(commands) / sizeof(commands[0]));
}
