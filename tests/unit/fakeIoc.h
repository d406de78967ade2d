/* SPDX-License-Identifier: BSD-3-Clause */
/* A watched IOC for tests. Its database is in the memory of the test program, and the monitor's code reads it as the
 * memory of any other process. Records: 0 A:AO (ao), 1 A:SEL (mbbo), 2 A:CALC (calc, with a CP link), 3 A:SEQ (ao). */
#ifndef EBPFMON_FAKEIOC_H
#define EBPFMON_FAKEIOC_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "baseLinks.h"
#include "watch/target.h"

typedef struct {
    char     name[61];
    uint16_t scan; /* index in the menu */
    uint8_t  rpro;
    double   val;
    uint16_t sel;  /* VAL of mbbo */
    char     zrst[26], onst[26];
    char     desc[41];
    struct layoutPvLink out, inp;
} fakeRecord;

enum { FAKE_AO, FAKE_SEL, FAKE_CALC, FAKE_SEQ, FAKE_RECORDS };

static struct {
    ebpfMonTargets *targets;
    ebpfMonTarget  *t;
    fakeRecord      rec[FAKE_RECORDS];
    char           *choices[4];
    struct layoutMenu menu;
    ebpfMonField    field[20];
    unsigned        fields;
    struct layoutDbChannel link; /* of A:SEQ.OUT */
} fake;

static const ebpfMonField *fakeAddField(uint16_t rtype, const char *name, uint16_t type, size_t offset, uint16_t size)
{
    ebpfMonField *f = &fake.field[fake.fields++];

    *f = (ebpfMonField){ .type = type, .offset = (uint16_t)offset, .size = size, .rtype = rtype };
    f->addr = (uint64_t)(uintptr_t)f;
    strcpy(f->name, name);
    if (type == ebpfMonDbfMenu)
        f->ftPvt = (uint64_t)(uintptr_t)&fake.menu;
    return f;
}

static void fakeAddType(ebpfMonCatalogue *cat, const char *name, int isEnum)
{
    uint16_t i = (uint16_t)cat->rtypes++;
    ebpfMonRecType *rt = &cat->rtype[i];

    strcpy(rt->name, name);
    rt->firstField = fake.fields;
    fakeAddField(i, "SCAN", ebpfMonDbfMenu, offsetof(fakeRecord, scan), 2);
    if (isEnum) {
        fakeAddField(i, "VAL", ebpfMonDbfEnum, offsetof(fakeRecord, sel), 2);
        fakeAddField(i, "ZRST", ebpfMonDbfString, offsetof(fakeRecord, zrst), 26);
        fakeAddField(i, "ONST", ebpfMonDbfString, offsetof(fakeRecord, onst), 26);
    } else {
        fakeAddField(i, "VAL", ebpfMonDbfDouble, offsetof(fakeRecord, val), 8);
        fakeAddField(i, "DESC", ebpfMonDbfString, offsetof(fakeRecord, desc), 41);
        fakeAddField(i, "OUT", ebpfMonDbfOutlink, offsetof(fakeRecord, out), sizeof(struct layoutPvLink));
        fakeAddField(i, "INP", ebpfMonDbfInlink, offsetof(fakeRecord, inp), sizeof(struct layoutPvLink));
        fakeAddField(i, "RPRO", ebpfMonDbfUchar, offsetof(fakeRecord, rpro), 1);
    }
    rt->fieldCount = fake.fields - rt->firstField;
    rt->valField = (int)rt->firstField + 1;
}

static uint64_t fakeAddress(unsigned rec)
{
    return (uint64_t)(uintptr_t)&fake.rec[rec];
}

/* The field of a record. */
static const ebpfMonField *fakeField(unsigned rec, const char *name)
{
    return ebpfMonCatalogueFieldNamed(fake.t->cat, fake.t->cat->rec[rec].rtype, name);
}

/* The address of the DBADDR that the link A:SEQ.OUT uses for its puts. */
static inline uint64_t fakeLinkAddr(void)
{
    return (uint64_t)(uintptr_t)&fake.link.addr;
}

static void fakeMake(void)
{
    static const char *const names[FAKE_RECORDS] = { "A:AO", "A:SEL", "A:CALC", "A:SEQ" };
    static char *const choices[4] = { "Passive", "Event", "I/O Intr", ".1 second" };
    ebpfMonCatalogue *cat = calloc(1, sizeof(*cat));
    size_t at = 0;

    memcpy(fake.choices, choices, sizeof(choices));
    fake.menu.nChoice = 4;
    fake.menu.papChoiceValue = (uint64_t)(uintptr_t)fake.choices;
    cat->refs = 1;
    cat->base = ebpfMonBaseReleaseGet(0);
    cat->rtype = calloc(2, sizeof(*cat->rtype));
    fakeAddType(cat, "ao", 0);
    fakeAddType(cat, "mbbo", 1);
    cat->field = fake.field; /* the test never frees the catalogue */
    cat->fields = fake.fields;
    cat->fieldByAddr = calloc(fake.fields, sizeof(*cat->fieldByAddr));
    for (uint32_t i = 0; i < fake.fields; i++)
        cat->fieldByAddr[i] = i;
    cat->count = FAKE_RECORDS;
    cat->rec = calloc(FAKE_RECORDS, sizeof(*cat->rec));
    cat->pool = calloc(FAKE_RECORDS, 64);
    for (unsigned i = 0; i < FAKE_RECORDS; i++) {
        strcpy(fake.rec[i].name, names[i]);
        strcpy(cat->pool + at, names[i]);
        cat->rec[i] = (ebpfMonRecord){ .addr = fakeAddress(i), .name = (uint32_t)at, .rtype = i == FAKE_SEL };
        at += strlen(names[i]) + 1;
    }
    strcpy(fake.rec[FAKE_SEL].zrst, "Idle");
    strcpy(fake.rec[FAKE_SEL].onst, "Moving");
    cat->links = ebpfMonLinkTableNew();

    fake.targets = ebpfMonTargetsNew();
    fake.t = calloc(1, sizeof(*fake.t));
    fake.t->pid = getpid();
    fake.t->cat = cat;
    fake.t->running = fake.t->indexed = 1;
    strcpy(fake.t->name, "iocA");
    ebpfMonTargetsAdd(fake.targets, fake.t);
    ebpfMonLinkTableAdd(
        cat->links, fakeLinkAddr(),
        (ebpfMonLinkOwner){.rec = FAKE_SEQ, .field = (uint32_t)(fakeField(FAKE_SEQ, "OUT") - fake.field)});
}

#endif
