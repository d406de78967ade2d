/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "health/rowOrder.h"

#define DELAY_LIMIT 1000.0 /* ms; the default of the macro IOC_CALLBACK_WAIT_MAX_HIGH */
#define FILE_LIMIT  80.0   /* %; the default of the macro IOC_FILE_MAX_HIGH */
#define LOAD_LIMIT  100.0  /* %: one core */
#define LEAST       (1 / 8.0) /* part of an alarm limit: an IOC with less is fine */

static double findWorst(const ebpfMonIocHealth *row)
{
    const double parts[] = {
        row->callback[0] / DELAY_LIMIT, row->callback[1] / DELAY_LIMIT, row->callback[2] / DELAY_LIMIT,
        row->once / DELAY_LIMIT, row->hold / DELAY_LIMIT, row->cpu / LOAD_LIMIT,
        row->fdLimit ? 100.0 * row->fds / row->fdLimit / FILE_LIMIT : 0
    };
    double worst = LEAST;

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        worst = fmax(worst, parts[i]); /* if one is NaN (not measured), fmax returns the other */
    return worst;
}

static int compareIocs(const void *a, const void *b)
{
    const ebpfMonIocHealth *x = a, *y = b;
    int worst;

    if (x->isWatched != y->isWatched)
        return x->isWatched ? -1 : 1;
    worst = ilogb(findWorst(y)) - ilogb(findWorst(x));
    return worst ? worst : strcmp(x->name, y->name);
}

static int compareScanRows(const void *a, const void *b)
{
    const ebpfMonScanRow *x = a, *y = b;
    int isLate = (y->late > 0) - (x->late > 0);
    int load = ilogb(fmax(y->busy / LOAD_LIMIT, LEAST)) - ilogb(fmax(x->busy / LOAD_LIMIT, LEAST));
    int ioc = strcmp(x->ioc, y->ioc);

    if (isLate)
        return isLate;
    if (load)
        return load;
    if (ioc)
        return ioc;
    return x->period < y->period ? -1 : x->period > y->period ? 1 : 0;
}

void ebpfMonRowOrderSort(ebpfMonHealth *health)
{
    qsort(health->ioc, health->iocs, sizeof(health->ioc[0]), compareIocs);
    qsort(health->scan, health->scans, sizeof(health->scan[0]), compareScanRows);
}
