/* SPDX-License-Identifier: BSD-3-Clause */
/* The iocsh commands of the logs. */
#include <stdlib.h>
#include <string.h>

#include <epicsExport.h>
#include <epicsStdlib.h>
#include <epicsString.h>
#include <errlog.h>

#include "model/logControl.h"
#include "record/shellDef.h"

#define MODES "  mode    changes (puts that change the value, and those that failed), all, burst (puts to one\n" \
              "          PV in quick succession are joined), off; caPutLog's numbers -1, 0, 1, 2 too\n"

/* The mode, or -1 with a message. */
static int modeOf(const char *command, const char *argument, const char *otherwise)
{
    int mode = ebpfMonLogModeParse(given(argument) ? argument : otherwise);

    if (mode < 0)
        errlogSevPrintf(errlogMajor, "%s: mode \"%s\" is not known: give off, changes, all or burst\n", command,
                        argument);
    return mode;
}

/* A number that may be left out; nonzero with a message when it is none. */
static int number(const char *command, const char *what, const char *argument, double *value)
{
    if (!given(argument) || epicsParseDouble(argument, value, NULL) == 0)
        return 0;
    errlogSevPrintf(errlogMajor, "%s: %s \"%s\" is not a number\n", command, what, argument);
    return -1;
}

static const iocshFuncDef jsonDef = {
    "ebpfMonJsonLog", 5,
    ARGS(ARG("file", iocshArgString), ARG("maxMB", iocshArgString), ARG("hours", iocshArgString),
         ARG("keep", iocshArgString), ARG("mode", iocshArgString))
    USAGE("Writes puts to a file, one JSON object a line. Again for the same file: changes how.\n"
          "  file    is rotated to file.1, file.2, …\n"
          "  maxMB   when it would become larger (100); 0: not\n"
          "  hours   when it is older (0); 0: not\n"
          "  keep    rotated files kept (10)\n"
          MODES
          "Example: ebpfMonJsonLog /var/log/ebpfMon/puts.json 100 24 30 all\n")
};

static void jsonCall(const iocshArgBuf *args)
{
    double maxMB = 100, hours = 0, keep = 10;
    int mode;

    if (!given(args[0].sval)) {
        errlogSevPrintf(errlogMajor, "ebpfMonJsonLog: give the name of a file\n");
        done(-1);
        return;
    }
    if (number("ebpfMonJsonLog", "maxMB", args[1].sval, &maxMB) ||
        number("ebpfMonJsonLog", "hours", args[2].sval, &hours) ||
        number("ebpfMonJsonLog", "keep", args[3].sval, &keep) ||
        (mode = modeOf("ebpfMonJsonLog", args[4].sval, "all")) < 0) {
        done(-1);
        return;
    }
    if (!(keep >= 0 && keep <= 1000)) /* what an int cannot have is refused as -1 is */
        keep = -1;
    done(ebpfMonLogControl()->json(args[0].sval, maxMB, hours, (int)keep, (ebpfMonLogMode)mode));
}

static const iocshFuncDef caPutLogDef = {
    "ebpfMonCaPutLog", 4,
    ARGS(ARG("target", iocshArgString), ARG("format", iocshArgString), ARG("mode", iocshArgString),
         ARG("prefix", iocshArgString))
    USAGE("Writes puts as the module caPutLog does. Several commands: several logs.\n"
          "  target  HOST or HOST:PORT of a log server (port 7011); a file, with a \"/\" in its name;\n"
          "          or PV: the newest line as PUT_LAST_CAPUTLOG\n"
          "  format  text (the default) or json\n"
          MODES
          "          (the default is changes, as in caPutLog)\n"
          "  prefix  begins each line; %i in it is the name of the IOC\n"
          "Example: ebpfMonCaPutLog logserver:7011 json burst \"fac=%i \"\n")
};

static void caPutLogCall(const iocshArgBuf *args)
{
    const char *format = given(args[1].sval) ? args[1].sval : "text";
    int mode, json = epicsStrCaseCmp(format, "json") == 0;

    if (!given(args[0].sval) || (!json && epicsStrCaseCmp(format, "text") != 0)) {
        errlogSevPrintf(errlogMajor, "ebpfMonCaPutLog: give HOST:PORT, a file with a \"/\" in its name, or PV; and the "
                        "format, text or json\n");
        done(-1);
        return;
    }
    mode = modeOf("ebpfMonCaPutLog", args[2].sval, "changes");
    done(mode < 0 ? -1 : ebpfMonLogControl()->caPutLog(args[0].sval, json, (ebpfMonLogMode)mode,
                                                       args[3].sval ? args[3].sval : ""));
}

static const iocshFuncDef metadataDef = {
    "ebpfMonLogMetadata", 2, ARGS(ARG("key", iocshArgString), ARG("value", iocshArgString))
    USAGE("A key of your own in each line of caPutLog's JSON, as caPutJsonLogMetadata. No value: takes it away.\n"
          "Example: ebpfMonLogMetadata facility BESSY\n")
};

static void metadataCall(const iocshArgBuf *args)
{
    if (!given(args[0].sval)) {
        errlogSevPrintf(errlogMajor, "ebpfMonLogMetadata: give a key and a value\n");
        done(-1);
        return;
    }
    done(ebpfMonLogControl()->metadata(args[0].sval, args[1].sval ? args[1].sval : ""));
}

static const iocshFuncDef rotateDef = {
    "ebpfMonLogRotate", 0, NULL USAGE("Begins all log files anew, as the PV LOG_ROTATE does.\n")
};

static void rotateCall(const iocshArgBuf *args)
{
    (void)args;
    done(ebpfMonLogControl()->rotate());
}

static const iocshFuncDef showDef = {
    "ebpfMonLogShow", 1, ARGS(ARG("level", iocshArgInt))
    USAGE("Lists the logs: what was written and lost, and why. Level 1: and what was joined and skipped.\n")
};

static void showCall(const iocshArgBuf *args)
{
    ebpfMonLogControl()->report(args[0].ival);
}

static void ebpfMonLogShellRegistrar(void)
{
    iocshRegister(&jsonDef, jsonCall);
    iocshRegister(&caPutLogDef, caPutLogCall);
    iocshRegister(&metadataDef, metadataCall);
    iocshRegister(&rotateDef, rotateCall);
    iocshRegister(&showDef, showCall);
}
epicsExportRegistrar(ebpfMonLogShellRegistrar);
