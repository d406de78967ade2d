/* SPDX-License-Identifier: BSD-3-Clause */
/* An invented IOC for the tests of traces: records R0, R1, … with a few fields, in the memory of the test program,
 * and the events of chains that the kernel part would send. Times are invented. */
#ifndef TRACEIOC_H
#define TRACEIOC_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/hash.h"
#include "ebpfMonEvent.h"
#include "baseLinks.h"
#include "trace/trace.h"
#include "watch/target.h"

#define MS 1000000ull
#define US 1000ull
#define SCENE_RECORDS 1400
#define SCENE_SLOT 5000u
/* EPICS seconds of the time at which the monotonic clock was 0. */
#define SCENE_EPOCH 1000000000u

enum { sceneVal, sceneScan, sceneFlnk, sceneOut, sceneInp, sceneFields };

struct sceneRecord {
    double   val;
    uint16_t scan;
    struct layoutPvLink flnk, out, inp;
};

static struct sceneRecord sceneMemory[SCENE_RECORDS];
static uint64_t sceneChoice[4];
static struct layoutMenu sceneMenu = { .nChoice = 4 };
static ebpfMonTarget *sceneTarget;
static uint64_t sceneReadAt; /* the time at which the records were read last; invented, too */

static inline void sceneSetField(ebpfMonCatalogue *cat, unsigned i, const char *name, unsigned type, size_t offset)
{
    strcpy(cat->field[i].name, name);
    cat->field[i].type = (uint16_t)type;
    cat->field[i].offset = (uint16_t)offset;
}

/* Records R0, R1, …; links are added by sceneLink. */
static inline ebpfMonCatalogue *sceneNewCatalogue(uint32_t count)
{
    ebpfMonCatalogue *cat = calloc(1, sizeof(*cat));

    cat->refs = 1;
    cat->since = ++sceneReadAt;
    cat->base = ebpfMonBaseReleaseGet(0);
    cat->count = count;
    cat->rtypes = 1;
    cat->rtype = calloc(1, sizeof(*cat->rtype));
    strcpy(cat->rtype[0].name, "calc");
    cat->rtype[0].fieldCount = cat->fields = sceneFields;
    cat->rtype[0].valField = sceneVal;
    cat->field = calloc(sceneFields, sizeof(*cat->field));
    sceneSetField(cat, sceneVal, "VAL", ebpfMonDbfDouble, offsetof(struct sceneRecord, val));
    sceneSetField(cat, sceneScan, "SCAN", ebpfMonDbfMenu, offsetof(struct sceneRecord, scan));
    sceneSetField(cat, sceneFlnk, "FLNK", ebpfMonDbfFwdlink, offsetof(struct sceneRecord, flnk));
    sceneSetField(cat, sceneOut, "OUT", ebpfMonDbfOutlink, offsetof(struct sceneRecord, out));
    sceneSetField(cat, sceneInp, "INP", ebpfMonDbfInlink, offsetof(struct sceneRecord, inp));
    sceneMenu.papChoiceValue = (uintptr_t)sceneChoice;
    sceneChoice[0] = (uintptr_t)"Passive";
    sceneChoice[1] = (uintptr_t)"I/O Intr";
    sceneChoice[2] = (uintptr_t)"Event";
    sceneChoice[3] = (uintptr_t)".1 second";
    cat->field[sceneScan].ftPvt = (uintptr_t)&sceneMenu;
    cat->pool = calloc(count, 8);
    cat->rec = calloc(count, sizeof(*cat->rec));
    for (uint32_t i = 0; i < count; i++) {
        cat->rec[i].addr = (uintptr_t)&sceneMemory[i];
        cat->rec[i].name = 8 * i;
        sprintf(cat->pool + 8 * i, "R%u", i);
    }
    return cat;
}

static inline void sceneLink(ebpfMonCatalogue *cat, uint32_t from, uint32_t to, uint32_t field)
{
    ebpfMonRecord *r = &cat->rec[from];
    uint32_t n = r->toCount, *list = calloc(2 * (n + 1), sizeof(*list));

    for (uint32_t k = 0; k < n; k++) {
        list[k] = r->to[k];
        list[n + 1 + k] = r->to[n + k];
    }
    list[n] = to;
    list[2 * n + 1] = field;
    free(r->to);
    r->to = list;
    r->toCount = n + 1;
}

/* A chain of "root" that begins at "begin" and takes 1 ms. */
static inline struct ebpfMonChain sceneChain(const char *thread, uint32_t tid, uint64_t begin, uint32_t root)
{
    struct ebpfMonChain c = {
        .head = { .kind = EBPFMON_EV_CHAIN, .tid = tid, .iocId = sceneTarget->iocId, .ktime = begin + MS },
        .begin = begin, .wait = 3 * US, .syscall = EBPFMON_NO_SYSCALL, .cpu = 1, .rootSlot = SCENE_SLOT + root,
    };

    strcpy(c.comm, thread);
    return c;
}

static inline uint64_t sceneStamp(uint64_t ktime)
{
    return (SCENE_EPOCH + ktime / 1000000000u) | (ktime % 1000000000u) << 32;
}

/* Makes the IOC; the caller adds it to its list of targets. */
static inline void sceneNewIoc(void)
{
    ebpfMonCatalogue *cat = sceneNewCatalogue(SCENE_RECORDS);

    sceneTarget = calloc(1, sizeof(*sceneTarget));
    strcpy(sceneTarget->name, "sceneIoc");
    strcpy(sceneTarget->version, "7.0.8.1");
    sceneTarget->pid = getpid();
    sceneTarget->cat = cat;
    sceneTarget->slot = SCENE_SLOT;
    sceneTarget->running = 1;
    sceneTarget->level = ebpfMonLevelTrace;
    cat->byNameSize = 4096;
    cat->byName = calloc(cat->byNameSize, sizeof(*cat->byName));
    cat->names = calloc(cat->count, sizeof(*cat->names));
    cat->nameCount = cat->count;
    for (uint32_t i = 0; i < cat->count; i++) {
        const char *name = cat->pool + cat->rec[i].name;
        uint32_t h = ebpfMonHashFnv32(EBPFMON_FNV32_BEGIN, name, strlen(name)) & (cat->byNameSize - 1);

        while (cat->byName[h])
            h = (h + 1) & (cat->byNameSize - 1);
        cat->names[i].name = cat->rec[i].name;
        cat->names[i].rec = i;
        cat->byName[h] = i + 1;
    }
}

#endif
