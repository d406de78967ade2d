/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The configuration of OTLP: from the standard environment variables (OpenTelemetry specification, protocol/exporter.md
 * and configuration/sdk-environment-variables.md), or from a command, which takes precedence. Any thread.
 */
#ifndef EBPFMON_OTLPCONF_H
#define EBPFMON_OTLPCONF_H

#include <stddef.h>

typedef enum {
    ebpfMonOtlpLogs,
    ebpfMonOtlpMetrics,
    ebpfMonOtlpTraces,
    ebpfMonOtlpZipkin, /* the same spans again, for Zipkin */
    ebpfMonOtlpSignals
} ebpfMonOtlpSignal;

/* "logs", "metrics", "traces", "zipkin" */
const char *ebpfMonOtlpSignalGetName(ebpfMonOtlpSignal signal);

/* Pairs of key and value; each text ends with a NUL. */
typedef struct {
    unsigned pairs;
    size_t   len;
    char     text[2048];
} ebpfMonOtlpPairs;

typedef struct {
    char     url[512];   /* the complete URL; empty: this signal is not sent */
    double   timeout;    /* s; the limit for one request */
    ebpfMonOtlpPairs headers;
} ebpfMonOtlpTarget;

typedef struct {
    ebpfMonOtlpTarget target[ebpfMonOtlpSignals];
    char     service[64];
    char     host[256];  /* name of this host */
    ebpfMonOtlpPairs resource; /* attributes of the resource besides ours */
    double   interval;   /* s; between two requests with metrics */
    double   giveUp;     /* s; for so long a batch is tried again */
} ebpfMonOtlpConf;

/* Reads pairs from "k=v,k=v". Blanks around keys and values are removed, and %XX is decoded. 0, or -1: it is no such
 * list. */
int ebpfMonOtlpPairsParse(ebpfMonOtlpPairs *pairs, const char *text);

/* Returns the key of the pair after "at" (NULL: the first pair), and sets *value. NULL: there are no more. */
const char *ebpfMonOtlpPairsGetNext(const ebpfMonOtlpPairs *pairs, const char *at, const char **value);

/* Reads the environment. 1: something shall be sent; 0: nothing; -1: "why" gets what is wrong with it. */
int ebpfMonOtlpConfReadEnvironment(ebpfMonOtlpConf *conf, char *why, size_t size);

/* Makes a configuration from a command: the base URL or "off", signals ("logs,metrics"), headers. All other settings
 * come from the environment, except endpoints. 0; or -1, and "why" gets the reason. */
int ebpfMonOtlpConfSetCommand(ebpfMonOtlpConf *conf, const char *url, const char *signals, const char *headers,
                              char *why, size_t size);

/* The same for Zipkin: the complete URL, or "off". */
int ebpfMonOtlpConfSetZipkin(ebpfMonOtlpConf *conf, const char *url, char *why, size_t size);

#endif
