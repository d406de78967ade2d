/* SPDX-License-Identifier: BSD-3-Clause */
#include <epicsAtomic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/array.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/text.h"
#include "ebpfMonTable.h"
#include "ioc/baseLayout.h"
#include "ioc/catalogue.h"

/* --- reading --- */

#define EBPFMON_FIELDS_ALL    65536   /* of all; those of Base are 3,000 */

#define NAME_MAX_SIZE 256 /* of a record in memory */

typedef struct {
    ebpfMonMem *mem;
    ebpfMonCatalogue *cat;
    char *why;
    size_t whySize;
    size_t recRoom, typeRoom, fieldRoom, nameRoom, poolRoom;
    uint32_t nodes; /* of all lists, those without a record too */
} reader;

static int refuseDatabase(reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static int refuseDatabase(reader *r, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(r->why, r->whySize, fmt, ap);
    va_end(ap);
    return -1;
}

/* The offset of the copy, or -1 without memory. */
static long addName(reader *r, const char *name)
{
    ebpfMonCatalogue *cat = r->cat;
    char clean[4 * NAME_MAX_SIZE];
    size_t len;

    ebpfMonTextCopy(clean, sizeof(clean), name);
    len = strlen(clean) + 1;
    if (ebpfMonArrayGrow(&cat->pool, &r->poolRoom, cat->poolSize + len, 65536, 1))
        return -1;
    memcpy(cat->pool + cat->poolSize, clean, len);
    cat->poolSize += len;
    return (long)(cat->poolSize - len);
}

/* The name of a type or field: printable ASCII, no blank. */
static int isName(const char *s)
{
    if (!*s)
        return 0;
    for (; *s; s++)
        if (*s <= ' ' || *s > '~')
            return 0;
    return 1;
}

static int readFields(reader *r, ebpfMonRecType *rt, uint16_t rtIndex, uint64_t papFldDes, int count)
{
    ebpfMonCatalogue *cat = r->cat;

    rt->firstField = cat->fields;
    rt->valField = -1;
    for (int i = 0; i < count; i++) {
        uint64_t at = ebpfMonMemPtr(r->mem, papFldDes + 8u * (unsigned)i);
        struct layoutFldDes fd;
        ebpfMonField *f;

        if (!at || ebpfMonMemRead(r->mem, at, &fd, sizeof(fd)) || fd.field_type > ebpfMonDbfNoaccess)
            return refuseDatabase(r, "field %d of record type %s cannot be read", i, rt->name);
        if (ebpfMonArrayGrow(&cat->field, &r->fieldRoom, cat->fields + 1u, 256, sizeof(*f)))
            return refuseDatabase(r, "out of memory");
        f = &cat->field[cat->fields];
        memset(f, 0, sizeof(*f));
        f->addr = at;
        f->ftPvt = fd.ftPvt;
        f->type = (uint16_t)fd.field_type;
        f->offset = fd.offset;
        f->size = (uint16_t)fd.size;
        f->special = fd.special;
        f->rtype = rtIndex;
        if (ebpfMonMemStr(r->mem, fd.name, f->name, sizeof(f->name)) || !isName(f->name))
            return refuseDatabase(r, "field %d of record type %s has no readable name", i, rt->name);
        if (strcmp(f->name, "VAL") == 0)
            rt->valField = (int)cat->fields;
        cat->fields++;
        rt->fieldCount++;
    }
    return 0;
}

/* Where array fields keep their elements: BPTR and NORD (compress: NUSE), aSub's A with NEA, lsi's VAL. */
static void findArrays(ebpfMonCatalogue *cat, ebpfMonRecType *rt)
{
    ebpfMonField *f = &cat->field[rt->firstField], *bptr = NULL, *used = NULL;
    uint32_t n = rt->fieldCount;

    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(f[i].name, "BPTR") == 0)
            bptr = &f[i];
        if (strcmp(f[i].name, "NORD") == 0 || (!used && strcmp(f[i].name, "NUSE") == 0))
            used = &f[i];
    }
    for (uint32_t i = 0; i < n; i++) {
        if (f[i].special != EBPFMON_SPC_DBADDR)
            continue;
        if (strcmp(f[i].name, "VAL") == 0 && bptr && used) {
            f[i].arrayPtr = bptr->offset;
            f[i].arrayCount = used->offset;
        } else if (strlen(f[i].name) <= 4) {
            char count[16];

            snprintf(count, sizeof(count), "NE%s", f[i].name); /* aSub: A … U and VALA … VALU */
            if (strncmp(f[i].name, "VAL", 3) == 0)
                snprintf(count, sizeof(count), "NEV%s", f[i].name + 3);
            for (uint32_t k = 0; k < n; k++)
                if (strcmp(f[k].name, count) == 0) {
                    f[i].arrayPtr = f[i].offset;
                    f[i].arrayCount = f[k].offset;
                }
        }
    }
}

