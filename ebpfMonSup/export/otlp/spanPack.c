/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "export/otlp/spanPack.h"

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
