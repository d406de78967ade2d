/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes an event from a Channel Access message. */
#ifndef EBPFMON_CAEVENT_H
#define EBPFMON_CAEVENT_H

#include "wire/caState.h"

/* Inline, because the event is large and every event begins like this. */
static inline ebpfMonWireEvent ebpfMonCaEvent(const ebpfMonCaState *s, ebpfMonWireKind kind,
    const ebpfMonMessage *m)
{
    return (ebpfMonWireEvent){ .kind = kind, .time = m->time, .seq = m->seq, .end = m->seq + (uint32_t)m->total,
        .fromServer = m->fromServer, .user = s->user, .host = s->host };
}

/* Sets name and cid of the channel with this sid. */
void ebpfMonCaEventName(const ebpfMonCaState *state, ebpfMonWireEvent *event, uint32_t sid);
/* Sets the elements of the message. 0: the message has no elements, because its type does not exist. */
int  ebpfMonCaEventElements(ebpfMonCaState *state, ebpfMonWireEvent *event, const ebpfMonMessage *message,
    const ebpfMonCaHeader *header);
/* Sets baseType and elementSize from dbrType, the native type of a channel. */
void ebpfMonCaEventNative(ebpfMonWireEvent *event);

#endif
