/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets for the wire, made by hand, and its events as a text that can be compared. */
#ifndef EBPFMON_WIRETEST_H
#define EBPFMON_WIRETEST_H

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <epicsUnitTest.h>
#include <testMain.h>
#include "wire/packet.h"
#include "wire/wire.h"

#define SYN 0x02
#define FIN 0x01
#define RST 0x04
#define ACK 0x10
#define URG 0x20

#define MS 1000000ull

static uint64_t seed = 88172645463325252ull; /* fixed, so a failure can be repeated */

static inline uint32_t random32(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 16);
}

/* --- events as text ---------------------------------------------------------------------------------- */

typedef struct {
    char  *text;
    size_t len, room;
    unsigned count[ebpfMonWireFlow + 1];
    ebpfMonWireEvent last[ebpfMonWireFlow + 1]; /* do not use their texts and data, which may be freed */
    int quiet;
    uint32_t base[2];  /* sequence numbers in the text are relative to these */
} eventLog;

static inline void logf_(eventLog *log, const char *format, ...)
{
    char line[4096];
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (n > (int)sizeof line - 1)
        n = (int)sizeof line - 1;
    if (log->len + (size_t)n + 1 > log->room) {
        log->room = (log->room + (size_t)n) * 2 + 4096;
        log->text = realloc(log->text, log->room);
        if (!log->text)
            abort();
    }
    memcpy(log->text + log->len, line, (size_t)n + 1);
    log->len += (size_t)n;
}

static inline void logEvent(void *arg, const ebpfMonWireEvent *e)
{
    static const char *const kinds[] = { "opened", "closed", "unread", "foreign", "user", "channel", "still", "gone",
        "put", "reply", "value", "read", "subscribe", "gap", "given up", "crowded", "search", "found", "beacon",
        "tls failed", "update", "refused", "flow" };
    _Static_assert(sizeof(kinds) / sizeof(kinds[0]) == ebpfMonWireFlow + 1, "a word for each kind");
    eventLog *log = arg;
    uint32_t sum = 0, base = e->seq || e->end ? log->base[e->fromServer] : 0;

    log->count[e->kind]++;
    log->last[e->kind] = *e;
    for (size_t i = 0; i < e->have; i++) /* reads each byte, so a sanitizer finds wrong accesses */
        sum = sum * 31 + e->data[i];
    if (log->quiet) {
        if (strlen(e->user) + strlen(e->host) + strlen(e->name) + strlen(e->message) > 4000)
            abort();
        return;
    }
    logf_(log, "%s c%u>%u seq%u-%u %d '%s'@'%s' '%s' cid%u sid%u id%llu ask%d t%d b%d s%u n%u have%zu sum%08x "
        "hash%llx ok%d den%d st%u '%s' bytes%llu\n", kinds[e->kind], ntohs(e->peer.port), ntohs(e->peer.sport),
        e->seq - base,
        e->end - base, e->fromServer, e->user, e->host, e->name, e->cid, e->sid, (unsigned long long)e->id,
            e->replyAsked,
        e->dbrType, e->baseType, e->elementSize, e->count, e->have, sum, (unsigned long long)e->hash, e->ok, e->denied,
        e->status, e->message, (unsigned long long)e->bytes);
}

static inline void logClear(eventLog *log)
{
    free(log->text);
    memset(log, 0, sizeof *log);
}

/* --- packets ----------------------------------------------------------------------------------------- */

typedef struct {
    uint32_t addr[2];  /* 0: client, 1: server; host byte order */
    uint16_t port[2];
    uint32_t seq[2];   /* sequence number of the next byte */
    uint64_t time;
    uint32_t netns;
} talk;

static inline talk talkNew(uint16_t client, uint16_t server)
{
    talk t = { { 0x0a000001, 0x0a000002 }, { client, server }, { 1000, 5000 }, 1000 * MS, 7 };

    return t;
}

