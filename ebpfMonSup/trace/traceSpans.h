/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Traces as spans of OpenTelemetry. A span is a chain (the first, or handed over), a record, or a message (that caused
 * the trace, or was sent in it). Event thread only.
 */
#ifndef EBPFMON_TRACESPANS_H
#define EBPFMON_TRACESPANS_H

#include <stdint.h>
#include "ebpfMonEvent.h"
#include "trace/span.h"
#include "model/put.h"
#include "trace/traceWalk.h"
#include "trace/traces.h"
#include "watch/target.h"

/* --- ids ---
 *
 * Ids of traces and spans. The ids of a message are computed from its connection and its TCP sequence number, which
 * both ends know. So two monitors compute the same ids without talking to each other. The ids of a chain are this
 * monitor's own. Any thread.
 */

/* Ids of a message. "peer": its connection; the network namespace does not count. "seq": TCP sequence number of its
 * first byte. */
void ebpfMonMessageGetTraceId(const struct ebpfMonPeer *peer, uint32_t seq, uint8_t trace[16]);
void ebpfMonMessageGetSpanId(const struct ebpfMonPeer *peer, uint32_t seq, uint8_t span[8]);

/* Ids of a chain. "salt": random, the same for the life of the monitor. "part": of the chain, 0: the chain itself. */
void ebpfMonChainGetTraceId(uint64_t salt, const ebpfMonChainId *chain, uint8_t trace[16]);
void ebpfMonChainGetSpanId(uint64_t salt, const ebpfMonChainId *chain, uint32_t part, uint8_t span[8]);

/* --- what all spans have ---
 *
 * What spans of traces and spans of puts have in common. Any thread; each works on the caller's span alone.
 */

/* Where spans go: a module, or a test. */
typedef struct ebpfMonSpanSink {
    int  (*isWanted)(void *arg);           /* nonzero: spans go somewhere. Takes no lock */
    void (*add)(void *arg, const ebpfMonSpan *span); /* copies the span, and never waits */
    int  (*hasRoom)(void *arg, unsigned spans); /* nonzero: so many spans will not be dropped. NULL: they never are */
    void *arg;
} ebpfMonSpanSink;

/* --- puts to servers that are not watched ---
 *
 * Makes spans of puts by programs on this host to servers that we do not watch. The monitor of the server's host joins
 * each span to the chains that the put caused there. Some hundred a second at most. Packet thread only.
 */

typedef struct {
    ebpfMonTargets *targets; /* these two are set; the rest is 0 at first */
    ebpfMonSpanSink sink;
    uint64_t second; /* monotonic ns: begin of the second that is counted */
    unsigned count;  /* in it */
    ebpfMonSpan span; /* that is made; large */
} ebpfMonPutSpans;

/* "seq": TCP sequence number of the message. "at": monotonic ns. "unixOffset": from monotonic time to time since 1970,
 * ns. Does nothing unless spans are exported. Takes ebpfMonTargetsLock. */
void ebpfMonPutSpansExport(ebpfMonPutSpans *spans, const ebpfMonPut *put, const struct ebpfMonPeer *peer, uint32_t seq,
                           uint64_t at, uint64_t unixOffset);

/* --- traces --- */

typedef struct ebpfMonTraceSpans ebpfMonTraceSpans;

/* What it uses; all of it outlives the spans. */
typedef struct {
    ebpfMonTargets *targets;
    ebpfMonTraces *traces;
    uint64_t salt;          /* random, so that the chains of each life of the monitor get other ids */
    ebpfMonLinkMessages *linkMessages;
    ebpfMonTraceWalk *walk; /* others may use it, too: not at the same time */
    ebpfMonSpanSink sink;
} ebpfMonTraceSpansUses;

/* NULL without memory. */
ebpfMonTraceSpans *ebpfMonTraceSpansNew(const ebpfMonTraceSpansUses *uses);
void ebpfMonTraceSpansFree(ebpfMonTraceSpans *spans); /* NULL does no harm */

/* Exports the spans of a finished trace, 1000 of its tree at most, and chooses its id. Does nothing unless spans are
 * exported. "unixOffset": from monotonic time to time since 1970, ns; one for the whole trace, because two readings of
 * two clocks are never the same. Reads memory of the IOC. Under ebpfMonTargetsLock. */
void ebpfMonTraceSpansExport(ebpfMonTraceSpans *spans, ebpfMonTarget *t, ebpfMonTrace *trace, uint64_t unixOffset);

#endif
