/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replaces the reassembler in the tests of the pvAccess decoder: cuts two streams of bytes into messages with the
 * decoder's function frame(), counts memory, and writes events as lines. Include this file once in a program.
 */
#ifndef PVA_DRIVER_H
#define PVA_DRIVER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include "wire/protocol.h"

struct ebpfMonCircuit {
    ebpfMonWireLimits limits;
    ebpfMonWireStats  stats;
    void   *state;
    struct { uint8_t *p; size_t size, at; } stream[2];
    int     foreign;        /* number of times when frame() said that these bytes are no pvAccess message */
    unsigned long puts, events;
    uint64_t lastHash;
    FILE   *lines;          /* NULL: no lines are written */
};

struct ebpfMonWire { struct ebpfMonCircuit circuit; };

/* Stores the size in front of the memory, because ebpfMonCircuitFree must get the same size. */
void *ebpfMonCircuitAlloc(ebpfMonCircuit *circuit, size_t size)
{
    if (circuit->stats.memory + size > circuit->limits.total) {
        return NULL;
    }
    size_t *p = malloc(sizeof(size_t[2]) + size);
    *p = size;
    circuit->stats.memory += size;
    return memset(p + 2, 0xa5, size);
}

void ebpfMonCircuitFree(ebpfMonCircuit *circuit, void *p, size_t size)
{
    size_t *head = (size_t *)p - 2;

    if (*head != size) {
        abort();
    }
    circuit->stats.memory -= size;
    free(head);
}

const ebpfMonWireLimits *ebpfMonCircuitLimits(const ebpfMonCircuit *circuit)
{
    return &circuit->limits;
}

ebpfMonWireStats *ebpfMonCircuitStats(ebpfMonCircuit *circuit)
{
    return &circuit->stats;
}

static inline void driverAddress(FILE *f, uint32_t addr, uint16_t port)
{
    uint8_t b[4], p[2];

    memcpy(b, &addr, 4);
    memcpy(p, &port, 2);
    fprintf(f, "%u.%u.%u.%u:%u", b[0], b[1], b[2], b[3], p[0] << 8 | p[1]);
}

static inline void driverPut(FILE *f, const ebpfMonWireEvent *e)
{
    fprintf(f, "%s %d %s %s%s: %s", e->isCall ? "call" : "put", (int)e->id, e->name, e->options,
            e->process ? " process" : "", e->text);
    if (e->isNumber) {
        fprintf(f, " = %.17g", e->number);
    }
    if (e->count != 1) {
        fprintf(f, " x%u", e->count);
    }
    fprintf(f, "\n");
}

static inline void driverUse(FILE *f, const ebpfMonWireEvent *e)
{
    if (e->kind == ebpfMonWireUpdate) {
        fprintf(f, "update %u %s%s\n", e->ioid, e->name, e->hasOverrun ? e->hasOverrun > 0 ? " overrun" : " cut" : "");
    } else if (e->kind == ebpfMonWireFlow) {
        fprintf(f, "flow %u %s %d %u\n", e->ioid, e->name, (int)e->flow, e->taken);
    } else if (e->isPipelined) {
        fprintf(f, "subscribe %s %s takes %u\n", e->name, e->options, e->taken);
    } else {
        fprintf(f, "%s %s\n", e->kind == ebpfMonWireRead ? "read" : "subscribe", e->name);
    }
}

void ebpfMonCircuitEmit(ebpfMonCircuit *circuit, ebpfMonWireEvent *e)
{
    FILE *f = circuit->lines;

    circuit->events++;
    if (e->kind == ebpfMonWirePut) {
        circuit->puts++;
        circuit->lastHash = e->hash;
    }
    /* Touches all bytes, so that a sanitizer finds wrong accesses. */
    if (strlen(e->user) + strlen(e->host) + strlen(e->name) + strlen(e->options) + strlen(e->text)
        + strlen(e->message) > 1 << 20) {
        abort();
    }
    if (!f) {
        return;
    }
    switch (e->kind) {
    case ebpfMonWireUser:
        fprintf(f, "user %s@%s\n", e->user, e->host);
        break;
    case ebpfMonWireChannel:
        fprintf(f, "channel %s%s\n", e->name, e->fromServer ? "" : " from the client?");
        break;
    case ebpfMonWireChannelGone:
        fprintf(f, "gone %s\n", e->name);
        break;
    case ebpfMonWirePut:
        driverPut(f, e);
        break;
    case ebpfMonWireReply:
        fprintf(f, "reply %d %s %s %u%s%s%s%s\n", (int)e->id, e->name, e->ok ? "ok" : e->denied ? "denied" : "failed",
            e->status, *e->message ? " " : "", e->message, e->text && *e->text ? ": " : "", e->text ? e->text : "");
        break;
    case ebpfMonWireRead: case ebpfMonWireSubscribe:
    case ebpfMonWireUpdate: case ebpfMonWireFlow:
        driverUse(f, e);
        break;
    case ebpfMonWireSearch:
        fprintf(f, "search %s %u ", e->name, e->cid);
        driverAddress(f, e->peer.addr, e->peer.port);
        fprintf(f, "\n");
        break;
    case ebpfMonWireFound:
        fprintf(f, "found %u ", e->cid);
        driverAddress(f, e->peer.saddr, e->peer.sport);
        fprintf(f, " by ");
        driverAddress(f, e->peer.addr, e->peer.port);
        fprintf(f, "\n");
        break;
    case ebpfMonWireBeacon:
        fprintf(f, "beacon ");
        driverAddress(f, e->peer.saddr, e->peer.sport);
        fprintf(f, "\n");
        break;
    default:
        fprintf(f, "kind %d?\n", e->kind);
    }
}

