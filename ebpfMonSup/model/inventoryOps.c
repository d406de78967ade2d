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

/* Writes an inventory, or compares two. */
static ebpfMonOpStatus useFiles(ebpfMonTextReport *report, const char *one, const char *other, char *why, size_t size)
{
    (void)report;
    (void)one;
    (void)other;
    (void)why;
    (void)size;
    return ebpfMonOpAbsent;
}

static const ebpfMonInventoryOps none = { setRecSync, keep, addKept, useFiles, useFiles };
static EpicsAtomicPtrT registered = (EpicsAtomicPtrT)&none;

const ebpfMonInventoryOps *ebpfMonInventoryOpsGet(void)
{
    return epicsAtomicGetPtrT(&registered);
}

void ebpfMonInventoryOpsRegister(const ebpfMonInventoryOps *ops)
{
    epicsAtomicSetPtrT(&registered, (EpicsAtomicPtrT)ops);
}
