/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "export/export.h"
#include "export/log/putLogs.h"
#include "export/otlp/otlp.h"

struct ebpfMonExport {
    ebpfMonPutLogs *logs; /* has a lock of its own; never changes; any thread */
    ebpfMonOtlp    *otlp; /* the same */
    ebpfMonLogOps   ops;
};

void ebpfMonExportPut(ebpfMonExport *exporter, const ebpfMonPut *put)
{
    ebpfMonPutLogsAddPut(exporter->logs, put);
    ebpfMonOtlpAddPut(exporter->otlp, put);
}

int ebpfMonExportWantsSpans(void *exporter)
{
    return ebpfMonOtlpWantsSpans(((ebpfMonExport *)exporter)->otlp);
}

int ebpfMonExportHasRoomForSpans(void *exporter, unsigned spans)
{
    return ebpfMonOtlpHasRoom(((ebpfMonExport *)exporter)->otlp, spans);
}

void ebpfMonExportSpan(void *exporter, const ebpfMonSpan *span)
{
    ebpfMonOtlpAddSpan(((ebpfMonExport *)exporter)->otlp, span);
}

static long setJsonLog(void *arg, const char *file, double maxMB, double hours, int keep, ebpfMonLogMode mode)
{
    ebpfMonExport *exporter = arg;
    ebpfMonPutLogConf conf;

    return ebpfMonPutLogConfSetJson(&conf, file, maxMB, hours, keep, mode) ? -1 :
           ebpfMonPutLogsConfigure(exporter->logs, &conf);
}

static long setCaPutLog(void *arg, const char *target, int asJson, ebpfMonLogMode mode, const char *prefix)
{
    ebpfMonExport *exporter = arg;
    ebpfMonPutLogConf conf;

    return ebpfMonPutLogConfSetCaPutLog(&conf, target, asJson, mode, prefix) ? -1 :
           ebpfMonPutLogsConfigure(exporter->logs, &conf);
}

static long setMetadata(void *arg, const char *key, const char *value)
{
    ebpfMonExport *exporter = arg;

    return ebpfMonPutLogsSetMetadata(exporter->logs, key, value);
}

static long rotateLogs(void *arg)
{
    ebpfMonExport *exporter = arg;

    return ebpfMonPutLogsRotate(exporter->logs);
}

static long setOtlp(void *arg, const char *url, const char *signals, const char *headers)
{
    ebpfMonExport *exporter = arg;

    return ebpfMonOtlpSetCommand(exporter->otlp, url, signals, headers);
}

static long setZipkin(void *arg, const char *url)
{
    ebpfMonExport *exporter = arg;

    return ebpfMonOtlpSetZipkin(exporter->otlp, url);
}

static void resetLost(void *arg)
{
    ebpfMonExport *exporter = arg;

    ebpfMonPutLogsResetLost(exporter->logs);
    ebpfMonOtlpResetLost(exporter->otlp);
}

static void reportOtlp(void *arg, int level)
{
    ebpfMonExport *exporter = arg;

    ebpfMonOtlpReport(exporter->otlp, level);
}

static void printReport(void *arg, int level)
{
    ebpfMonExport *exporter = arg;

    ebpfMonPutLogsReport(exporter->logs, level);
    ebpfMonOtlpReport(exporter->otlp, level);
}

static const ebpfMonLogOps operations = {
    .json = setJsonLog, .caPutLog = setCaPutLog, .metadata = setMetadata, .rotate = rotateLogs,
    .resetLost = resetLost, .report = printReport, .otlp = setOtlp, .zipkin = setZipkin, .otlpReport = reportOtlp,
};

ebpfMonExport *ebpfMonExportNew(void)
{
    ebpfMonExport *exporter = calloc(1, sizeof(*exporter));

    if (!exporter)
        return NULL;
    exporter->logs = ebpfMonPutLogsNew();
    exporter->otlp = ebpfMonOtlpNew();
    exporter->ops = operations;
    exporter->ops.arg = exporter;
    if (exporter->logs && exporter->otlp)
        return exporter;
    ebpfMonExportFree(exporter);
    return NULL;
}

void ebpfMonExportFree(ebpfMonExport *exporter)
{
    if (!exporter)
        return;
    if (exporter->logs)
        ebpfMonPutLogsFree(exporter->logs);
    if (exporter->otlp)
        ebpfMonOtlpFree(exporter->otlp);
    free(exporter);
}

const ebpfMonLogOps *ebpfMonExportGetOps(const ebpfMonExport *exporter)
{
    return &exporter->ops;
}

void ebpfMonExportStart(ebpfMonExport *exporter)
{
    ebpfMonOtlpReadEnvironment(exporter->otlp);
}

void ebpfMonExportStop(ebpfMonExport *exporter, double seconds)
{
    ebpfMonOtlpStop(exporter->otlp, seconds); /* it sends while the logs end */
    ebpfMonPutLogsStop(exporter->logs, seconds);
    ebpfMonOtlpWaitStopped(exporter->otlp);
}
