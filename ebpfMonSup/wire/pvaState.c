/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "wire/pvaState.h"

/* --- tables --- */

#define FIRST_SIZE 16

static pvaLink **findBucket(const pvaTable *table, uint32_t key)
{
    uint32_t mixed = (key ^ table->seed) * 0x85ebca6bu;

    mixed = (mixed ^ mixed >> 15) * 0xc2b2ae35u;
    return &table->bucket[(mixed ^ mixed >> 13) & (table->size - 1)];
}

pvaLink *ebpfMonPvaTableFind(const pvaTable *table, uint32_t key)
{
    pvaLink *link = table->size ? *findBucket(table, key) : NULL;

    while (link && link->key != key) {
        link = link->next;
    }
    return link;
}

int ebpfMonPvaTableAdd(ebpfMonCircuit *circuit, pvaTable *table, pvaLink *link, uint32_t key)
{
    if (table->count >= table->size) {
        unsigned size = table->size ? 2 * table->size : FIRST_SIZE, i;
        pvaTable wider = { .size = size, .count = table->count };

        wider.bucket = ebpfMonCircuitAlloc(circuit, size * sizeof(pvaLink *));
        if (wider.bucket) {
            memset(wider.bucket, 0, size * sizeof(pvaLink *));
            wider.seed = (uint32_t)((uintptr_t)wider.bucket >> 4);
            for (i = 0; i < table->size; i++) {
                pvaLink *old, *next;

                for (old = table->bucket[i]; old; old = next) {
                    pvaLink **to = findBucket(&wider, old->key);

                    next = old->next;
                    old->next = *to;
                    *to = old;
                }
            }
            ebpfMonPvaTableFree(circuit, table);
            *table = wider;
        } else if (!table->size) {
            return -1;
        }
    }
    pvaLink **at = findBucket(table, key);
    link->key = key;
    link->next = *at;
    *at = link;
    table->count++;
    return 0;
}

void ebpfMonPvaTableRemove(pvaTable *table, pvaLink *link)
{
    pvaLink **at = findBucket(table, link->key);

    while (*at && *at != link) {
        at = &(*at)->next;
    }
    if (*at) {
        *at = link->next;
        table->count--;
    }
}

void ebpfMonPvaTableFree(ebpfMonCircuit *circuit, pvaTable *table)
{
    if (table->bucket) {
        ebpfMonCircuitFree(circuit, table->bucket, table->size * sizeof(pvaLink *));
    }
    *table = (pvaTable){ .bucket = NULL };
}

/* --- the state --- */

void ebpfMonPvaEmit(pvaState *pva, const pvaMsg *msg, ebpfMonWireEvent *event)
{
    event->time = msg->message->time;
    event->seq = msg->seq;
    event->end = msg->end;
    event->fromServer = msg->message->fromServer;
    event->user = pva->user;
    event->host = pva->host;
    event->name = event->name ? event->name : "";
    event->options = event->options ? event->options : "";
    event->text = event->text ? event->text : "";
    event->message = event->message ? event->message : "";
    ebpfMonCircuitEmit(pva->circuit, event);
}

int ebpfMonPvaStatusGet(pvaBuf *buf, pvaStatus *status)
{
    uint8_t kind = pvaGet(buf, 1);
    size_t length;

    status->severity = 0;
    status->text[0] = 0;
    if (kind == 0xff || pvaFailed(buf)) {
        return !pvaFailed(buf);
    }
    const char *text = pvaString(buf, &length);
    if (text) {
        length = strnlen(text, length < sizeof(status->text) - 1 ? length : sizeof(status->text) - 1);
        memcpy(status->text, text, length);
        status->text[length] = 0;
    }
    pvaString(buf, &length); /* the call tree, which is not used */
    if (kind > 3) {
        buf->bad = 1;
    }
    status->severity = kind;
    return !pvaFailed(buf) && kind < 2;
}
