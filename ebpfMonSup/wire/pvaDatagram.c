/* SPDX-License-Identifier: BSD-3-Clause */
/* See pvAccess Protocol Specification: CMD_SEARCH, CMD_SEARCH_RESPONSE, CMD_BEACON, CMD_ORIGIN_TAG. */
#include <arpa/inet.h>
#include "wire/pvaDatagram.h"
#include "wire/pvaState.h"

/* Reads an address of 16 bytes and a port. Only IPv4 addresses are used; for all others *addr is 0. */
static void readAddress(pvaBuf *buf, uint32_t *addr, uint16_t *port)
{
    static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
    static const uint8_t none[12];
    const uint8_t *p = pvaTake(buf, 16);

    *addr = 0;
    if (p && (!memcmp(p, mapped, 12) || !memcmp(p, none, 12))) {
        memcpy(addr, p + 12, 4);
    }
    *port = htons(pvaGet(buf, 2));
}

static ebpfMonWireEvent makeEvent(ebpfMonWireKind kind, const struct ebpfMonPeer *peer)
{
    return (ebpfMonWireEvent){ .kind = kind, .protocol = ebpfMonWirePva, .peer = *peer, .user = "", .host = "",
        .name = "", .options = "", .text = "", .message = "" };
}

void ebpfMonPvaSearchMessage(pvaBuf *buf, const struct ebpfMonPeer *from_to, pvaEmitter emit, void *arg)
{
    ebpfMonWireEvent search = makeEvent(ebpfMonWireSearch, from_to);
    uint32_t addr;
    uint16_t port;
    size_t protocols, length, i;

    pvaSkip(buf, 4 + 1 + 3);
    readAddress(buf, &addr, &port);
    protocols = pvaSize(buf);
    for (i = 0; protocols != PVA_NULL && i < protocols && !pvaFailed(buf); i++) {
        pvaString(buf, &length);
    }
    unsigned count = pvaGet(buf, 2);
    if (pvaFailed(buf)) {
        return;
    }
    if (addr) {
        search.peer.addr = addr;
    }
    if (port) {
        search.peer.port = port;
    }
    for (; count; count--) {
        char name[PVA_NAME + 1];
        uint32_t cid = pvaGet(buf, 4);
        const char *text = pvaString(buf, &length);

        if (!text) {
            return;
        }
        length = strnlen(text, length < PVA_NAME ? length : PVA_NAME);
        memcpy(name, text, length);
        name[length] = 0;
        search.name = name;
        search.cid = cid;
        emit(arg, &search);
    }
}

void ebpfMonPvaFoundMessage(pvaBuf *buf, const struct ebpfMonPeer *from_to, pvaEmitter emit, void *arg)
{
    /* An answer goes the other way: its sender is the server, or another process that answers for it. */
    struct ebpfMonPeer peer = { .addr = from_to->saddr, .port = from_to->sport, .saddr = from_to->addr,
        .sport = from_to->port, .netns = from_to->netns };
    ebpfMonWireEvent found = makeEvent(ebpfMonWireFound, &peer);
    uint32_t addr;
    uint16_t port;
    size_t length;

    pvaSkip(buf, 12 + 4);
    readAddress(buf, &addr, &port);
    pvaString(buf, &length);
    int hasFound = pvaGet(buf, 1) != 0;
    unsigned count = pvaGet(buf, 2);
    if (pvaFailed(buf) || !hasFound) {
        return;
    }
    if (addr) {
        found.peer.saddr = addr;
    }
    found.peer.sport = port;
    for (; count; count--) {
        found.cid = pvaGet(buf, 4);
        if (pvaFailed(buf)) {
            return;
        }
        emit(arg, &found);
    }
}

static void emitPvaBeacon(pvaBuf *buf, const struct ebpfMonPeer *from_to, pvaEmitter emit, void *arg)
{
    struct ebpfMonPeer peer = { .addr = from_to->addr, .port = from_to->port, .saddr = from_to->addr,
                                .netns = from_to->netns };
    uint32_t addr;

    pvaSkip(buf, 12 + 1 + 1 + 2);
    readAddress(buf, &addr, &peer.sport);
    if (pvaFailed(buf)) {
        return;
    }
    if (addr) {
        peer.saddr = addr;
    }
    ebpfMonWireEvent alive = makeEvent(ebpfMonWireBeacon, &peer);
    emit(arg, &alive);
}

typedef struct { ebpfMonWire *wire; uint64_t time; } toWire;

static void emitToWire(void *arg, ebpfMonWireEvent *ev)
{
    toWire *to = arg;

    ev->time = to->time;
    ebpfMonWireEmit(to->wire, ev);
}

void ebpfMonPvaDatagram(ebpfMonWire *wire, uint64_t time, const struct ebpfMonPeer *from_to,
    const uint8_t *p, size_t len)
{
    toWire to = { .wire = wire, .time = time };

    while (len >= PVA_HEADER && p[0] == 0xca && p[1]) {
        int control = p[2] & pvaFlagControl, big = !!(p[2] & pvaFlagBig);
        size_t size = control ? 0 : pvaNumber(p + 4, 4, big);

        if (size > len - PVA_HEADER) {
            return;
        }
        pvaBuf buf = { .p = p + PVA_HEADER, .have = size, .total = size, .big = big };
        if (!control && p[3] == pvaOriginTag) {
            /* we saw the rest already when it came to this host; now a server passes it on to the other servers */
            return;
        }
        if (!control && p[3] == pvaSearch) {
            ebpfMonPvaSearchMessage(&buf, from_to, emitToWire, &to);
        } else if (!control && p[3] == pvaFound) {
            ebpfMonPvaFoundMessage(&buf, from_to, emitToWire, &to);
        } else if (!control && p[3] == pvaBeacon) {
            emitPvaBeacon(&buf, from_to, emitToWire, &to);
        }
        p += PVA_HEADER + size;
        len -= PVA_HEADER + size;
    }
}
