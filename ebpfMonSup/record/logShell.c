/* SPDX-License-Identifier: BSD-3-Clause */
/* The iocsh commands of the logs. */
#include <stdlib.h>
#include <string.h>

#include <epicsStdlib.h>
#include <epicsString.h>
#include <errlog.h>

#include "model/ops.h"
#include "record/shellCommand.h"

#define MODES "  mode    changes (puts that change the value, and those that failed), all, burst (puts to one\n" \
              "          PV in quick succession are joined), off; caPutLog's numbers -1, 0, 1, 2 too\n"

/* Returns the mode, or -1 after a message. */
static int parseMode(const char *command, const char *argument, const char *otherwise)
{
    int mode = ebpfMonLogModeParse(ebpfMonShellHasText(argument) ? argument : otherwise);

    if (mode < 0)
        errlogSevPrintf(errlogMajor, "%s: mode \"%s\" is not known: give off, changes, all or burst\n", command,
                        argument);
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
    const ebpfMonLogOps *logs = ebpfMonOpsGet()->logs;
    double maxMB = 100, hours = 0, keep = 10;
    int mode;

    if (!ebpfMonShellHasText(args[0].sval)) {
        errlogSevPrintf(errlogMajor, "ebpfMonJsonLog: give the name of a file\n");
        ebpfMonShellSetStatus(-1);
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
    ebpfMonShellSetStatus(logs->json(logs->arg, args[0].sval, maxMB, hours, (int)keep, (ebpfMonLogMode)mode));
}

static void addCaPutLog(const iocshArgBuf *args)
{
    const ebpfMonLogOps *logs = ebpfMonOpsGet()->logs;
    const char *format = ebpfMonShellHasText(args[1].sval) ? args[1].sval : "text";
    int mode, json = epicsStrCaseCmp(format, "json") == 0;

    if (!ebpfMonShellHasText(args[0].sval) || (!json && epicsStrCaseCmp(format, "text") != 0)) {
        errlogSevPrintf(errlogMajor, "ebpfMonCaPutLog: give HOST:PORT, a file with a \"/\" in its name, or PV; and the "
                        "format, text or json\n");
        ebpfMonShellSetStatus(-1);
        return;
    }
    mode = parseMode("ebpfMonCaPutLog", args[2].sval, "changes");
    ebpfMonShellSetStatus(mode < 0 ? -1 : logs->caPutLog(logs->arg, args[0].sval, json, (ebpfMonLogMode)mode,
                                                                    ebpfMonShellGetText(args[3].sval, "")));
}

static void setMetadata(const iocshArgBuf *args)
{
    const ebpfMonLogOps *logs = ebpfMonOpsGet()->logs;

    if (!ebpfMonShellHasText(args[0].sval)) {
        errlogSevPrintf(errlogMajor, "ebpfMonLogMetadata: give a key and a value\n");
        ebpfMonShellSetStatus(-1);
        return;
    }
    ebpfMonShellSetStatus(logs->metadata(logs->arg, args[0].sval, ebpfMonShellGetText(args[1].sval, "")));
}

static void rotateLogs(const iocshArgBuf *args)
{
    const ebpfMonLogOps *logs = ebpfMonOpsGet()->logs;

    (void)args;
    ebpfMonShellSetStatus(logs->rotate(logs->arg));
}

static void printLogs(const iocshArgBuf *args)
{
    const ebpfMonLogOps *logs = ebpfMonOpsGet()->logs;

    logs->report(logs->arg, args[0].ival);
}

static const ebpfMonShellCommand commands[] = {
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

void ebpfMonLogShellRegister(void)
{
    ebpfMonShellRegisterCommands(commands, sizeof(commands) / sizeof(commands[0]));
}
