/* SPDX-License-Identifier: BSD-3-Clause */
#include <epicsStdlib.h>
#include <epicsString.h>

#include "health/scanWindow.h"

void ebpfMonScanWindowAdd(ebpfMonScanWindow *w, const ebpfMonScanSample *now, uint64_t present,
                          ebpfMonScanRow *row)
{
    static const ebpfMonScanSample nothing;
    const unsigned size = EBPFMON_SCAN_SECONDS + 1;
    const ebpfMonScanSample *old;

    if (w->n && now->passes < w->at[w->newest].passes) /* the kernel part counts from 0 again: begin anew */
        w->n = 0;
    w->newest = w->n ? (w->newest + 1) % size : 0;
    w->at[w->newest] = *now;
    if (w->n < size)
        w->n++;
    old = &w->at[(w->newest + size - (w->n - 1)) % size];
    if (w->n == 1 && now->passes) /* the first sample: it has all passes since the kernel part began to count */
        old = &nothing;
    if (now->passes > old->passes) {
        uint64_t sum = now->sum - old->sum;

        row->period = (double)sum / (double)(now->passes - old->passes) / 1e9;
        row->busy = sum ? 100.0 * (double)(now->busy - old->busy) / (double)sum : 0;
    }
    row->worst = (double)now->max / 1e9;
    row->late = now->late;
    if ((double)present / 1e9 > row->period)
        row->period = (double)present / 1e9;
    if ((double)present / 1e9 > row->worst)
        row->worst = (double)present / 1e9;
}

double ebpfMonScanParsePeriod(const char *choice)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = { { "", 1 }, { "second", 1 }, { "seconds", 1 }, { "minute", 60 }, { "minutes", 60 }, { "hour", 3600 },
                  { "hours", 3600 } };
    double number;
    char *unit;

    if (epicsParseDouble(choice, &number, &unit) || number <= 0)
        return 0;
    if (epicsStrCaseCmp(unit, "Hz") == 0 || epicsStrCaseCmp(unit, "Hertz") == 0)
        return 1 / number;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (epicsStrCaseCmp(unit, units[i].name) == 0)
            return number * units[i].seconds;
    return 0;
}
