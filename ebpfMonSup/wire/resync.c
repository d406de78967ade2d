/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/resync.h"

#define ENOUGH 16 /* headers in a row: no need to look further */

/* How many messages follow each other from p on. -1: something that is none. "rest": bytes behind the last, -1: it
 * goes on behind what is here. */
static int chain(const ebpfMonProtocol *protocol, int fromServer, const uint8_t *p, size_t n, long *rest)
{
    int messages = 0;

    *rest = 0;
    while (n && messages < ENOUGH) {
        ebpfMonFrame f = { 0 };
        int r = protocol->frame(NULL, fromServer, p, n, &f);

        if (r < 0 || (r > 0 && f.total == 0))
            return -1;
        if (r == 0) {
            *rest = (long)n;
            break;
        }
        messages++;
        if (f.total > n) {
            *rest = -1;
            break;
        }
        p += f.total;
        n -= f.total;
    }
    return messages;
}

ebpfMonResyncResult ebpfMonResync(const ebpfMonProtocol *protocol, int fromServer, const ebpfMonAssembly *a,
    size_t segAt, int trusted, size_t *offset)
{
    ebpfMonResyncResult best = ebpfMonResyncNone;
    int enough = trusted ? 2 : 3;

    for (size_t o = 0; o < a->have; o++) {
        int atStart = o == segAt || (o == 0 && a->atStart), found;
        long rest;
        int messages = chain(protocol, fromServer, a->buf + o, a->have - o, &rest);

        if (messages < 0)
            continue;
        found = messages >= enough
            || (messages && o == 0 && a->fresh)
            || (messages && atStart && (rest == 0 || trusted));
        if (found) {
            *offset = o;
            return ebpfMonResyncFound;
        }
        if (best == ebpfMonResyncNone) {
            best = ebpfMonResyncPerhaps;
            *offset = o;
        }
    }
    if (best == ebpfMonResyncNone)
        *offset = a->have;
    return best;
}