static int readNodes(reader *r, ebpfMonRecType *rt, uint16_t rtIndex, uint64_t listAt)
{
    ebpfMonCatalogue *cat = r->cat;
    struct layoutList list;
    uint64_t at, prev = 0;
    int32_t left;

    if (ebpfMonMemRead(r->mem, listAt, &list, sizeof(list)) || list.count < 0 ||
        list.count > EBPFMON_RECORDS_LIMIT)
        return refuseDatabase(r, "the record list of type %s cannot be read", rt->name);
    for (at = list.first, left = list.count; at && left > 0; left--) {
        struct layoutRecordNode node;
        char name[NAME_MAX_SIZE];
        long pool;

        if (ebpfMonMemRead(r->mem, at, &node, sizeof(node)) || node.prev != prev)
            return refuseDatabase(r, "the record list of type %s changed while it was read", rt->name);
        if (r->nodes++ >= EBPFMON_RECORDS_LIMIT)
            return refuseDatabase(r, "more than %d records", EBPFMON_RECORDS_LIMIT);
        prev = at;
        at = node.next;
        if (!node.precord)
            continue; /* being loaded: dbCreateRecord links the node before it allocates the record */
        if (ebpfMonMemStr(r->mem, node.recordname, name, sizeof(name)) || !name[0])
            return refuseDatabase(r, "a record of type %s has no readable name", rt->name);
        pool = addName(r, name);
        if (pool < 0 || ebpfMonArrayGrow(&cat->names, &r->nameRoom, cat->nameCount + 1u, 256, sizeof(*cat->names)))
            return refuseDatabase(r, "out of memory");
        cat->names[cat->nameCount].name = (uint32_t)pool;
        /* The index follows once the records are sorted; an alias finds its record by address. */
        cat->names[cat->nameCount].rec = UINT32_MAX;
        cat->nameCount++;
        if (ebpfMonArrayGrow(&cat->rec, &r->recRoom, cat->count + 1u, 256, sizeof(*cat->rec)))
            return refuseDatabase(r, "out of memory");
        memset(&cat->rec[cat->count], 0, sizeof(*cat->rec));
        cat->rec[cat->count].addr = node.precord;
        cat->rec[cat->count].name = (uint32_t)pool;
        cat->rec[cat->count].rtype = rtIndex;
        cat->rec[cat->count].flags = node.flags & EBPFMON_ISALIAS ? LAYOUT_ALIAS_MARK : 0;
        cat->count++;
    }
    if (left > 0 || at)
        return refuseDatabase(r, "the record list of type %s changed while it was read", rt->name);
    return 0;
}

