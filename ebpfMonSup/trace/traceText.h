/* SPDX-License-Identifier: BSD-3-Clause */
/* A trace as text: a tree of records, each below the one that made it process. Event thread only. */
#ifndef EBPFMON_TRACETEXT_H
#define EBPFMON_TRACETEXT_H

#include "trace/traceWalk.h"

/* Returns the length. Leaves out what is more than "size" or 100 records; of the latter it says so. "unixOffset": from
 * monotonic time to time since 1970, ns. Texts from the memory of the IOC were read before
 * (ebpfMonTraceReadWords). Under ebpfMonTargetsLock. */
size_t ebpfMonTraceTextWrite(ebpfMonTraceWalk *walk, ebpfMonTarget *t, const ebpfMonTrace *trace, uint64_t unixOffset,
                             char *buf, size_t size);

#endif
