/* SPDX-License-Identifier: BSD-3-Clause */
/* Which record makes which other record process, read from the links of a running IOC. */
#include <stdlib.h>
#include <string.h>

#include "ioc/catalogue.h"
#include "ioc/layout.h"

/* The records that this one processes while it holds the lock: dbDbLink.c processes the target of a forward
 * link, of a link with PP, and of an output link that writes to PROC. Whether the target is passive is not
 * asked: SCAN can change, and a record that did not process is seen not to have. */
static int follow(ebpfMonMem *mem, const ebpfMonCatalogue *cat, const ebpfMonField *f, const ebpfMonRecord *rec,
                  uint32_t *to)
{
    uint64_t linkAt = rec->addr + f->offset;
    struct layoutPvLink link;
    struct layoutDbChannel chan;
    const ebpfMonField *target;
    long index;

    if (ebpfMonMemRead(mem, linkAt, &link, sizeof(link)) || link.type != LAYOUT_LINK_DB || !link.pvt)
        return 0;
    if (ebpfMonMemRead(mem, link.pvt, &chan, sizeof(chan)))
        return 0;
    index = ebpfMonCatalogueFindAddr(cat, chan.addr.precord);
    if (index < 0)
        return 0;
    if (f->type == ebpfMonDbfOutlink)
        ebpfMonLinkTableAdd(cat->links, link.pvt, (ebpfMonLinkOwner){
            .rec = (uint32_t)(rec - cat->rec), .field = (uint32_t)(f - cat->field) });
    if (f->type != ebpfMonDbfFwdlink && !(link.pvlMask & LAYOUT_PVL_PP)) {
        if (f->type != ebpfMonDbfOutlink)
            return 0;
        target = ebpfMonCatalogueField(cat, chan.addr.pfldDes);
        if (!target || strcmp(target->name, "PROC") != 0)
            return 0;
    }
    *to = (uint32_t)index;
    return 1;
}

static void readRecord(ebpfMonMem *mem, ebpfMonCatalogue *cat, ebpfMonRecord *rec)
{
    const ebpfMonRecType *rt = &cat->rtype[rec->rtype];
    uint32_t to[EBPFMON_FIELDS_LIMIT], via[EBPFMON_FIELDS_LIMIT], n = 0;
    int16_t tse = 0, tselType = LAYOUT_LINK_CONSTANT;

    rec->fwd = UINT32_MAX;
    rec->flags &= (uint16_t)~(EBPFMON_REC_TSE | EBPFMON_REC_WALK);
    if (strcmp(rt->name, "compress") == 0) /* stamped when its buffer is full, not each time it reads */
        rec->flags |= EBPFMON_REC_WALK;

    for (uint32_t i = rt->firstField; i < rt->firstField + rt->fieldCount; i++) {
        const ebpfMonField *f = &cat->field[i];

        if (f->type < ebpfMonDbfInlink || f->type > ebpfMonDbfFwdlink ||
            !follow(mem, cat, f, rec, &to[n]))
            continue;
        /* not every forward link: fanout's LNK1 … are followed before its own completion */
        if (strcmp(f->name, "FLNK") == 0)
            rec->fwd = to[n];
        /* dbProcess reads SDIS, and may process what it points to, before it finds the record disabled */
        if (strcmp(f->name, "SDIS") == 0)
            rec->flags |= EBPFMON_REC_WALK;
        via[n++] = i;
    }
    free(rec->to);
    rec->to = NULL;
    rec->toCount = 0;
    if (n && (rec->to = malloc(2 * n * sizeof(*to))) != NULL) {
        memcpy(rec->to, to, n * sizeof(*to));
        memcpy(rec->to + n, via, n * sizeof(*via));
        rec->toCount = n;
    }
    ebpfMonMemRead(mem, rec->addr + cat->common.tse, &tse, sizeof(tse));
    ebpfMonMemRead(mem, rec->addr + cat->common.tsel + offsetof(struct layoutPvLink, type), &tselType,
                   sizeof(tselType));
    if (tse != 0 || tselType != LAYOUT_LINK_CONSTANT)
        rec->flags |= EBPFMON_REC_TSE;
}

void ebpfMonCatalogueLinks(ebpfMonMem *mem, ebpfMonCatalogue *cat, long index)
{
    ebpfMonLinkTableClear(cat->links, index < 0 ? UINT32_MAX : (uint32_t)index);
    if (index >= 0) {
        if ((uint32_t)index < cat->count)
            readRecord(mem, cat, &cat->rec[index]);
        return;
    }
    for (uint32_t i = 0; i < cat->count; i++)
        readRecord(mem, cat, &cat->rec[i]);
}
