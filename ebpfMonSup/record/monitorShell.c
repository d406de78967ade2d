/* SPDX-License-Identifier: BSD-3-Clause */
/* The iocsh commands that set something up, and show it. */
#include <stdlib.h>
#include <epicsStdio.h>
#include <epicsStdlib.h>
#include <epicsString.h>
#include <errlog.h>

#include "access/guard.h"
#include "common/textReport.h"
#include "export/log/putLogs.h"
#include "model/ops.h"
#include "model/published.h"
#include "module/modules.h"
#include "record/filterSub.h"
#include "record/shellCommand.h"
#include "rules/rules.h"

/* --- sizes, start, filter, levels, report --- */

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
            ebpfMonShellFail("ebpfMonConfigure: %s cannot be %d: give 0 for the default\n", sizes[i], args[i].ival);
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
        ebpfMonShellFail("ebpfMonLevel: give a pattern of IOC names and one of off, puts, "
                         "counts, chains, trace, filter\n");
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
        ebpfMonShellFail("ebpfMonReference: give a pattern of IOC names, and 1 or 0\n");
        return;
    }
    status = monitor->setReference(monitor->arg, args[0].sval, args[1].ival, why, sizeof(why));
    ebpfMonShellSetStatus(ebpfMonShellCheckOp("ebpfMonReference", status, why));
}

static void resetLost(const iocshArgBuf *args)
{
    ebpfMonShellResetLost();
}

static void printReport(const iocshArgBuf *args)
{
    const ebpfMonMonitorOps *monitor = ebpfMonOpsGet()->monitor;
    ebpfMonTextReport *report = ebpfMonTextReportNew();

    ebpfMonShellPrintReport("ebpfMonReport", report, monitor->addReport(monitor->arg, report, args[0].ival), "");
    if (ebpfMonOpsGet()->logs)
        ebpfMonPutLogsReport(ebpfMonOpsGet()->logs, args[0].ival);
    ebpfMonModulesReport(args[0].ival);
}

/* --- who may write to the monitor's PVs --- */

typedef int (*operatorSetter)(ebpfMonOperators *operators, const char *list, char *text, size_t size);

static void setOperators(const char *command, const char *list, operatorSetter set)
{
    ebpfMonOperators *operators = ebpfMonJudgeSetOperators();
    char text[256] = "";
    int status = 0;

    if (ebpfMonShellHasText(list)) {
        if (!operators)
            snprintf(text, sizeof(text), "the operators cannot be changed after iocInit: write this command before "
                     "iocInit");
        status = operators ? set(operators, list, text, sizeof(text)) : -1;
    }
    if (status)
        errlogSevPrintf(errlogMajor, "%s: %s\n", command, text);
    else
        ebpfMonGuardReport(0);
    ebpfMonShellSetStatus(status);
}

static void setUsers(const iocshArgBuf *args)
{
    setOperators("ebpfMonOperators", args[0].sval, ebpfMonOperatorsSetUsers);
}

static void setHosts(const iocshArgBuf *args)
{
    setOperators("ebpfMonOperatorHosts", args[0].sval, ebpfMonOperatorsSetHosts);
}

/* --- rules and unexpected puts --- */

static void loadRulesByCommand(const iocshArgBuf *args)
{
    char text[512];
    int status = ebpfMonRulesFileLoad(ebpfMonOpsGet()->rules, args[0].sval, text, sizeof(text));

    if (status)
        errlogSevPrintf(errlogMajor, "ebpfMonRules: %s\n", text);
    else
        printf("%s\n", text);
    ebpfMonShellSetStatus(status);
}

static void addRules(ebpfMonTextReport *report)
{
    static const ebpfMonReportColumn columns[] = {{"rule", -40}, {"puts", 12}, {"unexpected", 12}};
    ebpfMonRuleCount *counts = malloc((EBPFMON_RULE_SET_MAX + 1) * sizeof(*counts));
    ebpfMonRules *rules = ebpfMonOpsGet()->rules;
    unsigned n = counts && rules ? ebpfMonRulesGetCounts(rules, counts, EBPFMON_RULE_SET_MAX + 1) : 0;

    if (n)
        ebpfMonTextReportBeginTable(report, columns, 3);
    for (unsigned i = 0; i < n; i++) {
        ebpfMonTextReportAddCell(report, "%s", counts[i].name[0] ? counts[i].name : "(no rule: default)");
        ebpfMonTextReportAddCell(report, "%llu", (unsigned long long)counts[i].judged);
        ebpfMonTextReportAddCell(report, "%llu", (unsigned long long)counts[i].bad);
    }
    free(counts);
}

