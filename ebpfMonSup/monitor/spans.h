/* SPDX-License-Identifier: BSD-3-Clause */
/* Traces as spans of OpenTelemetry: one for the chain, one for each record, one for each message between IOCs. */
#ifndef EBPFMON_SPANS_H
#define EBPFMON_SPANS_H

#include "monitor/traces.h"

/* One that is complete, or never will be. Event thread, under ebpfMonTargetsLock. Does nothing unless spans are
 * exported. */
void ebpfMonSpansTell(ebpfMonTarget *t, ebpfMonTrace *trace);

/* A put that a program on this host sent to a server that we do not watch: the monitor of that host joins it to what it
 * set going there. Wire thread. Some hundred a second at most. */
void ebpfMonSpansMessage(const ebpfMonPut *put, const struct ebpfMonPeer *peer, uint32_t seq, uint64_t at);

#endif