static int readType(reader *r, uint64_t at)
{
    ebpfMonCatalogue *cat = r->cat;
    struct layoutRecordType lt;
    ebpfMonRecType *rt;
    uint16_t index = (uint16_t)cat->rtypes;
    uint32_t before = cat->count;

    if (ebpfMonMemRead(r->mem, at, &lt, sizeof(lt)))
        return refuseDatabase(r, "a record type cannot be read");
    if (cat->rtypes >= 4096 || ebpfMonArrayGrow(&cat->rtype, &r->typeRoom, cat->rtypes + 1u, 256, sizeof(*rt)))
        return refuseDatabase(r, "too many record types");
    rt = &cat->rtype[cat->rtypes];
    memset(rt, 0, sizeof(*rt));
    if (ebpfMonMemStr(r->mem, lt.name, rt->name, sizeof(rt->name)) || !isName(rt->name))
        return refuseDatabase(r, "a record type has no readable name");
    if (lt.no_fields < 0 || lt.no_fields > EBPFMON_FIELDS_LIMIT || lt.rec_size < 0)
        return refuseDatabase(r, "record type %s cannot be believed: %d fields", rt->name, lt.no_fields);
    if (cat->fields + (uint32_t)lt.no_fields > EBPFMON_FIELDS_ALL)
        return refuseDatabase(r, "more than %d fields", EBPFMON_FIELDS_ALL);
    rt->recSize = (uint32_t)lt.rec_size;
    rt->valField = -1;
    cat->rtypes++;
    if (lt.rec_size == 0)
        return 0; /* not registered (yet): its field offsets are not set */
    if (readFields(r, rt, index, lt.papFldDes, lt.no_fields))
        return -1;
    if (rt->fieldCount)
        findArrays(cat, rt);
    if (readNodes(r, rt, index, at + EBPFMON_RecordType_recList))
        return -1;
    rt->records = cat->count - before;
    return 0;
}

#define COMMON_SPAN (EBPFMON_RECORD_SPAN - 8) /* without TIME's own bytes */

static int findCommonFields(reader *r)
{
    static const struct { const char *name; size_t at; } want[] = {
        { "TIME", offsetof(ebpfMonCommon, time) }, { "PACT", offsetof(ebpfMonCommon, pact) },
        { "PPN", offsetof(ebpfMonCommon, ppn) },   { "LSET", offsetof(ebpfMonCommon, lset) },
        { "DISP", offsetof(ebpfMonCommon, disp) }, { "SEVR", offsetof(ebpfMonCommon, sevr) },
        { "STAT", offsetof(ebpfMonCommon, stat) }, { "TSE", offsetof(ebpfMonCommon, tse) },
        { "TSEL", offsetof(ebpfMonCommon, tsel) }, { "PHAS", offsetof(ebpfMonCommon, phas) },
        { "PROC", offsetof(ebpfMonCommon, proc) },
    };
    ebpfMonCatalogue *cat = r->cat;
    const ebpfMonCommon *c = &cat->common;

    for (uint32_t t = 0; t < cat->rtypes; t++) {
        if (!cat->rtype[t].fieldCount)
            continue;
        for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
            const ebpfMonField *f = ebpfMonCatalogueFieldNamed(cat, (uint16_t)t, want[i].name);

            if (!f)
                return refuseDatabase(r, "record type %s has no field %s: not an IOC of EPICS 3.14 to 7?",
                                      cat->rtype[t].name, want[i].name);
            *(uint16_t *)((char *)&cat->common + want[i].at) = f->offset;
        }
        const ebpfMonField *spvt = ebpfMonCatalogueFieldNamed(cat, (uint16_t)t, "SPVT");

        cat->common.spvt = spvt ? spvt->offset : 0;
        if (cat->common.time < EBPFMON_TIME_WINDOW || cat->common.pact >= cat->common.time ||
            cat->common.time - cat->common.pact > EBPFMON_TIME_WINDOW)
            return refuseDatabase(r, "TIME and PACT lie too far apart in its dbCommon: not an IOC of EPICS 3.14 to 7?");
        if (c->sevr >= c->time || c->stat >= c->time || c->time - c->sevr > COMMON_SPAN ||
            c->time - c->stat > COMMON_SPAN)
            return refuseDatabase(
                r, "STAT, SEVR and TIME lie too far apart in its dbCommon: not an IOC of EPICS 3.14 to 7?");
        return 0;
    }
    return refuseDatabase(r, "no record type is registered");
}

