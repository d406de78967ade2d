/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include <epicsAtomic.h>

#include "model/queryOps.h"

static long load(const char *file, char *text, size_t size)
{
    (void)file;
    snprintf(text, size, "not loaded: the monitor is not linked in, or has not registered itself");
    return -1;
}

static long run(const char *name, int on)
{
    (void)name;
    (void)on;
    return -1;
}

static void addList(ebpfMonTextReport *report)
{
    (void)report;
}

static long addResult(ebpfMonTextReport *report, const char *name)
{
    (void)report;
    (void)name;
    return -1;
}

static long addStacks(ebpfMonTextReport *report, const char *name)
{
    (void)report;
    (void)name;
    return -1;
}

static const ebpfMonQueryOps absentOps = { load, run, addList, addResult, addStacks };
static EpicsAtomicPtrT registered = (EpicsAtomicPtrT)&absentOps;

const ebpfMonQueryOps *ebpfMonQueryOpsGet(void)
{
    return epicsAtomicGetPtrT(&registered);
}

void ebpfMonQueryOpsRegister(const ebpfMonQueryOps *ops)
{
    epicsAtomicSetPtrT(&registered, (EpicsAtomicPtrT)ops);
}
