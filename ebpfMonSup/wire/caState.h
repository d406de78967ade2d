/* SPDX-License-Identifier: BSD-3-Clause */
/* What we know of one Channel Access circuit: its client, and its channels. */
#ifndef EBPFMON_CASTATE_H
#define EBPFMON_CASTATE_H

#include "wire/caMessage.h"
#include "wire/idTable.h"

#define EBPFMON_CA_CLAIM 128 /* bytes of a claimed user or host name */
#define EBPFMON_CA_RECENT 64 /* plain writes that are remembered, because an error may still come for them */

typedef struct {
    uint32_t cid, sid;
    int hasCid, hasSid;
    int type;        /* native type, when the server has told it; -1: not known. The next one: native count */
    uint32_t count;
    size_t size; /* bytes of the whole struct */
    char name[]; /* "": not known, because the channel was created before we watched */
} ebpfMonCaChannel;

/* A plain write (without a reply): the server answers only an error, with the header of the write. */
typedef struct {
    uint64_t id, time;
    uint32_t cid, extra, count;
    unsigned type, cmd;
    int settled;
} ebpfMonCaWrite;

typedef struct {
    ebpfMonCircuit *circuit;
    ebpfMonIdTable byCid, bySid;  /* the channels by number */
    ebpfMonIdTable reads, events; /* requests without a reply, by ioid or subscription; value: 1 + the elements that are
                                   * asked for, extra: the sid */
    ebpfMonIdTable notifies;      /* write-notifies without a reply, by ioid; value: number of the put, extra: the
                                   * sid */
    uint64_t puts;
    ebpfMonCaWrite *recent;       /* a ring of the last plain writes; NULL: there was none */
    unsigned recentNext;
    char user[EBPFMON_CA_CLAIM], host[EBPFMON_CA_CLAIM];
} ebpfMonCaState;

ebpfMonCaChannel *ebpfMonCaBySid(const ebpfMonCaState *state, uint32_t sid);
ebpfMonCaChannel *ebpfMonCaByCid(const ebpfMonCaState *state, uint32_t cid);
/* Makes a channel, or renames it; it replaces others with its numbers. NULL: there is no memory, which is counted. */
ebpfMonCaChannel *ebpfMonCaChannelSet(ebpfMonCaState *state, const uint32_t *cid, const uint32_t *sid,
    const char *name);
void ebpfMonCaChannelRemove(ebpfMonCaState *state, ebpfMonCaChannel *channel);
void ebpfMonCaChannelsClear(ebpfMonCaState *state);

/* Remembers a plain write. */
void ebpfMonCaWriteNote(ebpfMonCaState *state, const ebpfMonCaHeader *header, uint64_t time);
/* Finds the number of the put that failed, by the header in the error. 0: not known. */
uint64_t ebpfMonCaWriteFailed(ebpfMonCaState *state, const ebpfMonCaHeader *header, uint64_t time);

#endif
