/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a pvAccess connection: what both sides have agreed on so far; and a message. */
#ifndef EBPFMON_PVASTATE_H
#define EBPFMON_PVASTATE_H

#include "wire/protocol.h"
#include "wire/pvaType.h"

/* --- tables ---
 *
 * A hash table by a 32-bit number that the peers choose. Each element has a pvaLink as a member.
 */

typedef struct pvaLink { struct pvaLink *next; uint32_t key; } pvaLink;

typedef struct {
    pvaLink **bucket;
    unsigned  size, count; /* size: a power of two */
    uint32_t  seed;        /* changes the hash, so that a peer cannot know which numbers share a bucket */
} pvaTable;

pvaLink *ebpfMonPvaTableFind(const pvaTable *table, uint32_t key);
/* Adds an element. An element with the same number is hidden by it. 0, or -1: no memory. */
int  ebpfMonPvaTableAdd(ebpfMonCircuit *circuit, pvaTable *table, pvaLink *link, uint32_t key);
void ebpfMonPvaTableRemove(pvaTable *table, pvaLink *link);
void ebpfMonPvaTableFree(ebpfMonCircuit *circuit, pvaTable *table); /* frees the table, not its elements */

#define PVA_OF(link, type, member) ((type *)((char *)(link) - offsetof(type, member)))

/* --- the state --- */

#define PVA_HEADER 8
#define PVA_NAME   500 /* bytes of a channel's name, at most: MAX_CHANNEL_NAME_LENGTH of pvAccessCPP */

enum { pvaFlagControl = 0x01, pvaFlagFirst = 0x10, pvaFlagLast = 0x20, pvaFlagServer = 0x40, pvaFlagBig = 0x80 };
enum {
    pvaBeacon, pvaValidation, pvaEcho, pvaSearch, pvaFound, pvaAuthNZ, pvaAclChange, pvaCreate, pvaDestroy,
    pvaValidated, pvaGetCmd, pvaPutCmd, pvaPutGet, pvaMonitor, pvaArrayCmd, pvaDestroyRequest, pvaProcess,
    pvaGetField, pvaMessage, pvaMultiple, pvaRpc, pvaCancel, pvaOriginTag, pvaCommands
};
/* Subcommands. Of a monitor: START with GET lets it run, without stops it; PIPELINE: a number of updates that the
 * client takes follows. */
enum { pvaSubStart = 0x04, pvaInit = 0x08, pvaLastRequest = 0x10, pvaSubGet = 0x40, pvaSubGetPut = 0x80,
    pvaPipeline = 0x80 };

/* The pieces of a long message. */
typedef struct {
    int      open;
    uint8_t *p;             /* as one message, with the header */
    size_t   room, have, total;
    uint64_t hash;
    uint32_t seq;
} pvaPieces;

typedef struct {
    ebpfMonCircuit *circuit;
    char       user[64], host[128];
    size_t     typeBytes;
    pvaTypes   types[2];    /* type descriptions of the client, of the server */
    pvaPieces  pieces[2];
    pvaTable   bySid, byCid, ops;
    unsigned   channels;
    uint64_t   puts;
} pvaState;

/* A whole message. */
typedef struct {
    const ebpfMonMessage *message;
    uint8_t  cmd;
    uint32_t seq, end;
    uint64_t hash;
    pvaTypes *types;        /* type descriptions of its direction */
    pvaBuf   buf;           /* the message after its header */
} pvaMsg;

typedef struct { uint32_t severity; char text[256]; } pvaStatus;

/* Gives the event of a message to the sink: sets time, position, user and host. */
void ebpfMonPvaEmit(pvaState *pva, const pvaMsg *msg, ebpfMonWireEvent *event);
/* Reads a status. Nonzero: the request was successful. */
int ebpfMonPvaStatusGet(pvaBuf *buf, pvaStatus *status);

#endif
