/* SPDX-License-Identifier: BSD-3-Clause */
/* The module: its PVs, its commands, its registration. */
#include <dbDefs.h>
#include <epicsExport.h>

#include "record/shellCommand.h"
#include "trace/traceSpans.h"
#include "otlp/otlp.h" /* after traceSpans.h: epicsVersion.h has a macro of the name of a member */

#define VALUE(member) offsetof(ebpfMonOtlpValues, member)

/* One per process, because Base calls registrars and commands without a context. */
static ebpfMonOtlp *otlp;

static const void *getValues(const struct ebpfMonPublished *published, unsigned index)
{
    return index ? NULL : ebpfMonOtlpGetValues(otlp);
}

/* In the order of ebpfMonOtlp.substitutions. */
static ebpfMonPv pvs[] = {
    {"OTLP_STATE", 0, getValues, ebpfMonCellInt, VALUE(state), 1, .cause = 1 + VALUE(message), .light = 1},
    {"OTLP_MSG", 0, getValues, ebpfMonCellText, VALUE(message), 1},
    {"OTLP_SENT_CNT", 0, getValues, ebpfMonCellCount, VALUE(sent), 1},
    {"OTLP_LOST_CNT", 0, getValues, ebpfMonCellCount, VALUE(lost), 1},
    {"OTLP_RATE", 0, getValues, ebpfMonCellDouble, VALUE(rate), 1},
    {"OTLP_QUEUE_LOAD", 0, getValues, ebpfMonCellDouble, VALUE(queue), 1},
};

static int startModule(void *arg, const ebpfMonModuleCore *core)
{
    ebpfMonOtlpReadEnvironment(arg);
    return 0;
}

/* It uses nothing of the kernel part, so nobody must wait for a thread that did not end; a message was logged. */
static int stopModule(void *arg, double seconds)
{
    ebpfMonOtlpStop(arg, seconds);
    ebpfMonOtlpWaitStopped(arg);
    return 0;
}

static void addPut(void *arg, const ebpfMonModulePut *put)
{
    ebpfMonOtlpAddPut(arg, put->context);
}

static ebpfMonSpanSink spans = { .isWanted = ebpfMonOtlpWantsSpans, .add = ebpfMonOtlpAddSpan,
                                 .hasRoom = ebpfMonOtlpHasRoom };

static ebpfMonModule module = {
    .name = "otlp", .pvs = pvs, .pvCount = NELEMENTS(pvs), .start = startModule, .stop = stopModule, .put = addPut,
    .spans = &spans, .resetLost = ebpfMonOtlpResetLost, .report = ebpfMonOtlpReport,
};

static void setOtlp(const iocshArgBuf *args)
{
    if (!ebpfMonShellHasText(args[0].sval)) {
        ebpfMonShellFail("ebpfMonOtlp: give the URL of the collector, such as http://127.0.0.1:4318\n");
        return;
    }
    ebpfMonShellSetStatus(ebpfMonOtlpSetCommand(otlp, args[0].sval,
                                                ebpfMonShellGetText(args[1].sval, "logs,metrics"),
                                                ebpfMonShellGetText(args[2].sval, "")));
}

static void setZipkin(const iocshArgBuf *args)
{
    if (!ebpfMonShellHasText(args[0].sval)) {
        ebpfMonShellFail("ebpfMonZipkin: give the whole URL, such as http://127.0.0.1:9411/api/v2/spans\n");
        return;
    }
    ebpfMonShellSetStatus(ebpfMonOtlpSetZipkin(otlp, args[0].sval));
}

static void printOtlp(const iocshArgBuf *args)
{
    ebpfMonOtlpReport(otlp, args[0].ival);
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

static void ebpfMonOtlpRegistrar(void)
{
    otlp = ebpfMonOtlpNew(&module);
    spans.arg = otlp;
    ebpfMonShellAddModule(&module, otlp, commands, sizeof(commands) / sizeof(commands[0]));
}

epicsExportRegistrar(ebpfMonOtlpRegistrar);
