/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where OTLP goes: the standard variables (OpenTelemetry specification, protocol/exporter.md and
 * configuration/sdk-environment-variables.md), or a command, which wins.
 */
#ifndef EBPFMON_OTLPCONF_H
#define EBPFMON_OTLPCONF_H

#include <stddef.h>

typedef enum {
    ebpfMonOtlpLogs,
    ebpfMonOtlpMetrics,
    ebpfMonOtlpTraces,
    ebpfMonOtlpZipkin, /* the same spans once more, for Zipkin */
    ebpfMonOtlpSignals
} ebpfMonOtlpSignal;

/* "logs", "metrics", "traces", "zipkin" */
const char *ebpfMonOtlpSignalName(ebpfMonOtlpSignal signal);

/* Keys and values, each ended by a NUL. */
typedef struct {
    unsigned pairs;
    size_t   len;
    char     text[2048];
} ebpfMonOtlpPairs;

typedef struct {
    char     url[512];   /* the whole; empty: this signal is not sent */
    double   timeout;    /* s, of one request */
    ebpfMonOtlpPairs headers;
} ebpfMonOtlpTarget;

typedef struct {
    ebpfMonOtlpTarget target[ebpfMonOtlpSignals];
    char     service[64];
    ebpfMonOtlpPairs resource; /* attributes besides ours */
    double   interval;   /* s, of the metrics */
    double   giveUp;     /* s that one batch is tried */
} ebpfMonOtlpConf;

/* "k=v,k=v"; blanks around them go, %XX is decoded. 0, or -1 when it is not such a list. */
int ebpfMonOtlpPairsParse(ebpfMonOtlpPairs *pairs, const char *text);

/* The next pair, from at = NULL on; its key, and where the value is. NULL after the last. */
const char *ebpfMonOtlpPairNext(const ebpfMonOtlpPairs *pairs, const char *at, const char **value);

/* From the environment: 1 something is to be sent, 0 nothing is, -1 "why" says what is wrong with it. */
int ebpfMonOtlpConfEnvironment(ebpfMonOtlpConf *conf, char *why, size_t size);

/* From the command: the base URL or "off", signals ("logs,metrics"), headers; what is not given there is taken from the
 * environment, but no endpoint. 0, or -1 and why. */
int ebpfMonOtlpConfCommand(ebpfMonOtlpConf *conf, const char *url, const char *signals, const char *headers, char *why,
                           size_t size);

/* The same for Zipkin alone: the whole URL, or "off". */
int ebpfMonOtlpConfZipkin(ebpfMonOtlpConf *conf, const char *url, char *why, size_t size);

#endif
