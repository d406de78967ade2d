/* SPDX-License-Identifier: BSD-3-Clause */
/* The channels of a pvAccess connection, by the numbers that both sides gave them. */
#ifndef EBPFMON_PVACHANNEL_H
#define EBPFMON_PVACHANNEL_H

#include "wire/pvaOp.h"

struct pvaChannel {
    pvaLink  bySid, byCid;
    int      hasSid, hasCid;
    size_t   nameSize;
    char    *name;          /* NULL: not known, because the channel was created before we watched */
    pvaOp   *ops;
};

pvaChannel *ebpfMonPvaChannelBySid(pvaState *pva, uint32_t sid);
/* Gives the request to the channel "sid", with which it ends. If we do not know the channel, it is made, without a
 * name. */
void ebpfMonPvaChannelAdopt(pvaState *pva, pvaOp *op, uint32_t sid);
void ebpfMonPvaChannelMessage(pvaState *pva, pvaMsg *msg); /* messages that create or destroy */
/* See ebpfMonWireName. */
void ebpfMonPvaChannelNamed(pvaState *pva, uint32_t sid, const char *name);
/* See ebpfMonWireRemind. */
void ebpfMonPvaChannelsRemind(pvaState *pva, uint64_t time);
void ebpfMonPvaChannelsFree(pvaState *pva);

#endif
