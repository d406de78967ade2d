/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include "trace/span.h"

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

void ebpfMonSpanAddLink(ebpfMonSpan *span, const uint8_t trace[EBPFMON_TRACE_ID], const uint8_t id[EBPFMON_SPAN_ID])
{
    ebpfMonSpanRef *ref;

    if (span->links >= EBPFMON_SPAN_LINKS)
        return;
    ref = &span->link[span->links++];
    memcpy(ref->trace, trace, sizeof(ref->trace));
    memcpy(ref->id, id, sizeof(ref->id));
}