static void printRules(const iocshArgBuf *args)
{
    ebpfMonTextReport *report = ebpfMonTextReportNew();
    ebpfMonPut *puts = malloc(EBPFMON_UNEXPECTED_MAX * sizeof(*puts));
    char line[EBPFMON_LINE_SIZE];
    const ebpfMonPublished *published;
    unsigned kept = 0, open;
    uint64_t newest;

    if (!puts) {
        errlogSevPrintf(errlogMajor, "ebpfMonRulesShow: out of memory: free memory on this host, then try again\n");
        ebpfMonTextReportFree(report);
        ebpfMonShellSetStatus(-1);
        return;
    }
    published = ebpfMonPublishedLock();
    ebpfMonTextReportAdd(report, "%s%s%s\n", published->rules.file, published->rules.file[0] ? ": " : "",
                         published->rules.message);
    open = (unsigned)published->unexpected.open;
    newest = published->unexpected.count;
    for (; ebpfMonPublishedGetUnexpected(published, kept); kept++)
        puts[kept] = *ebpfMonPublishedGetUnexpected(published, kept);
    ebpfMonPublishedUnlock();
    addRules(report);
    ebpfMonTextReportAdd(report, "unexpected puts: %llu, open %u%s\n", (unsigned long long)newest, open,
                         kept < open ? ", the newest of them:" : "");
    while (kept--) {
        ebpfMonPutLine(&puts[kept], line, sizeof(line));
        ebpfMonTextReportAdd(report, "%s: %s\n", line, puts[kept].rule);
    }
    ebpfMonTextReportPrint(report);
    ebpfMonPublishedSetUnexpectedShown(ebpfMonShownByShell, newest);
    free(puts);
}

static void acknowledgeByCommand(const iocshArgBuf *args)
{
    printf("unexpected puts open: %u\n", ebpfMonPublishedAcknowledge(ebpfMonShownByShell));
}

/* --- logs --- */

#define MODES "  mode    changes (puts that change the value, and those that failed), all, burst (puts to one\n" \
              "          PV in quick succession are joined), off; caPutLog's numbers -1, 0, 1, 2 too; with people\n" \
              "          behind it (all people) only what people write\n"

/* Returns the mode, or -1 after a message. */
static int parseMode(const char *command, const char *argument, const char *otherwise)
{
    int mode = ebpfMonLogModeParse(ebpfMonShellHasText(argument) ? argument : otherwise);

    if (mode < 0)
        errlogSevPrintf(errlogMajor, "%s: mode \"%s\" is not known: give off, changes, all or burst, and \"all "
                        "people\" for what people write\n", command, argument);
    return mode;
}

/* Reads a number; if it was left out, *value does not change. 0, or -1 after a message. */
static int parseArgument(const char *command, const char *what, const char *argument, double *value)
{
    if (!ebpfMonShellHasText(argument) || epicsParseDouble(argument, value, NULL) == 0)
        return 0;
    errlogSevPrintf(errlogMajor, "%s: %s \"%s\" is not a number\n", command, what, argument);
    return -1;
}

static void addJsonLog(const iocshArgBuf *args)
{
    ebpfMonPutLogs *logs = ebpfMonShellGetLogs();
    double maxMB = 100, hours = 0, keep = 10;
    int mode;

    if (!logs)
        return;
    if (!ebpfMonShellHasText(args[0].sval)) {
        ebpfMonShellFail("ebpfMonJsonLog: give the name of a file\n");
        return;
    }
    if (parseArgument("ebpfMonJsonLog", "maxMB", args[1].sval, &maxMB) ||
        parseArgument("ebpfMonJsonLog", "hours", args[2].sval, &hours) ||
        parseArgument("ebpfMonJsonLog", "keep", args[3].sval, &keep) ||
        (mode = parseMode("ebpfMonJsonLog", args[4].sval, "all")) < 0) {
        ebpfMonShellSetStatus(-1);
        return;
    }
    if (!(keep >= 0 && keep <= 1000)) /* it may be too large for an int: the log refuses -1 */
        keep = -1;
    ebpfMonShellSetStatus(ebpfMonPutLogsAddJson(logs, args[0].sval, maxMB, hours, (int)keep, (ebpfMonLogMode)mode));
}

static void addCaPutLog(const iocshArgBuf *args)
{
    ebpfMonPutLogs *logs = ebpfMonShellGetLogs();
    const char *format = ebpfMonShellHasText(args[1].sval) ? args[1].sval : "text";
    int mode, json = epicsStrCaseCmp(format, "json") == 0;

    if (!logs)
        return;
    if (!ebpfMonShellHasText(args[0].sval) || (!json && epicsStrCaseCmp(format, "text") != 0)) {
        ebpfMonShellFail("ebpfMonCaPutLog: give HOST:PORT, a file with a \"/\" in its name, or PV; and the "
                         "format, text or json\n");
        return;
    }
    mode = parseMode("ebpfMonCaPutLog", args[2].sval, "changes");
    ebpfMonShellSetStatus(mode < 0 ? -1 : ebpfMonPutLogsAddCaPutLog(logs, args[0].sval, json, (ebpfMonLogMode)mode,
                                                                    ebpfMonShellGetText(args[3].sval, "")));
}

