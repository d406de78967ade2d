/* SPDX-License-Identifier: BSD-3-Clause */
/* The iocsh commands that set up the monitor: sizes, start, filter, levels; and its report. */
#include <epicsStdio.h>
#include <epicsString.h>
#include <errlog.h>

#include "model/published.h"
#include "model/ops.h"
#include "module/modules.h"
#include "record/filterSub.h"
#include "record/shellCommand.h"

static void configureMonitor(const iocshArgBuf *args)
{
    const ebpfMonMonitorOps *monitor = ebpfMonOpsGet()->monitor;
    ebpfMonSettings settings = {
        .maxRecords = (unsigned)args[0].ival, .maxRoots = (unsigned)args[1].ival, .ringKiB = (unsigned)args[2].ival,
        .watchSelf = args[3].ival, .wireKiB = args[4].ival,
    };
    static const char *const sizes[] = {"maxRecords", "maxRoots", "ringKiB"};
    ebpfMonOpStatus status;
    char why[256] = "";

    for (int i = 0; i < 3; i++) {
        if (args[i].ival < 0) {
            errlogSevPrintf(errlogMajor, "ebpfMonConfigure: %s cannot be %d: give 0 for the default\n",
                            sizes[i], args[i].ival);
            ebpfMonShellSetStatus(-1);
            return;
        }
    }
    status = monitor->configure(monitor->arg, &settings, why, sizeof(why));
    ebpfMonShellSetStatus(ebpfMonShellCheckOp("ebpfMonConfigure", status, why));
}

static void startMonitor(const iocshArgBuf *args)
{
    const ebpfMonMonitorOps *monitor = ebpfMonOpsGet()->monitor;
    ebpfMonState state = ebpfMonPublishedLock()->state;
    long status;

    (void)args;
    ebpfMonPublishedUnlock();
    if (state == ebpfMonRunning || state == ebpfMonDegraded) {
        printf("ebpfMonStart: ebpfMon runs already\n");
        return;
    }
    status = monitor->start(monitor->arg);
    if (status) {
        errlogSevPrintf(errlogMajor, "ebpfMonStart: ebpfMon did not start: the PV STATE_MSG says why\n");
    } else {
        printf("ebpfMonStart: ebpfMon runs\n");
        ebpfMonFilterReprocess();
    }
    ebpfMonShellSetStatus(status);
}

static void setFilterByCommand(const iocshArgBuf *args)
{
    const ebpfMonMonitorOps *monitor = ebpfMonOpsGet()->monitor;
    ebpfMonFilter filter;
    char text[256] = "";
    unsigned in, inputs = 0;
    long status = 0;

    monitor->getFilter(monitor->arg, &filter);
    for (in = 0; in < EBPFMON_FILTER_INPUTS && !status; in++) {
        if (!ebpfMonShellHasText(args[in].sval))
            continue;
        inputs |= 1u << in;
        status = ebpfMonFilterParse(&filter, in, args[in].sval, text, sizeof(text));
    }
    if (!status)
        status = ebpfMonFilterCommand(&filter, inputs, text, sizeof(text));
    if (status)
        errlogSevPrintf(errlogMajor, "ebpfMonFilter: %s\n", text);
    else
        printf("%s\n", text);
    ebpfMonShellSetStatus(status);
}

static void setLevel(const iocshArgBuf *args)
{
    const ebpfMonMonitorOps *monitor = ebpfMonOpsGet()->monitor;
    int level = ebpfMonLevelParse(args[1].sval);
    ebpfMonOpStatus status;
    char why[160] = "";

    if (!ebpfMonShellHasText(args[0].sval) ||
        (level < 0 && (!ebpfMonShellHasText(args[1].sval) || epicsStrCaseCmp(args[1].sval, "filter") != 0))) {
        errlogSevPrintf(errlogMajor, "ebpfMonLevel: give a pattern of IOC names and one of off, puts, "
                        "counts, chains, trace, filter\n");
        ebpfMonShellSetStatus(-1);
        return;
    }
    status = monitor->setLevel(monitor->arg, args[0].sval, level, why, sizeof(why));
    ebpfMonShellSetStatus(ebpfMonShellCheckOp("ebpfMonLevel", status, why));
}

static void setReference(const iocshArgBuf *args)
{
    const ebpfMonMonitorOps *monitor = ebpfMonOpsGet()->monitor;
    ebpfMonOpStatus status;
    char why[160] = "";

    if (!ebpfMonShellHasText(args[0].sval)) {
        errlogSevPrintf(errlogMajor, "ebpfMonReference: give a pattern of IOC names, and 1 or 0\n");
        ebpfMonShellSetStatus(-1);
        return;
    }
    status = monitor->setReference(monitor->arg, args[0].sval, args[1].ival, why, sizeof(why));
    ebpfMonShellSetStatus(ebpfMonShellCheckOp("ebpfMonReference", status, why));
}

