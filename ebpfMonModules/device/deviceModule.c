/* SPDX-License-Identifier: BSD-3-Clause */
/* The module: its PVs, its commands, its registration. */
#include <math.h>

#include <dbDefs.h>
#include <epicsExport.h>

#include "device/devices.h"
#include "record/shellCommand.h"

#define VALUE(member) offsetof(ebpfMonDeviceValues, member)
#define ROW(member)   offsetof(ebpfMonDeviceRow, member)

/* One per process, because Base calls registrars and commands without a context. */
static ebpfMonDevices *devices;

static const void *getValues(const struct ebpfMonPublished *published, unsigned index)
{
    return index ? NULL : ebpfMonDevicesGetValues(devices);
}

static const void *getRow(const struct ebpfMonPublished *published, unsigned index)
{
    const ebpfMonDeviceValues *v = ebpfMonDevicesGetValues(devices);

    return index < v->rows ? &v->row[index] : NULL;
}

/* In the order of ebpfMonDevice.substitutions. */
static ebpfMonPv pvs[] = {
    {"DEVICE_IOC_CNT", 0, getValues, ebpfMonCellUnsigned, VALUE(iocs)},
    {"DEVICE_REQUEST_CNT", 0, getValues, ebpfMonCellCount, VALUE(requests)},
    {"DEVICE_TIMEOUT_CNT", 0, getValues, ebpfMonCellCount, VALUE(timeouts)},
    {"DEVICE_LOST_CNT", 0, getValues, ebpfMonCellCount, VALUE(lost)},
    {"DEVICE_COST", 0, getValues, ebpfMonCellDouble, VALUE(cost)},
    {"DEVICE_MSG", 0, getValues, ebpfMonCellText, VALUE(state)},
    {"DEVICE_PORTS", 0, getRow, ebpfMonCellText, ROW(port)},
    {"DEVICE_RECORDS", 0, getRow, ebpfMonCellText, ROW(user)},
    {"DEVICE_CNTS", 0, getRow, ebpfMonCellCount, ROW(count)},
    {"DEVICE_WAIT_MEANS", 0, getRow, ebpfMonCellDouble, ROW(waitMean), .gaps = 1},
    {"DEVICE_WAIT_P99S", 0, getRow, ebpfMonCellDouble, ROW(waitP99), .gaps = 1},
    {"DEVICE_WAIT_MAXS", 0, getRow, ebpfMonCellDouble, ROW(waitMax), .gaps = 1},
    {"DEVICE_TIME_MEANS", 0, getRow, ebpfMonCellDouble, ROW(serveMean), .gaps = 1},
    {"DEVICE_TIME_MAXS", 0, getRow, ebpfMonCellDouble, ROW(serveMax)},
    {"DEVICE_TIMEOUT_CNTS", 0, getRow, ebpfMonCellCount, ROW(timeouts)},
    {"DEVICE_BEHINDS", 0, getRow, ebpfMonCellText, ROW(behind)},
    {"DEVICE_IOCS", 0, getRow, ebpfMonCellText, ROW(ioc)},
    {"DEVICE_SILENT_CNTS", 0, getRow, ebpfMonCellDouble, ROW(silent), .gaps = 1},
    {"DEVICE_LINKS", 0, getRow, ebpfMonCellText, ROW(link)},
};

static ebpfMonModule module = {
    .name = "device", .pvs = pvs, .pvCount = NELEMENTS(pvs), .start = ebpfMonDevicesBegin,
    .stop = ebpfMonDevicesStop,
};

static void watchDevices(const iocshArgBuf *args)
{
    ebpfMonDevicesWatch(devices, args[0].sval ? args[0].sval : "*");
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
    const ebpfMonDeviceValues *v = ebpfMonDevicesGetValues(devices);

    ebpfMonModuleLock();
    ebpfMonTextReportAdd(report, "%s\n", v->state[0] ? v->state : "the monitor does not run");
    if (v->rows)
        ebpfMonTextReportBeginTable(report, columns, sizeof(columns) / sizeof(columns[0]));
    for (unsigned i = 0; i < v->rows; i++)
        addRow(report, &v->row[i]);
    ebpfMonModuleUnlock();
    ebpfMonTextReportPrint(report);
}

static const ebpfMonShellCommand commands[] = {
    {"ebpfMonDeviceWatch", watchDevices, {{"pattern", iocshArgString}},
     "Watches requests to ports of asyn, in the IOCs with a matching name (default: *). \"\" watches none.\n"
     "Example: ebpfMonDeviceWatch \"vac*\"\n"},
    {"ebpfMonDevices", listDevices, EBPFMON_NO_ARGS,
     "Lists which record waited for which port of asyn, how long the port served it, and for which other\n"
     "record it waited longest (documentation/use/device.md).\n"}
};

static void ebpfMonDeviceRegistrar(void)
{
    devices = ebpfMonDevicesNew(&module);
    ebpfMonShellAddModule(&module, devices, commands, sizeof(commands) / sizeof(commands[0]));
}

epicsExportRegistrar(ebpfMonDeviceRegistrar);
