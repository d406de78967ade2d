/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>

#include "common/array.h"
#include "ebpfMonModule.h"
#include "subscriptions/flowSums.h"

struct flowSumPlace {
    const ebpfMonFlowIoc *ioc;
    long     record;        /* index in its catalogue */
    unsigned row;
};

static int comparePlaces(const void *left, const void *right)
{
    const flowSumPlace *l = left, *r = right;

    if (l->ioc != r->ioc)
        return l->ioc < r->ioc ? -1 : 1;
    return l->record < r->record ? -1 : l->record > r->record;
}

void ebpfMonFlowSumsBegin(ebpfMonFlowSums *sums, ebpfMonFlowSum *row, const ebpfMonFlowIoc *ioc, unsigned iocs)
{
    const char *name;

    sums->row = row;
    sums->places = 0;
    for (unsigned n = 0; n < EBPFMON_FLOW_SUMS && (name = ebpfMonModuleGetWatched(n)) != NULL; n++)
        for (unsigned i = 0; i < iocs; i++) {
            long record = ioc[i].isRead ? ebpfMonCatalogueFind(ioc[i].cat, name) : -1;

            if (record < 0 ||
                ebpfMonArrayGrow(&sums->place, &sums->room, sums->places + 1, 16, sizeof(*sums->place)))
                continue;
            row[n].isKnown = 1;
            sums->place[sums->places++] = (flowSumPlace){ &ioc[i], record, n };
        }
    if (sums->places)
        qsort(sums->place, sums->places, sizeof(*sums->place), comparePlaces);
}

void ebpfMonFlowSumAdd(ebpfMonFlowSum *sum, const ebpfMonFlowSumPart *part)
{
    sum->subscriptions++;
    sum->waiting += part->waiting;
    sum->mergedRate += part->mergedRate;
    sum->stalled += part->isStalled != 0;
    if (part->isStalled && part->silence > sum->silence)
        sum->silence = floor(part->silence);
}

void ebpfMonFlowSumsAdd(ebpfMonFlowSums *sums, const ebpfMonFlowIoc *ioc, long record, const ebpfMonFlowSumPart *part)
{
    const flowSumPlace key = { ioc, record, 0 };
    const flowSumPlace *end = sums->place + sums->places;
    const flowSumPlace *at = !sums->places ? NULL :
                             bsearch(&key, sums->place, sums->places, sizeof(key), comparePlaces);

    if (!at)
        return;
    while (at > sums->place && comparePlaces(at - 1, &key) == 0) /* it is watched by its name and by an alias */
        at--;
    for (; at < end && comparePlaces(at, &key) == 0; at++)
        ebpfMonFlowSumAdd(&sums->row[at->row], part);
}
