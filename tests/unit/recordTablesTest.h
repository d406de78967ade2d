/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests of watch/recordTables.h and watch/governor.h: tables in plain memory, and this process as an IOC, with
 * records and links in the layout of Base. */
#ifndef EBPFMON_RECORDTABLESTEST_H
#define EBPFMON_RECORDTABLESTEST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <epicsUnitTest.h>

#include "baseLinks.h"
#include "ioc/closure.h"
#include "watch/followed.h"
#include "watch/recordTables.h"
#include "watch/typeTrial.h"

#define RECORDS     6
#define MAX_RECORDS 16
#define MAX_CLOSURE 64

/* A record of the IOC: a forward link, and the fields of dbCommon that the monitor reads. */
typedef struct {
    struct layoutPvLink flnk, tsel;
    int16_t  tse;
    uint8_t  pact;
    uint64_t spvt;     /* not 0: it is in a scan list */
    uint64_t time;     /* epicsTimeStamp */
    uint32_t value;
    struct layoutDbChannel chan; /* of its FLNK */
} iocRecord;

static iocRecord record[RECORDS];
static char names[RECORDS][8];

/* The tables of the kernel part: arrays, and tables with keys. */
static struct ebpfMonRecConf conf[MAX_RECORDS];
static struct ebpfMonRecState state[MAX_RECORDS];
static uint32_t closure[MAX_CLOSURE];
static ebpfMonTables tables;
static uint64_t indexed[MAX_RECORDS]; /* by slot: address of the record */
static unsigned indexFails, rootsTaken, rootsRemoved, asyncsRemoved, arrays, listsRemoved;

static int setRecordIndex(uint32_t tgid, const uint64_t *precord, uint32_t count, uint32_t first)
{
    if (tgid != (uint32_t)getpid() || indexFails)
        return -1;
    for (uint32_t i = 0; i < count; i++)
        indexed[first + i] = precord[i];
    return 0;
}

static void removeRecordIndex(uint32_t tgid, const uint64_t *precord, uint32_t count)
{
    (void)tgid;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t s = 0; s < MAX_RECORDS; s++)
            if (indexed[s] == precord[i])
                indexed[s] = 0;
}

static int setArray(uint32_t tgid, uint64_t pfldDes, const struct ebpfMonArrayConf *c)
{
    (void)tgid; (void)pfldDes; (void)c;
    arrays++;
    return 0;
}

static void removeArray(uint32_t tgid, uint64_t pfldDes)
{
    (void)tgid; (void)pfldDes;
    arrays--;
}

static void removeLists(uint32_t tgid)
{
    listsRemoved += tgid == (uint32_t)getpid();
}

static void removeRoots(uint32_t first, uint32_t count)
{
    (void)first;
    rootsRemoved += count;
}

static uint32_t takeRoot(uint32_t slot)
{
    rootsTaken++;
    return slot + 1;
}

static void removeAsyncs(uint32_t first, uint32_t count)
{
    (void)first;
    asyncsRemoved += count;
}

static ebpfMonTargets *targets;
static ebpfMonRecordTables *recordTables;

static inline unsigned countIndexed(void)
{
    unsigned n = 0;

    for (uint32_t s = 0; s < MAX_RECORDS; s++)
        n += indexed[s] != 0;
    return n;
}

static void setForward(unsigned from, int to)
{
    iocRecord *r = &record[from];

    memset(&r->flnk, 0, sizeof(r->flnk));
    if (to < 0)
        return;
    r->flnk.type = EBPFMON_LINK_DB;
    r->flnk.precord = (uint64_t)(uintptr_t)r;
    r->flnk.pvt = (uint64_t)(uintptr_t)&r->chan;
    r->chan.addr.precord = (uint64_t)(uintptr_t)&record[to];
}

static uint64_t stamp(uint32_t seconds)
{
    return seconds; /* nanoseconds are 0 */
}

static const char *typeName = "calc";

