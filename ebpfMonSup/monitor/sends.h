/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What chains sent through CA links a moment ago, and as which messages it went out: what a trace of the one IOC has in
 * common with one of the other. Any thread.
 */
#ifndef EBPFMON_SENDS_H
#define EBPFMON_SENDS_H

#include "ebpfMonEvent.h"
#include "monitor/caLinks.h"

typedef struct {
    ebpfMonChainId chain;  /* iocId 0: free */
    uint32_t pid;
    uint64_t at;           /* monotonic ns; the link was written to */
    char     channel[96];
    char     link[EBPFMON_NAME_SIZE + 8];
    int      seen;         /* it arrived, or went out */
    int      isMessage;    /* … by TCP; else through a channel of the IOC itself */
    int      inside;       /* … at an IOC that we watch */
    struct ebpfMonPeer peer;
    uint32_t seq;
    uint64_t seenAt;
} ebpfMonSend;

void ebpfMonSendsAdd(const ebpfMonCaLink *link);

/* The put that a link (RECORD.FIELD) made, seen at the receiver's or on the wire. "peer" NULL: it was no message. */
void ebpfMonSendsMessage(const ebpfMonChainId *chain, const char *link, const struct ebpfMonPeer *peer, uint32_t seq,
                         uint64_t at, int inside);

/* What a message of a process is that was sent at "at". The chain that wrote last before that: a later one may have
 * written meanwhile. "channel" empty: it was created before we looked, and its name is not known; then nonzero only if
 * one link alone can have sent it, for no other one's value is on its way. */
int ebpfMonSendsAt(uint32_t pid, const char *channel, uint64_t at, ebpfMonSend *send);

/* Those of a chain, as far as they are remembered, in the order in which they were sent. Returns how many. */
unsigned ebpfMonSendsOf(const ebpfMonChainId *chain, ebpfMonSend *list, unsigned max);

#endif
