/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "put/putDecode.h"
#include "trace/linkMessages.h"
#include "trace/traceIds.h"
#include "export/export.h"
#include "trace/putSpans.h"
#include "trace/finishedTraces.h"

#define SENDS_MAX 8   /* of one half */
#define RATE      500 /* messages of programs, a second */

uint64_t ebpfMonUnixOffset(uint64_t ktime)
{
    epicsTimeStamp ts = ebpfMonClockWallTime(ktime);

    return ((uint64_t)ts.secPastEpoch + POSIX_TIME_AT_EPICS_EPOCH) * 1000000000u + ts.nsec - ktime;
}

void ebpfMonSpanStart(ebpfMonSpan *s, const uint8_t trace[16], const char *name)
{
    memset(s, 0, offsetof(ebpfMonSpan, attribute));
    memcpy(s->trace, trace, sizeof(s->trace));
    s->kind = ebpfMonSpanInternal;
    snprintf(s->name, sizeof(s->name), "%s", name);
}

void ebpfMonSpanOfIoc(ebpfMonSpan *s, const ebpfMonTarget *t)
{
    snprintf(s->service.name, sizeof(s->service.name), "%s", t->name);
    snprintf(s->service.version, sizeof(s->service.version), "%s", t->version);
    s->service.pid = (uint32_t)t->pid;
}

/* A program on this host; an IOC that we know by the name that it has elsewhere. */
static void ofProgram(ebpfMonSpan *s, uint32_t pid, const char *command)
{
    const ebpfMonTarget *t;

    ebpfMonTargetsLock(ebpfMonTheTargets);
    t = ebpfMonTargetsFindByPid(ebpfMonTheTargets, (pid_t)pid);
    if (t)
        ebpfMonSpanOfIoc(s, t);
    ebpfMonTargetsUnlock(ebpfMonTheTargets);
    if (t)
        return;
    snprintf(s->service.name, sizeof(s->service.name), "%s", command);
    s->service.pid = pid;
}

/* Both ends of the message: with a translator in between, all that a user can find the other half by. */
void ebpfMonSpanEnds(ebpfMonSpan *s, const struct ebpfMonPeer *p)
{
    char text[INET_ADDRSTRLEN] = "";

    inet_ntop(AF_INET, &p->addr, text, sizeof(text));
    ebpfMonSpanAddText(s, "client.address", text);
    ebpfMonSpanAddInteger(s, "client.port", ntohs(p->port));
    inet_ntop(AF_INET, &p->saddr, text, sizeof(text));
    ebpfMonSpanAddText(s, "server.address", text);
    ebpfMonSpanAddInteger(s, "server.port", ntohs(p->sport));
}

/* A put as its sender sees it: from when it wrote, if that is known, until the message was seen. */
static void tellClient(ebpfMonSpan *s, const struct ebpfMonPeer *peer, uint32_t seq, const char *channel,
                       uint64_t from, uint64_t to)
{
    s->kind = ebpfMonSpanClient;
    ebpfMonSpanOfMessage(peer, seq, s->id);
    s->start = from;
    s->end = to > from ? to : from;
    ebpfMonSpanAddText(s, "epics.pv", channel);
    ebpfMonSpanEnds(s, peer);
    ebpfMonExportSpan(s);
}

/* The messages that a half sent. One whose receiver is not watched here begins a trace for the monitor there, unless the
 * whole trace has its id anyhow. */
void ebpfMonSpansSent(const ebpfMonTarget *t, const ebpfMonTrace *trace, const ebpfMonTraceChain *half, uint64_t offset)
{
    static ebpfMonSpan s;
    ebpfMonChainId chain = ebpfMonTraceChainId(half);
    ebpfMonLinkMessage list[SENDS_MAX];
    unsigned n = ebpfMonLinkMessagesFind(&chain, list, SENDS_MAX);

    for (unsigned i = 0; i < n; i++) {
        uint8_t id[16], parent[8];
        char name[sizeof(s.name)];

        if (!list[i].seen || !list[i].isMessage)
            continue;
        snprintf(name, sizeof(name), "put %.80s", list[i].channel);
        ebpfMonSpanStart(&s, trace->id, name);
        ebpfMonSpanOfIoc(&s, t);
        ebpfMonTraceOfMessage(&list[i].peer, list[i].seq, id);
        ebpfMonSpanOfChain(&chain, 0, parent);
        if (list[i].inside || memcmp(id, trace->id, sizeof(id)) == 0) {
            memcpy(s.parent, parent, sizeof(parent));
        } else {
            memcpy(s.trace, id, sizeof(id));
            ebpfMonSpanAddLink(&s, trace->id, parent);
        }
        ebpfMonSpanAddText(&s, "epics.put.link", list[i].link);
        tellClient(&s, &list[i].peer, list[i].seq, list[i].channel, list[i].at + offset, list[i].seenAt + offset);
    }
}

/* Who sent the put that set the trace going, if that is a program on this host, or an IOC whose chain was not kept. */
void ebpfMonSpansSender(const ebpfMonTrace *trace, uint64_t offset)
{
    const ebpfMonPutSummary *put = trace->put;
    static ebpfMonSpan s;
    char name[sizeof(s.name)];
    uint64_t at;

    if (!ebpfMonHasMessage(trace) || !put->pid ||
        (put->linkChain.iocId && (ebpfMonTracesFindByChain(&put->linkChain) || ebpfMonFinishedTracesFind(&put->linkChain))))
        return;
    snprintf(name, sizeof(name), "put %.80s", put->pv);
    ebpfMonSpanStart(&s, trace->id, name);
    ofProgram(&s, put->pid, put->command);
    ebpfMonSpanAddText(&s, "user.name", put->user);
    /* dbPut is entered after the lock was asked for, with which the chain began */
    at = (put->key.at < trace->first->chain.begin ? put->key.at : trace->first->chain.begin) + offset;
    tellClient(&s, &put->key.peer, put->key.seq, put->pv, at, at);
}

void ebpfMonSpansMessage(const ebpfMonPut *put, const struct ebpfMonPeer *peer, uint32_t seq, uint64_t at)
{
    static uint64_t second;
    static unsigned count;
    static ebpfMonSpan s;
    uint8_t id[16];
    char name[sizeof(s.name)];
    uint64_t from;

    if (!ebpfMonExportWantsSpans())
        return;
    if (at - second >= 1000000000u) {
        second = at;
        count = 0;
    }
    if (count++ >= RATE)
        return;
    ebpfMonTraceOfMessage(peer, seq, id);
    snprintf(name, sizeof(name), "put %.80s", put->pv);
    ebpfMonSpanStart(&s, id, name);
    ofProgram(&s, put->peerPid, put->command);
    ebpfMonSpanAddText(&s, "user.name", put->user);
    from = at + ebpfMonUnixOffset(at);
    tellClient(&s, peer, seq, put->pv, from, from);
}
