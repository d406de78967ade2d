/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "host/peerText.h"
#include "trace/spanMake.h"
#include "trace/spanId.h"

void ebpfMonSpanBegin(ebpfMonSpan *s, const uint8_t trace[16], const char *name)
{
    memset(s, 0, offsetof(ebpfMonSpan, attribute)); /* the attributes are large; their number says which are valid */
    memcpy(s->trace, trace, sizeof(s->trace));
    s->kind = ebpfMonSpanInternal;
    snprintf(s->name, sizeof(s->name), "%s", name);
}

void ebpfMonSpanSetIoc(ebpfMonSpan *s, const ebpfMonTarget *t)
{
    snprintf(s->service.name, sizeof(s->service.name), "%s", t->name);
    snprintf(s->service.version, sizeof(s->service.version), "%s", t->version);
    s->service.pid = (uint32_t)t->pid;
}

void ebpfMonSpanSetProgram(ebpfMonSpan *s, ebpfMonTargets *targets, uint32_t pid, const char *command)
{
    const ebpfMonTarget *t = ebpfMonTargetsFindByPid(targets, (pid_t)pid);

    if (t) {
        ebpfMonSpanSetIoc(s, t);
        return;
    }
    snprintf(s->service.name, sizeof(s->service.name), "%s", command);
    s->service.pid = pid;
}

void ebpfMonSpanAddConnection(ebpfMonSpan *s, const struct ebpfMonPeer *peer)
{
    char text[EBPFMON_PEERTEXT_SIZE];

    ebpfMonPeerTextAddress(peer->addr, peer->addr6, text, sizeof(text));
    ebpfMonSpanAddText(s, "client.address", text);
    ebpfMonSpanAddInteger(s, "client.port", ntohs(peer->port));
    ebpfMonPeerTextAddress(peer->saddr, peer->saddr6, text, sizeof(text));
    ebpfMonSpanAddText(s, "server.address", text);
    ebpfMonSpanAddInteger(s, "server.port", ntohs(peer->sport));
}

void ebpfMonSpanSetClient(ebpfMonSpan *s, const struct ebpfMonPeer *peer, uint32_t seq, const char *channel,
                          uint64_t from, uint64_t to)
{
    s->kind = ebpfMonSpanClient;
    ebpfMonMessageGetSpanId(peer, seq, s->id);
    s->start = from;
    s->end = to > from ? to : from;
    ebpfMonSpanAddText(s, "epics.pv", channel);
    ebpfMonSpanAddConnection(s, peer);
}
