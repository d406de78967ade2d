/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/resync.h"

#define ENOUGH 16 /* after so many headers in a row there is no need to look further */

/* Counts the messages that follow each other from "p" on. -1: something is no message. *rest: bytes after the last
 * message; -1: the last message is not complete. */
static int countMessages(const ebpfMonProtocol *protocol, int fromServer, const uint8_t *p, size_t n, long *rest)
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
        int messages = countMessages(protocol, fromServer, a->buf + o, a->have - o, &rest);

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
