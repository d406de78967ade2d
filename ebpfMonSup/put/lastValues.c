/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "common/hash.h"
#include "common/text.h"
#include "model/put.h"
#include "put/lastValues.h"
#include "put/packetText.h"

#define VALUES 8192

typedef struct {
    uint64_t key;          /* hash of server and channel; 0: none */
    uint64_t server;       /* hash of the server */
    uint64_t circuit, put; /* the put that wrote it; put 0: it was read */
    uint64_t fields;       /* as in ebpfMonWireEvent */
    ebpfMonOldValue value;
} lastValue;

struct ebpfMonLastValues {
    lastValue table[VALUES];
};

ebpfMonLastValues *ebpfMonLastValuesNew(void)
{
    return calloc(1, sizeof(ebpfMonLastValues));
}

void ebpfMonLastValuesFree(ebpfMonLastValues *values)
{
    free(values);
}

static uint64_t hashServer(const struct ebpfMonPeer *peer)
{
    return EBPFMON_FNV64_BEGIN ^ peer->saddr ^ (uint64_t)peer->sport << 32 ^ (uint64_t)peer->netns << 16;
}

/* Without ".VAL": both names lead to the same values. With a modifier or a filter, a channel has other values. */
static size_t getLength(const char *channel)
{
    size_t n = strlen(channel);

    return n > 4 && strcmp(channel + n - 4, ".VAL") == 0 ? n - 4 : n;
}

/* 64 bits: two names have the same key with a chance of 10^-19. Then the value of the other would be shown. */
static uint64_t hashChannel(const struct ebpfMonPeer *peer, const char *channel)
{
    uint64_t h = ebpfMonHashFnv64(hashServer(peer), channel, getLength(channel));

    return h ? h : 1;
}

static lastValue *findPlace(ebpfMonLastValues *values, uint64_t key)
{
    return &values->table[(key ^ key >> 32) % VALUES];
}

static void storeValue(lastValue *l, uint64_t key, const ebpfMonWireEvent *ev)
{
    char text[EBPFMON_TEXT_SIZE];

    l->key = key;
    l->server = hashServer(&ev->peer);
    l->circuit = ev->circuit;
    l->put = ev->kind == ebpfMonWirePut ? ev->id : 0;
    l->fields = ev->fields;
    l->value.known = 1;
    l->value.count = (long)ev->count;
    l->value.isText = 0; /* texts of PVA arrays have quotes */
    if (ev->protocol == ebpfMonWirePva) {
        l->value.isNumber = ev->isNumber && ebpfMonPacketTextIsNumber(ev->text);
        l->value.number = ev->number;
        ebpfMonTextCopy(l->value.text, sizeof(l->value.text), ev->text);
        return;
    }
    l->value.isText = ebpfMonPacketTextFormatCa(
        ev->data, (uint32_t)(ev->have < EBPFMON_PACKET_PUT_DATA ? ev->have : EBPFMON_PACKET_PUT_DATA), ev->baseType,
        ev->count, text, sizeof(text), &l->value.isNumber, &l->value.number);
    ebpfMonTextCopy(l->value.text, sizeof(l->value.text), text);
}

void ebpfMonLastValuesSet(ebpfMonLastValues *values, const ebpfMonWireEvent *ev)
{
    lastValue *l;
    uint64_t key;

    if (!ev->name[0] || !ev->data || (ev->isPartial && !ev->isUpdate))
        return;
    key = hashChannel(&ev->peer, ev->name);
    l = findPlace(values, key);
    if (!ev->isPartial)
        storeValue(l, key, ev);
    else if (l->key == key)
        l->value.known = 0; /* it has changed since it was seen whole, perhaps */
}

/* Nonzero: it is the value of the fields that this put writes. What is known of other fields tells nothing. */
static int isOfFields(const lastValue *l, const ebpfMonWireEvent *ev)
{
    return l->fields == ev->fields && (ev->fields || ev->protocol == ebpfMonWireCa);
}

void ebpfMonLastValuesExchange(ebpfMonLastValues *values, const ebpfMonWireEvent *ev, ebpfMonOldValue *old)
{
    uint64_t key = hashChannel(&ev->peer, ev->name);
    lastValue *l = findPlace(values, key);

    old->known = 0;
    if (!ev->name[0])
        return;
    if (l->key == key && l->value.known && isOfFields(l, ev))
        *old = l->value;
    storeValue(l, key, ev);
}

void ebpfMonLastValuesForgetServer(ebpfMonLastValues *values, const struct ebpfMonPeer *peer)
{
    uint64_t server = hashServer(peer);

    for (unsigned i = 0; i < VALUES; i++)
        if (values->table[i].server == server)
            values->table[i].key = 0;
}

void ebpfMonLastValuesRestore(ebpfMonLastValues *values, const ebpfMonWireEvent *reply, const ebpfMonOldValue *old)
{
    uint64_t key = hashChannel(&reply->peer, reply->name);
    lastValue *l = findPlace(values, key);

    if (l->key == key && l->put == reply->id && l->circuit == reply->circuit) {
        l->value = *old;
        l->put = 0;
    }
}
