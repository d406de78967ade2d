/* SPDX-License-Identifier: BSD-3-Clause */
/* For the tests of OTLP: puts, JSON, an environment without OTEL_…. */
#ifndef EBPFMON_OTLPTEST_H
#define EBPFMON_OTLPTEST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yajl_parse.h>

#include "model/put.h"

#define S(key, value) "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" value "\"}}"
#define I(key, value) "{\"key\":\"" key "\",\"value\":{\"intValue\":\"" value "\"}}"

static inline void clearEnvironment(void)
{
    static const char *const names[] = {
        "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_LOGS_HEADERS",
        "OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "OTEL_SERVICE_NAME",
        "OTEL_RESOURCE_ATTRIBUTES", "OTEL_METRIC_EXPORT_INTERVAL", "OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_SDK_DISABLED",
        "OTEL_METRICS_EXPORTER", "OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_ZIPKIN_ENDPOINT",
        "OTEL_EXPORTER_ZIPKIN_TIMEOUT",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unsetenv(names[i]);
}

static inline ebpfMonPut otlpPut(unsigned number)
{
    ebpfMonPut p = {
        .count = 1, .oldCount = 1, .hasOld = 1, .isNumber = 1, .number = number, .through = ebpfMonByCa,
        .result = ebpfMonPutOk, .seen = EBPFMON_SEEN_INSIDE,
    };

    p.time.secPastEpoch = 1163575683u; /* 2026-11-15 07:28:03 UTC */
    p.time.nsec = 123456789;
    strcpy(p.ioc, "vac1");
    sprintf(p.pv, "P%u", number);
    sprintf(p.val, "%u", number);
    strcpy(p.old, "a");
    strcpy(p.user, "alice");
    strcpy(p.who, "alice@opi1");
    strcpy(p.peer, "10.0.0.5:40312");
    return p;
}

static inline int isJson(const char *json, size_t len)
{
    yajl_handle parser = yajl_alloc(NULL, NULL, NULL);
    int ok = len && yajl_parse(parser, (const unsigned char *)json, len) == yajl_status_ok &&
             yajl_complete_parse(parser) == yajl_status_ok;

    yajl_free(parser);
    return ok;
}

#endif
