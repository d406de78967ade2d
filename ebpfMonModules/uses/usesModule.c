/* SPDX-License-Identifier: BSD-3-Clause */
/* The module: its PVs, its commands, its registration. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <dbDefs.h>
#include <epicsExport.h>
#include <errlog.h>

#include "record/shellCommand.h"
#include "uses/uses.h"

#define VALUE(member) offsetof(ebpfMonUsageValues, member)

/* One per process, because Base calls registrars and commands without a context. */
static ebpfMonUses *uses;

static const void *getValues(const struct ebpfMonPublished *published, unsigned index)
{
    return index ? NULL : ebpfMonUsesGetValues(uses);
}

/* In the order of ebpfMonUses.substitutions. */
static ebpfMonPv pvs[] = {
    {"USAGE_STATE", 0, getValues, ebpfMonCellInt, VALUE(state), 1, .cause = 1 + VALUE(message), .light = 1},
    {"USAGE_MSG", 0, getValues, ebpfMonCellText, VALUE(message), 1},
    {"USAGE_ROW_CNT", 0, getValues, ebpfMonCellCount, VALUE(rows), 1},
    {"USAGE_LOST_CNT", 0, getValues, ebpfMonCellCount, VALUE(lost), 1},
};

static ebpfMonModule module = {
    .name = "uses", .pvs = pvs, .pvCount = NELEMENTS(pvs), .start = ebpfMonUsesStart,
    .stop = ebpfMonUsesStop, .finished = ebpfMonUsesAddPut,
};

static void setUsage(const iocshArgBuf *args)
{
    char why[160] = "give a file, such as /var/lib/ebpfmon/uses.db";
    ebpfMonOpStatus status = ebpfMonOpRefused;

    if (ebpfMonShellHasText(args[0].sval) &&
        ebpfMonUsesConfigure(uses, args[0].sval, args[1].ival, why, sizeof(why)) == 0)
        status = ebpfMonOpDone;
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
    ebpfMonTextReport *report = ebpfMonTextReportNew();
    const char *pattern = ebpfMonShellGetText(args[1].sval, "*");
    char why[256] = "give a number of days";
    ebpfMonOpStatus status = ebpfMonOpRefused;

    if (args[0].dval > 0 && !module.isStarted)
        status = ebpfMonOpNotStarted;
    else if (args[0].dval > 0 &&
             ebpfMonUsesAddUnused(uses, report, args[0].dval, pattern, why, sizeof(why)) == 0)
        status = ebpfMonOpDone;
    if (status == ebpfMonOpDone && ebpfMonShellHasText(args[2].sval)) {
        writeFile(args[2].sval, ebpfMonTextReportGetText(report));
        ebpfMonTextReportFree(report);
    } else {
        ebpfMonShellPrintReport("ebpfMonUnused", report, status, why);
    }
}

static const ebpfMonShellCommand commands[] = {
    {"ebpfMonUsage", setUsage, {{"file", iocshArgString}, {"megabytes", iocshArgInt}},
     "Keeps in this SQLite file who last read, wrote and subscribed to each PV. The file grows to at most\n"
     "so many megabytes (256). Before iocInit. Example: ebpfMonUsage /var/lib/ebpfmon/uses.db\n"},
    {"ebpfMonUnused", listUnused, {{"days", iocshArgDouble}, {"pattern", iocshArgString}, {"file", iocshArgString}},
     "Lists the records that match and that nobody was seen to use for so many days, and when the IOCs were\n"
     "watched. With a file, writes the list there. Needs ebpfMonUsage.\n"
     "Example: ebpfMonUnused 30 \"RING:*\" /tmp/unused.txt\n"}
};

static void ebpfMonUsesRegistrar(void)
{
    uses = ebpfMonUsesNew(&module);
    ebpfMonShellAddModule(&module, uses, commands, sizeof(commands) / sizeof(commands[0]));
}

epicsExportRegistrar(ebpfMonUsesRegistrar);
