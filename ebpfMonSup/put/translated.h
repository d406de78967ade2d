/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections whose server's address is translated on this host (DNAT: a published port of a container, a service of
 * Kubernetes). Packets show such a connection twice: the outer one, as the client made it, to an address at which
 * nobody listens; and the inner one, to the server. Whatever translates, it leaves sequence numbers and contents as
 * they are. So the outer one is found when the same message comes in both. Packet thread only.
 *
 * Who can write packets in the namespace of the server could so hide puts to other hosts. The caller answers for it.
 */
#ifndef EBPFMON_TRANSLATED_H
#define EBPFMON_TRANSLATED_H

#include "wire/wireEvent.h"

typedef struct ebpfMonTranslated ebpfMonTranslated;

ebpfMonTranslated *ebpfMonTranslatedNew(void); /* NULL without memory */
void ebpfMonTranslatedFree(ebpfMonTranslated *translated);

/* A put, or the begin of a circuit, to a server that is not on this host as far as we know. "at": when its packet came,
 * monotonic ns, as the next one. */
void ebpfMonTranslatedNote(ebpfMonTranslated *translated, const ebpfMonWireEvent *event, uint64_t at);

/* The connection, to a server that is not on this host, in which the same message came a moment ago. NULL: none. */
const struct ebpfMonPeer *ebpfMonTranslatedFindSame(const ebpfMonTranslated *translated, const ebpfMonWireEvent *event,
                                                    uint64_t at);

/* "inner" is a translation of "outer". */
void ebpfMonTranslatedAdd(ebpfMonTranslated *translated, const struct ebpfMonPeer *outer,
                          const struct ebpfMonPeer *inner);

/* The outer connection. NULL: this one is no translation, or is forgotten: some hundred are known. */
const struct ebpfMonPeer *ebpfMonTranslatedFindOuter(const ebpfMonTranslated *translated,
                                                     const struct ebpfMonPeer *inner);
/* Nonzero: it is the outer one of such a connection. */
int ebpfMonTranslatedIsOuter(const ebpfMonTranslated *translated, const struct ebpfMonPeer *peer);

/* The connection has ended: another one may have its addresses and ports. */
void ebpfMonTranslatedForget(ebpfMonTranslated *translated, const struct ebpfMonPeer *peer);

#endif
