/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "health/healthCollector.h"

static ebpfMonHealth health;

static ebpfMonIocHealth *addIoc(const char *name, int isWatched, double cpu)
{
    ebpfMonIocHealth *row = &health.ioc[health.iocs++];

    snprintf(row->name, sizeof(row->name), "%s", name);
    row->isWatched = isWatched;
    row->cpu = cpu;
    return row;
}

static void addScan(const char *ioc, double period, double busy, uint64_t late)
{
    ebpfMonScanRow *row = &health.scan[health.scans++];

    snprintf(row->ioc, sizeof(row->ioc), "%s", ioc);
    row->period = period;
    row->busy = busy;
    row->late = late;
}

static void checkNames(const char *want)
{
    char got[200] = "";

    ebpfMonRowOrderSort(&health);
    for (unsigned i = 0; i < health.iocs; i++)
        sprintf(got + strlen(got), "%s%s", i ? " " : "", health.ioc[i].name);
    testOk(strcmp(got, want) == 0, "%s", got);
}

MAIN(testRowOrder)
{
    testPlan(4);
    addIoc("b", 1, 3);
    addIoc("unwatched", 0, 99)->hold = NAN;
    addIoc("a", 1, 0);
    addIoc("slow", 1, 0)->callback[2] = 900;
    addIoc("files", 1, 0)->fds = 90;
    health.ioc[4].fdLimit = 100;
    checkNames("files slow a b unwatched");
    health.ioc[2].once = health.ioc[2].hold = NAN; /* a level below chains */
    health.ioc[3].hold = 5000;
    checkNames("b files slow a unwatched");
    health.ioc[2].callback[2] = 700;
    checkNames("b files slow a unwatched"); /* a small difference does not change the place */

    addScan("b", 1, 90, 0);
    addScan("a", 10, 1, 0);
    addScan("a", 0.1, 2, 0);
    addScan("c", 2, 0, 1);
    ebpfMonRowOrderSort(&health);
    testOk(health.scan[0].late && health.scan[1].busy == 90 && health.scan[2].period == 0.1 &&
               health.scan[3].period == 10,
           "late threads come first, then busy ones, then by IOC, the fastest first");
    return testDone();
}
