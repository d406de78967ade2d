/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Recent link writes, each with the message that carried it. A trace of the writing IOC and a trace of the receiving
 * IOC have this message in common. Any thread: the event thread adds writes and looks them up, the packet thread adds
 * packets.
 */
#ifndef EBPFMON_LINKMESSAGES_H
#define EBPFMON_LINKMESSAGES_H

#include "ebpfMonEvent.h"
#include "put/finishedPut.h"
#include "put/linkWrites.h"

#define EBPFMON_LINK_MESSAGES 32 /* of one chain, for ebpfMonLinkMessagesFind */

/* A value that a chain wrote through a CA link. */
typedef struct {
    ebpfMonChainId chain;  /* as ebpfMonLinkWrite has these two; iocId 0: free */
    ebpfMonChainId step;
    int      isStepKnown;  /* the chain "step" has come: the link write belongs to it */
    uint32_t pid;          /* of the IOC that wrote */
    uint64_t at;           /* monotonic ns: the record wrote to the link */
    char     channel[96];  /* the PV that the link leads to */
    char     link[EBPFMON_NAME_SIZE + 8]; /* RECORD.FIELD */
    int      seen;         /* it was sent or arrived; or it never will be, because a later value of the link was sent */
    int      isMessage;    /* it went in a TCP message, whose "peer" and "seq" are known; else through a channel inside
                            * the IOC */
    int      isHidden;     /* it went in a TCP message of which no more is known */
    int      isSkipped;    /* it was not sent: a later value of the link was */
    int      inside;       /* it arrived at an IOC that we watch */
    struct ebpfMonPeer peer; /* the connection */
    uint32_t seq;          /* TCP sequence number of the first byte of the message */
    uint64_t seenAt;       /* monotonic ns */
} ebpfMonLinkMessage;

typedef struct ebpfMonLinkMessages ebpfMonLinkMessages;

ebpfMonLinkMessages *ebpfMonLinkMessagesNew(void); /* NULL without memory */
void ebpfMonLinkMessagesFree(ebpfMonLinkMessages *messages); /* NULL does no harm */

/* A chain wrote through a CA link. Does nothing if the chain is not known. */
void ebpfMonLinkMessagesAdd(ebpfMonLinkMessages *messages, const ebpfMonLinkWrite *link);

/* This chain has come: its link writes belong to it, and no longer to the chain that began the asynchronous record. */
void ebpfMonLinkMessagesNoteChain(ebpfMonLinkMessages *messages, const ebpfMonChainId *chain);

/* The put that a link (RECORD.FIELD) of this chain made was seen in an IOC that we watch. "key": its message; without
 * an address it came in none. */
void ebpfMonLinkMessagesNoteArrival(ebpfMonLinkMessages *messages, const ebpfMonChainId *chain, const char *link,
                                    const ebpfMonMessageKey *key);

/* A packet of process "pid" carried this message at "at" (monotonic ns). The event of the link write may come after its
 * packet, so ebpfMonLinkMessagesMatch looks for it later. "channel" empty: the channel was created before we looked,
 * and its name is not known; then the message belongs to a link only if no other link of the process has a value on
 * its way. */
void ebpfMonLinkMessagesNotePacket(ebpfMonLinkMessages *messages, uint32_t pid, const char *channel,
                                   const struct ebpfMonPeer *peer, uint32_t seq, uint64_t at);

/* All link writes up to "upTo" (monotonic ns) have been added: finds the link writes of the packets before this
 * time. */
void ebpfMonLinkMessagesMatch(ebpfMonLinkMessages *messages, uint64_t upTo);

/* Copies the link writes of a chain, and of its steps that did not come, as far as they are still known, in the order
 * of writing. Returns how many, "max" at most. */
unsigned ebpfMonLinkMessagesFind(ebpfMonLinkMessages *messages, const ebpfMonChainId *chain, ebpfMonLinkMessage *list,
                                 unsigned max);

/* Nonzero: there was no room for all link writes from this time (monotonic ns) on. */
int ebpfMonLinkMessagesHaveForgotten(ebpfMonLinkMessages *messages, uint64_t since);

#endif