static inline size_t ipHeader(uint8_t *p, const talk *t, int dir, size_t len, uint8_t proto)
{
    uint32_t from = htonl(t->addr[dir]), to = htonl(t->addr[!dir]);
    uint16_t total = htons((uint16_t)(20 + len));

    memset(p, 0, 20);
    p[0] = 0x45;
    memcpy(p + 2, &total, 2);
    p[8] = 64;
    p[9] = proto;
    memcpy(p + 12, &from, 4);
    memcpy(p + 16, &to, 4);
    return 20;
}

/* One segment, with "snap" captured bytes of its payload. */
static inline void sendAt(ebpfMonWire *w, const talk *t, int dir, uint32_t seq, unsigned flags, const void *data,
    size_t len, size_t snap)
{
    uint8_t *p = malloc(40 + len); /* memory of exactly this size: a sanitizer sees reads beyond it */
    uint16_t from = htons(t->port[dir]), to = htons(t->port[!dir]);
    uint32_t n = htonl(seq), a = htonl(t->seq[!dir]);

    ipHeader(p, t, dir, 20 + len, 6);
    memset(p + 20, 0, 20);
    memcpy(p + 20, &from, 2);
    memcpy(p + 22, &to, 2);
    memcpy(p + 24, &n, 4);
    memcpy(p + 28, &a, 4);
    p[32] = 5 << 4;
    p[33] = (uint8_t)flags;
    if (len)
        memcpy(p + 40, data, len);
    if (snap < len)
        p = realloc(p, 40 + snap);
    ebpfMonWirePacket(w, t->time, t->netns, p, 40 + (snap < len ? snap : len), 40 + len);
    free(p);
}

static inline void say(ebpfMonWire *w, talk *t, int dir, const void *data, size_t len)
{
    const uint8_t *p = data;

    while (len) {
        size_t n = len > 60000 ? 60000 : len;

        sendAt(w, t, dir, t->seq[dir], ACK, p, n, n);
        t->seq[dir] += (uint32_t)n;
        t->time += MS;
        p += n;
        len -= n;
    }
}

static inline void shake(ebpfMonWire *w, talk *t)
{
    sendAt(w, t, 0, t->seq[0]++, SYN, NULL, 0, 0);
    sendAt(w, t, 1, t->seq[1]++, SYN | ACK, NULL, 0, 0);
    t->time += MS;
}

static inline void bye(ebpfMonWire *w, talk *t)
{
    sendAt(w, t, 0, t->seq[0]++, FIN | ACK, NULL, 0, 0);
    sendAt(w, t, 1, t->seq[1]++, FIN | ACK, NULL, 0, 0);
}

static inline void udp(ebpfMonWire *w, const talk *t, int dir, const void *data, size_t len)
{
    uint8_t *p = malloc(28 + len);
    uint16_t from = htons(t->port[dir]), to = htons(t->port[!dir]), n = htons((uint16_t)(8 + len));

    ipHeader(p, t, dir, 8 + len, 17);
    memset(p + 20, 0, 8);
    memcpy(p + 20, &from, 2);
    memcpy(p + 22, &to, 2);
    memcpy(p + 24, &n, 2);
    if (len)
        memcpy(p + 28, data, len);
    ebpfMonWirePacket(w, t->time, t->netns, p, 28 + len, 28 + len);
    free(p);
}

/* --- bytes that grow --------------------------------------------------------------------------------- */

typedef struct {
    uint8_t *p;
    size_t len, room;
} bytes;

static inline void add(bytes *b, const void *p, size_t n)
{
    if (b->len + n > b->room) {
        b->room = (b->room + n) * 2;
        b->p = realloc(b->p, b->room);
        if (!b->p)
            abort();
    }
    if (n)
        memcpy(b->p + b->len, p, n);
    b->len += n;
}

static inline void add16(bytes *b, unsigned v)
{
    uint8_t p[2] = { (uint8_t)(v >> 8), (uint8_t)v };

    add(b, p, 2);
}

static inline void add32(bytes *b, uint32_t v)
{
    add16(b, v >> 16);
    add16(b, v & 0xffff);
}

static inline void bytesFree(bytes *b)
{
    free(b->p);
    memset(b, 0, sizeof *b);
}

#endif
