/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "common/array.h"
#include "common/clock.h"
#include "common/text.h"
#include "host/foreign.h"
#include "ioc/baseLink.h"
#include "queues/iocLinks.h"
#include "queues/queueIoc.h"

#define WALK_NS   (60 * EBPFMON_SECOND_NS) /* so often at most all fields are gone through … */
#define WALK_COST 0.002                    /* … and less often if it would take more than this part of a core */
#define LINK_HEAD 120                      /* bytes of a caLink that are read: up to gotFirstConnection */

/* Which layout a caLink has: the struct changed together with scanOnce (3.16). */
static const ebpfMonQueueLayout *findLayout(const ebpfMonBaseRelease *base)
{
    const ebpfMonQueueLayout *l;

    for (unsigned i = 0; (l = ebpfMonQueueLayoutGet(i)) != NULL; i++)
        if ((l->onceEntry != 0) == base->has.onceLink)
            return l;
    return NULL;
}

static int notePva(ebpfMonCaLinkIoc *ioc, ebpfMonMem *mem, uint32_t record, uint32_t field, const ebpfMonLink *link)
{
    char json[EBPFMON_PVA_LINK_TEXT];
    ebpfMonPvaLink pva;

    if (ioc->pvas >= EBPFMON_CA_LINKS_MAX || ebpfMonMemStr(mem, link->value, json, sizeof(json)) < 0 ||
        ebpfMonPvaLinkParse(json, &pva))
        return 0;
    if (ebpfMonArrayGrow(&ioc->pva, &ioc->pvaRoom, ioc->pvas + 1, 16, sizeof(*ioc->pva)))
        return -1;
    ioc->pva[ioc->pvas++] = (ebpfMonIocPvaLink){ ebpfMonPvaLinkKey(pva.pv), record, field };
    return 0;
}

static int noteLink(ebpfMonCaLinkIoc *ioc, ebpfMonMem *mem, uint32_t record, uint32_t field)
{
    uint64_t at = ioc->cat->rec[record].addr + ioc->cat->field[field].offset;
    ebpfMonLink link;

    if (ebpfMonLinkRead(mem, ioc->cat->base, at, &link))
        return -1;
    if (ebpfMonPvaLinkIsJson(&link))
        return notePva(ioc, mem, record, field, &link);
    if (link.type != EBPFMON_LINK_CA || !link.pvt || link.owner != ioc->cat->rec[record].addr)
        return 0;
    if (ebpfMonArrayGrow(&ioc->link, &ioc->room, ioc->links + 1, 64, sizeof(*ioc->link)))
        return -1;
    ioc->link[ioc->links++] = (ebpfMonCaLink){ .at = at, .ca = link.pvt, .record = record, .field = field };
    return 0;
}

/* Goes through all link fields. What is known of a link that was there before stays. */
static int findLinks(ebpfMonCaLinkIoc *ioc, ebpfMonMem *mem)
{
    const ebpfMonCatalogue *cat = ioc->cat;
    ebpfMonCaLink *before = ioc->link;
    size_t known = ioc->links, next = 0;
    int status = 0;

    ioc->link = NULL;
    ioc->links = ioc->room = ioc->pvas = 0;
    for (uint32_t i = 0; !status && i < cat->count; i++) {
        const ebpfMonRecType *type = &cat->rtype[cat->rec[i].rtype];

        for (uint32_t f = 0; type->links && !status && f < type->fieldCount; f++) {
            uint32_t field = type->firstField + f;

            if (cat->field[field].type >= ebpfMonDbfInlink && cat->field[field].type <= ebpfMonDbfFwdlink &&
                ioc->links < EBPFMON_CA_LINKS_MAX)
                status = noteLink(ioc, mem, i, field);
        }
    }
    for (size_t i = 0; i < ioc->links; i++) { /* both are in the order of the records */
        while (next < known && before[next].at < ioc->link[i].at)
            next++;
        if (next < known && before[next].at == ioc->link[i].at && before[next].ca == ioc->link[i].ca)
            ioc->link[i].since = before[next].since;
    }
    free(before);
    return status;
}

