/* SPDX-License-Identifier: BSD-3-Clause */
/* An event out of a Channel Access message. */
#ifndef EBPFMON_CAEVENT_H
#define EBPFMON_CAEVENT_H

#include "wire/caState.h"

/* Inline: the event is large, and this is part of each. */
static inline ebpfMonWireEvent ebpfMonCaEvent(const ebpfMonCaState *s, ebpfMonWireKind kind,
    const ebpfMonMessage *m)
{
    return (ebpfMonWireEvent){ .kind = kind, .time = m->time, .seq = m->seq, .end = m->seq + (uint32_t)m->total,
        .fromServer = m->fromServer, .user = s->user, .host = s->host };
}

/* Of the channel with this number. */
void ebpfMonCaEventName(const ebpfMonCaState *state, ebpfMonWireEvent *event, uint32_t sid);
/* With the elements of the message. 0: there are none that could be. */
int  ebpfMonCaEventElements(ebpfMonCaState *state, ebpfMonWireEvent *event, const ebpfMonMessage *message,
    const ebpfMonCaHeader *header);
/* What its dbrType means, if it is a channel's native one. */
void ebpfMonCaEventNative(ebpfMonWireEvent *event);

#endif