void ebpfMonWireEmit(ebpfMonWire *wire, ebpfMonWireEvent *event)
{
    ebpfMonCircuitEmit(&wire->circuit, event);
}

static inline void driverOpen(struct ebpfMonCircuit *circuit, FILE *lines)
{
    memset(circuit, 0, sizeof(*circuit));
    circuit->limits = (ebpfMonWireLimits){ .circuits = 1, .channels = 20000, .keep = 65536, .total = 64 << 20 };
    circuit->lines = lines;
    circuit->state = ebpfMonPvaProtocol.open(circuit);
}

static inline void driverClose(struct ebpfMonCircuit *circuit)
{
    ebpfMonPvaProtocol.close(circuit->state);
    free(circuit->stream[0].p);
    free(circuit->stream[1].p);
}

static inline uint64_t driverHash(const uint8_t *p, size_t size)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (; size; p++, size--) {
        hash = (hash ^ *p) * 0x100000001b3u;
    }
    return hash;
}

/* Cuts all whole messages from the received bytes. Each message is passed in memory of exactly its size. */
static inline void driverCut(struct ebpfMonCircuit *circuit, int side)
{
    for (;;) {
        uint8_t *p = circuit->stream[side].p + circuit->stream[side].at;
        size_t have = circuit->stream[side].size - circuit->stream[side].at;
        ebpfMonFrame frame = { 0 };
        size_t ask = have < ebpfMonPvaProtocol.headerMax ? have : ebpfMonPvaProtocol.headerMax;
        uint8_t *head = malloc(ask ? ask : 1);
        int found;

        memcpy(head, p, ask);
        found = ebpfMonPvaProtocol.frame(circuit->state, side, head, ask, &frame);
        free(head);
        if (found < 0) {
            circuit->foreign++;
            circuit->stream[side].at = circuit->stream[side].size;
            ebpfMonPvaProtocol.gap(circuit->state, side);
            return;
        }
        if (found && frame.hashFrom > frame.total) {
            abort();
        }
        if (!found && ask >= ebpfMonPvaProtocol.headerMax) {
            abort();
        }
        if (!found || have < frame.total) {
            return;
        }
        size_t keep = frame.total < circuit->limits.keep ? frame.total : circuit->limits.keep;
        uint8_t *copy = malloc(keep);
        memcpy(copy, p, keep);
        ebpfMonMessage message = { .p = copy, .have = keep, .total = frame.total, .fromServer = side,
            .hash = driverHash(p + frame.hashFrom, frame.total - frame.hashFrom), .time = 1,
            .seq = (uint32_t)circuit->stream[side].at };
        circuit->stream[side].at += frame.total;
        ebpfMonPvaProtocol.message(circuit->state, &message);
        free(copy);
    }
}

static inline void driverBytes(struct ebpfMonCircuit *circuit, int side, const uint8_t *p, size_t size)
{
    circuit->stream[side].p = realloc(circuit->stream[side].p, circuit->stream[side].size + size + 1);
    memcpy(circuit->stream[side].p + circuit->stream[side].size, p, size);
    circuit->stream[side].size += size;
    driverCut(circuit, side);
}

/* Plays a recording. Each part of it has one byte for its kind (0: from the client, 1: from the server, 2: datagram,
 * 4 or 5: gap in the client's or server's stream), two bytes for its length (little-endian), and the data. */
static inline void driverPlay(struct ebpfMonCircuit *circuit, const uint8_t *p, size_t size)
{
    while (size >= 3) {
        size_t length = p[1] | p[2] << 8;

        if (length > size - 3) {
            length = size - 3;
        }
        if (p[0] & 2) {
            const struct ebpfMonPeer from_to = { .addr = htonl(0x0a000001), .port = htons(1111),
                .saddr = htonl(0x0a0000ff), .sport = htons(5076) };
            uint8_t *copy = malloc(length + 1);

            memcpy(copy, p + 3, length);
            ebpfMonPvaProtocol.datagram((ebpfMonWire *)circuit, 1, &from_to, copy, length);
            free(copy);
        } else if (p[0] & 4) {
            ebpfMonPvaProtocol.gap(circuit->state, p[0] & 1);
        } else {
            driverBytes(circuit, p[0] & 1, p + 3, length);
        }
        p += 3 + length;
        size -= 3 + length;
    }
}

#endif
