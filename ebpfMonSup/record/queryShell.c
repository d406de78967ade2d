/* SPDX-License-Identifier: BSD-3-Clause */
/* The iocsh commands of queries. */
#include <epicsStdio.h>
#include <errlog.h>

#include "model/queryOps.h"
#include "record/shell.h"
#include "record/shellCommand.h"

static void loadQueries(const iocshArgBuf *args)
{
    char text[512];
    long status = ebpfMonQueryOpsGet()->load(args[0].sval, text, sizeof(text));

    if (status)
        errlogSevPrintf(errlogMajor, "ebpfMonQueryLoad: %s\n", text);
    else
        printf("%s\n", text);
    ebpfMonShellSetStatus(status);
}

static void runQuery(const char *command, const char *name, int on)
{
    long status = ebpfMonShellHasText(name) ? ebpfMonQueryOpsGet()->run(name, on) : -1;

    if (status)
        errlogSevPrintf(errlogMajor, "%s: there is no query \"%s\". ebpfMonQueries lists those that are loaded\n", command,
                        ebpfMonShellGetText(name, ""));
    ebpfMonShellSetStatus(status);
}

static void startQuery(const iocshArgBuf *args)
{
    runQuery("ebpfMonQueryStart", args[0].sval, 1);
}

static void stopQuery(const iocshArgBuf *args)
{
    runQuery("ebpfMonQueryStop", args[0].sval, 0);
}

static void listQueries(const iocshArgBuf *args)
{
    ebpfMonTextReport *report = ebpfMonTextReportNew();

    (void)args;
    ebpfMonQueryOpsGet()->addList(report);
    ebpfMonTextReportPrint(report);
}

static void printQuery(const iocshArgBuf *args)
{
    ebpfMonTextReport *report = ebpfMonTextReportNew();
    long status = ebpfMonShellHasText(args[0].sval) ? ebpfMonQueryOpsGet()->addResult(report, args[0].sval) : -1;

    if (status)
        errlogSevPrintf(errlogMajor, "ebpfMonQueryPrint: there is no query \"%s\". ebpfMonQueries lists those that are "
                        "loaded\n", ebpfMonShellGetText(args[0].sval, ""));
    ebpfMonTextReportPrint(report);
    ebpfMonShellSetStatus(status);
}

static const ebpfMonShellCommand commands[] = {
    {"ebpfMonQueryLoad", loadQueries, {{"file", iocshArgStringPath}},
     "Loads the queries of a file (documentation/queries.md): all of them, or with a mistake none. Those of\n"
     "the same file that were loaded before go. Queries that run are started again.\n"
     "Example: ebpfMonQueryLoad \"queries/systemCalls.json\"\n"},
    {"ebpfMonQueryStart", startQuery, {{"name", iocshArgString}},
     "Starts a query, or starts one again that stopped. Its counts begin with 0.\n"},
    {"ebpfMonQueryStop", stopQuery, {{"name", iocshArgString}},
     "Stops a query: its probes and programs go. Its results stay until it starts again.\n"},
    {"ebpfMonQueries", listQueries, EBPFMON_NO_ARGS,
     "Lists the queries with their states, costs, and what they did not count.\n"},
    {"ebpfMonQueryPrint", printQuery, {{"name", iocshArgString}},
     "Prints the rows of a query, and its histogram as bars.\n"}
};

void ebpfMonQueryShellRegister(void)
{
    ebpfMonShellRegisterCommands(commands, sizeof(commands) / sizeof(commands[0]));
}
