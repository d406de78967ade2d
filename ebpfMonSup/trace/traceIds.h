/* SPDX-License-Identifier: BSD-3-Clause */
/* Which ids traces and spans have. Those of messages are the same at both ends. Event thread, but for those of messages. */
#ifndef EBPFMON_TRACEIDS_H
#define EBPFMON_TRACEIDS_H

#include "trace/traces.h"

/* Of a chain itself (0), or of its records from 1 on. */
void ebpfMonSpanOfChain(const ebpfMonChainId *chain, uint32_t number, uint8_t span[8]);

/* "seq": the TCP sequence number of its first byte. */
void ebpfMonSpanOfMessage(const struct ebpfMonPeer *p, uint32_t seq, uint8_t span[8]);
void ebpfMonTraceOfMessage(const struct ebpfMonPeer *p, uint32_t seq, uint8_t trace[16]);

/* A message set the trace going, and it is known which. */
int ebpfMonHasMessage(const ebpfMonTrace *trace);

/* Sets the trace's id, and that of the open ones that it comes from, unless they have one. */
void ebpfMonTraceChoose(ebpfMonTrace *trace);

#endif
