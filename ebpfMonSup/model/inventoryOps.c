/* SPDX-License-Identifier: BSD-3-Clause */
#include <epicsAtomic.h>

#include "model/inventoryOps.h"

static ebpfMonOpStatus setRecSync(const ebpfMonRecSyncConf *conf)
{
    (void)conf;
    return ebpfMonOpAbsent;
}

static ebpfMonOpStatus keep(const ebpfMonInventoryConf *conf)
{
    (void)conf;
    return ebpfMonOpAbsent;
}

static ebpfMonOpStatus addKept(ebpfMonTextReport *report)
{
    (void)report;
    return ebpfMonOpAbsent;
}

/* stands for "write" and for "compare" */
static ebpfMonOpStatus useFiles(ebpfMonTextReport *report, const char *one, const char *other, char *why, size_t size)
{
    (void)report;
    (void)one;
    (void)other;
    (void)why;
    (void)size;
    return ebpfMonOpAbsent;
}

static const ebpfMonInventoryOps absentOps = { setRecSync, keep, addKept, useFiles, useFiles };
static EpicsAtomicPtrT registered = (EpicsAtomicPtrT)&absentOps;

const ebpfMonInventoryOps *ebpfMonInventoryOpsGet(void)
{
    return epicsAtomicGetPtrT(&registered);
}

void ebpfMonInventoryOpsRegister(const ebpfMonInventoryOps *ops)
{
    epicsAtomicSetPtrT(&registered, (EpicsAtomicPtrT)ops);
}
