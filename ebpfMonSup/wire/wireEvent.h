/* SPDX-License-Identifier: BSD-3-Clause */
/* The events, limits and counts of a wire. wire.h says how to get them. */
#ifndef EBPFMON_WIREEVENT_H
#define EBPFMON_WIREEVENT_H

#include <stddef.h>
#include <stdint.h>
#include "ebpfMonEvent.h" /* struct ebpfMonPeer: client, server, network namespace */

typedef struct ebpfMonWire ebpfMonWire;

typedef enum { ebpfMonWireCa, ebpfMonWirePva } ebpfMonWireProtocol;

typedef enum {
    ebpfMonWireOpened,      /* a connection turned out to speak CA or PVA */
    ebpfMonWireClosed,      /* … and ended, or was forgotten to make room */
    ebpfMonWireForeign,     /* neither CA nor PVA: its packets are not needed any more (peer) */
    ebpfMonWireUser,        /* claimed user or host became known or changed */
    ebpfMonWireChannel,     /* a channel has its server id: name, cid, sid; dbrType, count: its native ones (CA) */
    ebpfMonWireChannelGone, /* closed by either side */
    ebpfMonWirePut,
    ebpfMonWireReply,       /* to a put that asked for one, or refused it */
    ebpfMonWireValue,       /* CA only: a read reply or monitor update of a plain or compound type: name or sid,
                               value; what stood in the PV before the next put */
    ebpfMonWireRead,        /* a client asks for a value: name or sid */
    ebpfMonWireSubscribe,   /* … for all values from now on */
    ebpfMonWireGap,         /* bytes that were never seen: "bytes" of them, from the direction "fromServer" */
    ebpfMonWireSearch,      /* a client asks for "name" (UDP, or TCP name server); peer: client; cid */
    ebpfMonWireFound,       /* a server answered a search; peer: client and server; cid; name "" if not known */
    ebpfMonWireBeacon       /* peer.saddr, sport: the server that lives */
} ebpfMonWireKind;

typedef struct {
    ebpfMonWireKind     kind;
    ebpfMonWireProtocol protocol;
    uint64_t time;          /* of the packet that completed the message */
    struct ebpfMonPeer peer;
    uint64_t circuit;       /* number of the connection, never used twice; 0: UDP */
    uint32_t seq;           /* TCP sequence number of the message's first byte */
    uint32_t end;           /* … of the byte after it */
    int      fromServer;
    uint32_t stretch;       /* 0: all messages of this direction were followed from the connection's first byte; else how
                               often a beginning was searched for: what looks like a message may be a part of one */

    const char *user, *host;/* as the client claims; "" not (yet) known */
    const char *name;       /* of the channel as the client wrote it; "": created before we looked */
    uint32_t cid, sid;

    /* Put, Reply: pairs of one connection. CA: ioid of a write-notify; for a plain write, and for PVA, see id. */
    uint64_t id;            /* number of the put on its circuit, from 1; a Reply has that of its put, 0: unknown */
    int      replyAsked;    /* write-notify, or any PVA put */
    int      process;       /* PVA: record._options.process/block as text is in "options"; CA: 0 */
    const char *options;    /* PVA: "" or the put's request, "record[process=true]field(value)" */

    int      isUpdate;      /* Value: of a subscription, and not of a read */

    /* Put, Value. CA: the elements as they lie in the message, big-endian, behind the metadata of a compound
     * type; baseType is DBR_STRING 0, SHORT 1, FLOAT 2, ENUM 3, CHAR 4, LONG 5, DOUBLE 6; -1: no type of CA. */
    int      dbrType;       /* CA: as sent, compound ones too */
    int      baseType;
    uint32_t elementSize;   /* bytes; DBR_STRING 40 */
    uint32_t count;         /* elements sent */
    const uint8_t *data;    /* valid during the call */
    size_t   have;          /* bytes of data; less than count * elementSize when the message was too long to keep, was
                               not seen whole, said more than it had, or is a single string, sent as long as it is */
    uint64_t hash;          /* 64-bit FNV-1a of all elements as they lay on the wire; 0: not all were seen */
    const char *text;       /* PVA: the value as text: "3.14", "[1000] 1 2 3 ...", {"a": 1, "b": "x"}; "?" when the
                               type description was not seen. CA: "" */
    int      isNumber;      /* PVA: the value is a single number: "number" */
    double   number;

    /* Reply */
    int      ok, denied;    /* denied: access rights refused it (ECA_NOWTACCESS; PVA: as the status says) */
    uint32_t status;        /* CA: ECA_…; PVA: 0 ok, 1 warning, 2 error, 3 fatal */
    const char *message;    /* PVA: the status' text; CA: of the error reply, or "" */

    uint64_t bytes;         /* Gap */
} ebpfMonWireEvent;

typedef void (*ebpfMonWireSink)(void *arg, const ebpfMonWireEvent *event);

typedef struct {
    unsigned circuits;      /* default 4096 */
    unsigned channels;      /* per circuit, default 20000 */
    size_t   keep;          /* bytes of one message that are kept, default 65536 */
    size_t   pending;       /* bytes of one connection that wait for an earlier segment, default 1 MiB */
    size_t   total;         /* bytes of all, default 64 MiB */
} ebpfMonWireLimits;

typedef struct {
    uint64_t packets, segments, bytes;     /* that came in */
    uint64_t repeated;                     /* segments with nothing new in them */
    uint64_t reordered;                    /* that had to wait */
    uint64_t gaps, gapBytes;
    uint64_t resynced;                     /* connections met in the middle, or after a gap: a header was found */
    uint64_t malformed;                    /* messages that contradict themselves */
    uint64_t fragments;                    /* of IP datagrams, which are not put together */
    uint64_t noMemory;                     /* messages or channels dropped at a limit */
    unsigned circuits, channels;           /* now */
    size_t   memory;                       /* now */
} ebpfMonWireStats;

#endif
