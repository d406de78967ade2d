/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts as spans: each message between IOCs, and from programs. */
#ifndef EBPFMON_PUTSPANS_H
#define EBPFMON_PUTSPANS_H

#include "export/otlp/span.h"
#include "trace/traces.h"

/* From a monotonic time to one since 1970, UTC; ns. Once for a trace: two readings of two clocks are never the same. */
uint64_t ebpfMonUnixOffset(uint64_t ktime);

void ebpfMonSpanStart(ebpfMonSpan *s, const uint8_t trace[16], const char *name);
void ebpfMonSpanOfIoc(ebpfMonSpan *s, const ebpfMonTarget *t);
void ebpfMonSpanEnds(ebpfMonSpan *s, const struct ebpfMonPeer *p);

/* What a half sent, and who sent the put that set the trace going. The trace has its id; "offset" as above. */
void ebpfMonSpansSent(const ebpfMonTarget *t, const ebpfMonTrace *trace, const ebpfMonTraceChain *half, uint64_t offset);
void ebpfMonSpansSender(const ebpfMonTrace *trace, uint64_t offset);

/* A put that a program on this host sent to a server that we do not watch: the monitor of that host joins it to what it
 * set going there. Wire thread. Some hundred a second at most. */
void ebpfMonSpansMessage(const ebpfMonPut *put, const struct ebpfMonPeer *peer, uint32_t seq, uint64_t at);

#endif
