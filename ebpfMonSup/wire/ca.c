/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Channel Access over TCP, as rsrv (camessage.c) and libca (tcpiiu.cpp, cac.cpp) of EPICS Base do it. A put has only
 * the number (sid) that the server gave to its channel. So we learn the names when channels are created.
 */
#include <string.h>

#include "wire/caDatagram.h"
#include "wire/caRequest.h"
#include "wire/caResponse.h"
#include "wire/caState.h"

static int findCaFrame(void *state, int fromServer, const uint8_t *p, size_t have, ebpfMonFrame *f)
{
    ebpfMonCaHeader h;
    int r = ebpfMonCaHeaderParse(&h, p, have);

    if (r <= 0)
        return r;
    if (!ebpfMonCaHeaderPlausible(&h, fromServer, state == NULL))
        return -1;
    f->total = h.head + h.size;
    f->hashFrom = f->hashTo = f->total;
    if (h.type < EBPFMON_CA_TYPES && h.size) {
        const ebpfMonCaType *t = &ebpfMonCaTypes[h.type];
        uint64_t end = h.head + t->meta + (uint64_t)h.count * t->size;

        if (end < f->total)
            f->hashTo = (size_t)end;
        f->hashFrom = h.head + t->meta < f->hashTo ? h.head + t->meta : f->hashTo;
    }
    return 1;
}

static void *openCaState(ebpfMonCircuit *c)
{
    ebpfMonCaState *s = ebpfMonCircuitAlloc(c, sizeof *s);

    if (!s)
        return NULL;
    memset(s, 0, sizeof *s);
    s->circuit = c;
    return s;
}

static void closeCaState(void *state)
{
    ebpfMonCaState *s = state;
    ebpfMonIdTable *tables[] = { &s->reads, &s->events, &s->notifies };

    ebpfMonCaChannelsClear(s);
    for (unsigned i = 0; i < sizeof tables / sizeof tables[0]; i++)
        ebpfMonIdClear(s->circuit, tables[i]);
    if (s->recent)
        ebpfMonCircuitFree(s->circuit, s->recent, EBPFMON_CA_RECENT * sizeof *s->recent);
    ebpfMonCircuitFree(s->circuit, s, sizeof *s);
}

static void readCaMessage(void *state, const ebpfMonMessage *m)
{
    ebpfMonCaHeader h;

    if (ebpfMonCaHeaderParse(&h, m->p, m->have) <= 0 || m->have < h.head)
        return;
    if (m->fromServer)
        ebpfMonCaResponse(state, m, &h);
    else
        ebpfMonCaRequest(state, m, &h);
}

/* Each channel and each request gets a new number, so what we know stays true. */
static void noteCaGap(void *state, int fromServer)
{
    (void)state;
    (void)fromServer;
}

static void noteCaName(void *state, uint32_t sid, const char *text)
{
    ebpfMonCaState *s = state;
    const ebpfMonCaChannel *ch = ebpfMonCaBySid(s, sid);
    uint32_t cid = ch ? ch->cid : 0;

    ebpfMonCaChannelSet(s, ch && ch->hasCid ? &cid : NULL, &sid, text);
}

const ebpfMonProtocol ebpfMonCaProtocol = {
    .id = ebpfMonWireCa,
    .headerMax = EBPFMON_CA_HEADER_MAX,
    .frame = findCaFrame,
    .open = openCaState,
    .close = closeCaState,
    .message = readCaMessage,
    .gap = noteCaGap,
    .name = noteCaName,
    .datagram = ebpfMonCaDatagram
};
