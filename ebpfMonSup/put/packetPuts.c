/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cadef.h>
#include <epicsTime.h>

#include "common/clock.h"
#include "export/otlp/span.h"
#include "put/putWriter.h"
#include "put/linkWrites.h"
#include "put/putDecode.h"
#include "publish/putPublisher.h"
#include "trace/linkMessages.h"
#include "trace/putSpans.h"
#include "put/valueText.h"
#include "put/packetPuts.h"
#include "probe/loader.h"

#define VALUES 8192 /* PVs whose last value is remembered, by hash: another one may take its place */

typedef struct {
    uint64_t key;       /* of server and channel; 0: none */
    uint64_t circuit, put; /* the put that it came with; 0: it was read */
    ebpfMonOldValue value;
} lastValue;

static lastValue values[VALUES];

/* FNV-1a, 64 bits: two names share one with a chance of 10^-19, in which case a wrong old value would be shown. */
static uint64_t keyOf(const struct ebpfMonPeer *peer, const char *channel)
{
    uint64_t h = 0xcbf29ce484222325ull ^ peer->saddr ^ (uint64_t)peer->sport << 32 ^ (uint64_t)peer->netns << 16;
    size_t n = strlen(channel);

    if (n > 4 && strcmp(channel + n - 4, ".VAL") == 0)
        n -= 4;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)channel[i]) * 0x100000001b3ull;
    return h ? h : 1;
}

static lastValue *find(uint64_t key)
{
    return &values[(key ^ key >> 32) % VALUES];
}

/* Elements as CA has them on the wire. An enum's index is no number to reckon with. */
static void caText(const uint8_t *data, uint32_t have, int baseType, uint32_t count, char *buf, size_t size,
                   int *isNumber, double *number)
{
    ebpfMonValue v = {
        .data = data, .len = have, .type = ebpfMonPutDecodeCaType(baseType), .size = 40, .count = count, .network = 1,
    };

    *isNumber = v.type != ebpfMonDbfEnum && ebpfMonValueNumber(&v, number);
    ebpfMonValueText(NULL, NULL, 0, &v, buf, size);
}

/* "true" and "2 (Fast)" stand for numbers, but are more than that. */
static int isPlain(const char *text)
{
    char *end;

    strtod(text, &end);
    return text[0] && !*end;
}

static void keep(lastValue *l, uint64_t key, const ebpfMonWireEvent *ev)
{
    char text[EBPFMON_TEXT_SIZE];

    l->key = key;
    l->circuit = ev->circuit;
    l->put = ev->kind == ebpfMonWirePut ? ev->id : 0;
    l->value.known = 1;
    l->value.count = (long)ev->count;
    if (ev->protocol == ebpfMonWirePva) {
        l->value.isNumber = ev->isNumber && isPlain(ev->text);
        l->value.number = ev->number;
        ebpfMonTextCopy(l->value.text, sizeof(l->value.text), ev->text);
        return;
    }
    caText(ev->data, (uint32_t)(ev->have < EBPFMON_PACKET_PUT_DATA ? ev->have : EBPFMON_PACKET_PUT_DATA), ev->baseType, ev->count,
           text, sizeof(text), &l->value.isNumber, &l->value.number);
    ebpfMonTextCopy(l->value.text, sizeof(l->value.text), text);
}

void ebpfMonPacketPutsNoteValue(const ebpfMonWireEvent *ev)
{
    uint64_t key;

    if (!ev->name[0] || !ev->data)
        return;
    key = keyOf(&ev->peer, ev->name);
    keep(find(key), key, ev);
}

void ebpfMonPacketPutsTakeOld(const ebpfMonWireEvent *ev, ebpfMonOldValue *old)
{
    uint64_t key = keyOf(&ev->peer, ev->name);
    lastValue *l = find(key);

    old->known = 0;
    if (!ev->name[0])
        return;
    if (l->key == key && l->value.known)
        *old = l->value;
    keep(l, key, ev);
}

