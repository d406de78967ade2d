/* SPDX-License-Identifier: BSD-3-Clause */
/* The events, limits and counts of a wire. wire.h tells how to get them. */
#ifndef EBPFMON_WIREEVENT_H
#define EBPFMON_WIREEVENT_H

#include <stddef.h>
#include <stdint.h>
#include "ebpfMonEvent.h" /* struct ebpfMonPeer: client, server, network namespace */

typedef struct ebpfMonWire ebpfMonWire;

typedef enum { ebpfMonWireCa, ebpfMonWirePva } ebpfMonWireProtocol;

typedef enum {
    ebpfMonWireOpened,      /* a connection is known to be CA or PVA */
    ebpfMonWireClosed,      /* such a connection ended, or was forgotten to make room */
    ebpfMonWireUnread,      /* bytes that are no message, or a connection has ended before it was known what it is
                             * (peer) */
    ebpfMonWireForeign,     /* a connection is neither CA nor PVA: its packets are not needed any more (peer) */
    ebpfMonWireUser,        /* the claimed user or host is known, or has changed */
    ebpfMonWireChannel,     /* a channel has its server's number: name, cid, sid; for CA also dbrType, count: native
                             * type and count */
    ebpfMonWireStill,       /* PVA, after ebpfMonWireRemind: a channel is still open: name; isUpdate: a client of it
                             * subscribes */
    ebpfMonWireChannelGone, /* a channel was closed by either side */
    ebpfMonWirePut,
    ebpfMonWireReply,       /* a reply to a put that asked for one, or that was refused */
    ebpfMonWireValue,       /* CA only: the value in a reply to a read, or in an update: name or sid, value. It was
                             * the value of the PV before the next put, unless isPartial */
    ebpfMonWireRead,        /* a client reads a value: name or sid */
    ebpfMonWireSubscribe,   /* a client subscribes: name or sid */
    ebpfMonWireGap,         /* bytes that were not seen: "bytes" of them, in the direction "fromServer" */
    ebpfMonWireGivenUp,     /* a connection, perhaps of CA or PVA, is not followed any more: it has urgent data */
    ebpfMonWireCrowded,     /* a connection is not followed any more, because there are too many; ebpfMonWireClosed
                             * comes next */
    ebpfMonWireSearch,      /* a client searches for "name", by UDP or from a name server by TCP; peer: client; cid */
    ebpfMonWireFound,       /* a server answered a search; peer: client and server; cid; name is "" if it is not
                             * known */
    ebpfMonWireBeacon,      /* a server is alive: peer.saddr, peer.sport. The sender: peer.addr, peer.port */
    ebpfMonWireTlsFailed,   /* a connection of TLS has ended before its handshake was done (peer): message */
    ebpfMonWireUpdate,      /* PVA: an update of a monitor: ioid; hasOverrun */
    ebpfMonWireRefused,     /* a server has refused a channel: name, cid; PVA: message */
    ebpfMonWireFlow         /* a client lets a monitor run or stops it, or has taken updates; or the monitor has ended:
                             * ioid, flow, taken. CA: the client ends a subscription */
} ebpfMonWireKind;

/* What a client, or the end of a monitor, says of its flow. */
typedef enum { ebpfMonWireFlowTaken, ebpfMonWireFlowStarted, ebpfMonWireFlowStopped, ebpfMonWireFlowEnded }
    ebpfMonWireFlowKind;

