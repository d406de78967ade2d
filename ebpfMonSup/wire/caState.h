/* SPDX-License-Identifier: BSD-3-Clause */
/* What is known of one Channel Access circuit: its client, and its channels. */
#ifndef EBPFMON_CASTATE_H
#define EBPFMON_CASTATE_H

#include "wire/caMessage.h"
#include "wire/idTable.h"

#define EBPFMON_CA_CLAIM 128 /* bytes of a claimed user or host name */
#define EBPFMON_CA_RECENT 64 /* plain writes that an error may still come for */

typedef struct {
    uint32_t cid, sid;
    int hasCid, hasSid;
    int type;        /* native ones, once the server said them; -1 */
    uint32_t count;
    size_t size; /* of the whole struct */
    char name[]; /* "": created before we looked */
} ebpfMonCaChannel;

/* A plain write: only an error is answered, with the header that it had. */
typedef struct {
    uint64_t id, time;
    uint32_t cid, extra, count;
    unsigned type, cmd;
    int settled;
} ebpfMonCaWrite;

typedef struct {
    ebpfMonCircuit *circuit;
    ebpfMonIdTable byCid, bySid;  /* channels */
    ebpfMonIdTable reads, events; /* requests under way, by ioid or subscription: extra is the sid */
    ebpfMonIdTable notifies;      /* write-notifies, by ioid: value is the put's number, extra the sid */
    uint64_t puts;
    ebpfMonCaWrite *recent;       /* a ring, from the first plain write on */
    unsigned recentNext;
    char user[EBPFMON_CA_CLAIM], host[EBPFMON_CA_CLAIM];
} ebpfMonCaState;

ebpfMonCaChannel *ebpfMonCaBySid(const ebpfMonCaState *state, uint32_t sid);
ebpfMonCaChannel *ebpfMonCaByCid(const ebpfMonCaState *state, uint32_t cid);
/* Makes one, or gives it another name; it takes the place of others with its numbers. NULL: no room, counted. */
ebpfMonCaChannel *ebpfMonCaChannelSet(ebpfMonCaState *state, const uint32_t *cid, const uint32_t *sid,
    const char *name);
void ebpfMonCaChannelRemove(ebpfMonCaState *state, ebpfMonCaChannel *channel);
void ebpfMonCaChannelsClear(ebpfMonCaState *state);

void ebpfMonCaWriteNote(ebpfMonCaState *state, const ebpfMonCaHeader *header, uint64_t time);
/* The put that an error with this header in it is about, 0: not known. */
uint64_t ebpfMonCaWriteFailed(ebpfMonCaState *state, const ebpfMonCaHeader *header, uint64_t time);

#endif
