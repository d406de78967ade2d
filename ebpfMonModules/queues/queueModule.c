/* SPDX-License-Identifier: BSD-3-Clause */
/* The module: its PVs, its commands, its registration. */
#include <math.h>

#include <dbDefs.h>
#include <epicsExport.h>

#include "queues/queues.h"
#include "queues/unconnected.h"
#include "record/shellCommand.h"

#define VALUE(member) offsetof(ebpfMonQueueValues, member)
#define ROW(member)   offsetof(ebpfMonQueueRow, member)
#define LOST(member)  offsetof(ebpfMonUnconnectedValues, member)
#define NAME(member)  offsetof(ebpfMonUnconnectedRow, member)

/* One per process, because Base calls registrars and commands without a context. */
static ebpfMonQueueRoom *queues;
static ebpfMonUnconnected *unconnected;

static const void *getValues(const struct ebpfMonPublished *published, unsigned index)
{
    return index ? NULL : ebpfMonQueueRoomGetValues(queues);
}

static const void *getRow(const struct ebpfMonPublished *published, unsigned index)
{
    const ebpfMonQueueValues *v = ebpfMonQueueRoomGetValues(queues);

    return index < v->rows ? &v->row[index] : NULL;
}

static const void *getUnconnected(const struct ebpfMonPublished *published, unsigned index)
{
    return index ? NULL : ebpfMonUnconnectedGetValues(unconnected);
}

static const void *getName(const struct ebpfMonPublished *published, unsigned index)
{
    const ebpfMonUnconnectedValues *v = ebpfMonUnconnectedGetValues(unconnected);

    return index < v->rows ? &v->row[index] : NULL;
}

/* In the order of ebpfMonQueues.substitutions. */
static ebpfMonPv pvs[] = {
    {"QUEUE_CNT", 0, getValues, ebpfMonCellUnsigned, VALUE(queues)},
    {"QUEUE_HALF_CNT", 0, getValues, ebpfMonCellUnsigned, VALUE(half), .cause = 1 + VALUE(state), .light = 1},
    {"QUEUE_FULL_CNT", 0, getValues, ebpfMonCellUnsigned, VALUE(full), .cause = 1 + VALUE(state), .light = 2},
    {"QUEUE_OVERFLOW_CNT", 0, getValues, ebpfMonCellCount, VALUE(overflows)},
    {"QUEUE_FILL_MAX", 0, getValues, ebpfMonCellDouble, VALUE(fill)},
    {"QUEUE_COST", 0, getValues, ebpfMonCellDouble, VALUE(cost)},
    {"QUEUE_MSG", 0, getValues, ebpfMonCellText, VALUE(state)},
    {"QUEUE_IOCS", 0, getRow, ebpfMonCellText, ROW(ioc)},
    {"QUEUE_NAMES", 0, getRow, ebpfMonCellText, ROW(queue)},
    {"QUEUE_STATES", 0, getRow, ebpfMonCellText, ROW(state)},
    {"QUEUE_USEDS", 0, getRow, ebpfMonCellDouble, ROW(used), .gaps = 1},
    {"QUEUE_SIZES", 0, getRow, ebpfMonCellDouble, ROW(size), .gaps = 1},
    {"QUEUE_HIGHS", 0, getRow, ebpfMonCellDouble, ROW(high), .gaps = 1},
    {"QUEUE_OVERFLOW_CNTS", 0, getRow, ebpfMonCellDouble, ROW(overflows), .gaps = 1},
    {"QUEUE_FILLERS", 0, getRow, ebpfMonCellText, ROW(fillers)},
    {"CA_LINK_CNT", 0, getUnconnected, ebpfMonCellUnsigned, LOST(links)},
    {"CA_LINK_UNCONNECTED_CNT", 0, getUnconnected, ebpfMonCellUnsigned, LOST(unconnected)},
    {"UNCONNECTED_FAULT_CNT", 0, getUnconnected, ebpfMonCellUnsigned, LOST(faults), .cause = 1 + LOST(state),
     .light = 1},
    {"UNCONNECTED_COST", 0, getUnconnected, ebpfMonCellDouble, LOST(cost)},
    {"UNCONNECTED_MSG", 0, getUnconnected, ebpfMonCellText, LOST(state)},
    {"UNCONNECTED_PVS", 0, getName, ebpfMonCellText, NAME(pv)},
    {"UNCONNECTED_CLIENTS", 0, getName, ebpfMonCellText, NAME(client)},
    {"UNCONNECTED_TIMES", 0, getName, ebpfMonCellDouble, NAME(seconds)},
    {"UNCONNECTED_REASONS", 0, getName, ebpfMonCellText, NAME(reason)},
};

