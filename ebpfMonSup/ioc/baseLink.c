/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "ioc/baseLayout.h"
#include "ioc/baseLink.h"

#define BYTES 128 /* of a struct link, at most */

static void takeApart(const uint8_t *bytes, const ebpfMonBaseRelease *base, ebpfMonLink *link)
{
    memcpy(&link->owner, bytes + base->link.precord, sizeof(link->owner));
    memcpy(&link->value, bytes + base->link.constantStr, sizeof(link->value));
    memcpy(&link->pvname, bytes + base->link.pvname, sizeof(link->pvname));
    memcpy(&link->pvt, bytes + base->link.pvt, sizeof(link->pvt));
    memcpy(&link->type, bytes + base->link.type, sizeof(link->type));
    memcpy(&link->pvlMask, bytes + base->link.pvlMask, sizeof(link->pvlMask));
}

int ebpfMonLinkRead(ebpfMonMem *mem, const ebpfMonBaseRelease *base, uint64_t at, ebpfMonLink *link)
{
    uint8_t bytes[BYTES];

    if (ebpfMonMemRead(mem, at, bytes, base->link.size))
        return -1;
    takeApart(bytes, base, link);
    return 0;
}

int ebpfMonLinkReadNow(pid_t pid, const ebpfMonBaseRelease *base, uint64_t at, ebpfMonLink *link)
{
    uint8_t bytes[BYTES];

    if (ebpfMonMemReadNow(pid, at, bytes, base->link.size))
        return -1;
    takeApart(bytes, base, link);
    return 0;
}

int ebpfMonLinkReadLate(ebpfMonLateReads *reads, pid_t pid, const ebpfMonBaseRelease *base, uint64_t at,
                        ebpfMonLink *link)
{
    uint8_t bytes[BYTES];

    if (ebpfMonLateReadsGetBytes(reads, pid, at, bytes, base->link.size))
        return -1;
    takeApart(bytes, base, link);
    return 0;
}

/* 2: it is the DBADDR of a known record and a known field; 1: of a known record; 0: it is not a DBADDR. An attribute
 * (RTYP) is not a field. */
static int matchAddr(const ebpfMonCatalogue *cat, const struct layoutDbAddr *addr, long *rec)
{
    const ebpfMonField *f;

    *rec = ebpfMonCatalogueFindAddr(cat, addr->precord);
    if (*rec < 0)
        return 0;
    f = ebpfMonCatalogueField(cat, addr->pfldDes);
    return f && f->rtype == cat->rec[*rec].rtype ? 2 : 1;
}

int ebpfMonLinkFindEnd(ebpfMonMem *mem, const ebpfMonCatalogue *cat, uint64_t owner, const ebpfMonLink *link,
                       ebpfMonLinkEnd *end)
{
    struct {
        uint64_t first;
        struct layoutDbAddr addr;
    } bytes;
    struct layoutDbAddr bare, *best = &bytes.addr;
    long rec, bareRec;
    int is, isBare;

    /* The end of a DBADDR may be the end of what is mapped: what follows it is not needed then. */
    memset(&bytes, 0, sizeof(bytes));
    if (link->owner != owner || (ebpfMonMemRead(mem, link->pvt, &bytes, sizeof(bytes)) &&
                                 ebpfMonMemRead(mem, link->pvt, &bytes, sizeof(bare))))
        return -1;
    /*
     * dbDbLink.c keeps a DBADDR up to 7.0.4.1, and a dbChannel from 7.0.5 on. A DBADDR begins with its record; a
     * dbChannel begins with a name, and the DBADDR follows. In a DBADDR of a NAME field the next member is the same
     * number once more; its third is no description of a field then.
     */
    memcpy(&bare, &bytes, sizeof(bare));
    is = matchAddr(cat, &bytes.addr, &rec);
    isBare = matchAddr(cat, &bare, &bareRec);
    if (isBare > is || (isBare && isBare == is)) {
        best = &bare;
        rec = bareRec;
    } else if (!is) {
        return -1;
    }
    end->rec = (uint32_t)rec;
    end->addrAt = best == &bare ? link->pvt : link->pvt + offsetof(struct layoutDbChannel, addr);
    end->pfldDes = best->pfldDes;
    return 0;
}
