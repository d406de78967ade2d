/* SPDX-License-Identifier: BSD-3-Clause */
/* Latency histograms with four buckets to the octave (ebpfMonBucket of ebpfMonTable.h). Times in ns. */
#ifndef EBPFMON_HIST_H
#define EBPFMON_HIST_H

#include <stddef.h>
#include <stdint.h>

/* Lower edge of a bucket; edge(i+1) is its upper one. */
double ebpfMonHistEdge(unsigned bucket);

/* The q-quantile (0 … 1), interpolated in its bucket and never above "max"; NaN without entries. */
double ebpfMonHistQuantile(const uint32_t *hist, unsigned buckets, double q, double max);

/* Adds the buckets up to octaves (at least one): out[i] counts what lies between outEdge[i] and outEdge[i+1] (ns). */
void ebpfMonHistOctaves(const uint32_t *hist, unsigned buckets, double *out, unsigned octaves);
double ebpfMonHistOctaveEdge(unsigned octave);

#endif
