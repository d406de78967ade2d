/* SPDX-License-Identifier: BSD-3-Clause */
/* The formats are those of libca (udpiiu.cpp) and rsrv (search_reply_udp, online_notify.c). */
#include <arpa/inet.h>
#include <string.h>

#include "wire/caDatagram.h"
#include "wire/caMessage.h"

#define MESSAGES_MAX 8192 /* more than the longest datagram has */
#define CLAIM_MAX    1024u
#define PORT_DEFAULT 5064u
#define MINOR_PORT   5u   /* since CA 4.5 the answer has the server's port … */
#define MINOR_ADDR   8u   /* … and since CA 4.8 its address */

void ebpfMonCaServer(struct ebpfMonPeer *peer, uint32_t addr, unsigned port)
{
    if (addr != 0xffffffffu) {
        peer->saddr = htonl(addr);
        memset(peer->saddr6, 0, sizeof peer->saddr6);
    }
    peer->sport = htons((uint16_t)port);
}

static int isPlausible(const ebpfMonCaHeader *h)
{
    switch (h->cmd) {
    case EBPFMON_CA_VERSION: /* a client before CA 4.11 may send all zeros */
        return !h->size && h->count < 64;
    case EBPFMON_CA_SEARCH:
        return h->count ? h->size && h->size <= CLAIM_MAX && h->count < 64 && (h->type == 5 || h->type == 10)
            : h->size <= 8;
    case EBPFMON_CA_NOT_FOUND:
    case EBPFMON_CA_RSRV_IS_UP:
    case EBPFMON_CA_REPEATER_CONFIRM:
    case EBPFMON_CA_REPEATER_REGISTER:
        return !h->size;
    default:
        return 0;
    }
}

/* Nonzero: the whole datagram is Channel Access. On other ports, any datagram can begin like one. */
static int isOurs(const uint8_t *p, size_t len)
{
    int emitted = 0;

    while (len) {
        ebpfMonCaHeader h;

        if (ebpfMonCaHeaderParse(&h, p, len) <= 0 || !isPlausible(&h) || h.size > len - h.head)
            return 0;
        emitted |= h.cmd == EBPFMON_CA_SEARCH || h.cmd == EBPFMON_CA_RSRV_IS_UP;
        p += h.head + h.size;
        len -= h.head + h.size;
    }
    return emitted;
}

static void emitSearch(ebpfMonWire *wire, ebpfMonWireEvent *e, const ebpfMonCaHeader *h, const uint8_t *p)
{
    char name[EBPFMON_CA_NAME_MAX + 1];

    if (ebpfMonCaText(name, sizeof name, p + h->head, h->size) || !name[0])
        return;
    e->kind = ebpfMonWireSearch;
    e->name = name;
    e->cid = h->extra;
    ebpfMonWireEmit(wire, e);
}

static void emitAnswer(ebpfMonWire *wire, ebpfMonWireEvent *e, const ebpfMonCaHeader *h, const uint8_t *p)
{
    unsigned minor = h->size >= 2 ? (unsigned)p[h->head] << 8 | p[h->head + 1] : 0;

    e->kind = ebpfMonWireFound;
    e->fromServer = 1;
    e->peer = ebpfMonPeerTurn(&e->peer);
    ebpfMonCaServer(&e->peer, minor >= MINOR_ADDR ? h->cid : 0xffffffffu, minor >= MINOR_PORT ? h->type : PORT_DEFAULT);
    e->cid = h->extra;
    ebpfMonWireEmit(wire, e);
}

/* A repeater passes beacons on, and fills in the address of the server. */
static void emitCaBeacon(ebpfMonWire *wire, ebpfMonWireEvent *e, const ebpfMonCaHeader *h)
{
    e->kind = ebpfMonWireBeacon;
    e->fromServer = 1;
    e->peer.saddr = e->peer.addr; /* addr and port stay the sender's */
    memcpy(e->peer.saddr6, e->peer.addr6, sizeof e->peer.saddr6);
    ebpfMonCaServer(&e->peer, h->extra ? h->extra : 0xffffffffu, h->count ? h->count : PORT_DEFAULT);
    ebpfMonWireEmit(wire, e);
}

void ebpfMonCaDatagram(ebpfMonWire *wire, uint64_t time, const struct ebpfMonPeer *from_to, const uint8_t *p,
    size_t len)
{
    if (!isOurs(p, len))
        return;
    for (int i = 0; len && i < MESSAGES_MAX; i++) {
        ebpfMonWireEvent e = { .protocol = ebpfMonWireCa, .time = time, .peer = *from_to };
        ebpfMonCaHeader h;

        ebpfMonCaHeaderParse(&h, p, len);
        if (h.cmd == EBPFMON_CA_SEARCH && h.count)
            emitSearch(wire, &e, &h, p);
        else if (h.cmd == EBPFMON_CA_SEARCH)
            emitAnswer(wire, &e, &h, p);
        else if (h.cmd == EBPFMON_CA_RSRV_IS_UP)
            emitCaBeacon(wire, &e, &h);
        p += h.head + h.size;
        len -= h.head + h.size;
    }
}
