/* SPDX-License-Identifier: BSD-3-Clause */
/* Spans as lines of text, for the tests. */
#ifndef TRACEDUMP_H
#define TRACEDUMP_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "trace/span.h"

typedef struct {
    char  *text;
    size_t size, length;
} dump;

static void dumpAdd(dump *d, const char *fmt, ...) __attribute__((format(__printf__, 2, 3)));

static void dumpAdd(dump *d, const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(d->text + d->length, d->size - d->length, fmt, ap);
    va_end(ap);
    d->length = (size_t)n < d->size - d->length ? d->length + (size_t)n : d->size - 1;
}

static void dumpHex(dump *d, const uint8_t *id, size_t size)
{
    for (size_t i = 0; i < size; i++)
        dumpAdd(d, "%02x", id[i]);
}

/* The process id of the test is written as "self". */
static void dumpSpan(dump *d, const ebpfMonSpan *s)
{
    dumpHex(d, s->trace, sizeof(s->trace));
    dumpAdd(d, " ");
    dumpHex(d, s->id, sizeof(s->id));
    dumpAdd(d, " ");
    dumpHex(d, s->parent, sizeof(s->parent));
    dumpAdd(d, " %" PRIu64 " %" PRIu64 " %d/%d '%s' '%s' root '%s' %" PRIu64 " of '%s' ", s->start, s->end, s->kind,
            s->status, s->name, s->message, s->root, s->latency, s->service.name);
    if (s->service.pid == (uint32_t)getpid())
        dumpAdd(d, "self");
    else
        dumpAdd(d, "%u", s->service.pid);
    dumpAdd(d, " '%s' '%s'", s->service.version, s->service.container);
    for (unsigned i = 0; i < s->links; i++) {
        dumpAdd(d, " link ");
        dumpHex(d, s->link[i].trace, sizeof(s->link[i].trace));
        dumpAdd(d, "/");
        dumpHex(d, s->link[i].id, sizeof(s->link[i].id));
    }
    for (unsigned i = 0; i < s->attributes; i++) {
        const ebpfMonSpanAttribute *a = &s->attribute[i];

        if (a->type == ebpfMonSpanText)
            dumpAdd(d, " %s='%s'", a->key, a->text);
        else if (a->type == ebpfMonSpanDouble)
            dumpAdd(d, " %s=%.17g", a->key, a->number);
        else
            dumpAdd(d, " %s=%" PRId64, a->key, a->integer);
    }
    dumpAdd(d, " dropped %u\n", s->dropped);
}

#endif
