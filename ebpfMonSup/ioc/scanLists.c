/* SPDX-License-Identifier: BSD-3-Clause */
#include "ioc/baseLayout.h"
#include "ioc/scanLists.h"

#define RECORDS_MAX 16 /* records in lists that are looked at */
#define PERIOD_ERROR 0.001 /* the period of the caller is from the name of a thread: six digits */

/* Nonzero: the element belongs to the record, lies between its neighbours, and in a list. */
static int isElementOf(ebpfMonMem *mem, uint64_t at, uint64_t precord)
{
    struct layoutScanElement element, next;
    struct layoutScanList list;

    if (ebpfMonMemRead(mem, at, &element, sizeof(element)) || element.precord != precord ||
        ebpfMonMemRead(mem, element.pscan_list, &list, sizeof(list)) || !list.list.first || list.list.count <= 0)
        return 0;
    if (!element.node.prev && list.list.first != at)
        return 0;
    if (!element.node.next)
        return list.list.last == at;
    return ebpfMonMemRead(mem, element.node.next, &next, sizeof(next)) == 0 && next.node.prev == at &&
           next.pscan_list == element.pscan_list;
}

int ebpfMonScanListsAreKnown(ebpfMonMem *mem, const ebpfMonCatalogue *cat)
{
    unsigned found = 0;

    for (uint32_t i = 0; cat->common.spvt && i < cat->count && found < RECORDS_MAX; i++) {
        uint64_t element = 0, list = 0;

        if (ebpfMonMemRead(mem, cat->rec[i].addr + cat->common.spvt, &element, sizeof(element)) || !element ||
            ebpfMonMemRead(mem, element + offsetof(struct layoutScanElement, pscan_list), &list, sizeof(list)) || !list)
            continue; /* it was in a list, and is in none now */
        if (!isElementOf(mem, element, cat->rec[i].addr))
            return 0;
        found++;
    }
    return found > 0;
}

uint64_t ebpfMonScanListFind(pid_t pid, uint64_t precord, uint16_t spvt, double period)
{
    struct layoutScanElement element;
    struct layoutPeriodicList list;
    uint64_t at;

    if (!precord || !spvt || ebpfMonMemReadNow(pid, precord + spvt, &at, sizeof(at)) || !at ||
        ebpfMonMemReadNow(pid, at, &element, sizeof(element)) || element.precord != precord || !element.pscan_list ||
        ebpfMonMemReadNow(pid, element.pscan_list, &list, sizeof(list)))
        return 0;
    return list.period > (1 - PERIOD_ERROR) * period && list.period < (1 + PERIOD_ERROR) * period ?
           element.pscan_list : 0;
}

int ebpfMonScanListCount(pid_t pid, uint64_t at)
{
    struct layoutPeriodicList list;

    if (ebpfMonMemReadNow(pid, at, &list, sizeof(list)))
        return -1;
    return list.scanCtl == LAYOUT_SCANCTL_RUN && list.list.list.count > 0 ? list.list.list.count : 0;
}
