/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "common/bigEndian.h"
#include "feed.h"
#include "wire/wire.h"

#define CONNECTIONS 4
#define KEEP 512
#define SECOND 1000000000ull

typedef struct {
    uint32_t seq[2]; /* the next sequence number of client and server */
    int begun;
} talk;

static volatile uint64_t sum;

/* Reads all bytes of the event, so that the sanitizers see a wrong length or pointer. */
static void sink(void *arg, const ebpfMonWireEvent *e)
{
    const char *const text[] = { e->user, e->host, e->name, e->options, e->text, e->message };

    for (unsigned i = 0; i < sizeof text / sizeof text[0]; i++)
        sum += strlen(text[i]);
    for (size_t i = 0; i < e->have; i++)
        sum += e->data[i];
    if (e->have > KEEP)
        abort();
}

static void packet(ebpfMonWire *w, uint64_t time, int proto, int dir, unsigned client, unsigned server, uint32_t seq,
    uint32_t ack, unsigned flags, const uint8_t *data, size_t len, size_t snap)
{
    size_t head = proto == 6 ? 40 : 28;
    uint8_t *p = malloc(head + snap); /* its exact size, so that the sanitizer sees each read behind its end */

    if (!p)
        return;
    memset(p, 0, head);
    p[0] = 0x45;
    ebpfMonBigEndianSet16(p + 2, (unsigned)(head + len));
    p[9] = (uint8_t)proto;
    ebpfMonBigEndianSet32(p + 12, dir ? 0x7f000002 : 0x7f000001);
    ebpfMonBigEndianSet32(p + 16, dir ? 0x7f000001 : 0x7f000002);
    ebpfMonBigEndianSet16(p + 20, dir ? server : client);
    ebpfMonBigEndianSet16(p + 22, dir ? client : server);
    if (proto == 6) {
        ebpfMonBigEndianSet32(p + 24, seq);
        ebpfMonBigEndianSet32(p + 28, ack);
        p[32] = 5 << 4;
        p[33] = (uint8_t)flags;
    } else {
        ebpfMonBigEndianSet16(p + 24, (unsigned)(8 + len));
    }
    memcpy(p + head, data, snap);
    ebpfMonWirePacket(w, time, 1, p, head + snap, head + len);
    free(p);
}

static void begin(ebpfMonWire *w, talk *t, uint64_t time, unsigned client, unsigned server)
{
    static const uint8_t none[1];

    t->begun = 1;
    t->seq[0] = 0xfffffff0u; /* so it wraps soon */
    t->seq[1] = 1000;
    packet(w, time, 6, 0, client, server, t->seq[0]++, 0, 2, none, 0, 0);
    packet(w, time, 6, 1, client, server, t->seq[1]++, t->seq[0], 0x12, none, 0, 0);
}

static void special(ebpfMonWire *w, talk *t, uint64_t *time, int dir, unsigned client, unsigned server,
    const uint8_t *p, size_t len)
{
    uint32_t seq = t->seq[dir];

    switch (p[0] & 7) {
    case 0: /* a UDP datagram */
        packet(w, *time, 17, dir, client, server, 0, 0, 0, p + 1, len - 1, len - 1);
        break;
    case 1: /* a segment of which only the first half was captured */
        packet(w, *time, 6, dir, client, server, seq, t->seq[!dir], 0x10, p + 1, len - 1, (len - 1) / 2);
        t->seq[dir] += (uint32_t)(len - 1);
        break;
    case 2: /* bytes that we did not see */
        t->seq[dir] += p[0];
        break;
    case 3: /* two seconds pass */
        *time += 2 * SECOND;
        ebpfMonWireTick(w, *time);
        break;
    case 4: { /* the input is a whole packet with its headers */
        uint8_t *raw = malloc(len);

        if (!raw)
            return;
        memcpy(raw, p + 1, len - 1);
        ebpfMonWirePacket(w, *time, 1, raw, len - 1, p[0] & 8 ? len + 40 : len - 1);
        free(raw);
        break;
    }
    case 5: /* an acknowledgement of the other side */
        packet(w, *time, 6, !dir, client, server, t->seq[!dir], seq + p[0], 0x10, p, 0, 0);
        break;
    default: /* a connection whose handshake we did not see */
        t->begun = 1;
        t->seq[dir] += 5;
    }
}

int ebpfMonFuzzFeed(const uint8_t *data, size_t size, uint16_t port)
{
    const ebpfMonWireLimits limits = { .circuits = 3, .channels = 8, .keep = KEEP, .pending = 2048, .total = 48 << 10 };
    ebpfMonWire *w = ebpfMonWireNew(&limits, sink, NULL);
    talk talks[CONNECTIONS] = { 0 };
    uint64_t time = SECOND;

    if (!w)
        return 0;
    while (size >= 3) {
        unsigned what = data[0];
        size_t len = (size_t)(data[1] << 8 | data[2]);
        const uint8_t *p = data + 3;
        int dir = what & 1, place = 0;
        talk *t = &talks[what >> 1 & 3];
        unsigned client = 40000 + (what >> 1 & 3), flags = 0x10;

        if (len > size - 3)
            len = size - 3;
        data += 3 + len;
        size -= 3 + len;
        time += SECOND / 1000;
        if ((what >> 3 & 3) == 3 && len) {
            special(w, t, &time, dir, client, port, p, len);
        } else {
            if (!t->begun)
                begin(w, t, time, client, port);
            if ((what >> 3 & 3) == 1 && len >= 2) {
                place = (int16_t)(p[0] << 8 | p[1]);
                p += 2;
                len -= 2;
            } else if ((what >> 3 & 3) == 2 && len) {
                flags = *p++;
                len--;
            }
            packet(w, time, 6, dir, client, port, t->seq[dir] + (uint32_t)place, t->seq[!dir], flags, p, len, len);
            if (!place)
                t->seq[dir] += (uint32_t)len;
        }
        if (ebpfMonWireStat(w)->memory > limits.total || ebpfMonWireStat(w)->circuits > limits.circuits)
            abort();
    }
    ebpfMonWireTick(w, UINT64_MAX);
    if (ebpfMonWireStat(w)->memory || ebpfMonWireStat(w)->circuits || ebpfMonWireStat(w)->channels)
        abort(); /* something was not freed */
    ebpfMonWireFree(w);
    return 0;
}
