/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * To which trace a put belongs: puts that one put caused have its id, through links, callbacks and asynchronous
 * records, and through CA links to other IOCs of this host. Spans of kept chains have the same id (traceSpans.h),
 * except if a chain goes on to an IOC that we do not watch. Any thread.
 */
#ifndef EBPFMON_PUTTRACES_H
#define EBPFMON_PUTTRACES_H

#include <stdint.h>
#include "model/put.h"

typedef struct ebpfMonPutTraces ebpfMonPutTraces;

/* "salt": as in traceSpans.h. NULL without memory. */
ebpfMonPutTraces *ebpfMonPutTracesNew(uint64_t salt);
void ebpfMonPutTracesFree(ebpfMonPutTraces *traces); /* NULL does no harm */

/* Sets put->trace, and notes it for what the chain of the put causes: those puts must come later. The put has its
 * messageTrace. If the cause is not certain, the put is the first of its trace. */
void ebpfMonPutTracesSetId(ebpfMonPutTraces *traces, ebpfMonPut *put);

#endif
