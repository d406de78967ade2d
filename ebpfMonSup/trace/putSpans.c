/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "trace/putSpans.h"
#include "trace/spanId.h"

#define RATE 500 /* a second */

struct ebpfMonPutSpans {
    ebpfMonTargets *targets;
    ebpfMonSpanSink sink;
    uint64_t second; /* monotonic ns: begin of the second that is counted */
    unsigned count;  /* in it */
    ebpfMonSpan span; /* that is made; large */
};

ebpfMonPutSpans *ebpfMonPutSpansNew(ebpfMonTargets *targets, const ebpfMonSpanSink *sink)
{
    ebpfMonPutSpans *x = calloc(1, sizeof(*x));

    if (x) {
        x->targets = targets;
        x->sink = *sink;
    }
    return x;
}

void ebpfMonPutSpansFree(ebpfMonPutSpans *x)
{
    free(x);
}

void ebpfMonPutSpansExport(ebpfMonPutSpans *x, const ebpfMonPut *put, const struct ebpfMonPeer *peer, uint32_t seq,
                           uint64_t at, uint64_t unixOffset)
{
    char name[sizeof(x->span.name)];
    uint8_t id[16];

    if (!x->sink.isWanted(x->sink.arg))
        return;
    if (at - x->second >= EBPFMON_SECOND_NS) {
        x->second = at;
        x->count = 0;
    }
    if (x->count++ >= RATE)
        return;
    ebpfMonMessageGetTraceId(peer, seq, id);
    snprintf(name, sizeof(name), "put %.80s", put->pv);
    ebpfMonSpanBegin(&x->span, id, name);
    ebpfMonTargetsLock(x->targets);
    ebpfMonSpanSetProgram(&x->span, x->targets, put->peerPid, put->command);
    ebpfMonTargetsUnlock(x->targets);
    ebpfMonSpanAddText(&x->span, "user.name", put->user);
    ebpfMonSpanSetClient(&x->span, peer, seq, put->pv, at + unixOffset, at + unixOffset);
    x->sink.add(x->sink.arg, &x->span);
}