static void resetLost(const iocshArgBuf *args)
{
    const ebpfMonMonitorOps *monitor = ebpfMonOpsGet()->monitor;
    const ebpfMonLogOps *logs = ebpfMonOpsGet()->logs;

    (void)args;
    monitor->resetLost(monitor->arg);
    logs->resetLost(logs->arg);
}

static void printReport(const iocshArgBuf *args)
{
    const ebpfMonMonitorOps *monitor = ebpfMonOpsGet()->monitor;
    const ebpfMonLogOps *logs = ebpfMonOpsGet()->logs;
    ebpfMonTextReport *report = ebpfMonTextReportNew();

    ebpfMonShellPrintReport("ebpfMonReport", report, monitor->addReport(monitor->arg, report, args[0].ival), "");
    logs->report(logs->arg, args[0].ival);
    ebpfMonModulesReport(args[0].ival);
}

static const ebpfMonShellCommand commands[] = {
    {"ebpfMonConfigure", configureMonitor,
     {{"maxRecords", iocshArgInt}, {"maxRoots", iocshArgInt}, {"ringKiB", iocshArgInt},
      {"watchSelf", iocshArgInt}, {"wireKiB", iocshArgInt}},
     "Sets sizes, before iocInit. 0: the default.\n"
     "  maxRecords  records of all watched IOCs together (1048576; before kernel 6.1 200000)\n"
     "  maxRoots    chain roots with a histogram (262144; before kernel 6.1 200000)\n"
     "  ringKiB     event ring, a power of two (8192)\n"
     "  watchSelf   1: this IOC is watched too (0)\n"
     "  wireKiB     ring for the packets of each network namespace (8192); -1: packets are not read\n"
     "Example: ebpfMonConfigure 2000000 0 16384\n"},
    {"ebpfMonStart", startMonitor, EBPFMON_NO_ARGS,
     "Starts the monitor again after a failed start. iocInit does the first start.\n"},
    {"ebpfMonFilter", setFilterByCommand,
     {{"ioc", iocshArgString}, {"record", iocshArgString}, {"field", iocshArgString}, {"host", iocshArgString},
      {"user", iocshArgString}, {"level", iocshArgString}, {"slowUs", iocshArgString},
      {"sample", iocshArgString}, {"budget", iocshArgString}, {"timed", iocshArgString}},
     "Puts a filter in force, and sets the FILTER_* PVs. An argument that is \"\" or left out changes\n"
     "nothing; before iocInit its value comes from the PV.\n"
     "  ioc record field host user  patterns with ? and *\n"
     "  level   off, puts, counts, chains or trace; IOCs that do not match are off\n"
     "  slowUs  keep chains that take longer, in us; 0: keep none\n"
     "  sample  level trace: keep one chain in so many\n"
     "  budget  most CPU time to take from each IOC, percent of one core; 0: no limit\n"
     "  timed   level chains: percent of the time in which chains of scan lists are timed; 100: always\n"
     "Example: ebpfMonFilter \"*\" \"RING:*\" \"\" \"\" \"\" trace 5000 10 2\n"},
    {"ebpfMonLevel", setLevel, {{"iocPattern", iocshArgString}, {"level", iocshArgString}},
     "Sets the level of the IOCs that match. It replaces the level of the filter for them.\n"
     "  level  off, puts, counts, chains, trace; filter: cancels what was set for this same pattern,\n"
     "         also by ebpfMonReference\n"
     "At level chains all chains of these IOCs are timed, with any value of FILTER_TIMED.\n"
     "If several patterns match, the newest counts. ebpfMonReport 1 lists the patterns, at most 64.\n"
     "Example: ebpfMonLevel \"vac*\" trace\n"},
    {"ebpfMonReference", setReference, {{"iocPattern", iocshArgString}, {"on", iocshArgInt}},
     "For tests. 1: also counts processings of the IOCs that match by a trap on dbProcess, to compare\n"
     "both counts. This costs the IOC much CPU time. 0: stops it.\n"
     "Example: ebpfMonReference \"vac*\" 1\n"},
    {"ebpfMonReset", resetLost, EBPFMON_NO_ARGS,
     "Sets the loss counters to 0 and clears the alarm of LOST_CNT.\n"},
    {"ebpfMonReport", printReport, {{"level", iocshArgInt}},
     "Prints state, costs and losses. Level 1 adds tables, rules, IOCs and their health. Level 2 adds the\n"
     "places of the probes.\n"
     "The same as: dbior drvEbpfMon level\n"}
};

void ebpfMonMonitorShellRegister(void)
{
    ebpfMonShellRegisterCommands(commands, sizeof(commands) / sizeof(commands[0]));
}