static int startModule(void *arg, const ebpfMonModuleCore *core)
{
    return ebpfMonQueueRoomBegin(queues, core) || ebpfMonUnconnectedBegin(unconnected, core) ? -1 : 0;
}

static int stopModule(void *arg, double seconds)
{
    int isLate = ebpfMonQueueRoomStop(queues, seconds);

    return ebpfMonUnconnectedStop(unconnected, seconds) || isLate ? -1 : 0;
}

static void wakeModule(void *arg)
{
    ebpfMonQueueRoomWake(queues);
}

static void addMessage(void *arg, const struct ebpfMonWireEvent *message)
{
    if (message)
        ebpfMonUnconnectedAddEvent(unconnected, message);
}

static ebpfMonModule module = {
    .name = "queues", .pvs = pvs, .pvCount = NELEMENTS(pvs), .start = startModule, .stop = stopModule,
    .iocs = wakeModule, .message = addMessage,
};

static void addNumber(ebpfMonTextReport *report, double number)
{
    ebpfMonTextReportAddCell(report, isnan(number) ? "-" : "%.0f", number);
}

static void listQueues(const iocshArgBuf *args)
{
    static const ebpfMonReportColumn columns[] = {
        {"IOC", -16}, {"queue", -8}, {"state", -9}, {"used", 8}, {"size", 8}, {"high water", 10}, {"overflows", 9},
        {"most entries", 0},
    };
    ebpfMonTextReport *report = ebpfMonTextReportNew();
    const ebpfMonQueueValues *v = ebpfMonQueueRoomGetValues(queues);

    ebpfMonModuleLock();
    ebpfMonTextReportAdd(report, "%s\n", v->state[0] ? v->state : "the monitor does not run");
    if (v->rows)
        ebpfMonTextReportBeginTable(report, columns, sizeof(columns) / sizeof(columns[0]));
    for (unsigned i = 0; i < v->rows; i++) {
        const ebpfMonQueueRow *row = &v->row[i];

        ebpfMonTextReportAddCell(report, "%s", row->ioc);
        ebpfMonTextReportAddCell(report, "%s", row->queue);
        ebpfMonTextReportAddCell(report, "%s", row->state);
        addNumber(report, row->used);
        addNumber(report, row->size);
        addNumber(report, row->high);
        addNumber(report, row->overflows);
        ebpfMonTextReportAddCell(report, "%s", row->fillers);
    }
    ebpfMonModuleUnlock();
    ebpfMonTextReportPrint(report);
}

static void listUnconnected(const iocshArgBuf *args)
{
    static const ebpfMonReportColumn columns[] = {{"PV", -24}, {"client", -34}, {"s", 8}, {"reason", 0}};
    ebpfMonTextReport *report = ebpfMonTextReportNew();
    const ebpfMonUnconnectedValues *v = ebpfMonUnconnectedGetValues(unconnected);

    ebpfMonModuleLock();
    ebpfMonTextReportAdd(report, "%u CA links of watched IOCs, %u not connected\n", v->links, v->unconnected);
    if (v->rows)
        ebpfMonTextReportBeginTable(report, columns, sizeof(columns) / sizeof(columns[0]));
    for (unsigned i = 0; i < v->rows; i++) {
        ebpfMonTextReportAddCell(report, "%s", v->row[i].pv);
        ebpfMonTextReportAddCell(report, "%s", v->row[i].client);
        ebpfMonTextReportAddCell(report, "%.0f", v->row[i].seconds);
        ebpfMonTextReportAddCell(report, "%s", v->row[i].reason);
    }
    ebpfMonModuleUnlock();
    ebpfMonTextReportPrint(report);
}

static const ebpfMonShellCommand commands[] = {
    {"ebpfMonQueues", listQueues, EBPFMON_NO_ARGS,
     "Lists the queues of the watched IOCs, the worst first: callback queues, scanOnce, the work list of CA links and\n"
     "the messages of errlog. How full they are, how often they overflowed, and which records had the most entries.\n"},
    {"ebpfMonUnconnected", listUnconnected, EBPFMON_NO_ARGS,
     "Lists CA links of watched IOCs that are not connected, and names that programs of this host search in vain,\n"
     "with the reason that packets, sockets and /proc show.\n"}
};

static void ebpfMonQueuesRegistrar(void)
{
    queues = ebpfMonQueueRoomNew(&module);
    unconnected = ebpfMonUnconnectedNew(&module);
    ebpfMonShellAddModule(&module, unconnected ? queues : NULL, commands, sizeof(commands) / sizeof(commands[0]));
}

epicsExportRegistrar(ebpfMonQueuesRegistrar);