static uint16_t findType(const ebpfMonCatalogue *cat, uint16_t rtype, const char *name)
{
    const ebpfMonField *f = ebpfMonCatalogueFieldNamed(cat, rtype, name);

    return f ? f->type : UINT16_MAX;
}

/* Finds out which release of Base this is, in each of its record types the same, and gives the types of fields the
 * numbers of EPICS 7. */
static int findRelease(reader *r)
{
    ebpfMonCatalogue *cat = r->cat;

    for (uint32_t t = 0; t < cat->rtypes; t++) {
        const ebpfMonField *flnk = ebpfMonCatalogueFieldNamed(cat, (uint16_t)t, "FLNK");
        ebpfMonBaseEvidence seen = {
            .scan = findType(cat, (uint16_t)t, "SCAN"), .flnk = findType(cat, (uint16_t)t, "FLNK"),
            .sdis = findType(cat, (uint16_t)t, "SDIS"), .time = findType(cat, (uint16_t)t, "TIME"),
            .linkSize = flnk ? flnk->size : 0,
        };

        if (!cat->rtype[t].fieldCount)
            continue;
        cat->base = ebpfMonBaseReleaseFind(&seen, r->why, r->whySize);
        if (!cat->base)
            return -1;
    }
    for (uint32_t i = 0; i < cat->fields; i++) {
        ebpfMonField *f = &cat->field[i];

        f->type = ebpfMonBaseReleaseType(cat->base, f->type);
        if (f->type > ebpfMonDbfNoaccess)
            return refuseDatabase(r, "field %s has no type that is known", f->name);
        if (f->type >= ebpfMonDbfInlink && f->type <= ebpfMonDbfFwdlink)
            cat->rtype[f->rtype].links++;
    }
    return 0;
}

static int byAddr(const void *a, const void *b)
{
    const ebpfMonRecord *x = a, *y = b;

    if (x->addr != y->addr)
        return x->addr < y->addr ? -1 : 1;
    return (x->flags & LAYOUT_ALIAS_MARK) - (y->flags & LAYOUT_ALIAS_MARK); /* the record before its aliases */
}

static int byFieldAddr(const void *a, const void *b, void *arg)
{
    const ebpfMonField *field = arg;
    uint64_t x = field[*(const uint32_t *)a].addr, y = field[*(const uint32_t *)b].addr;

    return x < y ? -1 : x > y;
}

/* Sorts, folds aliases into their records, and makes the table of names. */
static int indexRecords(reader *r)
{
    ebpfMonCatalogue *cat = r->cat;
    uint32_t kept = 0, names = 0;
    int status;

    cat->fieldByAddr = malloc((cat->fields ? cat->fields : 1) * sizeof(*cat->fieldByAddr));
    if (!cat->fieldByAddr)
        return refuseDatabase(r, "out of memory");
    for (uint32_t i = 0; i < cat->fields; i++)
        cat->fieldByAddr[i] = i;
    qsort_r(cat->fieldByAddr, cat->fields, sizeof(*cat->fieldByAddr), byFieldAddr, cat->field);
    if (cat->count == 0)
        return 0;
    qsort(cat->rec, cat->count, sizeof(*cat->rec), byAddr);
    cat->nameCount = 0;
    for (uint32_t i = 0; i < cat->count; i++) {
        int alias = kept > 0 && cat->rec[kept - 1].addr == cat->rec[i].addr;

        cat->names[names].name = cat->rec[i].name;
        cat->names[names++].rec = alias ? kept - 1 : kept;
        if (alias) {
            cat->aliases++;
            cat->rtype[cat->rec[i].rtype].records--;
            continue;
        }
        cat->rec[kept] = cat->rec[i];
        cat->rec[kept].flags = 0;
        kept++;
    }
    cat->count = kept;
    cat->nameCount = names;
    status = ebpfMonCatalogueIndexNames(cat);
    if (status)
        return refuseDatabase(r, status > 0 ? "too many records have the same name" : "out of memory");
    return 0;
}

