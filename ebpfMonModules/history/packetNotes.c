/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/text.h"
#include "history/packetNotes.h"
#include "put/valueText.h"
#include "trace/traceSpans.h"

#define CIRCUITS 1024 /* whose texts are remembered */
#define KEEP_NS  (5 * EBPFMON_SECOND_NS) /* so long: an IOC is found, and a client is known, some time later */
#define ROOM     2000 /* bytes of the lines of one packet */

typedef struct {
    uint64_t number, time; /* of the circuit; ns since 1970 */
    char     line[300];
} knownCircuit;

struct ebpfMonPacketNotes {
    const ebpfMonPutRoom *room; /* the caller's */
    uint64_t     circuit;       /* whose line is in the text; 0: none */
    unsigned     left;          /* messages for which there is no room */
    size_t       used;
    char         text[ROOM + 40];
    ebpfMonPut   put;           /* for the text of a client: too large for the stack */
    knownCircuit known[CIRCUITS];
};

ebpfMonPacketNotes *ebpfMonPacketNotesNew(const ebpfMonPutRoom *put)
{
    ebpfMonPacketNotes *n = calloc(1, sizeof(*n));

    if (n)
        n->room = put;
    return n;
}

static void addLine(ebpfMonPacketNotes *n, const char *line)
{
    size_t length = strlen(line);

    if (n->used + length + 2 > ROOM) {
        n->left++;
        return;
    }
    if (n->used)
        n->text[n->used++] = '\n';
    memcpy(n->text + n->used, line, length + 1);
    n->used += length;
}

/* The client is called as in the list of puts. */
static const char *describeCircuit(ebpfMonPacketNotes *n, const ebpfMonWireEvent *ev)
{
    knownCircuit *known = &n->known[ev->circuit % CIRCUITS];
    const ebpfMonServer *server;
    ebpfMonPutClient client;

    if (known->number == ev->circuit && ev->time - known->time < KEEP_NS && ev->kind != ebpfMonWireUser)
        return known->line;
    server = ebpfMonServersFind(n->room->servers, &ev->peer, ebpfMonClockMonotonic());
    ebpfMonPutClientsFind(n->room->clients, &ev->peer, &ev->first, ev->user, ev->host, &client);
    memset(&n->put, 0, sizeof(n->put));
    ebpfMonPutClientSet(&client, &n->put);
    ebpfMonWriterTextComplete(&n->put);
    known->number = ev->circuit;
    known->time = ev->time;
    snprintf(known->line, sizeof(known->line), "%s %s, client %s", server->iocId ? "IOC" : "server", server->name,
             n->put.who);
    return known->line;
}

/* NULL: it is about no PV. */
static const char *nameMessage(const ebpfMonWireEvent *ev)
{
    switch (ev->kind) {
    case ebpfMonWirePut:         return ev->isCall ? "call" : "put";
    case ebpfMonWireReply:       return ev->ok ? "put done:" : ev->denied ? "put denied:" : "put failed:";
    case ebpfMonWireValue:       return ev->isUpdate ? "update" : "value";
    case ebpfMonWireRead:        return "read";
    case ebpfMonWireSubscribe:   return "subscribe";
    case ebpfMonWireChannel:     return "channel";
    case ebpfMonWireChannelGone: return "channel closed:";
    case ebpfMonWireRefused:     return "channel refused:";
    case ebpfMonWireSearch:      return "search";
    case ebpfMonWireFound:       return "found";
    default:                     return NULL;
    }
}

/* The row of the put in the history has it, and other hosts compute the same. */
static void nameTrace(const ebpfMonWireEvent *ev, char *buf, size_t size)
{
    size_t used = (size_t)snprintf(buf, size, "\n" EBPFMON_PACKET_TRACE);
    uint8_t trace[16];

    ebpfMonMessageGetTraceId(&ev->peer, ev->seq, trace);
    for (unsigned i = 0; i < sizeof(trace); i++)
        used += (size_t)snprintf(buf + used, size - used, "%02x", trace[i]);
}

void ebpfMonPacketNotesAdd(ebpfMonPacketNotes *n, const ebpfMonWireEvent *ev)
{
    const char *message = nameMessage(ev);
    char line[200], name[100], trace[60] = "";

    if (!message && ev->kind != ebpfMonWireUser)
        return;
    if (ev->circuit && (ev->circuit != n->circuit || ev->kind == ebpfMonWireUser)) {
        addLine(n, describeCircuit(n, ev));
        n->circuit = ev->circuit;
    }
    if (!message)
        return;
    if (ev->name[0])
        ebpfMonTextCopy(name, sizeof(name), ev->name);
    else
        snprintf(name, sizeof(name), "%s %u", ev->kind == ebpfMonWireFound ? "cid" : "sid",
                 ev->kind == ebpfMonWireFound ? ev->cid : ev->sid);
    if (ev->kind == ebpfMonWirePut && ev->circuit)
        nameTrace(ev, trace, sizeof(trace));
    snprintf(line, sizeof(line), "%s %s%s", message, name, trace);
    addLine(n, line);
}

const char *ebpfMonPacketNotesTake(ebpfMonPacketNotes *n)
{
    if (n->left)
        snprintf(n->text + n->used, sizeof(n->text) - n->used, "\n%u more", n->left);
    else
        n->text[n->used] = 0;
    n->circuit = n->left = 0;
    n->used = 0;
    return n->text;
}
