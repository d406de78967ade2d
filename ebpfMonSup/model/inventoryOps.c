/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/inventoryOps.h"

static ebpfMonOpStatus setRecSync(void *arg, const ebpfMonRecSyncConf *conf)
{
    (void)arg;
    (void)conf;
    return ebpfMonOpAbsent;
}

static ebpfMonOpStatus refuseKeep(void *arg, const ebpfMonInventoryConf *conf)
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

static ebpfMonOpStatus writeFile(void *arg, ebpfMonTextReport *report, const char *path, const char *iocPattern,
                                 char *why, size_t size)
{
    (void)arg;
    (void)report;
    (void)path;
    (void)iocPattern;
    (void)why;
    (void)size;
    return ebpfMonOpAbsent;
}

static ebpfMonOpStatus compareFiles(void *arg, ebpfMonTextReport *report, const char *before, const char *after,
                                    const char *iocPattern, char *why, size_t size)
{
    (void)arg;
    (void)report;
    (void)before;
    (void)after;
    (void)iocPattern;
    (void)why;
    (void)size;
    return ebpfMonOpAbsent;
}

const ebpfMonInventoryOps ebpfMonInventoryOpsAbsent = {NULL, setRecSync, refuseKeep, addKept, writeFile, compareFiles};