ebpfMonCatalogue *ebpfMonCatalogueRead(ebpfMonMem *mem, uint64_t pdbbase, char *why, size_t size)
{
    reader r = { .mem = mem, .why = why, .whySize = size };
    uint64_t base, at, prev = 0;
    struct layoutList list;
    int32_t left;

    why[0] = 0;
    base = ebpfMonMemPtr(mem, pdbbase);
    if (!base)
        return NULL;
    if (ebpfMonMemRead(mem, base + EBPFMON_RECORDTYPELIST, &list, sizeof(list)) || list.count < 0 ||
        list.count > 4096) {
        refuseDatabase(&r, "pdbbase does not point to a database");
        return NULL;
    }
    if (list.count == 0)
        return NULL;
    r.cat = calloc(1, sizeof(*r.cat));
    if (!r.cat)
        return NULL;
    r.cat->refs = 1;
    r.cat->since = ebpfMonClockMonotonic();
    r.cat->links = ebpfMonLinkTableNew();
    if (!r.cat->links)
        refuseDatabase(&r, "out of memory");
    for (at = list.first, left = list.count; at && left > 0; left--) {
        struct layoutNode node;

        if (ebpfMonMemRead(mem, at, &node, sizeof(node)) || node.prev != prev) {
            refuseDatabase(&r, "the list of record types changed while it was read");
            break;
        }
        if (readType(&r, at))
            break;
        prev = at;
        at = node.next;
    }
    if (!why[0] && (left > 0 || at))
        refuseDatabase(&r, "the list of record types changed while it was read");
    if (!why[0] && findCommonFields(&r) == 0 && findRelease(&r) == 0 && indexRecords(&r) == 0)
        return r.cat;
    ebpfMonCatalogueRelease(r.cat);
    return NULL;
}

ebpfMonCatalogue *ebpfMonCatalogueHold(ebpfMonCatalogue *cat)
{
    if (cat)
        epicsAtomicIncrIntT(&cat->refs);
    return cat;
}

void ebpfMonCatalogueRelease(ebpfMonCatalogue *cat)
{
    if (!cat || epicsAtomicDecrIntT(&cat->refs) > 0)
        return;
    for (uint32_t i = 0; i < cat->count; i++)
        free(cat->rec[i].to);
    free(cat->rec);
    for (uint32_t k = 0; k < cat->rtypes; k++)
        free(cat->rtype[k].dev);
    free(cat->rtype);
    free(cat->field);
    free(cat->fieldByAddr);
    free(cat->pool);
    free(cat->byName);
    free(cat->names);
    ebpfMonLinkTableFree(cat->links);
    free(cat);
}

long ebpfMonCatalogueCountNodes(ebpfMonMem *mem, uint64_t pdbbase)
{
    uint64_t base = ebpfMonMemPtr(mem, pdbbase), at;
    struct layoutList list, recs;
    long sum = 0;

    if (!base)
        return 0;
    if (ebpfMonMemRead(mem, base + EBPFMON_RECORDTYPELIST, &list, sizeof(list)) || list.count < 0 ||
        list.count > 4096)
        return -1;
    at = list.first;
    for (int32_t i = 0; i < list.count && at; i++) {
        if (ebpfMonMemRead(mem, at + EBPFMON_RecordType_recList, &recs, sizeof(recs)))
            return -1;
        sum += recs.count;
        at = ebpfMonMemPtr(mem, at);
    }
    return sum;
}

/* --- finding --- */

/* Finding things in a catalogue: by name, and by address. */

/* Places of the table that are looked at for each name, on the average; 1.5 suffice. An IOC could have 2 million
 * records with one name, which would take hours. */
#define STEPS 64u

static uint32_t hashName(const char *name)
{
    return ebpfMonHashFnv32(EBPFMON_FNV32_BEGIN, name, strlen(name));
}

