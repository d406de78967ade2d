/* SPDX-License-Identifier: BSD-3-Clause */
/* The iocsh commands of OTLP and Zipkin. */
#include <errlog.h>

#include "model/ops.h"
#include "record/shell.h"
#include "record/shellCommand.h"

static void setOtlp(const iocshArgBuf *args)
{
    const ebpfMonLogOps *logs = ebpfMonOpsGet()->logs;

    if (!ebpfMonShellHasText(args[0].sval)) {
        errlogSevPrintf(errlogMajor, "ebpfMonOtlp: give the URL of the collector, such as http://127.0.0.1:4318\n");
        ebpfMonShellSetStatus(-1);
        return;
    }
    ebpfMonShellSetStatus(logs->otlp(logs->arg, args[0].sval, ebpfMonShellGetText(args[1].sval, "logs,metrics"),
                                                   ebpfMonShellGetText(args[2].sval, "")));
}

static void setZipkin(const iocshArgBuf *args)
{
    const ebpfMonLogOps *logs = ebpfMonOpsGet()->logs;

    if (!ebpfMonShellHasText(args[0].sval)) {
        errlogSevPrintf(errlogMajor, "ebpfMonZipkin: give the whole URL, such as http://127.0.0.1:9411/api/v2/spans\n");
        ebpfMonShellSetStatus(-1);
        return;
    }
    ebpfMonShellSetStatus(logs->zipkin(logs->arg, args[0].sval));
}

static void printOtlp(const iocshArgBuf *args)
{
    const ebpfMonLogOps *logs = ebpfMonOpsGet()->logs;

    logs->otlpReport(logs->arg, args[0].ival);
}

static const ebpfMonShellCommand commands[] = {
    {"ebpfMonOtlp", setOtlp, {{"url", iocshArgString}, {"signals", iocshArgString}, {"headers", iocshArgString}},
     "Sends puts, counts and traces to a collector, by OTLP over HTTP in JSON. It replaces the\n"
     "OTEL_EXPORTER_OTLP_* endpoints of the environment.\n"
     "  url      URL of the collector, without /v1/logs; off: stops sending\n"
     "  signals  some of logs,metrics,traces (logs,metrics)\n"
     "  headers  Name=value,Name=value; %XX for other characters\n"
     "Example: ebpfMonOtlp http://127.0.0.1:4318 logs,metrics\n"},
    {"ebpfMonZipkin", setZipkin, {{"url", iocshArgString}},
     "Sends the spans to Zipkin, besides OTLP or instead of it. It replaces OTEL_EXPORTER_ZIPKIN_ENDPOINT.\n"
     "  url  the whole URL; off: stops sending\n"
     "Example: ebpfMonZipkin http://127.0.0.1:9411/api/v2/spans\n"},
    {"ebpfMonOtlpShow", printOtlp, {{"level", iocshArgInt}},
     "Prints how much was sent by OTLP and to Zipkin, how much was lost, and why. Level 1: every reason.\n"}
};

void ebpfMonOtlpShellRegister(void)
{
    ebpfMonShellRegisterCommands(commands, sizeof(commands) / sizeof(commands[0]));
}
