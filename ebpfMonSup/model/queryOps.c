/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "model/queryOps.h"

static long refuseLoad(void *arg, const char *file, char *text, size_t size)
{
    (void)arg;
    (void)file;
    snprintf(text, size, "not loaded: this IOC is not linked with ebpfMon, or had no memory at its start");
    return -1;
}

static long refuseRun(void *arg, const char *name, int on)
{
    (void)arg;
    (void)name;
    (void)on;
    return -1;
}

static void addList(void *arg, ebpfMonTextReport *report)
{
    (void)arg;
    (void)report;
}

static long addResult(void *arg, ebpfMonTextReport *report, const char *name)
{
    (void)arg;
    (void)report;
    (void)name;
    return -1;
}

static long addStacks(void *arg, ebpfMonTextReport *report, const char *name)
{
    (void)arg;
    (void)report;
    (void)name;
    return -1;
}

const ebpfMonQueryOps ebpfMonQueryOpsAbsent = { NULL, refuseLoad, refuseRun, addList, addResult, addStacks };
