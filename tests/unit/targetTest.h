/* SPDX-License-Identifier: BSD-3-Clause */
/* An IOC made by hand in plain memory: a target with a catalogue of named records. */
#ifndef TARGETTEST_H
#define TARGETTEST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "watch/target.h"

#define TARGETTEST_ADDR(i) (0x10000u + 0x100u * (uint64_t)(i)) /* address of record i */
#define TARGETTEST_HASH    64

/* "names": names of up to 32 records, ended by NULL. The target is at level trace, and all its records are shown. */
static inline ebpfMonTarget *targetTestNew(ebpfMonTargets *targets, const char *ioc, pid_t pid, uint32_t slot,
                                           const char *const *names)
{
    ebpfMonTarget *t = calloc(1, sizeof(*t));
    ebpfMonCatalogue *cat = calloc(1, sizeof(*cat));
    uint32_t n = 0;

    while (names[n])
        n++;
    cat->refs = 1;
    cat->count = cat->nameCount = n;
    cat->rec = calloc(n, sizeof(*cat->rec));
    cat->pool = calloc(n, 64);
    cat->names = calloc(n, sizeof(*cat->names));
    cat->byName = calloc(TARGETTEST_HASH, sizeof(*cat->byName));
    cat->byNameSize = TARGETTEST_HASH;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t h = ebpfMonHashFnv32(EBPFMON_FNV32_BEGIN, names[i], strlen(names[i])) & (TARGETTEST_HASH - 1);

        cat->rec[i].addr = TARGETTEST_ADDR(i);
        cat->rec[i].name = cat->names[i].name = 64 * i;
        cat->names[i].rec = i;
        snprintf(cat->pool + 64 * i, 64, "%s", names[i]);
        while (cat->byName[h])
            h = (h + 1) & (TARGETTEST_HASH - 1);
        cat->byName[h] = i + 1;
    }
    snprintf(t->name, sizeof(t->name), "%s", ioc);
    t->pid = pid;
    t->cat = cat;
    t->slot = slot;
    t->running = 1;
    t->level = ebpfMonLevelTrace;
    t->how = malloc(n);
    memset(t->how, EBPFMON_SHOWN, n);
    ebpfMonTargetsAdd(targets, t);
    return t;
}

#endif
