/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes metrics in OTLP's JSON. Counts are numbers, not texts: otlpItems.c tells why. One thread. */
#ifndef EBPFMON_OTLPMETRICS_H
#define EBPFMON_OTLPMETRICS_H

#include <stddef.h>

#include "export/otlp/exemplar.h"
#include "export/otlp/otlpNumbers.h"
#include "export/shared/jsonGen.h"

/* Writes the items of a request, with commas between them. *points gets the number of values. Returns the length; 0:
 * too long. */
size_t ebpfMonOtlpWriteMetrics(ebpfMonJson *json, const ebpfMonOtlpNumbers *numbers, const ebpfMonExemplars *exemplars,
                               ebpfMonOtlpSinces *sinces, char *buf, size_t size, unsigned *points);

#endif
