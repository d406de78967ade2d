/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/pva.h"

pvaChannel *pvaChannelBySid(pvaState *pva, uint32_t sid)
{
    pvaLink *link = pvaTableFind(&pva->bySid, sid);

    return link ? PVA_OF(link, pvaChannel, bySid) : NULL;
}

static pvaChannel *byCid(pvaState *pva, uint32_t cid)
{
    pvaLink *link = pvaTableFind(&pva->byCid, cid);

    return link ? PVA_OF(link, pvaChannel, byCid) : NULL;
}

static pvaChannel *make(pvaState *pva)
{
    pvaChannel *channel = NULL;

    if (pva->channels < ebpfMonCircuitLimits(pva->circuit)->channels) {
        channel = ebpfMonCircuitAlloc(pva->circuit, sizeof(*channel));
    }
    if (!channel) {
        ebpfMonCircuitStats(pva->circuit)->noMemory++;
        return NULL;
    }
    *channel = (pvaChannel){ .hasSid = 0 };
    pva->channels++;
    ebpfMonCircuitStats(pva->circuit)->channels++;
    return channel;
}

void pvaChannelFree(pvaState *pva, pvaChannel *channel)
{
    while (channel->ops) {
        pvaOpFree(pva, channel->ops);
    }
    if (channel->hasSid) {
        pvaTableRemove(&pva->bySid, &channel->bySid);
    }
    if (channel->hasCid) {
        pvaTableRemove(&pva->byCid, &channel->byCid);
    }
    if (channel->name) {
        ebpfMonCircuitFree(pva->circuit, channel->name, channel->nameSize);
    }
    ebpfMonCircuitFree(pva->circuit, channel, sizeof(*channel));
    pva->channels--;
    ebpfMonCircuitStats(pva->circuit)->channels--;
}

static int setName(pvaState *pva, pvaChannel *channel, const char *name, size_t length)
{
    length = strnlen(name, length < PVA_NAME ? length : PVA_NAME);
    char *copy = ebpfMonCircuitAlloc(pva->circuit, length + 1);
    if (!copy) {
        ebpfMonCircuitStats(pva->circuit)->noMemory++;
        return -1;
    }
    memcpy(copy, name, length);
    copy[length] = 0;
    if (channel->name) {
        ebpfMonCircuitFree(pva->circuit, channel->name, channel->nameSize);
    }
    channel->name = copy;
    channel->nameSize = length + 1;
    return 0;
}

/* A server's number has one meaning at a time; that its old one ended was missed. */
static int setSid(pvaState *pva, pvaChannel *channel, uint32_t sid)
{
    pvaChannel *old = pvaChannelBySid(pva, sid);

    if (old == channel) {
        return 0;
    }
    if (old) {
        pvaChannelFree(pva, old);
    }
    if (channel->hasSid) {
        pvaTableRemove(&pva->bySid, &channel->bySid);
    }
    channel->hasSid = !pvaTableAdd(pva->circuit, &pva->bySid, &channel->bySid, sid);
    return channel->hasSid ? 0 : -1;
}

static void wanted(pvaState *pva, pvaMsg *msg)
{
    unsigned count = pvaGet(&msg->buf, 2);

    for (; count && !pvaFailed(&msg->buf); count--) {
        uint32_t cid = pvaGet(&msg->buf, 4);
        size_t length;
        const char *name = pvaString(&msg->buf, &length);

        if (!name) {
            return;
        }
        pvaChannel *channel = byCid(pva, cid);
        if (channel) {
            pvaChannelFree(pva, channel);
        }
        channel = make(pva);
        if (!channel) {
            return;
        }
        channel->hasCid = !pvaTableAdd(pva->circuit, &pva->byCid, &channel->byCid, cid);
        if (!channel->hasCid || setName(pva, channel, name, length)) {
            pvaChannelFree(pva, channel);
            return;
        }
    }
}

static void created(pvaState *pva, pvaMsg *msg)
{
    uint32_t cid = pvaGet(&msg->buf, 4), sid = pvaGet(&msg->buf, 4);
    pvaStatus status;
    int ok = pvaStatusGet(&msg->buf, &status);
    pvaChannel *channel = byCid(pva, cid);

    if (pvaFailed(&msg->buf)) {
        return;
    }
    if (!ok) {
        if (channel) {
            pvaChannelFree(pva, channel);
        }
        return;
    }
    if (channel && setSid(pva, channel, sid)) {
        pvaChannelFree(pva, channel);
        channel = NULL;
    } else if (!channel && (channel = pvaChannelBySid(pva, sid))) {
        /* Asked for unseen: whatever had this number is gone. */
        pvaChannelFree(pva, channel);
        channel = NULL;
    }
    pvaEmit(pva, msg, &(ebpfMonWireEvent){ .kind = ebpfMonWireChannel, .cid = cid, .sid = sid,
        .name = channel ? channel->name : NULL });
}

static void destroyed(pvaState *pva, pvaMsg *msg)
{
    uint32_t sid = pvaGet(&msg->buf, 4), cid = pvaGet(&msg->buf, 4);
    pvaChannel *channel = pvaChannelBySid(pva, sid);

    /* Both ends send this. The client's number may be in use again by the time of the answer. */
    if (pvaFailed(&msg->buf) || !channel || (channel->hasCid && channel->byCid.key != cid)) {
        return;
    }
    pvaEmit(pva, msg, &(ebpfMonWireEvent){ .kind = ebpfMonWireChannelGone, .cid = cid, .sid = sid,
        .name = channel->name });
    pvaChannelFree(pva, channel);
}

void pvaChannelMessage(pvaState *pva, pvaMsg *msg)
{
    if (msg->cmd == pvaDestroy) {
        destroyed(pva, msg);
    } else if (msg->message->fromServer) {
        created(pva, msg);
    } else {
        wanted(pva, msg);
    }
}

pvaChannel *pvaChannelOfSid(pvaState *pva, uint32_t sid)
{
    pvaChannel *channel = pvaChannelBySid(pva, sid);

    if (!channel && (channel = make(pva)) && setSid(pva, channel, sid)) {
        pvaChannelFree(pva, channel);
        channel = NULL;
    }
    return channel;
}

void pvaChannelNamed(pvaState *pva, uint32_t sid, const char *name)
{
    pvaChannel *channel = pvaChannelOfSid(pva, sid);

    if (channel) {
        setName(pva, channel, name, strlen(name));
    }
}

void pvaChannelsFree(pvaState *pva)
{
    unsigned i;

    for (i = 0; i < pva->bySid.size; i++) {
        while (pva->bySid.bucket[i]) {
            pvaChannelFree(pva, PVA_OF(pva->bySid.bucket[i], pvaChannel, bySid));
        }
    }
    for (i = 0; i < pva->byCid.size; i++) {
        while (pva->byCid.bucket[i]) {
            pvaChannelFree(pva, PVA_OF(pva->byCid.bucket[i], pvaChannel, byCid));
        }
    }
    pvaTableFree(pva->circuit, &pva->bySid);
    pvaTableFree(pva->circuit, &pva->byCid);
}
