/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "model/published.h"
#include "subscriptions/goneIocs.h"

#define GONE_MAX     8      /* that are kept … */
#define GONE_RECORDS 200000 /* … and their records */

static ebpfMonKeptIoc *findKept(ebpfMonGoneIocs *k, uint32_t iocId)
{
    for (unsigned i = 0; i < k->count; i++)
        if (k->ioc[i].iocId == iocId)
            return &k->ioc[i];
    return k->count < EBPFMON_GONE_IOCS ? &k->ioc[k->count++] : NULL;
}

static void dropKept(ebpfMonGoneIocs *k, unsigned index)
{
    ebpfMonCatalogueRelease(k->ioc[index].cat);
    k->ioc[index] = k->ioc[--k->count];
    k->ioc[k->count] = (ebpfMonKeptIoc){ .iocId = 0 };
}

static int isBack(const ebpfMonGoneIocs *k, const char *name)
{
    for (unsigned i = 0; i < k->count; i++)
        if (k->ioc[i].isThere && strcmp(k->ioc[i].name, name) == 0)
            return 1;
    return 0;
}

/* How many are gone, and their records; *oldest: the one that went first. */
static unsigned countGone(const ebpfMonGoneIocs *k, uint64_t *records, unsigned *oldest)
{
    unsigned gone = 0;

    *records = 0;
    for (unsigned i = 0; i < k->count; i++) {
        if (k->ioc[i].isThere)
            continue;
        if (!gone++ || k->ioc[i].goneAt < k->ioc[*oldest].goneAt)
            *oldest = i;
        *records += k->ioc[i].cat->count;
    }
    return gone;
}

/* Those that are back are dropped, and the oldest ones if there are too many. */
static void dropOld(ebpfMonGoneIocs *k)
{
    uint64_t records;
    unsigned oldest = 0;

    for (unsigned i = k->count; i-- > 0;)
        if (!k->ioc[i].isThere && (!k->ioc[i].cat || isBack(k, k->ioc[i].name)))
            dropKept(k, i);
    while (countGone(k, &records, &oldest) > GONE_MAX || records > GONE_RECORDS)
        dropKept(k, oldest);
}

void ebpfMonGoneIocsUpdate(ebpfMonGoneIocs *k, ebpfMonTargets *targets, uint64_t now)
{
    ebpfMonCatalogue *old[EBPFMON_GONE_IOCS];
    unsigned olds = 0;

    for (unsigned i = 0; i < k->count; i++)
        k->ioc[i].isThere = 0;
    ebpfMonTargetsLock(targets);
    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(targets); t; t = t->next) {
        ebpfMonKeptIoc *ioc = t->cat ? findKept(k, t->iocId) : NULL;

        if (!ioc)
            continue;
        ioc->isThere = !t->gone;
        ioc->iocId = t->iocId;
        ioc->goneAt = now;
        snprintf(ioc->name, sizeof(ioc->name), "%s", t->name);
        if (ioc->cat == t->cat)
            continue;
        old[olds++] = ioc->cat;
        ioc->cat = ebpfMonCatalogueHold(t->cat);
    }
    ebpfMonTargetsUnlock(targets);
    for (unsigned i = 0; i < olds; i++)
        ebpfMonCatalogueRelease(old[i]);
    dropOld(k);
}

int ebpfMonGoneIocsFind(const ebpfMonGoneIocs *k, const char *record, char *text, size_t size)
{
    const ebpfMonPublished *published;
    const ebpfMonKeptIoc *ioc = NULL;
    char note[100] = "gone";

    for (unsigned i = 0; i < k->count; i++)
        if (k->ioc[i].cat && ebpfMonCatalogueFind(k->ioc[i].cat, record) >= 0 &&
            (!ioc || k->ioc[i].goneAt > ioc->goneAt))
            ioc = &k->ioc[i];
    if (!ioc)
        return -1;
    published = ebpfMonPublishedLock();
    for (unsigned i = 0; i < published->health.goneRows; i++)
        if (strcmp(published->health.goneIoc[i].name, ioc->name) == 0)
            snprintf(note, sizeof(note), "%s", published->health.goneIoc[i].note);
    ebpfMonPublishedUnlock();
    snprintf(text, size, "IOC %s had it, and is %s", ioc->name, note);
    return 0;
}
