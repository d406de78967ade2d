/* SPDX-License-Identifier: BSD-3-Clause */
/* The iocsh commands that list what the monitor sees. */
#include <stdlib.h>

#include <epicsStdio.h>

#include "common/textReport.h"
#include "model/published.h"
#include "model/ops.h"
#include "record/shellCommand.h"

/* "argument": the pattern, and "what" says of which names; NULL: the command has no pattern. "record": a pattern of
 * records. */
static void printList(const char *command, ebpfMonList of, const char *argument, const char *what, const char *record)
{
    const ebpfMonMonitorOps *monitor = ebpfMonOpsGet()->monitor;
    char pattern[EBPFMON_PATTERN_SIZE] = "";
    ebpfMonTextReport *report;

    if (what && ebpfMonShellReadPattern(command, argument, what, pattern))
        return;
    report = ebpfMonTextReportNew();
    ebpfMonShellPrintReport(command, report, monitor->addList(monitor->arg, of, report, pattern, record), "");
}

static void listIocs(const iocshArgBuf *args)
{
    printList("ebpfMonIocs", ebpfMonListIocs, NULL, NULL, NULL);
}

static void listRecords(const iocshArgBuf *args)
{
    char record[EBPFMON_PATTERN_SIZE];

    if (ebpfMonShellReadPattern("ebpfMonRecords", args[1].sval, "record", record) == 0)
        printList("ebpfMonRecords", ebpfMonListRecords, args[0].sval, "IOC", record);
}

static void printPuts(const iocshArgBuf *args)
{
    unsigned wanted = args[0].ival > 0 ? (unsigned)args[0].ival : 20;
    unsigned count = 0;
    char line[EBPFMON_LINE_SIZE];
    ebpfMonPut *puts;
    const ebpfMonPublished *published;

    if (wanted > EBPFMON_PUTS_MAX)
        wanted = EBPFMON_PUTS_MAX;
    puts = malloc(wanted * sizeof(*puts));
    if (!puts) {
        ebpfMonShellFail("ebpfMonPuts: out of memory: give a smaller number\n");
        return;
    }
    published = ebpfMonPublishedLock(); /* copy the puts, and print them without the lock: a terminal may be slow */
    for (; count < wanted && ebpfMonPublishedGetPut(published, count); count++)
        puts[count] = *ebpfMonPublishedGetPut(published, count);
    ebpfMonPublishedUnlock();
    while (count--) {
        ebpfMonPutLine(&puts[count], line, sizeof(line));
        printf("%s\n", line);
    }
    free(puts);
}

static void listChains(const iocshArgBuf *args)
{
    printList("ebpfMonChains", ebpfMonListChains, args[0].sval, "root", NULL);
}

static void traceChains(const iocshArgBuf *args)
{
    const ebpfMonMonitorOps *monitor = ebpfMonOpsGet()->monitor;
    const char *pattern = ebpfMonShellGetText(args[0].sval, "*");
    unsigned chains = ebpfMonShellHasText(args[0].sval) && !args[1].ival ? 1 : (unsigned)args[1].ival;
    ebpfMonTextReport *report;
    ebpfMonOpStatus status;
    char why[160] = "";

    if (args[1].ival < 0) {
        ebpfMonShellFail("ebpfMonTrace: %d chains cannot be printed: give a number from 1 on\n", args[1].ival);
        return;
    }
    report = ebpfMonTextReportNew();
    status = monitor->trace(monitor->arg, report, pattern, chains, why, sizeof(why));
    ebpfMonShellPrintReport("ebpfMonTrace", report, status, why);
}

static void addNames(ebpfMonTextReport *report, const ebpfMonSearches *searches, unsigned wanted)
{
    static const ebpfMonReportColumn columns[] = {
        {"never found", -60}, {"searches", 10}, {" first", -20}, {" last", -20}, {" by", 0}
    };
    char first[24], last[24];

    ebpfMonTextReportAdd(report, "%llu searches, %.1f per second; names never found: %u\n",
                         (unsigned long long)searches->count, searches->rate, searches->never);
    if (searches->names)
        ebpfMonTextReportBeginTable(report, columns, 5);
    for (unsigned i = 0; i < searches->names && i < wanted; i++) {
        const ebpfMonSearchRow *row = &searches->name[i];

        epicsTimeToStrftime(first, sizeof(first), "%Y-%m-%d %H:%M:%S", &row->first);
        epicsTimeToStrftime(last, sizeof(last), "%Y-%m-%d %H:%M:%S", &row->last);
        ebpfMonTextReportAddCell(report, "%s", row->name);
        ebpfMonTextReportAddCell(report, "%llu", (unsigned long long)row->count);
        ebpfMonTextReportAddCell(report, " %s", first);
        ebpfMonTextReportAddCell(report, " %s", last);
        ebpfMonTextReportAddCell(report, " %s", row->who);
    }
}

