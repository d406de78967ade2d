/* SPDX-License-Identifier: BSD-3-Clause */
/* The module: its PVs, its command, its registration. */
#include <stddef.h>

#include <dbDefs.h>
#include <epicsExport.h>

#include "record/shellCommand.h"
#include "waits/waits.h"

#define VALUE(member) offsetof(ebpfMonWaitValues, member)
#define ROW(member)   offsetof(ebpfMonWaitRow, member)

/* One per process, because Base calls registrars and commands without a context. */
static ebpfMonWaits *waits;

static const void *getValues(const struct ebpfMonPublished *published, unsigned index)
{
    return index ? NULL : ebpfMonWaitsGetValues(waits);
}

static const void *getRow(const struct ebpfMonPublished *published, unsigned index)
{
    const ebpfMonWaitValues *v = ebpfMonWaitsGetValues(waits);

    return index < v->rows ? &v->row[index] : NULL;
}

/* In the order of ebpfMonWaits.substitutions. */
static ebpfMonPv pvs[] = {
    {"PUT_WAIT_CNT", 0, getValues, ebpfMonCellUnsigned, VALUE(puts), .cause = 1 + VALUE(putCause), .light = 1},
    {"DEADLOCK_CNT", 0, getValues, ebpfMonCellUnsigned, VALUE(deadlocks), .cause = 1 + VALUE(deadlockCause),
     .light = 2},
    {"ACTIVE_CNT", 0, getValues, ebpfMonCellUnsigned, VALUE(actives)},
    {"PUT_WAIT_MAX", 0, getValues, ebpfMonCellDouble, VALUE(putMax)},
    {"ACTIVE_MAX", 0, getValues, ebpfMonCellDouble, VALUE(activeMax)},
    {"WAITS_COST", 0, getValues, ebpfMonCellDouble, VALUE(cost)},
    {"WAITS_MSG", 0, getValues, ebpfMonCellText, VALUE(state)},
    {"WAITS_TEXT", 0, getValues, ebpfMonCellLines, VALUE(text)},
    {"WAIT_PVS", 0, getRow, ebpfMonCellText, ROW(pv)},
    {"WAIT_KINDS", 0, getRow, ebpfMonCellText, ROW(kind)},
    {"WAIT_SECONDS", 0, getRow, ebpfMonCellDouble, ROW(seconds)},
    {"WAIT_SINCES", 0, getRow, ebpfMonCellText, ROW(since)},
    {"WAIT_CAUSES", 0, getRow, ebpfMonCellText, ROW(waits)},
    {"WAIT_CLIENTS", 0, getRow, ebpfMonCellText, ROW(client)},
    {"WAIT_IOCS", 0, getRow, ebpfMonCellText, ROW(ioc)},
};

static void wakeModule(void *arg, const epicsTimeStamp *time, const char *text)
{
    ebpfMonWaitsWake(arg);
}

static ebpfMonModule module = {
    .name = "waits", .pvs = pvs, .pvCount = NELEMENTS(pvs), .start = ebpfMonWaitsBegin,
    .stop = ebpfMonWaitsStop, .put = ebpfMonWaitsAddPut, .event = wakeModule,
};

static void listWaits(const iocshArgBuf *args)
{
    ebpfMonTextReport *report = ebpfMonTextReportNew();
    const ebpfMonWaitValues *v = ebpfMonWaitsGetValues(waits);

    ebpfMonModuleLock();
    ebpfMonTextReportAdd(report, "%s\n%s", v->state[0] ? v->state : "the monitor does not run", v->text);
    ebpfMonModuleUnlock();
    ebpfMonTextReportPrint(report);
}

static const ebpfMonShellCommand commands[] = {
    {"ebpfMonWaits", listWaits, EBPFMON_NO_ARGS,
     "Lists why threads hang; and what waits for longer than ebpfMonWaitLimit (s): puts with completion, by whom,\n"
     "and for which records; records that are active (PACT), with what should complete them\n"
     "(documentation/use/waits.md).\n"}
};

static void ebpfMonWaitsRegistrar(void)
{
    waits = ebpfMonWaitsNew(&module);
    ebpfMonShellAddModule(&module, waits, commands, sizeof(commands) / sizeof(commands[0]));
}

epicsExportRegistrar(ebpfMonWaitsRegistrar);
