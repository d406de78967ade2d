/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The output links that somebody put a moment ago. The table of links (ioc/linkTable.h) is read again after such a put,
 * up to a second later. Until then a new link writes by an address that the table does not have, and the address of the
 * old link may belong to somebody else: dbChannel.c takes it from a list of free ones, so the next channel that a
 * client creates gets it. These links are looked at in the IOC when a put is seen. All functions: event thread only.
 */
#ifndef EBPFMON_RECENTLINKS_H
#define EBPFMON_RECENTLINKS_H

#include "ioc/linkTable.h"
#include "watch/target.h"

typedef struct ebpfMonRecentLinks ebpfMonRecentLinks;

ebpfMonRecentLinks *ebpfMonRecentLinksNew(void); /* NULL without memory */
void ebpfMonRecentLinksFree(ebpfMonRecentLinks *recent); /* NULL does no harm */

/* A link field of this IOC was put at "at" (monotonic ns). Of more than it holds it forgets the oldest. */
void ebpfMonRecentLinksAdd(ebpfMonRecentLinks *recent, uint32_t iocId, ebpfMonLinkOwner link, uint64_t at);

/* Which link of "t" has this DBADDR, under the targets lock. "at": when a put was made by it. 0, or -1: none. */
int ebpfMonRecentLinksFind(ebpfMonRecentLinks *recent, ebpfMonTarget *t, uint64_t addr, uint64_t at,
                           ebpfMonLinkOwner *owner);

#endif
