/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>
#include <stdlib.h>

#include "ioc/baseLayout.h"
#include "ioc/baseLink.h"
#include "put/recentLinks.h"

#define LINKS     16            /* power of two; each is a read of some 1 us for each put that follows */
#define RECENT_NS 1500000000ull /* the records are read for 1.1 s (requests.c) */

typedef struct {
    uint32_t         iocId; /* 0: none */
    ebpfMonLinkOwner link;
    uint64_t         at;
} recentLink;

struct ebpfMonRecentLinks {
    unsigned   next; /* the oldest */
    uint64_t   newest;
    recentLink link[LINKS];
};

ebpfMonRecentLinks *ebpfMonRecentLinksNew(void)
{
    return calloc(1, sizeof(ebpfMonRecentLinks));
}

void ebpfMonRecentLinksFree(ebpfMonRecentLinks *recent)
{
    free(recent);
}

static int isSame(const recentLink *r, uint32_t iocId, ebpfMonLinkOwner link)
{
    return r->iocId == iocId && r->link.rec == link.rec && r->link.field == link.field;
}

void ebpfMonRecentLinksAdd(ebpfMonRecentLinks *recent, uint32_t iocId, ebpfMonLinkOwner link, uint64_t at)
{
    recent->newest = at;
    for (unsigned i = 0; i < LINKS; i++)
        if (isSame(&recent->link[i], iocId, link)) {
            recent->link[i].at = at;
            return;
        }
    recent->link[recent->next++ % LINKS] = (recentLink){ .iocId = iocId, .link = link, .at = at };
}

/* Nonzero: the IOC writes through this link by that DBADDR now. */
static int leadsTo(ebpfMonTarget *t, ebpfMonLinkOwner owner, uint64_t addr)
{
    uint64_t at = t->cat->rec[owner.rec].addr + t->cat->field[owner.field].offset;
    ebpfMonLink link;

    return ebpfMonLinkReadLate(t->eventThread.reads, t->pid, t->cat->base, at, &link) == 0 &&
           link.type == EBPFMON_LINK_DB && link.pvt &&
           (link.pvt == addr || link.pvt + offsetof(struct layoutDbChannel, addr) == addr);
}

int ebpfMonRecentLinksFind(ebpfMonRecentLinks *recent, ebpfMonTarget *t, uint64_t addr, uint64_t at,
                           ebpfMonLinkOwner *owner)
{
    int inTable;

    if (!t->cat || !addr)
        return -1;
    inTable = ebpfMonLinkTableFind(t->cat->links, addr, owner) == 0 && owner->rec < t->cat->count;
    if (at > recent->newest + RECENT_NS)
        return inTable ? 0 : -1;
    for (unsigned i = 0; i < LINKS; i++) {
        const recentLink *r = &recent->link[i];

        if (r->iocId != t->iocId || at > r->at + RECENT_NS || r->link.rec >= t->cat->count)
            continue;
        if (leadsTo(t, r->link, addr)) {
            *owner = r->link;
            return 0;
        }
        if (inTable && isSame(r, t->iocId, *owner))
            inTable = 0; /* it had this address before */
    }
    return inTable ? 0 : -1;
}
