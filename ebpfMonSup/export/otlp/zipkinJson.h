/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes spans in Zipkin's JSON, version 2 (zipkin-api, zipkin2-api.yaml; OpenTelemetry specification,
 * trace/sdk_exporters/zipkin.md). One thread uses a generator. */
#ifndef EBPFMON_ZIPKINJSON_H
#define EBPFMON_ZIPKINJSON_H

#include "export/otlp/otlpConf.h"
#include "export/otlp/span.h"
#include "export/shared/jsonGen.h"

/* Writes one object of the list that a request is. Returns the length, without a terminator; 0: too long. */
size_t ebpfMonZipkinWriteSpan(ebpfMonJson *json, const ebpfMonSpan *span, const ebpfMonOtlpConf *conf, char *buf,
                              size_t size);

#endif
