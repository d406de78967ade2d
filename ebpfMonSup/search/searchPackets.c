/* SPDX-License-Identifier: BSD-3-Clause */
#include "search/searchPackets.h"

int ebpfMonSearchAddPacket(ebpfMonSearch *search, const ebpfMonWireEvent *ev)
{
    ebpfMonSearchProtocol protocol = ev->protocol == ebpfMonWirePva ? ebpfMonSearchPva : ebpfMonSearchCa;
    ebpfMonSearchHost client = { .addr = ev->peer.addr, .port = ev->peer.port };
    ebpfMonSearchHost server = { .addr = ev->peer.saddr, .port = ev->peer.sport };

    switch (ev->kind) {
    case ebpfMonWireSearch:
        ebpfMonSearchAddQuestion(search, ev->time, protocol, client, ev->cid, ev->name);
        return 1;
    case ebpfMonWireFound:
        ebpfMonSearchAddAnswer(search, protocol, client, ev->cid, ev->name);
        return 1;
    case ebpfMonWireBeacon:
        ebpfMonSearchAddBeacon(search, ev->time, protocol, server);
        return 1;
    default:
        return 0;
    }
}