static void makeParts(ebpfMonCaLinkIoc *ioc)
{
    free(ioc->part);
    free(ioc->bytes);
    ioc->part = calloc(ioc->links + 1, sizeof(*ioc->part));
    ioc->bytes = malloc(ioc->links * LINK_HEAD + 1);
    for (size_t i = 0; ioc->part && i < ioc->links; i++)
        ioc->part[i] = (ebpfMonMemPart){ ioc->link[i].ca, LINK_HEAD };
}

static void walkFields(ebpfMonCaLinkIoc *ioc, uint64_t now)
{
    uint64_t before = ebpfMonForeignGetCpu(), pause;
    ebpfMonMem *mem = ebpfMonMemNew(ioc->pid);

    ioc->walked = mem && findLinks(ioc, mem) == 0 ? ioc->cat : NULL;
    ebpfMonMemFree(mem);
    makeParts(ioc);
    pause = (uint64_t)((double)(ebpfMonForeignGetCpu() - before) / WALK_COST);
    ioc->notBefore = now + pause;
    ioc->walkAt = now + (pause > WALK_NS ? pause : WALK_NS);
}

/* Nonzero: a caLink belongs to another link, or to none. */
static int takeLinks(ebpfMonCaLinkIoc *ioc, const ebpfMonQueueLayout *l, uint64_t now)
{
    int isChanged = 0;

    for (size_t i = 0; i < ioc->links; i++) {
        const char *bytes = ioc->bytes + i * LINK_HEAD;
        ebpfMonCaLink *link = &ioc->link[i];

        if (ebpfMonMemNumberAt(bytes, l->linkPlink) != link->at) {
            isChanged = 1;
            link->isConnected = 1; /* nothing is known of it */
        } else {
            link->isConnected = bytes[l->linkIsConnected] != 0;
            link->wasConnected = bytes[l->linkGotFirst] != 0;
        }
        link->since = link->isConnected ? 0 : link->since ? link->since : now;
    }
    return isChanged;
}

void ebpfMonIocLinksUpdate(ebpfMonCaLinkIoc *ioc, uint64_t now)
{
    const ebpfMonQueueLayout *l = findLayout(ioc->cat->base);

    ioc->isRead = 0;
    if (!l || ebpfMonForeignIsCharged(ioc->pid))
        return;
    if (now >= ioc->walkAt || (ioc->walked != ioc->cat && now >= ioc->notBefore))
        walkFields(ioc, now);
    if (ioc->walked != ioc->cat || !ioc->part || !ioc->bytes)
        return;
    if (ioc->links && ebpfMonMemReadParts(ioc->pid, ioc->part, ioc->links, ioc->bytes, ioc->links * LINK_HEAD)) {
        ioc->walked = NULL; /* a link has gone with its memory */
        return;
    }
    if (takeLinks(ioc, l, now))
        ioc->walked = NULL;
    ioc->isRead = 1;
}

void ebpfMonIocLinksClear(ebpfMonCaLinkIoc *ioc)
{
    ebpfMonCatalogueRelease(ioc->cat);
    free(ioc->link);
    free(ioc->pva);
    free(ioc->part);
    free(ioc->bytes);
}

int ebpfMonIocLinksReadName(const ebpfMonCaLinkIoc *ioc, const ebpfMonCaLink *link, char *name, size_t size)
{
    const ebpfMonQueueLayout *l = findLayout(ioc->cat->base);
    uint64_t at;
    char text[100];

    if (ebpfMonMemReadNow(ioc->pid, link->ca + l->linkPvname, &at, sizeof(at)) ||
        ebpfMonMemTextNow(ioc->pid, at, text, sizeof(text)) <= 0)
        return -1;
    ebpfMonTextCopy(name, size, text);
    return 0;
}

const ebpfMonIocPvaLink *ebpfMonIocLinksFindPva(const ebpfMonCaLinkIoc *ioc, const char *pv, int *isOne)
{
    const ebpfMonIocPvaLink *found = NULL;
    uint64_t key = ebpfMonPvaLinkKey(pv);

    *isOne = 1;
    for (size_t i = 0; ioc->walked == ioc->cat && i < ioc->pvas; i++) /* else they are of an older catalogue */
        if (ioc->pva[i].key == key) {
            *isOne = !found;
            found = &ioc->pva[i];
        }
    return found;
}