/* Makes a catalogue as the monitor would read it: one type, three fields (one of them an array), and the records in
 * the order of their addresses. */
static ebpfMonCatalogue *makeCatalogue(void)
{
    ebpfMonCatalogue *cat = calloc(1, sizeof(*cat));

    cat->refs = 1;
    cat->base = ebpfMonBaseReleaseGet(0);
    cat->count = RECORDS;
    cat->rtypes = 1;
    cat->fields = 3;
    cat->rec = calloc(RECORDS, sizeof(*cat->rec));
    cat->rtype = calloc(1, sizeof(*cat->rtype));
    cat->field = calloc(3, sizeof(*cat->field));
    cat->fieldByAddr = calloc(3, sizeof(*cat->fieldByAddr));
    cat->pool = malloc(sizeof(names));
    cat->links = ebpfMonLinkTableNew();
    memcpy(cat->pool, names, sizeof(names));
    strcpy(cat->rtype[0].name, typeName);
    cat->rtype[0].fieldCount = 3;
    cat->rtype[0].valField = 1;
    strcpy(cat->field[0].name, "FLNK");
    cat->field[0].type = ebpfMonDbfFwdlink;
    cat->field[0].offset = offsetof(iocRecord, flnk);
    strcpy(cat->field[1].name, "VAL");
    cat->field[1].type = ebpfMonDbfUlong;
    cat->field[1].offset = offsetof(iocRecord, value);
    cat->field[1].size = sizeof(uint32_t);
    strcpy(cat->field[2].name, "ARR");
    cat->field[2].type = ebpfMonDbfNoaccess;
    cat->field[2].arrayCount = 8;
    cat->common.time = offsetof(iocRecord, time);
    cat->common.pact = offsetof(iocRecord, pact);
    cat->common.spvt = offsetof(iocRecord, spvt);
    cat->common.tse = offsetof(iocRecord, tse);
    cat->common.tsel = offsetof(iocRecord, tsel);
    for (unsigned i = 0; i < RECORDS; i++) {
        cat->rec[i].addr = (uint64_t)(uintptr_t)&record[i];
        cat->rec[i].name = i * sizeof(names[0]);
        cat->rec[i].fwd = UINT32_MAX;
    }
    return cat;
}

/* Records 0, 1 and 2 are linked and make a stretch. 3, 4 and 5 are single; TSE of 3 is set. */
static ebpfMonTarget *makeIoc(void)
{
    ebpfMonTarget *t = ebpfMonFollowedNew();

    for (unsigned i = 0; i < RECORDS; i++) {
        memset(&record[i], 0, sizeof(record[i]));
        record[i].time = stamp(100 + i);
        sprintf(names[i], "rec%u", i);
    }
    setForward(0, 1);
    setForward(1, 2);
    record[3].tse = -2;
    t->pid = getpid();
    strcpy(t->name, "test");
    t->slot = t->closures.at = t->closures.oldAt = UINT32_MAX;
    t->followed->mem = ebpfMonMemNew(getpid());
    t->cat = makeCatalogue();
    ebpfMonTargetsAdd(targets, t);
    return t;
}

static void freeIoc(ebpfMonTarget *t)
{
    ebpfMonRecordTablesRemove(recordTables, t);
    ebpfMonTargetsRemove(targets, t);
    ebpfMonCatalogueRelease(t->cat);
    ebpfMonMemFree(t->followed->mem);
    free(t);
}

/* The closure of a record as a text such as "0 1 2", read as the kernel part reads it. */
static inline const char *closureOf(const ebpfMonTarget *t, unsigned index, char buf[64])
{
    const struct ebpfMonRecConf *rc = &conf[t->slot + index];

    buf[0] = 0;
    for (uint32_t k = 0; k < rc->len; k++)
        sprintf(buf + strlen(buf), "%s%u", k ? " " : "", EBPFMON_ENTRY_SLOT(closure[rc->first + k]) - t->slot);
    return buf;
}

#endif
