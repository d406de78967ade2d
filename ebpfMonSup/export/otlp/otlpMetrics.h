/* SPDX-License-Identifier: BSD-3-Clause */
/* Metrics in OTLP's JSON. Counts are numbers, not texts: otlpMetrics.c says why. One thread. */
#ifndef EBPFMON_OTLPMETRICS_H
#define EBPFMON_OTLPMETRICS_H

#include <stddef.h>

#include "export/otlp/exemplar.h"
#include "export/otlp/otlpNumbers.h"
#include "export/shared/jsonGen.h"

/* The items of a request, with commas between. points: how many values there are. Returns the length; 0: too long. */
size_t ebpfMonOtlpWriteMetrics(ebpfMonJson *json, const ebpfMonOtlpNumbers *numbers, const ebpfMonExemplars *exemplars,
                               ebpfMonOtlpSinces *sinces, char *buf, size_t size, unsigned *points);

#endif
