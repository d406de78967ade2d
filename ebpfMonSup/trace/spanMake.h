/* SPDX-License-Identifier: BSD-3-Clause */
/* What spans of traces and spans of puts have in common. Any thread; each works on the caller's span alone. */
#ifndef EBPFMON_SPANMAKE_H
#define EBPFMON_SPANMAKE_H

#include "ebpfMonEvent.h"
#include "export/otlp/span.h"
#include "watch/target.h"

/* Where spans go: the export, or a test. */
typedef struct {
    int  (*isWanted)(void *arg);           /* nonzero: spans go somewhere. Takes no lock */
    void (*add)(void *arg, const ebpfMonSpan *span); /* copies the span, and never waits */
    int  (*hasRoom)(void *arg, unsigned spans); /* nonzero: so many spans will not be dropped. NULL: they never are */
    void *arg;
} ebpfMonSpanSink;

/* Begins a span of kind internal, without parent, service and times. */
void ebpfMonSpanBegin(ebpfMonSpan *s, const uint8_t trace[16], const char *name);

/* Sets its service: the IOC. Under ebpfMonTargetsLock. */
void ebpfMonSpanSetIoc(ebpfMonSpan *s, const ebpfMonTarget *t);

/* Sets its service: a program on this host; an IOC that we watch by its name. Under ebpfMonTargetsLock. */
void ebpfMonSpanSetProgram(ebpfMonSpan *s, ebpfMonTargets *targets, uint32_t pid, const char *command);

/* Adds both ends of a connection: if its addresses are translated on the way, a user can find the other end only by
 * them. */
void ebpfMonSpanAddConnection(ebpfMonSpan *s, const struct ebpfMonPeer *peer);

/* Makes it the span of a put as its client sees it, with the id of its message ("seq": TCP sequence number). "from":
 * the client wrote, "to": the message was seen; ns since 1970. */
void ebpfMonSpanSetClient(ebpfMonSpan *s, const struct ebpfMonPeer *peer, uint32_t seq, const char *channel,
                          uint64_t from, uint64_t to);

#endif
