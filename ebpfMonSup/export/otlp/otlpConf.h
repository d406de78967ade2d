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
const char *ebpfMonOtlpSignalGetName(ebpfMonOtlpSignal signal);

/* Keys and values, each ended by a NUL. */
typedef struct {
    unsigned pairs;
    size_t   len;
    char     text[2048];
} ebpfMonOtlpPairs;

typedef struct {
    char     url[512];   /* complete; empty: this signal is not sent */
    double   timeout;    /* s, of one request */
    ebpfMonOtlpPairs headers;
} ebpfMonOtlpTarget;

typedef struct {
    ebpfMonOtlpTarget target[ebpfMonOtlpSignals];
    char     service[64];
    char     host[256];  /* the name of this host */
    ebpfMonOtlpPairs resource; /* attributes besides ours */
    double   interval;   /* s, of the metrics */
    double   giveUp;     /* s for which one batch is tried again */
} ebpfMonOtlpConf;

/* "k=v,k=v"; blanks around them go, %XX is decoded. 0, or -1 when it is not such a list. */
int ebpfMonOtlpPairsParse(ebpfMonOtlpPairs *pairs, const char *text);

/* The pair after "at", which is NULL for the first one. Returns its key and sets *value; NULL after the last. */
const char *ebpfMonOtlpPairsGetNext(const ebpfMonOtlpPairs *pairs, const char *at, const char **value);

/* From the environment. 1: something is to be sent; 0: nothing is; -1: "why" says what is wrong with it. */
int ebpfMonOtlpConfReadEnvironment(ebpfMonOtlpConf *conf, char *why, size_t size);

/* From the command: the base URL or "off", signals ("logs,metrics"), headers. All else is taken from the environment,
 * but no endpoint. 0, or -1 and why. */
int ebpfMonOtlpConfSetCommand(ebpfMonOtlpConf *conf, const char *url, const char *signals, const char *headers,
                              char *why, size_t size);

/* The same for Zipkin alone: the complete URL, or "off". */
int ebpfMonOtlpConfSetZipkin(ebpfMonOtlpConf *conf, const char *url, char *why, size_t size);

#endif
