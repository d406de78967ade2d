/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes spans of puts by programs on this host to servers that we do not watch. The monitor of the server's host joins
 * each span to the chains that the put caused there. Some hundred a second at most. Packet thread only.
 */
#ifndef EBPFMON_PUTSPANS_H
#define EBPFMON_PUTSPANS_H

#include "model/put.h"
#include "trace/spanMake.h"

typedef struct ebpfMonPutSpans ebpfMonPutSpans;

/* "targets" outlives it. NULL without memory. */
ebpfMonPutSpans *ebpfMonPutSpansNew(ebpfMonTargets *targets, const ebpfMonSpanSink *sink);
void ebpfMonPutSpansFree(ebpfMonPutSpans *spans); /* NULL does no harm */

/* "seq": TCP sequence number of the message. "at": monotonic ns. "unixOffset": from monotonic time to time since 1970,
 * ns. Does nothing unless spans are exported. Takes ebpfMonTargetsLock. */
void ebpfMonPutSpansExport(ebpfMonPutSpans *spans, const ebpfMonPut *put, const struct ebpfMonPeer *peer, uint32_t seq,
                           uint64_t at, uint64_t unixOffset);

#endif
