/* SPDX-License-Identifier: BSD-3-Clause */
/* The recorded Channel Access circuit (caRecorded.h) for the tests of wire/, and puts made by hand. */
#ifndef EBPFMON_WIRERECORDED_H
#define EBPFMON_WIRERECORDED_H

#include "caRecorded.h"
#include "wireTest.h"

typedef struct {
    int dir;
    const uint8_t *p;
    size_t len;
} part;

/* The bytes that one side sends until the other side sends, in one piece. */
static inline unsigned parts(part *t, bytes *store)
{
    unsigned n = 0;

    for (size_t at = 0; at < sizeof caRecorded; at += 2u + caRecorded[at + 1])
        add(store, &caRecorded[at + 2], caRecorded[at + 1]);
    store->len = 0;
    for (size_t at = 0; at < sizeof caRecorded; at += 2u + caRecorded[at + 1]) {
        if (!n || t[n - 1].dir != caRecorded[at])
            t[n++] = (part){ caRecorded[at], store->p + store->len, 0 };
        t[n - 1].len += caRecorded[at + 1];
        store->len += caRecorded[at + 1];
    }
    return n;
}

static inline void put(bytes *b, uint32_t sid, uint32_t ioid, double v)
{
    uint64_t u;

    memcpy(&u, &v, 8);
    add16(b, 19);
    add16(b, 8);
    add16(b, 6);
    add16(b, 1);
    add32(b, sid);
    add32(b, ioid);
    add32(b, (uint32_t)(u >> 32));
    add32(b, (uint32_t)u);
}

#endif
