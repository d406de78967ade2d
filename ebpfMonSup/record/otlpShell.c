/* SPDX-License-Identifier: BSD-3-Clause */
/* The iocsh commands of OTLP and Zipkin. */
#include <epicsExport.h>
#include <errlog.h>
#include <iocsh.h>

#include "model/logOps.h"

/* Base before 7.0.3 has no place for the usage text. */
#ifdef IOCSHFUNCDEF_HAS_USAGE
#define USAGE(text) , text
#else
#define USAGE(text)
#endif

#define ARGS(...) (const iocshArg *[]){__VA_ARGS__}
#define ARG(name, type) &(const iocshArg){name, type}

static const iocshFuncDef otlpDef = {
    "ebpfMonOtlp", 3,
    ARGS(ARG("url", iocshArgString), ARG("signals", iocshArgString), ARG("headers", iocshArgString))
    USAGE("Sends puts, counts and traces to a collector, by OTLP over HTTP in JSON. The OTEL_EXPORTER_OTLP_* endpoints of the\n"
          "environment are not used then.\n"
          "  url      of the collector, without /v1/logs and the like; off: sends nothing\n"
          "  signals  some of logs,metrics,traces (logs,metrics)\n"
          "  headers  Name=value,Name=value; %XX for other characters\n"
          "Example: ebpfMonOtlp http://127.0.0.1:4318 logs,metrics\n")
};

static void otlpCall(const iocshArgBuf *args)
{
    const char *signals = args[1].sval;

    if (!args[0].sval || !args[0].sval[0]) {
        errlogSevPrintf(errlogMajor, "ebpfMonOtlp: give the URL of the collector, as http://127.0.0.1:4318\n");
        iocshSetError(-1);
        return;
    }
    iocshSetError(ebpfMonLogOpsGet()->otlp(args[0].sval, signals && signals[0] ? signals : "logs,metrics",
                                            args[2].sval ? args[2].sval : "") ? -1 : 0);
}

static const iocshFuncDef zipkinDef = {
    "ebpfMonZipkin", 1, ARGS(ARG("url", iocshArgString))
    USAGE("Sends the spans to Zipkin, besides or in place of OTLP. OTEL_EXPORTER_ZIPKIN_ENDPOINT is not used then.\n"
          "  url  whole; off: sends none\n"
          "Example: ebpfMonZipkin http://127.0.0.1:9411/api/v2/spans\n")
};

static void zipkinCall(const iocshArgBuf *args)
{
    if (!args[0].sval || !args[0].sval[0]) {
        errlogSevPrintf(errlogMajor, "ebpfMonZipkin: give the whole URL, as http://127.0.0.1:9411/api/v2/spans\n");
        iocshSetError(-1);
        return;
    }
    iocshSetError(ebpfMonLogOpsGet()->zipkin(args[0].sval) ? -1 : 0);
}

static const iocshFuncDef showDef = {
    "ebpfMonOtlpShow", 1, ARGS(ARG("level", iocshArgInt))
    USAGE("What was sent by OTLP and to Zipkin and lost, and why. Level 1: every reason.\n")
};

static void showCall(const iocshArgBuf *args)
{
    ebpfMonLogOpsGet()->otlpReport(args[0].ival);
}

static void ebpfMonOtlpShellRegistrar(void)
{
    iocshRegister(&otlpDef, otlpCall);
    iocshRegister(&zipkinDef, zipkinCall);
    iocshRegister(&showDef, showCall);
}
epicsExportRegistrar(ebpfMonOtlpShellRegistrar);