void ebpfMonPacketPutsRestore(const ebpfMonWireEvent *reply, const ebpfMonOldValue *old)
{
    uint64_t key = keyOf(&reply->peer, reply->name);
    lastValue *l = find(key);

    if (l->key == key && l->put == reply->id && l->circuit == reply->circuit) {
        l->value = *old;
        l->put = 0;
    }
}

void ebpfMonPacketPutsNoteSent(const ebpfMonWireEvent *ev, uint64_t at)
{
    struct ebpfMonOwner owner = { .pid = 0 };

    if (!ebpfMonExportsSpans() || ev->protocol != ebpfMonWireCa)
        return;
    ebpfMonKernelGetOwner(&ev->peer, &owner);
    if (owner.pid)
        ebpfMonLinkMessagesNotePacket(owner.pid, ev->name, &ev->peer, ev->seq, at);
}

static void result(const ebpfMonPacketPut *e, int missed, ebpfMonPut *put)
{
    if (e->replied) {
        put->result = e->ok ? ebpfMonPutOk : e->denied ? ebpfMonPutDenied : ebpfMonPutFailed;
        snprintf(put->message, sizeof(put->message), "%s", e->message[0] || e->ok || e->pva ? e->message :
                 ca_message((long)e->status));
    } else if (e->iocId) {
        /* The IOC is watched from inside, and went on with this connection, or ended, without having made it. A
         * write-notify may still wait for its record. */
        put->result = missed || (e->replyAsked && !e->pva && !e->closed) ? ebpfMonPutUnknown : ebpfMonPutLost;
    } else {
        put->result = e->replyAsked ? ebpfMonPutUnknown : ebpfMonPutSent;
    }
}

void ebpfMonPacketPutsPublish(const ebpfMonPacketPut *e, const char *server, int missed)
{
    static ebpfMonPut put;
    struct ebpfMonOwner owner = { .pid = 0 };
    size_t n;

    memset(&put, 0, sizeof(put));
    put.time = ebpfMonClockStamp(e->time);
    put.seen = EBPFMON_SEEN_WIRE;
    put.oldCount = -1;
    put.count = (long)e->count;
    put.hash = e->hash;
    put.through = e->pva ? ebpfMonByPva : ebpfMonByCa;
    snprintf(put.ioc, sizeof(put.ioc), "%s", server);
    if (e->channel[0]) {
        n = strlen(e->channel);
        if (n > 4 && strcmp(e->channel + n - 4, ".VAL") == 0)
            n -= 4;
        snprintf(put.pv, sizeof(put.pv), "%.*s", (int)n, e->channel);
        if (strcmp(put.pv, e->channel) != 0)
            snprintf(put.channel, sizeof(put.channel), "%s", e->channel);
    } else {
        snprintf(put.pv, sizeof(put.pv), "sid %u", e->sid);
    }
    if (e->pva) {
        ebpfMonTextCopy(put.val, sizeof(put.val), (const char *)e->data);
        put.isNumber = e->isNumber && isPlain(put.val);
        put.number = e->number;
    } else {
        caText(e->data, e->have, e->baseType, e->count, put.val, sizeof(put.val), &put.isNumber, &put.number);
    }
    if (e->old.known) {
        put.hasOld = 1;
        put.oldIsNumber = e->old.isNumber;
        put.oldNumber = e->old.number;
        put.oldCount = e->old.count;
        snprintf(put.old, sizeof(put.old), "%s", e->old.text);
    }
    ebpfMonKernelGetOwner(&e->peer, &owner);
    ebpfMonPutWriterSetClient(&e->peer, &owner, e->user, e->host, &put);
    if (owner.pid && !e->pva)
        ebpfMonLinkWritesSetWriter(owner.pid, e->channel, e->at, &put);
    result(e, missed, &put);
    if (owner.pid && !put.linkChain.iocId)
        ebpfMonSpansMessage(&put, &e->peer, e->seq, e->at);
    ebpfMonPutPublisherPublish(ebpfMonThePutPublisher, &put);
}