typedef struct ebpfMonWireEvent {
    ebpfMonWireKind     kind;
    ebpfMonWireProtocol protocol;
    uint64_t time;          /* ns since 1970; of the packet that completed the message */
    struct ebpfMonPeer peer;
    struct ebpfMonFirst first; /* of its connection; zeros: its begin was not seen */
    struct ebpfMonFirst begun; /* the first numbers that were seen in it, perhaps its first ones; zeros: none */
    uint64_t circuit;       /* number of the connection, which is never used again; 0: UDP */
    uint32_t seq;           /* TCP sequence number of the message's first byte */
    uint32_t end;           /* TCP sequence number after its last byte */
    int      fromServer;
    uint32_t stretch;       /* 0: every message of this direction was followed from the connection's first byte; else
                             * how often a begin was searched for: then this message may be a part of another one */

    const char *user, *host;/* as the client claims; "": not known (yet) */
    const char *name;       /* name of the channel as the client wrote it; "": not known, because the channel was
                             * created before we watched */
    uint32_t cid, sid;

    /* For Put and Reply. "id" connects a reply with its put on a circuit. */
    uint64_t id;            /* number of the put on its circuit, from 1; a Reply has the number of its put; 0: not
                             * known */
    int      replyAsked;    /* nonzero: a write-notify of CA, or any put of PVA */
    int      isCall;        /* Put: nonzero: a call (RPC) of pvAccess; "text" has its arguments */
    int      process;       /* PVA: nonzero if record._options.process of the request is "true"; CA: 0 */
    const char *options;    /* PVA: the request of the put or monitor, "record[process=true]field(value)", or "" */

    int      isUpdate;      /* Value: nonzero: of a subscription; 0: of a read */
    int      isPartial;     /* Value: nonzero: only the first elements, or the name of the record type */

    /* For Put and Value. CA: the elements as they are in the message, big-endian, after the metadata of a compound
     * type. baseType: DBR_STRING 0, SHORT 1, FLOAT 2, ENUM 3, CHAR 4, LONG 5, DOUBLE 6; -1: no type of CA. */
    int      dbrType;       /* CA: the type as it was sent; it may be a compound type */
    int      baseType;
    uint32_t elementSize;   /* bytes of an element; 40 for DBR_STRING */
    uint32_t count;         /* elements that were sent. Search of CA by UDP: the client's minor version */
    const uint8_t *data;    /* valid during the call */
    size_t   have;          /* bytes of data. Fewer than count * elementSize if the message was too long to keep, was
                             * not seen whole, announced more than it had, or is a single string, which is sent with
                             * its own length */
    uint64_t hash;          /* 64-bit FNV-1a of all elements as they were sent; 0: not all were seen */
    const char *text;       /* PVA: the value as text: "3.14", "[1000] 1 2 3 ...", {"a": 1, "b": "x"}; "?" if its
                             * type description was not seen. Reply: what a call has returned, or "". CA: "" */
    uint64_t fields;        /* PVA: tells which fields of the structure were sent; 1: "value" only; 0: not known. Puts
                             * with the same number were to the same fields. CA: 0 */
    int      isNumber;      /* PVA: nonzero: the value is one number: "number" */
    double   number;

    /* for Reply */
    int      ok, denied;    /* denied: access rights refused it (ECA_NOWTACCESS; PVA: as the text of the status
                             * tells) */
    int      isUnsure;      /* it may be to a later put of the same kind */
    uint32_t status;        /* CA: ECA_…; PVA: 0 ok, 1 warning, 2 error, 3 fatal */
    const char *message;    /* PVA: text of the status; CA: text of the error, or "". TlsFailed: what is known of the
                             * cause */

    uint64_t bytes;         /* for Gap */
    int      isTls;         /* for Foreign and Unread: what was seen of the connection is TLS */

    /* for Subscribe, Update and Flow, and a Value that is an update */
    uint32_t ioid;          /* number of the monitor, or of the subscription of CA, on its circuit */
    ebpfMonWireFlowKind flow;
    int      isPipelined;   /* the server sends no more updates than the client has said it takes */
    uint32_t taken;         /* Subscribe, Flow: so many updates more the client takes, if it is pipelined */
    int      hasOverrun;    /* Update: 1: some of its fields had changed several times, and only the last value is sent
                             * (bits of the overrun BitSet); 0: none; -1: not seen, the message was too long to keep */
} ebpfMonWireEvent;

typedef void (*ebpfMonWireSink)(void *arg, const ebpfMonWireEvent *event);

/* Who pays for a connection: a number for each, and whether it is a system user. Connections that no socket proves are
 * nobody's: all of them together are one's, who gives up first. */
typedef struct {
    uint64_t id;
    int      isSystem;
    int      isNobody;
} ebpfMonWirePayer;

/* "first": as in ebpfMonWireEvent. */
typedef ebpfMonWirePayer (*ebpfMonWireFindPayer)(void *arg, const struct ebpfMonPeer *peer,
                                                 const struct ebpfMonFirst *first);

typedef struct {
    unsigned circuits;      /* default 4096 */
    unsigned channels;      /* for each circuit; default 20000 */
    size_t   keep;          /* bytes of a message that are kept; default 65536 */
    size_t   pending;       /* bytes of a connection that wait for an earlier segment; default 1 MiB */
    size_t   total;         /* bytes of a wire; default 64 MiB */
} ebpfMonWireLimits;

typedef struct {
    uint64_t packets, segments, bytes;     /* packets, TCP segments with data, and bytes that came */
    uint64_t repeated;                     /* segments with no new bytes */
    uint64_t reordered;                    /* segments that had to wait for an earlier one */
    uint64_t gaps, gapBytes;               /* a connection that is given up is one gap */
    uint64_t resynced;                     /* how often a header was found after a gap, or in a connection that began
                                            * before we watched */
    uint64_t malformed;                    /* messages that contradict themselves */
    uint64_t fragments;                    /* fragments of IP datagrams, which are not put together */
    uint64_t crowded;                      /* open connections that were given up because there were too many */
    uint64_t noMemory;                     /* messages or channels that were dropped at a limit */
    unsigned circuits, channels;           /* at present */
    size_t   memory;                       /* at present */
    unsigned waiting;                      /* at present: pieces of messages that wait for other bytes */
} ebpfMonWireStats;

#endif
