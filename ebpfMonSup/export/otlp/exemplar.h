/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which traces stand for a histogram of latencies: of each root record the slowest chain whose span was sent since the
 * metrics were sent last. One thread.
 */
#ifndef EBPFMON_EXEMPLAR_H
#define EBPFMON_EXEMPLAR_H

#include "export/otlp/span.h"

#define EBPFMON_EXEMPLARS 1024

typedef struct {
    char     ioc[64], root[EBPFMON_NAME_SIZE]; /* root is empty: free */
    uint8_t  trace[EBPFMON_TRACE_ID], id[EBPFMON_SPAN_ID];
    uint64_t time;  /* ns since 1970: its end */
    double   value; /* latency, µs */
} ebpfMonExemplar;

typedef struct {
    unsigned used;
    ebpfMonExemplar of[EBPFMON_EXEMPLARS];
} ebpfMonExemplars;

/* Does nothing unless span->root is set. When there is no place, the span does not become an exemplar. */
void ebpfMonExemplarAdd(ebpfMonExemplars *all, const ebpfMonSpan *span);

/* NULL: there is none. root empty: the slowest of all; ioc empty: of all IOCs. Leaves out spans that ended after
 * "counted" (ns since 1970), when the histogram was made: it does not count those yet. */
const ebpfMonExemplar *ebpfMonExemplarFind(const ebpfMonExemplars *all, const char *ioc, const char *root,
                                           uint64_t counted);

/* Spans that ended after "counted" stay for the next time. */
void ebpfMonExemplarClear(ebpfMonExemplars *all, uint64_t counted);

#endif
