/* SPDX-License-Identifier: BSD-3-Clause */
/* See pvAccess Protocol Specification: CMD_SEARCH, CMD_SEARCH_RESPONSE, CMD_BEACON, CMD_ORIGIN_TAG. */
#include <arpa/inet.h>
#include <string.h>
#include "wire/pvaDatagram.h"
#include "wire/pvaState.h"

/* Reads an address of 16 bytes and a port. Without an address (0.0.0.0, ::) *addr and addr6 stay as they are: the
 * sender's. */
static uint16_t readAddress(pvaBuf *buf, uint32_t *addr, uint32_t addr6[4])
{
    const uint8_t *p = pvaTake(buf, 16);
    uint32_t read6[4] = { 0 };

    if (p)
        memcpy(read6, p, 16);
    if (*(const uint8_t *)&read6[3] && (ebpfMonIsMapped(read6) || !(read6[0] | read6[1] | read6[2]))) {
        *addr = read6[3]; /* not ::1: nobody is in 0/8 */
        memset(addr6, 0, 16);
    } else if (ebpfMonIsIPv6(read6) && !ebpfMonIsMapped(read6)) {
        *addr = ebpfMonShortAddress(read6);
        memcpy(addr6, read6, 16);
    }
    return htons(pvaGet(buf, 2));
}

static ebpfMonWireEvent makeEvent(ebpfMonWireKind kind, const struct ebpfMonPeer *peer)
{
    return (ebpfMonWireEvent){ .kind = kind, .protocol = ebpfMonWirePva, .peer = *peer, .user = "", .host = "",
        .name = "", .options = "", .text = "", .message = "" };
}

void ebpfMonPvaSearchMessage(pvaBuf *buf, const struct ebpfMonPeer *from_to, pvaEmitter emit, void *arg)
{
    ebpfMonWireEvent search = makeEvent(ebpfMonWireSearch, from_to);
    uint16_t port;
    size_t protocols, length, i;

    pvaSkip(buf, 4 + 1 + 3);
    port = readAddress(buf, &search.peer.addr, search.peer.addr6);
    protocols = pvaSize(buf);
    for (i = 0; protocols != PVA_NULL && i < protocols && !pvaFailed(buf); i++) {
        pvaString(buf, &length);
    }
    unsigned count = pvaGet(buf, 2);
    if (pvaFailed(buf)) {
        return;
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
    struct ebpfMonPeer peer = ebpfMonPeerTurn(from_to);
    ebpfMonWireEvent found = makeEvent(ebpfMonWireFound, &peer);
    size_t length;

    pvaSkip(buf, 12 + 4);
    found.peer.sport = readAddress(buf, &found.peer.saddr, found.peer.saddr6);
    pvaString(buf, &length);
    int hasFound = pvaGet(buf, 1) != 0;
    unsigned count = pvaGet(buf, 2);
    if (pvaFailed(buf) || !hasFound) {
        return;
    }
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
    struct ebpfMonPeer peer = *from_to;

    peer.saddr = from_to->addr; /* addr and port stay the sender's */
    memcpy(peer.saddr6, from_to->addr6, sizeof peer.saddr6);
    pvaSkip(buf, 12 + 1 + 1 + 2);
    peer.sport = readAddress(buf, &peer.saddr, peer.saddr6);
    if (pvaFailed(buf)) {
        return;
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
