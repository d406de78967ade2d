/* SPDX-License-Identifier: BSD-3-Clause */
/* The channels of a pvAccess connection, by the numbers of both sides. */
#ifndef EBPFMON_PVACHANNEL_H
#define EBPFMON_PVACHANNEL_H

#include "wire/pvaOp.h"

struct pvaChannel {
    pvaLink  bySid, byCid;
    int      hasSid, hasCid;
    size_t   nameSize;
    char    *name;          /* NULL: created before we looked */
    pvaOp   *ops;
};

pvaChannel *ebpfMonPvaChannelBySid(pvaState *pva, uint32_t sid);
/* The request belongs to that channel, and ends with it. One from before we looked is made, without a name. */
void ebpfMonPvaChannelAdopt(pvaState *pva, pvaOp *op, uint32_t sid);
void ebpfMonPvaChannelMessage(pvaState *pva, pvaMsg *msg); /* create, destroy */
void ebpfMonPvaChannelNamed(pvaState *pva, uint32_t sid, const char *name);
void ebpfMonPvaChannelsFree(pvaState *pva);

#endif