int ebpfMonCatalogueIndexNames(ebpfMonCatalogue *cat)
{
    uint64_t steps = (uint64_t)STEPS * (cat->nameCount + STEPS);

    for (cat->byNameSize = 16; cat->byNameSize < cat->nameCount * 2; cat->byNameSize *= 2)
        ;
    cat->byName = calloc(cat->byNameSize, sizeof(*cat->byName));
    if (!cat->byName)
        return -1;
    for (uint32_t i = 0; i < cat->nameCount; i++) {
        uint32_t h = hashName(cat->pool + cat->names[i].name) & (cat->byNameSize - 1);

        for (; cat->byName[h]; h = (h + 1) & (cat->byNameSize - 1))
            if (!steps--)
                return 1;
        cat->byName[h] = i + 1;
    }
    return 0;
}

long ebpfMonCatalogueFind(const ebpfMonCatalogue *cat, const char *name)
{
    uint32_t h;

    if (!cat->byNameSize)
        return -1;
    h = hashName(name) & (cat->byNameSize - 1);
    while (cat->byName[h]) {
        uint32_t i = cat->byName[h] - 1;

        if (strcmp(cat->pool + cat->names[i].name, name) == 0)
            return cat->names[i].rec;
        h = (h + 1) & (cat->byNameSize - 1);
    }
    return -1;
}

long ebpfMonCatalogueFindAddr(const ebpfMonCatalogue *cat, uint64_t precord)
{
    uint32_t lo = 0, hi = cat->count;

    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;

        if (cat->rec[mid].addr < precord)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < cat->count && cat->rec[lo].addr == precord ? (long)lo : -1;
}

const ebpfMonField *ebpfMonCatalogueFieldAt(const ebpfMonCatalogue *cat, uint64_t addr, uint32_t *index)
{
    uint32_t lo = 0, hi = cat->count;
    const ebpfMonRecType *rt;

    while (lo < hi) { /* the first record behind the address */
        uint32_t mid = lo + (hi - lo) / 2;

        if (cat->rec[mid].addr <= addr)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (!lo)
        return NULL;
    *index = lo - 1;
    rt = &cat->rtype[cat->rec[lo - 1].rtype];
    for (uint32_t i = rt->firstField; i < rt->firstField + rt->fieldCount; i++)
        if (cat->rec[lo - 1].addr + cat->field[i].offset == addr)
            return &cat->field[i];
    return NULL;
}

const ebpfMonField *ebpfMonCatalogueField(const ebpfMonCatalogue *cat, uint64_t pfldDes)
{
    uint32_t lo = 0, hi = cat->fields;

    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;

        if (cat->field[cat->fieldByAddr[mid]].addr < pfldDes)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo < cat->fields && cat->field[cat->fieldByAddr[lo]].addr == pfldDes)
        return &cat->field[cat->fieldByAddr[lo]];
    return NULL;
}

const ebpfMonField *ebpfMonCatalogueFieldNamed(const ebpfMonCatalogue *cat, uint16_t rtype, const char *name)
{
    const ebpfMonRecType *rt = &cat->rtype[rtype];

    for (uint32_t i = rt->firstField; i < rt->firstField + rt->fieldCount; i++)
        if (strcmp(cat->field[i].name, name) == 0)
            return &cat->field[i];
    return NULL;
}

int ebpfMonCatalogueHasSameRecords(const ebpfMonCatalogue *a, const ebpfMonCatalogue *b)
{
    if (a->count != b->count || a->rtypes != b->rtypes || a->fields != b->fields)
        return 0;
    for (uint32_t i = 0; i < a->count; i++)
        if (a->rec[i].addr != b->rec[i].addr || a->rec[i].rtype != b->rec[i].rtype)
            return 0;
    for (uint32_t k = 0; k < a->fields; k++)
        if (a->field[k].addr != b->field[k].addr || a->field[k].offset != b->field[k].offset)
            return 0;
    return 1;
}
