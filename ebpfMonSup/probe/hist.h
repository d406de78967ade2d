/* SPDX-License-Identifier: BSD-3-Clause */
/* Histograms of times (ns), with four buckets for each octave: ebpfMonBucket() of ebpfMonTable.h. The kernel part
 * counts in 32 bits; the sum of several histograms needs 64. Pure functions; any thread. */
#ifndef EBPFMON_HIST_H
#define EBPFMON_HIST_H

#include <stddef.h>
#include <stdint.h>

struct ebpfMonRecent;

/* The lower edge of a bucket (ns). Its upper edge is that of the next bucket. */
double ebpfMonHistEdge(unsigned bucket);

/* The q-quantile (q from 0 to 1), in ns. It is interpolated in its bucket and never greater than "max" (ns). NaN: all
 * buckets are empty. */
double ebpfMonHistQuantile(const uint64_t *hist, unsigned buckets, double q, double max);

/* Adds a histogram of the kernel part to "sum". */
void ebpfMonHistAdd(uint64_t *sum, const uint32_t *hist, unsigned buckets);

/* Adds the buckets of each octave. out[i] counts the entries from ebpfMonHistOctaveEdge(i) to ebpfMonHistOctaveEdge(i +
 * 1) (ns); the last one also all longer ones. "octaves": at least 1. */
void ebpfMonHistOctaves(const uint64_t *hist, unsigned buckets, double *out, unsigned octaves);
double ebpfMonHistOctaveEdge(unsigned octave);

/* The longest time (ms) of this window and the one before; 0: there is none in either. *who, unless NULL: its record.
 * The kernel part begins a new window only when something happens, so "recent" may be of an old one. */
double ebpfMonHistFindRecent(const struct ebpfMonRecent *recent, uint64_t now, uint64_t *who);

#endif
