/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What chains sent through CA links a moment ago, and as which messages it went out: what a trace of the one IOC has in
 * common with one of the other. Any thread.
 */
#ifndef EBPFMON_LINKMESSAGES_H
#define EBPFMON_LINKMESSAGES_H

#include "ebpfMonEvent.h"
#include "put/linkWrites.h"

typedef struct {
    ebpfMonChainId chain;  /* iocId 0: free */
    uint32_t pid;
    uint64_t at;           /* monotonic ns; the link was written to */
    char     channel[96];
    char     link[EBPFMON_NAME_SIZE + 8];
    int      seen;         /* it arrived, or went out; or never will, for a later one of its link did */
    int      isMessage;    /* … by TCP; else through a channel of the IOC itself */
    int      inside;       /* … at an IOC that we watch */
    struct ebpfMonPeer peer;
    uint32_t seq;
    uint64_t seenAt;
} ebpfMonLinkMessage;

void ebpfMonLinkMessagesAdd(const ebpfMonLinkWrite *link);

/* The put that a link (RECORD.FIELD) made, seen at the receiver's or on the wire. "peer" NULL: it was no message. */
void ebpfMonLinkMessagesNoteArrival(const ebpfMonChainId *chain, const char *link, const struct ebpfMonPeer *peer, uint32_t seq,
                         uint64_t at, int inside);

/* A message that a process sent at "at", as its packet told of it. A packet may be faster than the event of what was
 * written, so it is looked up once the inside has told of all before it. "channel" empty: it was created before we
 * looked, and its name is not known; then it is a link's only if no other one's value is on its way. */
void ebpfMonLinkMessagesNotePacket(uint32_t pid, const char *channel, const struct ebpfMonPeer *peer, uint32_t seq, uint64_t at);

/* The inside has told of all up to then (monotonic ns). */
void ebpfMonLinkMessagesMatch(uint64_t upTo);

/* Those of a chain, as far as they are remembered, in the order in which they were sent. Returns how many. */
unsigned ebpfMonLinkMessagesFind(const ebpfMonChainId *chain, ebpfMonLinkMessage *list, unsigned max);

#endif
