/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/inventoryOps.h"

static ebpfMonOpStatus setRecSync(void *arg, const ebpfMonRecSyncConf *conf)
{
    (void)arg;
    (void)conf;
    return ebpfMonOpAbsent;
}

static ebpfMonOpStatus keep(void *arg, const ebpfMonInventoryConf *conf)
{
    (void)arg;
    (void)conf;
    return ebpfMonOpAbsent;
}

static ebpfMonOpStatus addKept(void *arg, ebpfMonTextReport *report)
{
    (void)arg;
    (void)report;
    return ebpfMonOpAbsent;
}

/* Stands for "write" and for "compare". */
static ebpfMonOpStatus useFiles(void *arg, ebpfMonTextReport *report, const char *one, const char *other, char *why, size_t size)
{
    (void)arg;
    (void)report;
    (void)one;
    (void)other;
    (void)why;
    (void)size;
    return ebpfMonOpAbsent;
}

const ebpfMonInventoryOps ebpfMonInventoryOpsAbsent = { NULL, setRecSync, keep, addKept, useFiles, useFiles };
