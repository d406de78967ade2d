/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "export/export.h"
#include "export/log/putLogs.h"

struct ebpfMonExport {
    ebpfMonPutLogs *logs; /* has a lock of its own; never changes; any thread */
    ebpfMonLogOps   ops;
};

void ebpfMonExportPut(ebpfMonExport *exporter, const ebpfMonPut *put)
{
    ebpfMonPutLogsAddPut(exporter->logs, put);
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

static void resetLost(void *arg)
{
    ebpfMonExport *exporter = arg;

    ebpfMonPutLogsResetLost(exporter->logs);
}

static void printReport(void *arg, int level)
{
    ebpfMonExport *exporter = arg;

    ebpfMonPutLogsReport(exporter->logs, level);
}

static const ebpfMonLogOps operations = {
    .json = setJsonLog, .caPutLog = setCaPutLog, .metadata = setMetadata, .rotate = rotateLogs,
    .resetLost = resetLost, .report = printReport,
};

ebpfMonExport *ebpfMonExportNew(void)
{
    ebpfMonExport *exporter = calloc(1, sizeof(*exporter));

    if (!exporter)
        return NULL;
    exporter->logs = ebpfMonPutLogsNew();
    exporter->ops = operations;
    exporter->ops.arg = exporter;
    if (exporter->logs)
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
    free(exporter);
}

const ebpfMonLogOps *ebpfMonExportGetOps(const ebpfMonExport *exporter)
{
    return &exporter->ops;
}

void ebpfMonExportStop(ebpfMonExport *exporter, double seconds)
{
    ebpfMonPutLogsStop(exporter->logs, seconds);
}
