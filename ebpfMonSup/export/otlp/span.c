/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include "export/otlp/span.h"

/* --- spans --- */

/* splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators). An id must differ from all others,
 * but need not be secret, and getrandom() for each id would cost a system call. Each thread has its own state, so any
 * thread can make ids without a lock. */
static uint64_t makeRandom(void)
{
    static _Thread_local uint64_t state;
    struct timespec t;
    uint64_t z;

    if (!state && getrandom(&state, sizeof(state), GRND_NONBLOCK) != (ssize_t)sizeof(state)) {
        clock_gettime(CLOCK_REALTIME, &t);
        state = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec + (uint64_t)(uintptr_t)&state;
    }
    z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

void ebpfMonSpanNewId(uint8_t *id, size_t size)
{
    for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
        uint64_t number = makeRandom();

        while (!number)
            number = makeRandom();
        memcpy(id + at, &number, size - at < sizeof(number) ? size - at : sizeof(number));
    }
}

static ebpfMonSpanAttribute *addAttribute(ebpfMonSpan *span, const char *key, ebpfMonSpanType type)
{
    ebpfMonSpanAttribute *a;

    if (span->attributes >= EBPFMON_SPAN_ATTRIBUTES) {
        span->dropped++;
        return NULL;
    }
    a = &span->attribute[span->attributes++];
    snprintf(a->key, sizeof(a->key), "%s", key);
    a->type = type;
    return a;
}

void ebpfMonSpanAddText(ebpfMonSpan *span, const char *key, const char *value)
{
    ebpfMonSpanAttribute *a = value[0] ? addAttribute(span, key, ebpfMonSpanText) : NULL;

    if (a)
        ebpfMonTextCopy(a->text, sizeof(a->text), value);
}

void ebpfMonSpanAddInteger(ebpfMonSpan *span, const char *key, int64_t value)
{
    ebpfMonSpanAttribute *a = addAttribute(span, key, ebpfMonSpanInteger);

    if (a)
        a->integer = value;
}

void ebpfMonSpanAddDouble(ebpfMonSpan *span, const char *key, double value)
{
    ebpfMonSpanAttribute *a = addAttribute(span, key, ebpfMonSpanDouble);

    if (a)
        a->number = value;
}

void ebpfMonSpanAddBool(ebpfMonSpan *span, const char *key, int value)
{
    ebpfMonSpanAttribute *a = addAttribute(span, key, ebpfMonSpanBool);

    if (a)
        a->integer = !!value;
}

long ebpfMonAddressSplit(const char *peer, char address[EBPFMON_ADDRESS_SIZE])
{
    const char *colon = strrchr(peer, ':');

    int isIPv6 = peer[0] == '[';

    if (!colon || colon - peer >= EBPFMON_ADDRESS_SIZE)
        return -1;
    snprintf(address, EBPFMON_ADDRESS_SIZE, "%.*s", (int)(colon - peer) - 2 * isIPv6, peer + isIPv6);
    return strtol(colon + 1, NULL, 10);
}

void ebpfMonSpanAddLink(ebpfMonSpan *span, const uint8_t trace[EBPFMON_TRACE_ID], const uint8_t id[EBPFMON_SPAN_ID])
{
    ebpfMonSpanRef *ref;

    if (span->links >= EBPFMON_SPAN_LINKS)
        return;
    ref = &span->link[span->links++];
    memcpy(ref->trace, trace, sizeof(ref->trace));
    memcpy(ref->id, id, sizeof(ref->id));
}

/* --- spans in a queue --- */

typedef struct {
    uint8_t  trace[EBPFMON_TRACE_ID], id[EBPFMON_SPAN_ID], parent[EBPFMON_SPAN_ID];
    uint64_t start, end, latency;
    uint32_t pid, dropped;
    uint8_t  kind, status, links, attributes;
} fixedMembers;

#define TEXT(member) {offsetof(ebpfMonSpan, member), sizeof(((ebpfMonSpan *)0)->member)}

static const struct {
    size_t at, size;
} texts[] = {
    TEXT(name), TEXT(message), TEXT(root), TEXT(service.name), TEXT(service.version), TEXT(service.container),
};

static uint8_t *packText(uint8_t *to, const char *text, size_t size)
{
    size_t len = strnlen(text, size - 1);

    memcpy(to, text, len);
    to[len] = 0;
    return to + len + 1;
}

static const uint8_t *unpackText(const uint8_t *from, char *text)
{
    size_t size = strlen((const char *)from) + 1;

    memcpy(text, from, size);
    return from + size;
}

size_t ebpfMonSpanPack(const ebpfMonSpan *span, uint8_t *buf)
{
    unsigned n = span->attributes < EBPFMON_SPAN_ATTRIBUTES ? span->attributes : EBPFMON_SPAN_ATTRIBUTES;
    unsigned links = span->links < EBPFMON_SPAN_LINKS ? span->links : EBPFMON_SPAN_LINKS;
    fixedMembers f = {
        .start = span->start, .end = span->end, .latency = span->latency, .pid = span->service.pid,
        .dropped = span->dropped, .kind = (uint8_t)span->kind, .status = (uint8_t)span->status,
        .links = (uint8_t)links, .attributes = (uint8_t)n,
    };
    uint8_t *to = buf + sizeof(f);

    memcpy(f.trace, span->trace, sizeof(f.trace));
    memcpy(f.id, span->id, sizeof(f.id));
    memcpy(f.parent, span->parent, sizeof(f.parent));
    memcpy(buf, &f, sizeof(f));
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        to = packText(to, (const char *)span + texts[i].at, texts[i].size);
    memcpy(to, span->link, links * sizeof(span->link[0]));
    to += links * sizeof(span->link[0]);
    for (unsigned i = 0; i < n; i++) {
        const ebpfMonSpanAttribute *a = &span->attribute[i];

        *to++ = (uint8_t)a->type;
        to = packText(to, a->key, sizeof(a->key));
        if (a->type == ebpfMonSpanText) {
            to = packText(to, a->text, sizeof(a->text));
        } else {
            memcpy(to, a->type == ebpfMonSpanDouble ? (const void *)&a->number : &a->integer, 8);
            to += 8;
        }
    }
    return (size_t)(to - buf);
}

void ebpfMonSpanUnpack(const uint8_t *buf, ebpfMonSpan *span)
{
    const uint8_t *from = buf + sizeof(fixedMembers);
    fixedMembers f;

    memcpy(&f, buf, sizeof(f));
    memcpy(span->trace, f.trace, sizeof(f.trace));
    memcpy(span->id, f.id, sizeof(f.id));
    memcpy(span->parent, f.parent, sizeof(f.parent));
    span->start = f.start;
    span->end = f.end;
    span->latency = f.latency;
    span->kind = f.kind;
    span->status = f.status;
    span->service.pid = f.pid;
    span->dropped = f.dropped;
    span->links = f.links;
    span->attributes = f.attributes;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        from = unpackText(from, (char *)span + texts[i].at);
    memcpy(span->link, from, f.links * sizeof(span->link[0]));
    from += f.links * sizeof(span->link[0]);
    for (unsigned i = 0; i < f.attributes; i++) {
        ebpfMonSpanAttribute *a = &span->attribute[i];

        a->type = *from++;
        from = unpackText(from, a->key);
        if (a->type == ebpfMonSpanText) {
            from = unpackText(from, a->text);
        } else {
            memcpy(a->type == ebpfMonSpanDouble ? (void *)&a->number : &a->integer, from, 8);
            from += 8;
        }
    }
}