static void setMetadata(const iocshArgBuf *args)
{
    ebpfMonPutLogs *logs = ebpfMonShellGetLogs();

    if (!ebpfMonShellHasText(args[0].sval))
        ebpfMonShellFail("ebpfMonLogMetadata: give a key and a value\n");
    else if (logs)
        ebpfMonShellSetStatus(ebpfMonPutLogsSetMetadata(logs, args[0].sval, ebpfMonShellGetText(args[1].sval, "")));
}

static void rotateLogs(const iocshArgBuf *args)
{
    ebpfMonPutLogs *logs = ebpfMonShellGetLogs();

    if (logs)
        ebpfMonShellSetStatus(ebpfMonPutLogsRotate(logs));
}

static void printLogs(const iocshArgBuf *args)
{
    ebpfMonPutLogs *logs = ebpfMonShellGetLogs();

    if (logs)
        ebpfMonPutLogsReport(logs, args[0].ival);
}

/* --- the commands --- */

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
     "The same as: dbior drvEbpfMon level\n"},
    {"ebpfMonOperators", setUsers, {{"users", iocshArgString}},
     "Sets the users of this host who may write to the monitor's PVs: names or uids. The kernel says\n"
     "which user a client is; the name that the client claims does not matter. Call it before iocInit.\n"
     "The list replaces the default (root and the user that runs the IOC). Without a list: prints it.\n"
     "Example: ebpfMonOperators \"root operator\"\n"},
    {"ebpfMonOperatorHosts", setHosts, {{"addresses", iocshArgString}},
     "Sets the other hosts from which clients may write to the monitor's PVs: numeric addresses.\n"
     "Every user of such a host may write. Call it before iocInit. The default is none. Without a list:\n"
     "prints it. Example: ebpfMonOperatorHosts \"10.0.0.5 10.0.0.6\"\n"},
    {"ebpfMonRules", loadRulesByCommand, {{"file", iocshArgStringPath}},
     "Puts the rules of a file in force. Rules say which puts are expected. Without a file: reads the last\n"
     "file again. A file with a mistake is refused as a whole, and the old rules stay in force.\n"
     "Example: ebpfMonRules \"rules.json\"\n"},
    {"ebpfMonRulesShow", printRules, EBPFMON_NO_ARGS,
     "Prints the rules in force, how often each decided, and the unexpected puts that are open, the newest\n"
     "last. ebpfMonPutAck then acknowledges these puts.\n"},
    {"ebpfMonPutAck", acknowledgeByCommand, EBPFMON_NO_ARGS,
     "Acknowledges the unexpected puts that the PVs or ebpfMonRulesShow have shown, but no later ones.\n"
     "The same as the PV PUT_BAD_ACK.\n"},
    {"ebpfMonJsonLog", addJsonLog,
     {{"file", iocshArgString}, {"maxMB", iocshArgString}, {"hours", iocshArgString}, {"keep", iocshArgString},
      {"mode", iocshArgString}},
     "Writes puts to a file, one JSON object on each line. The same file again: changes the settings.\n"
     "  file    old files become file.1, file.2 ...\n"
     "  maxMB   a new file begins before this size (100); 0: no limit\n"
     "  hours   a new file begins after this time (0); 0: no limit\n"
     "  keep    number of old files to keep (10)\n"
     MODES
     "Example: ebpfMonJsonLog /var/log/ebpfmon/puts.json 100 24 30 all\n"},
    {"ebpfMonCaPutLog", addCaPutLog,
     {{"target", iocshArgString}, {"format", iocshArgString}, {"mode", iocshArgString}, {"prefix", iocshArgString}},
     "Writes puts as the module caPutLog does. Several commands: several logs.\n"
     "  target  HOST or HOST:PORT of a log server (port 7011); a file, with a \"/\" in its name;\n"
     "          or PV: the newest line as PUT_LAST_CAPUTLOG\n"
     "  format  text (the default) or json\n"
     MODES
     "          (the default is changes, as in caPutLog)\n"
     "  prefix  begins each line; %i in it is the name of the IOC\n"
     "Example: ebpfMonCaPutLog logserver:7011 json burst \"fac=%i \"\n"},
    {"ebpfMonLogMetadata", setMetadata, {{"key", iocshArgString}, {"value", iocshArgString}},
     "Adds a key of your own to each line of caPutLog's JSON, as caPutJsonLogMetadata does. Without a value:\n"
     "removes the key.\n"
     "Example: ebpfMonLogMetadata facility BESSY\n"},
    {"ebpfMonLogRotate", rotateLogs, EBPFMON_NO_ARGS,
     "Starts new log files, as the PV LOG_ROTATE does.\n"},
    {"ebpfMonLogShow", printLogs, {{"level", iocshArgInt}},
     "Lists the logs: lines written and lost, and why. Level 1 adds puts in bursts and puts left out.\n"}
};

void ebpfMonMonitorShellRegister(void)
{
    ebpfMonShellRegisterCommands(commands, sizeof(commands) / sizeof(commands[0]));
}