static void addClients(ebpfMonTextReport *report, const ebpfMonSearches *searches, unsigned wanted)
{
    static const ebpfMonReportColumn columns[] = {{"client", -30}, {"searches", 10}, {"1/s", 10}, {"never found", 12}};

    if (searches->clients)
        ebpfMonTextReportBeginTable(report, columns, 4);
    for (unsigned i = 0; i < searches->clients && i < wanted; i++) {
        const ebpfMonSearchClientRow *row = &searches->client[i];

        ebpfMonTextReportAddCell(report, "%s", row->name);
        ebpfMonTextReportAddCell(report, "%llu", (unsigned long long)row->count);
        ebpfMonTextReportAddCell(report, "%.1f", row->rate);
        ebpfMonTextReportAddCell(report, "%u", row->never);
    }
}

static void addServers(ebpfMonTextReport *report, const ebpfMonSearches *searches, unsigned wanted)
{
    static const ebpfMonReportColumn columns[] = {{"server", -30}, {"beacons", 10}, {"restarts", 10}, {" since", 0}};
    char since[24];

    ebpfMonTextReportAdd(report, "%llu beacons, %.1f per second, of %u servers\n",
                         (unsigned long long)searches->beacons, searches->beaconRate, searches->heard);
    if (searches->servers)
        ebpfMonTextReportBeginTable(report, columns, 4);
    for (unsigned i = 0; i < searches->servers && i < wanted; i++) {
        const ebpfMonBeaconRow *row = &searches->server[i];

        epicsTimeToStrftime(since, sizeof(since), "%Y-%m-%d %H:%M:%S", &row->began);
        ebpfMonTextReportAddCell(report, "%s", row->name);
        ebpfMonTextReportAddCell(report, "%llu", (unsigned long long)row->count);
        ebpfMonTextReportAddCell(report, "%llu", (unsigned long long)row->restarts);
        ebpfMonTextReportAddCell(report, " %s", since);
    }
}

static void listSearches(const iocshArgBuf *args)
{
    unsigned wanted = args[0].ival > 0 ? (unsigned)args[0].ival : 20;
    ebpfMonSearches *copy = malloc(sizeof(*copy));
    ebpfMonTextReport *report;

    if (!copy) {
        ebpfMonShellFail("ebpfMonSearches: out of memory: free memory on this host, then try again\n");
        return;
    }
    *copy = ebpfMonPublishedLock()->searches; /* formatting takes longer than the lock may be held */
    ebpfMonPublishedUnlock();
    report = ebpfMonTextReportNew();
    addNames(report, copy, wanted);
    addClients(report, copy, wanted);
    addServers(report, copy, wanted);
    if (copy->replaced)
        ebpfMonTextReportAdd(report, "%llu names, clients or servers were replaced by others: the tables were full\n",
                             (unsigned long long)copy->replaced);
    ebpfMonTextReportPrint(report);
    free(copy);
}

static const ebpfMonShellCommand commands[] = {
    {"ebpfMonIocs", listIocs, EBPFMON_NO_ARGS,
     "Lists the IOCs seen on this host, and how closely each is watched.\n"},
    {"ebpfMonRecords", listRecords, {{"iocPattern", iocshArgString}, {"recordPattern", iocshArgString}},
     "Lists records of the IOCs that match, with their counts. Without patterns: all.\n"
     "Example: ebpfMonRecords vac1 \"VAC:*:PRESSURE\"\n"},
    {"ebpfMonPuts", printPuts, {{"n", iocshArgInt}},
     "Prints the newest n puts (20), the newest last.\n"
     "Example: ebpfMonPuts 50\n"},
    {"ebpfMonChains", listChains, {{"pattern", iocshArgString}},
     "Lists the chains with a matching root record, and their latencies. Without a pattern: all.\n"
     "Example: ebpfMonChains \"VAC:*\"\n"},
    {"ebpfMonTrace", traceChains, {{"pattern", iocshArgString}, {"chains", iocshArgInt}},
     "Prints the next chains in which a record that matches processes, as trees. Each line has a record,\n"
     "the link that made it process, the time, and the value. Of an IOC at level trace it can print all\n"
     "chains (or one in FILTER_SAMPLE), else only slow ones. Without a number: one chain. Without\n"
     "arguments: stops printing.\n"
     "Example: ebpfMonTrace \"VAC:*\" 5\n"},
    {"ebpfMonSearches", listSearches, {{"n", iocshArgInt}},
     "Lists names that clients search and no server has, the clients that search most, and the servers\n"
     "that send beacons, n (20) of each.\n"
     "Example: ebpfMonSearches 100\n"}
};

void ebpfMonListShellRegister(void)
{
    ebpfMonShellRegisterCommands(commands, sizeof(commands) / sizeof(commands[0]));
}
