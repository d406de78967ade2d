/* SPDX-License-Identifier: BSD-3-Clause */
/* The iocsh commands of queries. */
#include <epicsStdio.h>
#include <errlog.h>

#include "model/ops.h"
#include "record/shell.h"
#include "record/shellCommand.h"

static void loadQueries(const iocshArgBuf *args)
{
    const ebpfMonQueryOps *queries = ebpfMonOpsGet()->queries;
    char text[800];
    long status = queries->load(queries->arg, args[0].sval, text, sizeof(text));

    if (status)
        errlogSevPrintf(errlogMajor, "ebpfMonQueryLoad: %s\n", text);
    else
        printf("%s\n", text);
    ebpfMonShellSetStatus(status);
}

static void runQuery(const char *command, const char *name, int on)
{
    const ebpfMonQueryOps *queries = ebpfMonOpsGet()->queries;
    long status = ebpfMonShellHasText(name) ? queries->run(queries->arg, name, on) : -1;

    if (status)
        errlogSevPrintf(errlogMajor, "%s: there is no query \"%s\". ebpfMonQueries lists those that are loaded\n",
                        command, ebpfMonShellGetText(name, ""));
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
    const ebpfMonQueryOps *queries = ebpfMonOpsGet()->queries;
    ebpfMonTextReport *report = ebpfMonTextReportNew();

    (void)args;
    queries->addList(queries->arg, report);
    ebpfMonTextReportPrint(report);
}

/* Prints a report of the query "name"; the function "add" writes it. */
static void printPart(const char *command, const char *name,
                      long (*add)(void *arg, ebpfMonTextReport *report, const char *name))
{
    ebpfMonTextReport *report = ebpfMonTextReportNew();
    long status = ebpfMonShellHasText(name) ? add(ebpfMonOpsGet()->queries->arg, report, name) : -1;

    if (status)
        errlogSevPrintf(errlogMajor, "%s: there is no query \"%s\". ebpfMonQueries lists those that are loaded\n",
                        command, ebpfMonShellGetText(name, ""));
    ebpfMonTextReportPrint(report);
    ebpfMonShellSetStatus(status);
}

static void printQuery(const iocshArgBuf *args)
{
    printPart("ebpfMonQueryPrint", args[0].sval, ebpfMonOpsGet()->queries->addResult);
}

static void printStacks(const iocshArgBuf *args)
{
    printPart("ebpfMonQueryStacks", args[0].sval, ebpfMonOpsGet()->queries->addStacks);
}

static const ebpfMonShellCommand commands[] = {
    {"ebpfMonQueryLoad", loadQueries, {{"file", iocshArgStringPath}},
     "Loads the queries of a file (documentation/use/queries.md). If the file has a mistake, it loads none. The\n"
     "queries replace those that were loaded from this file before. Queries that run are started again.\n"
     "Example: ebpfMonQueryLoad \"queries/systemCalls.json\"\n"},
    {"ebpfMonQueryStart", startQuery, {{"name", iocshArgString}},
     "Starts a query, or starts one again that stopped. Its counts begin with 0.\n"},
    {"ebpfMonQueryStop", stopQuery, {{"name", iocshArgString}},
     "Stops a query and removes its probes and programs. Its results stay until it starts again.\n"},
    {"ebpfMonQueries", listQueries, EBPFMON_NO_ARGS,
     "Lists the queries with their states, their costs, and the events that they did not count.\n"},
    {"ebpfMonQueryPrint", printQuery, {{"name", iocshArgString}},
     "Prints the rows of a query, its histogram as bars, and the last events, if it has \"events\".\n"},
    {"ebpfMonQueryStacks", printStacks, {{"name", iocshArgString}},
     "Prints the stacks of a query that has \"stacks\". Each different stack is one line: the functions,\n"
     "outermost first, with ';' between them, and how often it was seen. flamegraph.pl draws it.\n"
     "Example: ebpfMonQueryStacks CPU_STACKS > /tmp/cpu.folded\n"}
};

void ebpfMonQueryShellRegister(void)
{
    ebpfMonShellRegisterCommands(commands, sizeof(commands) / sizeof(commands[0]));
}
