/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The exemplars of latency histograms: for each root, the slowest chain whose span was sent since the metrics were sent
 * last. One thread.
 */
#ifndef EBPFMON_EXEMPLAR_H
#define EBPFMON_EXEMPLAR_H

#include "export/otlp/span.h"

#define EBPFMON_EXEMPLARS 1024

typedef struct {
    char     ioc[64], root[EBPFMON_NAME_SIZE]; /* root is empty: the place is free */
    uint8_t  trace[EBPFMON_TRACE_ID], id[EBPFMON_SPAN_ID];
    uint64_t time;  /* ns since 1970; end of the span */
    double   value; /* µs; latency of the chain */
} ebpfMonExemplar;

typedef struct {
    unsigned used;
    ebpfMonExemplar of[EBPFMON_EXEMPLARS];
} ebpfMonExemplars;

/* Notes a span as an exemplar, if span->root is set, there is a place, and it is slower than the one noted. */
void ebpfMonExemplarAdd(ebpfMonExemplars *all, const ebpfMonSpan *span);

/* Finds an exemplar. NULL: there is none. "root" empty: the slowest of all roots; "ioc" empty: of all IOCs. "counted":
 * ns since 1970 at which the histogram was made. It does not contain spans that ended later, so they are left out. */
const ebpfMonExemplar *ebpfMonExemplarFind(const ebpfMonExemplars *all, const char *ioc, const char *root,
                                           uint64_t counted);

/* Removes the exemplars; those that ended after "counted" stay for the next time. */
void ebpfMonExemplarClear(ebpfMonExemplars *all, uint64_t counted);

#endif
