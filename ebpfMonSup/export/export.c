/* SPDX-License-Identifier: BSD-3-Clause */
#include <errlog.h>

#include "export/export.h"
#include "export/log/putLogs.h"
#include "export/otlp/otlp.h"

/*
 * One of each per process, because there is one set of logs and collectors that shell and environment configure, and
 * one set of records that show them. Made before any thread of the monitor, and never freed: a put may be on its way in
 * at any time. NULL: without memory, or not registered (unit tests of other rooms).
 */
static ebpfMonPutLogs *logs;
static ebpfMonOtlp *otlp;

void ebpfMonExportPut(const ebpfMonPut *put)
{
    if (logs)
        ebpfMonPutLogsAddPut(logs, put);
    if (otlp)
        ebpfMonOtlpAddPut(otlp, put);
}

int ebpfMonExportWantsSpans(void)
{
    return otlp && ebpfMonOtlpWantsSpans(otlp);
}

void ebpfMonExportSpan(const ebpfMonSpan *span)
{
    if (otlp)
        ebpfMonOtlpAddSpan(otlp, span);
}

static long setJsonLog(const char *file, double maxMB, double hours, int keep, ebpfMonLogMode mode)
{
    ebpfMonPutLogConf conf;

    return ebpfMonPutLogConfSetJson(&conf, file, maxMB, hours, keep, mode) ? -1 : ebpfMonPutLogsConfigure(logs, &conf);
}

static long setCaPutLog(const char *target, int asJson, ebpfMonLogMode mode, const char *prefix)
{
    ebpfMonPutLogConf conf;

    return ebpfMonPutLogConfSetCaPutLog(&conf, target, asJson, mode, prefix) ? -1 :
           ebpfMonPutLogsConfigure(logs, &conf);
}

static long setMetadata(const char *key, const char *value)
{
    return ebpfMonPutLogsSetMetadata(logs, key, value);
}

static long rotateLogs(void)
{
    return ebpfMonPutLogsRotate(logs);
}

static long setOtlp(const char *url, const char *signals, const char *headers)
{
    return ebpfMonOtlpSetCommand(otlp, url, signals, headers);
}

static long setZipkin(const char *url)
{
    return ebpfMonOtlpSetZipkin(otlp, url);
}

static void resetLost(void)
{
    ebpfMonPutLogsResetLost(logs);
    ebpfMonOtlpResetLost(otlp);
}

static void reportOtlp(int level)
{
    ebpfMonOtlpReport(otlp, level);
}

static void printReport(int level)
{
    ebpfMonPutLogsReport(logs, level);
    ebpfMonOtlpReport(otlp, level);
}

static const ebpfMonLogOps ops = {
    .json = setJsonLog, .caPutLog = setCaPutLog, .metadata = setMetadata, .rotate = rotateLogs,
    .resetLost = resetLost, .report = printReport, .otlp = setOtlp, .zipkin = setZipkin, .otlpReport = reportOtlp,
};

void ebpfMonExportRegister(void)
{
    if (!logs)
        logs = ebpfMonPutLogsNew();
    if (!otlp)
        otlp = ebpfMonOtlpNew();
    if (logs && otlp)
        ebpfMonLogOpsRegister(&ops);
    else
        errlogSevPrintf(errlogMajor, "ebpfMon: out of memory: no logs, no OTLP. Free some, then start again\n");
}

void ebpfMonExportStart(void)
{
    if (otlp)
        ebpfMonOtlpReadEnvironment(otlp);
}

void ebpfMonExportStop(double seconds)
{
    if (otlp)
        ebpfMonOtlpStop(otlp, seconds); /* while the logs end */
    if (logs)
        ebpfMonPutLogsStop(logs, seconds);
    if (otlp)
        ebpfMonOtlpWaitStopped(otlp);
}
